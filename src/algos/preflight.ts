/**
 * One tiny batch through every part of a training run, on the settings that the run would have: what would break after
 * an hour breaks here in seconds. Each algorithm has its own parts (`ppo/preflight.ts`, `grpo/preflight.ts`).
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ConfigError } from '../base/errors.ts';
import { checkpointDir } from '../runs/layout.ts';
import { readTrajectory } from '../runs/log.ts';
import type { RunConfig } from '../settings/spec.ts';
import type { PartReport, PreflightOptions } from './algorithm.ts';
import type { TrainResult } from './hooks.ts';

/** What a part has seen; how long it took where it did not take all the time. */
export interface PartFound {
  readonly detail: string;
  readonly seconds?: number | undefined;
  readonly warnings?: readonly string[];
}

/** A learning rate that no weight in single precision notices. */
export const NO_RATE = 1e-30;

/** A refusal that belongs to a later part than the one under way, which has done its work. */
export class FailedLater extends Error {
  readonly part: string;

  constructor(part: string, cause: Error) {
    super(cause.message, { cause });
    this.part = part;
  }
}

/** Tries each part in turn; after a failure the rest is not reached. Settings that cannot be are thrown, as `train` does. */
export async function tryParts(
  parts: Readonly<Record<string, () => Promise<PartFound>>>,
  onPart: ((report: PartReport) => void) | undefined,
): Promise<PartReport[]> {
  const reports: PartReport[] = [];
  const add = (report: PartReport): void => {
    reports.push(report);
    onPart?.(report);
  };
  let failed: PartReport | undefined;
  for (const [part, work] of Object.entries(parts)) {
    if (failed?.part === part) {
      add(failed);
      continue;
    }
    if (failed && reports.some(report => report.status === 'failed')) {
      add({ part, status: 'not reached', detail: '', seconds: 0, warnings: [] });
      continue;
    }
    const report = failed ?? (await tryPart(part, work));
    if (report.status === 'failed') failed = report;
    // What a later part would have refused says that this one went well.
    add(report.part === part ? report : { ...report, part, status: 'passed', detail: 'done' });
  }
  return reports;
}

async function tryPart(part: string, work: () => Promise<PartFound>): Promise<PartReport> {
  const started = performance.now();
  const elapsed = (): number => (performance.now() - started) / 1000;
  try {
    const { detail, seconds = elapsed(), warnings = [] } = await work();
    return { part, status: 'passed', detail, seconds, warnings };
  } catch (error) {
    // Wrong settings are no part that failed: nothing was tried with them.
    if (error instanceof ConfigError) throw error;
    if (process.env.KEEL_DEBUG === '1') process.stderr.write(`${(error as Error).stack}\n`);
    const detail = (error instanceof Error ? error.message : String(error)).split('\n').join('; ');
    const at = error instanceof FailedLater ? error.part : part;
    return { part: at, status: 'failed', detail, seconds: elapsed(), warnings: [] };
  }
}

/** Stops a run after its first iteration and resumes it; an error where it is not the same as one that was not stopped. */
export async function tryResume<C extends RunConfig>(
  { train, resume }: PreflightOptions<C>,
  config: C,
  whole: TrainResult,
  { file, learnt, question }: { readonly file: string; readonly learnt: string; readonly question: string },
): Promise<PartFound> {
  const controller = new AbortController();
  const stopped = await train(config, { signal: controller.signal, onRow: () => controller.abort() });
  const resumed = await resume(stopped.dir);
  const [rowsA, rowsB] = [whole, resumed].map(({ dir }) => readTrajectory(dir).rows);
  const at = rowsA.findIndex((row, i) => row !== rowsB[i]);
  const [bytesA, bytesB] = [whole, resumed].map(({ dir, step }) =>
    readFileSync(join(checkpointDir(dir, step), file)),
  );
  const problem =
    at >= 0 || rowsA.length !== rowsB.length
      ? `another row ${at + 1}`
      : bytesA.equals(bytesB)
        ? undefined
        : `other ${learnt}`;
  if (problem) throw new Error(`a run that was stopped and resumed has ${problem}: ${question}`);
  return { detail: `stopped after 1 update and resumed: the same rows and ${learnt}, to the bit` };
}
