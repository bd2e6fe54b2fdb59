/**
 * Damaged files through every reader: nothing but a ReadError, no hang, no memory that a damaged length asked for.
 * `KEEL_FUZZ_SEED` gives another sequence and `KEEL_FUZZ_CASES` more files for each reader.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { RawRun } from '../../../src/doctor/raw-run.ts';
import type { Candidate, Source } from '../../../src/doctor/readers/candidate.ts';
import { formatOf } from '../../../src/doctor/readers/candidate.ts';
import { ReadError } from '../../../src/doctor/readers/errors.ts';
import { findRuns } from '../../../src/doctor/readers/find.ts';
import { readRun } from '../../../src/doctor/readers/read.ts';
import { Rng } from '../../../src/random/index.ts';
import { processorMs } from '../../support/processor-time.ts';
import { mutate } from '../support/mutate.ts';
import { bytesField, varintField } from '../support/proto.ts';
import {
  hparamsValue,
  packedFloats,
  scalarFile,
  sessionEvent,
  simpleValue,
  summaryEvent,
  tensorValue,
  textValue,
} from '../support/tensorboard-file.ts';
import { configRecord, exitRecord, historyRecord, runRecord, wandbFile } from '../support/wandb-file.ts';

const seed = Number(process.env.KEEL_FUZZ_SEED ?? 1);
const cases = Number(process.env.KEEL_FUZZ_CASES ?? 1150);
/** Far more processor time than a small file takes. */
const longestMs = 3000;
const largestAllocation = 32 * 2 ** 20;

const rows = Array.from({ length: 12 }, (_, i) => i + 1);

const samples: Readonly<Record<string, Buffer>> = {
  tensorboard: Buffer.concat([
    scalarFile(
      rows.map(step => ({ step, values: { 'train/approx_kl': step / 100, 'losses/value_loss': 1 / step } })),
    ),
    summaryEvent(
      { step: 13, wallTime: 1 },
      tensorValue('tensor', 'scalars', varintField(1, 1), packedFloats(5, 0.5)),
    ),
    summaryEvent(
      { step: 13, wallTime: 1 },
      tensorValue('content', undefined, varintField(1, 2), bytesField(4, Buffer.alloc(8))),
    ),
    summaryEvent(
      { step: 14 },
      textValue('hyperparameters/text_summary', '|param|value|\n|-|-|\n|lr|0.1|\n|seed|1|'),
    ),
    summaryEvent({ step: 14 }, hparamsValue({ lr: 0.5, name: 'x', on: true })),
    sessionEvent({ step: 8, wallTime: 9 }, 1),
    summaryEvent({ step: 9 }, simpleValue('train/approx_kl', 3)),
  ]),
  wandb: wandbFile([
    runRecord('id', 'project', [[['lr'], '0.1']]),
    configRecord([[['model', 'dim'], '{"a": [1, 2], "b": null}']]),
    ...rows.map(step =>
      historyRecord(step, [
        [['train', 'kl'], `${step / 10}`],
        ['_timestamp', '1700000000'],
        ['h', '{"_type":"histogram"}'],
      ]),
    ),
    exitRecord(1),
  ]),
  csv: Buffer.from(
    `time/total_timesteps,train/approx_kl,"name, quoted",config/lr\n${rows.map(i => `${i * 100},${i / 7},"text ""${i}""",0.1`).join('\n')}\n`,
  ),
  monitor: Buffer.from(
    `#{"t_start": 1700000000.5, "env_id": "CartPole-v1"}\nr,l,t\n${rows.map(i => `${i}.0,${i},${i}.5`).join('\n')}\n`,
  ),
  jsonl: Buffer.from(
    `${rows.map(i => JSON.stringify({ step: i, loss: 1 / i, info: { learner: { kl: i, n: null } }, config: { lr: 1 }, s: 'NaN' })).join('\n')}\n`,
  ),
  'json-list': Buffer.from(
    JSON.stringify(
      rows.map(i => ({ step: i, loss: 1 / i, a: { b: [i] } })),
      undefined,
      1,
    ),
  ),
  'trainer-state': Buffer.from(
    JSON.stringify(
      {
        epoch: 1,
        global_step: 12,
        log_history: rows.map(i => ({ step: i, loss: 1 / i, kl: 0 })),
        max_steps: 99,
      },
      undefined,
      2,
    ),
  ),
  'verl-console': Buffer.from(
    rows
      .map(
        i =>
          `\x1b[36m(TaskRunner pid=4${i})\x1b[0m step:${i} - actor/ppo_kl:np.float64(${i / 9}) - critic/score/mean:${i}\n`,
      )
      .join(''),
  ),
  console: Buffer.from(
    `${rows.map(i => `--------------------\n| train/ |      |\n|    kl | 0.0${i} |\n|    loss | ${i} |\n--------------------\n`).join('')}{'loss': 0.5, 'kl': np.float64(0.1), 'epoch': 1}\nTraceback (most recent call last):\nValueError: x\n`,
  ),
};

let directory: string;
let file: string;
const alloc = { largest: 0, original: { alloc: Buffer.alloc, allocUnsafe: Buffer.allocUnsafe } };

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'keel-fuzz-'));
  file = join(directory, 'log');
  for (const name of ['alloc', 'allocUnsafe'] as const) {
    const original = alloc.original[name] as (size: number, ...rest: unknown[]) => Buffer;
    (Buffer as unknown as Record<string, unknown>)[name] = (size: number, ...rest: unknown[]): Buffer => {
      alloc.largest = Math.max(alloc.largest, size);
      return original(size, ...rest);
    };
  }
});

afterAll(() => {
  Object.assign(Buffer, alloc.original);
  rmSync(directory, { recursive: true, force: true });
});

