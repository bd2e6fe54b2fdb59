/**
 * Damaged inputs for everything that reads: `npm run bench -- fuzz`.
 *
 * An input is a sound file with one to three mutations. It may be read or refused with an error of ours; a fault is any
 * other exception, more than five seconds or a gigabyte, a verdict that is no number, or a changed prototype.
 * `--inputs 100000` says how many in all, `--seed 7` which, `--reader csv` through which reader alone, `--input 12` which one.
 */
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { JobError, jobThread } from '../src/base/job-thread.ts';
import { threadEntry } from '../src/base/thread-entry.ts';
import type { FuzzJob, FuzzResult } from './fuzz/jobs.ts';
import { machine, report, round } from './measure.ts';

const limitMs = 5000;
/** Inputs between two lines of what was done. */
const portion = 1000;

/** Reads damaged inputs in a thread, in a directory of its own. */
export function openFuzz() {
  const thread = jobThread(threadEntry(import.meta.url, 'fuzz/thread'), 'fuzz');
  // In memory where there is such a place: thousands of small files are synced.
  const scratch = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'keel-fuzz-'));
  const ask = <T>(job: FuzzJob, ms = 60_000): Promise<T> => thread.ask<T>(job, { limitMs: ms });

  /** Reads inputs `from` to `to` of a seed; one that hangs or eats memory is a fault, and the others are read. */
  async function read(reader: string, seed: number, range: Range, ms: number = limitMs): Promise<FuzzResult> {
    const { from, to } = range;
    if (from >= to) return { read: 0, resumed: 0, faults: [], largest: 0 };
    try {
      return await ask<FuzzResult>({ type: 'fuzz', reader, scratch, seed, from, to }, ms);
    } catch (error) {
      if (!(error instanceof JobError) || error.at === undefined) throw error;
      const index = Number(error.at);
      // What was found before it went with the thread: it is read again.
      const before = await read(reader, seed, { from, to: index }, ms);
      const after = await read(reader, seed, { from: index + 1, to }, ms);
      return {
        read: before.read + after.read,
        resumed: before.resumed + after.resumed,
        faults: [...before.faults, { index, why: error.message }, ...after.faults],
        largest: Math.max(before.largest, after.largest),
      };
    }
  }

  return {
    read,
    /** The names of all readers. */
    names: () => ask<string[]>({ type: 'names' }),
    /** Reads the sound samples of a reader, which must succeed, and says how many there are. */
    sound: (reader: string) => ask<number>({ type: 'sound', reader, scratch }),
    /** Writes one input to a file, and gives its path. */
    save: (reader: string, seed: number, index: number, directory: string) =>
      ask<string>({ type: 'save', reader, scratch, seed, index, directory }),
    async close(): Promise<void> {
      await thread.close();
      rmSync(scratch, { recursive: true, force: true });
    },
  };
}

interface Range {
  readonly from: number;
  readonly to: number;
}

export async function run(): Promise<void> {
  const { values } = parseArgs({
    args: process.argv.slice(3),
    options: {
      inputs: { type: 'string', default: '100000' },
      seed: { type: 'string', default: '1' },
      reader: { type: 'string' },
      input: { type: 'string' },
      ci: { type: 'boolean', default: false },
    },
  });
  const seed = Number(values.seed);
  const fuzz = openFuzz();
  const names = values.reader === undefined ? await fuzz.names() : [values.reader];
  const each = values.ci ? 200 : Math.ceil(Number(values.inputs) / names.length);
  report({
    bench: 'fuzz',
    ...machine(),
    seed,
    readers: names.length,
    inputs_a_reader: values.input === undefined ? each : 1,
  });
  const one = values.input === undefined ? undefined : Number(values.input);
  const directory = join(tmpdir(), 'keel-fuzz-faults');
  let [inputs, faults] = [0, 0];
  for (const reader of names) {
    const samples = await fuzz.sound(reader);
    const [from, to] = one === undefined ? [0, each] : [one, one + 1];
    const started = performance.now();
    let [read, faulty, largest] = [0, 0, 0];
    for (let at = from; at < to; at += portion) {
      const done = await fuzz.read(reader, seed, { from: at, to: Math.min(to, at + portion) });
      read += done.read;
      largest = Math.max(largest, done.largest);
      faulty += done.faults.length;
      for (const { index, why } of done.faults) {
        const file = await fuzz.save(reader, seed, index, directory);
        const again = `npm run bench -- fuzz --reader ${reader} --seed ${seed} --input ${index}`;
        report({ reader, fault: why.slice(0, 2000), file, again });
      }
    }
    inputs += to - from;
    faults += faulty;
    report({
      reader,
      samples,
      inputs: to - from,
      read,
      refused: to - from - read - faulty,
      faults: faulty,
      largest_buffer: largest,
      seconds: round((performance.now() - started) / 1000, 1),
    });
  }
  report({ readers: names.length, inputs, faults });
  await fuzz.close();
  if (faults > 0) process.exitCode = 1;
}
