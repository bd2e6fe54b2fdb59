import { execFileSync } from 'node:child_process';
import { appendFileSync, chmodSync, mkdirSync, symlinkSync } from 'node:fs';
import { join, relative } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { ReadError } from '../../../src/doctor/readers/errors.ts';
import { findRuns, signature } from '../../../src/doctor/readers/find.ts';
import { readRun } from '../../../src/doctor/readers/read.ts';
import { processorMs } from '../../support/processor-time.ts';
import { readOnly, temporaryDirectory, values, writeTree } from '../support/files.ts';
import {
  hparamsValue,
  scalarFile,
  simpleValue,
  summaryEvent,
  versionEvent,
} from '../support/tensorboard-file.ts';

const csv = 'step,loss/value\n1,2\n2,3\n';
const jsonl = '{"step": 1, "loss/value": 2}\n{"step": 2, "loss/value": 3}\n';
const events = scalarFile([
  { step: 1, values: { 'loss/value': 2 } },
  { step: 2, values: { 'loss/value': 3 } },
]);

async function found(root: string): Promise<string[]> {
  const { candidates } = await findRuns(root);
  return candidates.map(one => `${relative(root, one.path)}:${one.format}`);
}

describe('findRuns', () => {
  it('SB3 leaves three logs of one run: the one that tells most is read, the others are named', async () => {
    const root = join(import.meta.dirname, '../fixtures/sb3/pendulum-healthy');
    const run = await readOnly(root);
    expect(run.path).toBe(root);
    expect(run.format).toBe('jsonl');
    expect(run.files.map(file => relative(root, file))).toEqual(['progress.json']);
    expect(run.notes.join()).toMatch(/progress\.csv.*tell of the same run/);
  });

  it('a log with few metrics is not preferred for its format', async () => {
    const tags = Object.fromEntries(Array.from({ length: 12 }, (_, i) => [`t${i}`, i]));
    const root = writeTree(temporaryDirectory(), {
      'events.out': scalarFile([{ step: 1, values: tags }]),
      'samples.jsonl': '{"step": 1, "completion": "some text"}\n',
      'monitor.csv': '#{"t_start": 1700000000.0}\nr,l,t\n1,2,3\n',
    });
    expect(await found(root)).toEqual([':tensorboard']);
  });

  it('names tell nothing: content does', async () => {
    const root = writeTree(temporaryDirectory(), {
      'a/data.log': events,
      'b/whatever': csv,
      'c/x.txt': jsonl,
      'd/notes.txt': 'Dear diary, nothing happened.\n',
      'd/config.json': '{"lr": 0.1}',
      'e/settings.json': '{"lr": 0.1, "n": 2}',
    });
    expect(await found(root)).toEqual(['a:tensorboard', 'b:csv', 'c:jsonl']);
  });

  it('several files of one kind are several runs; the same name in two formats is one', async () => {
    const root = writeTree(temporaryDirectory(), {
      'seed1.csv': csv,
      'seed2.csv': csv,
      'seed2.jsonl': jsonl,
      'seed10.csv': csv,
    });
    expect(await found(root)).toEqual(['seed1.csv:csv', 'seed2.jsonl:jsonl', 'seed10.csv:csv']);
  });

  it('directories of add_scalars and add_hparams belong to the run above them', async () => {
    const scalars = (value: number): Buffer => scalarFile([{ step: 1, values: { 'loss/all': value } }]);
    const root = writeTree(temporaryDirectory(), {
      'run/events.0': events,
      'run/loss_all_train/events.1': scalars(0.25),
      'run/loss_all_test/events.2': scalars(0.5),
      'run/1700000000.123456/events.3': Buffer.concat([
        versionEvent(1),
        summaryEvent({ step: 0 }, hparamsValue({ lr: 0.125 })),
        summaryEvent({ step: 0 }, simpleValue('hparam/score', 9)),
      ]),
      'run/other/events.4': events,
    });
    expect(await found(root)).toEqual(['run:tensorboard', 'run/other:tensorboard']);
    const { candidates } = await findRuns(root);
    const run = await readRun(candidates[0]);
    expect(values(run, 'loss/all/train')).toEqual([0.25]);
    expect(values(run, 'loss/all/test')).toEqual([0.5]);
    expect(values(run, 'loss/value')).toEqual([2, 3]);
    expect(run.config.get('lr')).toBe(0.125);
    expect(run.restarts).toEqual([]);
  });

  it("RLlib's trial: result.json is read, params.json has settings", async () => {
    const row = (i: number): string =>
      JSON.stringify({ training_iteration: i, info: { learner: { kl: i / 10 } }, timesteps_total: i * 10 });
    const root = writeTree(temporaryDirectory(), {
      'exp/trial_1/result.json': `${row(1)}\n${row(2)}\n`,
      'exp/trial_1/progress.csv': 'training_iteration,info/learner/kl\n1,0.1\n2,0.2\n',
      'exp/trial_1/events.out.tfevents.1': scalarFile([
        { step: 1, values: { 'ray/tune/info/learner/kl': 0.1 } },
      ]),
      'exp/trial_1/params.json': '{"lr": 0.5, "model": {"dim": 3}}',
      'exp/trial_2/result.json': `${row(1)}\n`,
      'exp/experiment_state-2024.json': '{"checkpoints": [], "runner_data": {"x/y": 1}}',
    });
    expect(await found(root)).toEqual(['exp/trial_1:jsonl', 'exp/trial_2:jsonl']);
    const run = await readOnly(join(root, 'exp/trial_1'));
    expect(Object.fromEntries(run.config)).toEqual({ lr: 0.5, 'model/dim': 3 });
    expect(values(run, 'info/learner/kl')).toEqual([0.1, 0.2]);
  });

  it('links in a circle end, and a run is found once', async () => {
    const root = writeTree(temporaryDirectory(), { 'runs/a/x.csv': csv });
    symlinkSync(root, join(root, 'runs/a/up'));
    symlinkSync(join(root, 'runs/a'), join(root, 'latest'));
    symlinkSync(join(root, 'nowhere'), join(root, 'broken'));
    expect(await found(root)).toEqual(['runs/a:csv']);
  });

  it('depth and number of entries are bounded, and it says so', async () => {
    const deep = Array.from({ length: 20 }, () => 'd').join('/');
    const root = writeTree(temporaryDirectory(), { 'x.csv': csv, [`${deep}/y.csv`]: csv });
    const shallow = await findRuns(root);
    expect(shallow.candidates).toHaveLength(1);
    expect(shallow.notes.join()).toMatch(/deeper than 12/);
    expect((await findRuns(root, { maxDepth: 30 })).candidates).toHaveLength(2);
    const many = writeTree(
      temporaryDirectory(),
      Object.fromEntries(Array.from({ length: 40 }, (_, i) => [`r${i}/x.csv`, csv])),
    );
    const few = await findRuns(many, { maxEntries: 30 });
    expect(few.notes.join()).toMatch(/more than 30/);
    expect(few.candidates.length).toBeLessThan(40);
  });

  it('skips what is never a log', async () => {
    const root = writeTree(temporaryDirectory(), {
      'node_modules/p/x.csv': csv,
      '.git/x.csv': csv,
      'readme.md': '| a | b |\n------------\n| c | 1 |\n| d | 2 |\n',
      'run/x.csv': csv,
    });
    expect(await found(root)).toEqual(['run:csv']);
  });

  it('an empty directory, one without logs and a missing path say what was looked for', async () => {
    const root = temporaryDirectory();
    const message = async (path: string): Promise<string> => {
      const failure = await findRuns(path).catch((error: unknown) => error);
      expect(failure).toBeInstanceOf(ReadError);
      return (failure as Error).message;
    };
    expect(await message(root)).toMatch(/looked for .*TensorBoard.* found an empty directory/);
    mkdirSync(join(root, 'sub'));
    writeTree(root, { 'sub/a.txt': 'hello', 'sub/b.txt': '' });
    expect(await message(root)).toMatch(/found none in 2 files in 2 directories, 1 of them empty/);
    expect(await message(join(root, 'nowhere'))).toMatch(/no such file or directory/);
    expect(await message(join(root, 'sub/a.txt'))).toMatch(/text whose first line is "hello"/);
  });

  it.skipIf(process.platform === 'win32')('a pipe is never opened: it would wait for ever', async () => {
    const root = writeTree(temporaryDirectory(), { 'run/x.csv': csv });
    execFileSync('mkfifo', [join(root, 'run/params.json'), join(root, 'run/pipe')]);
    expect((await readOnly(root)).series.size).toBe(2);
    await expect(findRuns(join(root, 'run/pipe'))).rejects.toThrow(/neither a file nor a directory/);
  });

  it('a log without any number says so', async () => {
    const root = writeTree(temporaryDirectory(), { 'progress.csv': 'time/fps,train/loss,rollout/x\n' });
    await expect(readOnly(root)).rejects.toThrow(/without a single number/);
    await expect(readOnly(root)).rejects.toThrow(ReadError);
  });

  it.skipIf(process.getuid?.() === 0)('what may not be read is counted, not fatal', async () => {
    const root = writeTree(temporaryDirectory(), { 'a/x.csv': csv, 'b/x.csv': csv });
    chmodSync(join(root, 'b/x.csv'), 0);
    expect((await findRuns(root)).notes.join()).toMatch(/1 files or directories could not be read/);
  });

  it('a thousand runs are found and read in seconds', async () => {
    const root = writeTree(
      temporaryDirectory(),
      Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`runs/${i}/events.${i}`, events])),
    );
    const started = processorMs();
    let calls = 0;
    const { candidates } = await findRuns(root, { onProgress: () => calls++ });
    expect(candidates).toHaveLength(1000);
    for (const candidate of candidates) expect((await readRun(candidate)).series.size).toBe(1);
    expect(processorMs() - started).toBeLessThan(20_000);
    expect(calls).toBeGreaterThan(0);
  });
});