/** Half a million of these are made: `expect` would take most of the time. */
function insist(holds: boolean, what: () => string): void {
  if (!holds) throw new Error(what());
}

/** What holds of every run that was read. */
function check(run: RawRun): void {
  insist(run.series.size > 0, () => 'a run without series');
  for (const [name, series] of run.series) {
    const { length, count, x, values, min, max, broken, wallTime } = series;
    insist(typeof name === 'string', () => `a name that is a ${typeof name}`);
    for (const array of [x, values, min, max, broken, wallTime])
      insist(array.length === length, () => `${name}: ${array.length} of ${length} values`);
    insist(length > 0, () => `${name} is empty`);
    insist(count >= length, () => `${name}: ${length} points of ${count} values`);
    for (let i = 0; i < length; i++) {
      if (i > 0 && !(x[i] >= x[i - 1])) throw new Error(`${name}: x falls from ${x[i - 1]} to ${x[i]}`);
      if (Number.isFinite(values[i]) !== broken[i] < (count === length ? 1 : count)) {
        throw new Error(`${name}: ${values[i]} with ${broken[i]} broken`);
      }
    }
  }
  for (const value of run.config.values()) {
    if (value !== null && !['string', 'number', 'boolean'].includes(typeof value))
      throw new Error(`setting ${typeof value}`);
  }
  for (const note of run.notes) insist(!note.includes('\n'), () => `a note of several lines: ${note}`);
}

/** `what` names the case, which the seed makes again. */
async function attempt(act: () => Promise<void>, what: string): Promise<void> {
  const started = processorMs();
  try {
    await act();
  } catch (error) {
    if (!(error instanceof ReadError)) throw new Error(`${what}, seed ${seed}`, { cause: error });
    if (error.message.includes('\n')) throw new Error('a message of several lines', { cause: error });
  }
  const took = processorMs() - started;
  if (took > longestMs) throw new Error(`${what} took ${took} ms`);
}

function forced(kind: string): Candidate {
  const source = (
    kind === 'tensorboard'
      ? { kind, groups: [{ files: [file] }] }
      : kind === 'monitor'
        ? { kind, monitors: [file, file] }
        : { kind, file }
  ) as Source;
  return { path: file, format: formatOf(source.kind), files: [file], source, directory, notes: [] };
}

describe('damaged files', () => {
  it.each(Object.keys(samples))('the sample of %s is read whole', async kind => {
    writeFileSync(file, samples[kind]);
    const { candidates } = await findRuns(file);
    expect(candidates[0].source.kind).toBe(kind);
    const run = await readRun(candidates[0]);
    check(run);
    expect([...run.series.values()][0].length).toBeGreaterThan(7);
  });

  it.each(Object.keys(samples))('%s', async kind => {
    const rng = new Rng(seed * 1000 + Object.keys(samples).indexOf(kind));
    let read = 0;
    for (let i = 0; i < cases; i++) {
      writeFileSync(file, mutate(samples[kind], rng));
      await attempt(async () => {
        const { candidates } = await findRuns(file);
        check(await readRun(candidates[0]));
        read++;
      }, `found-${kind}-${i}`);
      // Also when it would not have been taken for one.
      await attempt(async () => check(await readRun(forced(kind))), `forced-${kind}-${i}`);
    }
    // If everything were refused nothing would have been tried.
    expect(read).toBeGreaterThan(cases / 10);
    expect(alloc.largest).toBeLessThan(largestAllocation);
  });

  it('files in directories: settings, MLflow, Keel', async () => {
    const rng = new Rng(seed * 1000 + 99);
    const root = join(directory, 'tree');
    for (const name of ['mlflow/metrics', 'mlflow/params', 'keel', 'plain', 'wandb/files'])
      mkdirSync(join(root, name), { recursive: true });
    const put = (name: string, text: string): void =>
      writeFileSync(join(root, name), mutate(Buffer.from(text), rng));
    writeFileSync(join(root, 'mlflow/meta.yaml'), 'run_name: x\n');
    writeFileSync(join(root, 'plain/log.csv'), samples.csv);
    writeFileSync(join(root, 'wandb/run-x.wandb'), samples.wandb);
    for (let i = 0; i < cases / 3; i++) {
      put('mlflow/metrics/loss', rows.map(step => `170000000${step}000 0.${step} ${step}\n`).join(''));
      put('mlflow/params/lr', '0.1');
      put('keel/manifest.json', '{"kind": "keel-run", "schema": 1, "config": {"lr": 1}}');
      put(
        'keel/metrics.jsonl',
        rows.map(n => `{"train/iteration":${n},"train/step":${n},"kl/step":"NaN"}\n`).join(''),
      );
      put(
        'keel/events.jsonl',
        '{"type":"note","iteration":1,"step":1,"message":"m","text":"t"}\n{"type":"resumed","iteration":1,"step":1,"message":"m","pid":1,"checkpoint":3,"droppedRows":0,"droppedEvents":0}\n',
      );
      put('plain/params.json', '{"lr": 0.1, "model": {"a": [1, 2, {"b": null}]}}');
      put('plain/config.yaml', 'lr: 0.1\nmodel: &m\n  a: [1, 2]\nother: *m\n');
      put('wandb/files/config.yaml', 'lr:\n  value: 0.1\nx:\n  value: {a: 1}\n');
      put('wandb/files/output.log', 'Traceback (most recent call last):\nValueError: x\n');
      await attempt(async () => {
        for (const candidate of (await findRuns(root)).candidates) {
          await attempt(async () => check(await readRun(candidate)), `tree-${candidate.format}-${i}`);
        }
      }, `tree-${i}`);
    }
    expect(alloc.largest).toBeLessThan(largestAllocation);
  });
});
