/** The thread in which damaged inputs are read: one that hangs is ended with it. */
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { KeelError } from '../../src/base/errors.ts';
import { answerJobs } from '../../src/base/job-thread.ts';
import { Rng } from '../../src/random/index.ts';
import { http } from './http.ts';
import { importReaders } from './imports.ts';
import type { Fault, FuzzJob, FuzzResult } from './jobs.ts';
import { logReaders } from './logs.ts';
import { modelReaders } from './models.ts';
import { mutate } from './mutate.ts';
import type { FuzzedReader, ReadyReader } from './reader.ts';
import { runReaders } from './runs.ts';
import { studyReaders } from './studies.ts';
import { textReaders } from './texts.ts';

const readers: readonly FuzzedReader[] = [
  ...logReaders,
  ...runReaders,
  ...studyReaders,
  ...modelReaders,
  ...importReaders,
  ...textReaders,
  http,
];

const mostBytes = 2 ** 30;
const prototypes = [Object.prototype, Array.prototype, Function.prototype];
const keysThen = prototypes.map(prototype => Reflect.ownKeys(prototype).length);

/** The largest buffer that was asked for. */
let largest = 0;
for (const name of ['alloc', 'allocUnsafe'] as const) {
  const original = Buffer[name] as (size: number, ...rest: unknown[]) => Buffer;
  (Buffer as unknown as Record<string, unknown>)[name] = (size: number, ...rest: unknown[]): Buffer => {
    largest = Math.max(largest, size);
    return original(size, ...rest);
  };
}

const opened = new Map<string, Promise<ReadyReader>>();

async function ready(name: string, scratch: string): Promise<ReadyReader> {
  const reader = readers.find(one => one.name === name);
  if (reader === undefined)
    throw new KeelError(`reader ${name} is unknown: one of ${readers.map(one => one.name).join(', ')}`);
  const before = opened.get(name);
  if (before !== undefined) return before;
  // After a thread that was ended there is one that was left.
  const directory = mkdtempSync(join(scratch, `${name}-`));
  const made = Promise.resolve(reader.open(directory));
  opened.set(name, made);
  return made;
}

/** An input is a function of its reader, the seed and its index. */
function inputOf({ samples }: ReadyReader, seed: number, index: number): { bytes: Buffer; sample: number } {
  const rng = new Rng(seed * 2 ** 24 + index);
  const sample = rng.integer(samples.length);
  return { bytes: mutate(samples[sample], rng), sample };
}

type Outcome = { readonly fault: string } | 'read' | 'resumed' | 'refused';

async function outcomeOf(reader: ReadyReader, seed: number, index: number): Promise<Outcome> {
  const { bytes, sample } = inputOf(reader, seed, index);
  let outcome: Outcome;
  try {
    outcome = (await reader.read(bytes, sample, index)) === 'resumed' ? 'resumed' : 'read';
  } catch (error) {
    if (!(error instanceof KeelError))
      return { fault: error instanceof Error ? `${error.stack}` : String(error) };
    outcome = 'refused';
  }
  if (prototypes.some((prototype, i) => Reflect.ownKeys(prototype).length !== keysThen[i]))
    return { fault: 'a prototype was changed' };
  const { rss } = process.memoryUsage();
  return rss > mostBytes ? { fault: `${rss} bytes of memory` } : outcome;
}

answerJobs<FuzzJob>(async (job, say) => {
  if (job.type === 'names') return readers.map(({ name }) => name);
  const reader = await ready(job.reader, job.scratch);
  if (job.type === 'sound') {
    for (const [sample, bytes] of reader.samples.entries()) {
      say(`sample ${sample}`);
      await reader.read(Buffer.from(bytes), sample, 0);
    }
    return reader.samples.length;
  }
  const { seed } = job;
  if (job.type === 'save') {
    mkdirSync(job.directory, { recursive: true });
    const path = join(job.directory, `${job.reader}-${seed}-${job.index}`);
    writeFileSync(path, inputOf(reader, seed, job.index).bytes);
    return path;
  }
  largest = 0;
  let [read, resumed] = [0, 0];
  const faults: Fault[] = [];
  for (let index = job.from; index < job.to; index++) {
    say(String(index));
    const outcome = await outcomeOf(reader, seed, index);
    if (typeof outcome === 'object') faults.push({ index, why: outcome.fault });
    else if (outcome !== 'refused') read++;
    if (outcome === 'resumed') resumed++;
  }
  return { read, resumed, faults, largest } satisfies FuzzResult;
});
