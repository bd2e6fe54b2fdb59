/**
 * Runs what is missing of some tasks, each in a process of its own, and writes a record a run. What is stopped goes on where
 * it was: finished runs have their record, others their last checkpoint.
 */
import { spawn } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import type { ParseArgsConfig } from 'node:util';
import { parse } from 'yaml';
import { bootstrapInterval, interquartileMean } from '../../src/studies/statistics.ts';
import { report } from '../measure.ts';
import { Refused, refuse } from '../refuse.ts';
import { presetHash } from './preset.ts';
import { addRecord, isOfTask, keyOf, type RunRecord, readRecords, seenBefore } from './record.ts';
import { freshSeeds, refusal, type Seen, seedsOf, TUNING_SEEDS, tunes } from './seeds.ts';
import type { FigureTask } from './tasks.ts';

/** Flags of the benches that judge presets. */
export const figureFlags = {
  /** Which seeds; unless given, as many fresh ones as the task has. */
  seeds: { type: 'string' },
  /** Tries the preset, or changes of it, on the seeds that tune; such runs are in no table. */
  tune: { type: 'boolean', default: false },
  /** `targetKl=0.01`; only with `--tune`, as nothing but the preset is judged. */
  set: { type: 'string', multiple: true, default: [] as string[] },
  /** Runs at a time, a core each; one has all cores. */
  jobs: { type: 'string', default: '1' },
  /** Where the runs are kept. */
  runs: { type: 'string', default: 'runs/figures' },
} as const satisfies ParseArgsConfig['options'];

export interface FigureOptions {
  readonly seeds?: string | undefined;
  readonly tune: boolean;
  readonly set: readonly string[];
  readonly jobs: string;
  readonly runs: string;
}

interface Job {
  readonly task: FigureTask;
  /** The preset's hash. */
  readonly preset: string;
  readonly seed: number;
}

export async function judgePresets(picked: readonly FigureTask[], options: FigureOptions): Promise<void> {
  const count = Number(options.jobs);
  if (!(Number.isInteger(count) && count > 0 && count <= availableParallelism()))
    refuse(
      `--jobs ${options.jobs} is not between 1 and ${availableParallelism()}, the cores of this machine`,
    );
  const changed = picked.map(task => changedBy(task, options));
  const jobs = changed.flatMap(task => {
    const preset = presetHash(task.env);
    return seedsFor(task, preset, options).map((seed): Job => ({ task, preset, seed }));
  });
  const done = readRecords();
  const missing = jobs.filter(job => !done.some(record => isOf(record, job)));
  report({
    presets: Object.fromEntries(jobs.map(({ task, preset }) => [task.env, preset])),
    runs: jobs.length,
    missing: missing.length,
  });
  const waiting = [...missing];
  const turn = async (): Promise<void> => {
    for (let job = waiting.shift(); job !== undefined; job = waiting.shift()) {
      const record = await judgedApart(job, options.runs, count > 1);
      // Another bench may have judged another preset in the meantime.
      const why = options.tune ? undefined : refusal(seenSoFar(), record.env, record.preset, record.seed);
      if (why !== undefined) refuse(why);
      addRecord(record);
      const { curve: _, ...shown } = record;
      report({ ...shown });
    }
  };
  await Promise.all(Array.from({ length: count }, turn));
  const records = readRecords();
  for (const task of changed)
    report(
      summary(
        task,
        records.filter(record => jobs.some(job => job.task.id === task.id && isOf(record, job))),
      ),
    );
}

/** Whether a record is of a job, as its task is now. */
const isOf = (record: RunRecord, { task, preset, seed }: Job): boolean =>
  keyOf(record) === keyOf({ task: task.id, preset, seed }) && isOfTask(record, task);

const seenSoFar = (): Seen[] => [...seenBefore(), ...readRecords()];

/** With `--set`, the task is another one, and has another name in the records. */
function changedBy(task: FigureTask, { set, tune }: FigureOptions): FigureTask {
  if (set.length === 0) return task;
  if (!tune)
    refuse(`--set ${set[0]} without --tune: presets are judged as they are; write it into the preset`);
  const changes = Object.fromEntries(
    set.map(text => {
      const at = text.indexOf('=');
      if (at < 1) refuse(`--set ${text} sets nothing: write key=value`);
      return [text.slice(0, at), parse(text.slice(at + 1)) as unknown];
    }),
  );
  return { ...task, id: `${task.id} ${set.join(' ')}`, changes: { ...task.changes, ...changes } };
}

function seedsFor({ env, seeds }: FigureTask, preset: string, options: FigureOptions): number[] {
  if (options.tune) {
    const wanted = options.seeds === undefined ? [0, 1, 2] : seedsOf(options.seeds);
    const wrong = wanted.find(seed => !tunes(seed));
    if (wrong === undefined) return wanted;
    return refuse(`--tune with seed ${wrong}: tune on ${TUNING_SEEDS.first} to ${TUNING_SEEDS.last}`);
  }
  const seen = seenSoFar();
  const fresh = freshSeeds(seen, env, preset, seeds);
  if (options.seeds === undefined) return fresh;
  const wanted = seedsOf(options.seeds);
  for (const seed of wanted) {
    const why = refusal(seen, env, preset, seed);
    if (why !== undefined) refuse(why);
    // Or one could add seeds until the figures please.
    if (!fresh.includes(seed))
      refuse(
        `seed ${seed} is none of the ${seeds} that judge this preset of ${env}: ${fresh[0]} to ${fresh.at(-1)}`,
      );
  }
  return wanted;
}

/** In a process of its own, so that nothing of one run is left in the next, and several can go on at once. */
function judgedApart({ task, preset, seed }: Job, root: string, oneCore: boolean): Promise<RunRecord> {
  const program = fileURLToPath(new URL('judge-apart.ts', import.meta.url));
  const child = spawn(
    process.execPath,
    ['--import', 'tsx', program, JSON.stringify({ task, preset, seed, root, oneCore })],
    // It ends when this process does, however that ends: it hears that nobody is at the other end.
    { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] },
  );
  return new Promise((resolve, reject) => {
    let record: RunRecord | undefined;
    child.on('message', message => {
      record = message as RunRecord;
    });
    child.on('error', reject).on('close', code => {
      if (code === 0 && record) resolve(record);
      else
        reject(
          new Refused(
            `${task.id}, seed ${seed}: its process ended with ${code}; run the same again to go on`,
          ),
        );
    });
  });
}

/** What all seeds of a task came to. */
function summary(task: FigureTask, records: readonly RunRecord[]): Record<string, unknown> {
  const evaluated = records.map(record => record.evaluated);
  const { low, high } = bootstrapInterval(evaluated);
  const shown = (value: number): number => Number(value.toFixed(1));
  return {
    task: task.id,
    seeds: records.length,
    iqm: shown(interquartileMean(evaluated)),
    interval: [shown(low), shown(high)],
    worst: shown(Math.min(...evaluated)),
    trained_iqm: shown(interquartileMean(records.map(({ trained }) => trained))),
    aim: task.aim,
    at_aim: task.aim === undefined ? undefined : evaluated.filter(value => value >= task.aim!).length,
    kl_largest: Math.max(...records.map(({ klLargest }) => klLargest)),
    kl_longest_above_03: Math.max(...records.map(({ klLongest }) => klLongest)),
    verdicts: [...new Set(records.map(({ verdict }) => verdict))],
  };
}
