/**
 * One tiny batch through every part of a training run, on the settings that the run would have: what would break after
 * an hour breaks here in seconds. Each algorithm has its own parts (`ppo/preflight.ts`, `grpo/preflight.ts`).
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { withoutControls } from '../base/controls.ts';
import { ConfigError, MismatchError } from '../base/errors.ts';
import { number } from '../base/numbers.ts';
import { checkpointDir } from '../runs/layout.ts';
import { readTrajectory } from '../runs/log.ts';
import type { RunConfig } from '../settings/spec.ts';
import type { IterationResult, PartReport, PreflightOptions } from './algorithm.ts';
import type { TrainResult } from './hooks.ts';

/** What a part has seen; how long it took where it did not take all the time. */
export interface PartFound {
  readonly detail: string;
  readonly seconds?: number | undefined;
  readonly warnings?: readonly string[];
}

/** Parts in turn: each ends with what it has seen. */
export type Parts<Result = void> = AsyncGenerator<PartFound, Result, void>;
type Row = IterationResult['row'];

/** Tries each part in turn; after a failure the rest is not reached. Settings that cannot be are thrown, as `train` does. */
export async function tryParts(
  names: readonly string[],
  parts: Parts,
  onPart: ((report: PartReport) => void) | undefined,
): Promise<PartReport[]> {
  const reports: PartReport[] = [];
  try {
    for (const part of names) {
      const report: PartReport = reports.some(({ status }) => status === 'failed')
        ? { part, status: 'not reached', detail: '', seconds: 0, warnings: [] }
        : await tryPart(part, parts);
      reports.push(report);
      onPart?.(report);
    }
    return reports;
  } finally {
    await parts.return();
  }
}

async function tryPart(part: string, parts: Parts): Promise<PartReport> {
  const started = performance.now();
  const elapsed = (): number => (performance.now() - started) / 1000;
  try {
    const { value } = await parts.next();
    const { detail, seconds = elapsed(), warnings = [] } = value as PartFound;
    return { part, status: 'passed', detail, seconds, warnings };
  } catch (error) {
    // Wrong settings are no part that failed: nothing was tried with them.
    if (error instanceof ConfigError) throw error;
    if (process.env.KEEL_DEBUG === '1')
      process.stderr.write(`${withoutControls(String((error as Error).stack))}\n`);
    const detail = (error instanceof Error ? error.message : String(error)).split('\n').join('; ');
    return { part, status: 'failed', detail, seconds: elapsed(), warnings: [] };
  }
}

/** A learning rate that no weight in single precision notices: what is measured is whether sampler and scorer agree. */
export const NO_RATE = 1e-30;

/** The first iteration collects and scores in one go: a refusal to score means that collecting went well. */
export async function* firstIteration(trainer: { iterate(): Promise<IterationResult> }): Parts<Row> {
  try {
    return (await trainer.iterate()).row;
  } catch (error) {
    if (error instanceof MismatchError) yield { detail: 'done' };
    throw error;
  }
}

/** Refuses an update that left what it is measured by not finite. */
export function requireFinite(row: Row, names: readonly string[], remedy: string): void {
  for (const name of names)
    if (!Number.isFinite(row[name])) throw new Error(`${name} is ${row[name]} after one update: ${remedy}`);
}

/** Whether an update stayed within its bound; `acted` says what the guard did for it. */
export function guardFound(row: Row, guard: number | null, acted = ''): PartFound {
  const kl = `kl/step ${number(row['kl/step'])}`;
  if (guard !== null && row['kl/step'] > guard)
    throw new Error(`${kl} is above the bound ${guard}: this is a fault in Keel`);
  const bound = guard === null ? 'no bound (guard null)' : `bound ${guard}`;
  return { detail: `${kl}${acted}, ${bound}`, seconds: row['time/guard_s'] };
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
