/** `manifest.json`: what a run is. */
import { existsSync } from 'node:fs';
import { hostname } from 'node:os';
import { fail, RunError } from '../base/errors.ts';
import { readBounded, writeFileAtomic } from '../base/files.ts';
import { encodeJson, parseJson } from '../base/json.ts';
import { typed } from '../base/typed.ts';
import { halfMadeProblem, isHalfMade } from './half-made.ts';
import { runPaths } from './layout.ts';
import { maxManifestBytes } from './looks-like-run.ts';
import { type EnvironmentSpec, type Manifest, parseManifest, schemaVersion } from './schema.ts';

/** What the trainer knows about a new run; the rest of the manifest follows from it. */
export interface RunSpec {
  readonly algorithm: string;
  readonly environment: EnvironmentSpec;
  /** Everything, defaults included. */
  readonly config: Readonly<Record<string, unknown>>;
  readonly seed: number;
  /** `keel` and `onnxruntime`; Node and the platform are added. */
  readonly versions: Readonly<Record<string, string>>;
  readonly parent?: { readonly id: string; readonly step: number };
  readonly beginning?: Manifest['beginning'];
  readonly imported?: Manifest['imported'];
  readonly autopilot?: Manifest['autopilot'];
}

/** The manifest of a run that begins now. */
export function newManifest(id: string, spec: RunSpec, when: Date): Manifest {
  const now = when.toISOString();
  return parseManifest(
    {
      kind: 'keel-run',
      schema: schemaVersion,
      id,
      status: 'running',
      algorithm: spec.algorithm,
      environment: spec.environment,
      config: spec.config,
      seed: spec.seed,
      versions: {
        ...spec.versions,
        node: process.version,
        platform: `${process.platform}-${process.arch}`,
      },
      parent: spec.parent ?? null,
      ...(spec.beginning && { beginning: spec.beginning }),
      ...(spec.imported && { imported: spec.imported }),
      ...(spec.autopilot && { autopilot: spec.autopilot }),
      startedAt: now,
      updatedAt: now,
      endedAt: null,
      iteration: 0,
      step: 0,
      pid: process.pid,
      host: hostname(),
      resumes: 0,
      reason: null,
    },
    `manifest of ${id}`,
  );
}

/** Reads and checks; a directory without a manifest is not a run. */
export function readManifest(runDir: string): Manifest {
  const path = runPaths(runDir).manifest;
  if (!existsSync(path)) {
    if (isHalfMade(runDir)) fail(`${runDir} is no run: ${halfMadeProblem(runDir)}`, 'not-a-run');
    const what = existsSync(runDir) ? 'is not a run: it has no manifest.json' : 'does not exist';
    fail(`${runDir} ${what}; \`${typed('runs')}\` lists the runs there are`, 'not-a-run');
  }
  try {
    return parseManifest(parseJson(readBounded(path, maxManifestBytes), path), path);
  } catch (error) {
    if (!(error instanceof RunError) || error.code !== 'invalid') throw error;
    throw new RunError(`${error.message}; put a whole copy of it back, or delete the run's directory`, {
      code: error.code,
      cause: error,
    });
  }
}

/** Writes the whole manifest, or leaves the old one. Refuses what would not read back. */
export function writeManifest(runDir: string, manifest: Manifest): void {
  const path = runPaths(runDir).manifest;
  const text = encodeJson(parseManifest(manifest, path), 'manifest');
  if (Buffer.byteLength(text) > maxManifestBytes) {
    fail(
      `${path} would have ${Buffer.byteLength(text)} bytes, at most ${maxManifestBytes}: shorten the config`,
    );
  }
  writeFileAtomic(path, text);
}

/** What may change during a run. Its seed, its parent and its beginning may not: that would be another run. */
export type ManifestPatch = Partial<
  Pick<
    Manifest,
    | 'status'
    | 'environment'
    | 'endedAt'
    | 'iteration'
    | 'step'
    | 'pid'
    | 'host'
    | 'resumes'
    | 'reason'
    | 'config'
    | 'versions'
    | 'wentOn'
  >
>;

/** Changes some fields of the manifest on disk. Only for the process that holds the run's lock. */
export function updateManifest(runDir: string, patch: ManifestPatch, when = new Date()): Manifest {
  const manifest = { ...readManifest(runDir), ...patch, updatedAt: when.toISOString() };
  writeManifest(runDir, manifest);
  return manifest;
}