describe('readRun', () => {
  it('gives way while it reads, tells how far it is, and can be stopped', async () => {
    const rows = Array.from({ length: 400_000 }, (_, i) => `${i},${i},${i}`).join('\n');
    const root = writeTree(temporaryDirectory(), { 'big.csv': `step,a,b\n${rows}\n` });
    const { candidates } = await findRuns(root);
    const seen: [number, number][] = [];
    const run = await readRun(candidates[0], { onProgress: (done, total) => seen.push([done, total]) });
    expect(run.series.get('a')!.count).toBe(400_000);
    expect(seen.length).toBeGreaterThan(1);
    seen.forEach(([done, total], i) => {
      expect(done).toBeLessThanOrEqual(total);
      if (i > 0) expect(done).toBeGreaterThanOrEqual(seen[i - 1][0]);
    });
    const stop = new AbortController();
    const reading = readRun(candidates[0], {
      signal: stop.signal,
      onProgress: () => stop.abort(new Error('stopped')),
    });
    await expect(reading).rejects.toThrow('stopped');
  });

  it('a file that went away is an error with a sentence', async () => {
    const root = writeTree(temporaryDirectory(), { 'x.csv': csv });
    const { candidates } = await findRuns(root);
    const gone = { ...candidates[0], source: { kind: 'csv' as const, file: join(root, 'gone.csv') } };
    await expect(readRun(gone)).rejects.toThrow(/no such file/);
  });
});

describe('signature', () => {
  it('changes when a log grows or another file comes, and only then', async () => {
    const root = writeTree(temporaryDirectory(), { 'run/events.1': events });
    const { candidates } = await findRuns(root);
    const before = signature(candidates[0]);
    expect(signature(candidates[0])).toBe(before);
    appendFileSync(join(root, 'run/events.1'), events);
    const grown = signature(candidates[0]);
    expect(grown).not.toBe(before);
    await setTimeout(20);
    writeTree(root, { 'run/events.2': events });
    expect(signature(candidates[0])).not.toBe(grown);
  });
});
