/** A run of somebody else's, whose manifest names code that leaves a mark when it runs. */
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fixtures, unpackRuns } from '../runs/support/old-runs.ts';

export interface HostileRun {
  readonly dir: string;
  /** The whole path of the code. */
  readonly code: string;
  /** Whether the code has run since this was asked last. */
  ran(): boolean;
}

type Manifest = Record<'config' | 'environment', Record<string, unknown>>;

/** Makes such runs in a directory: of an environment with switches, unless told. */
export function hostileRuns(root: string) {
  const pristine = join(root, 'pristine');
  unpackRuns(pristine);
  const mark = join(root, 'mark');
  const ran = (): boolean => {
    const there = existsSync(mark);
    rmSync(mark, { force: true });
    return there;
  };
  return {
    /** A file that works as an environment, of an id of its own unless told, and marks that it was imported. */
    envFile(name: string, id = idOf(name)): string {
      const file = join(root, name);
      const source = readFileSync(join(fixtures, 'switches.mjs'), 'utf8');
      const own = `import { writeFileSync } from 'node:fs';\nwriteFileSync(${JSON.stringify(mark)}, '');\n`;
      writeFileSync(file, `${own}${source.replaceAll('Switches-v0', id)}`);
      return file;
    },
    make(
      name: string,
      code: string,
      change: (manifest: Manifest, code: string) => void = namesFile,
      of = 'ppo-multi-discrete',
    ): HostileRun {
      const dir = join(root, 'runs', name);
      mkdirSync(join(root, 'runs'), { recursive: true });
      cpSync(join(pristine, of), dir, { recursive: true });
      changeManifest(dir, manifest => change(manifest, code));
      return { dir, code, ran };
    },
    ran,
    mark,
  };
}

/** One process knows an id once. */
const idOf = (file: string): string => `${file.replace(/\W/g, '')}-v0`;

/** The environment's file is this one. */
function namesFile({ config, environment }: Manifest, code: string): void {
  config.env = code;
  environment.id = idOf(basename(code));
}

export function changeManifest(dir: string, change: (manifest: Manifest) => void): void {
  const path = join(dir, 'manifest.json');
  const manifest = JSON.parse(readFileSync(path, 'utf8'));
  change(manifest);
  writeFileSync(path, JSON.stringify(manifest));
}
