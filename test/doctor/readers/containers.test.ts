/** Files that hold other files: what is in them is read as if it lay in a directory, within bounds. */
import { join, relative } from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { toCanonical } from '../../../src/doctor/dialects/translate.ts';
import type { RawRun } from '../../../src/doctor/raw-run.ts';
import { ReadError } from '../../../src/doctor/readers/errors.ts';
import { findRuns, signature } from '../../../src/doctor/readers/find.ts';
import { readRun } from '../../../src/doctor/readers/read.ts';
import {
  evaluationsFile,
  notebookFile,
  npyFile,
  sb3Table,
  streamOutput,
  tableOutput,
  tarFile,
  zipFile,
} from '../support/archives.ts';
import { points, readContent, temporaryDirectory, values, writeTree } from '../support/files.ts';

const list = Array.from({ length: 6 }, (_, i) => i + 1);
const csv = (f: (i: number) => number): string =>
  `time/total_timesteps,rollout/ep_rew_mean\n${list.map(i => `${i * 2048},${f(i)}`).join('\n')}\n`;
const printed = (f: (i: number) => number): string =>
  list
    .map(i =>
      sb3Table({ 'rollout/ep_rew_mean': f(i), 'time/iterations': i, 'time/total_timesteps': 2048 * i }),
    )
    .join('');

/** All the runs at a path, by their paths below a root. */
async function runsAt(root: string, path = root): Promise<Map<string, RawRun>> {
  const runs = new Map<string, RawRun>();
  for (const candidate of (await findRuns(path)).candidates)
    runs.set(relative(root, candidate.path), await readRun(candidate));
  return runs;
}

const message = async (path: string): Promise<string> => {
  const failure = await findRuns(path).catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(ReadError);
  expect((failure as Error).message).not.toContain('\n');
  return (failure as Error).message;
};

const trees = {
  'logs.zip': zipFile([
    { name: 'runs/', content: '' },
    { name: 'runs/a/progress.csv', content: csv(i => i) },
    { name: 'runs/a/args.json', content: '{"learning_rate": 0.5}' },
    { name: 'runs/b/progress.csv', content: csv(i => 2 * i) },
    { name: 'runs/b/model.pt', content: 'PK' },
  ]),
  'logs.tar': tarFile([
    { name: 'runs/a/progress.csv', content: csv(i => i) },
    { name: 'runs/a/args.json', content: '{"learning_rate": 0.5}' },
    { name: 'runs/b/progress.csv', content: csv(i => 2 * i) },
    { name: 'runs/c/progress.csv', content: '', type: '2' },
  ]),
};

describe('archives', () => {
  it.each([
    ['logs.zip', trees['logs.zip']],
    ['logs.tar', trees['logs.tar']],
    ['logs.tar.gz', gzipSync(trees['logs.tar'])],
  ])(
    '%s: the runs in it are found where it lies and by its name, with their settings',
    async (name, content) => {
      const root = writeTree(temporaryDirectory(), { [name]: content, 'other/progress.csv': csv(i => -i) });
      const all = await runsAt(root);
      expect([...all.keys()]).toEqual([`${name}!/runs/a`, `${name}!/runs/b`, 'other']);
      expect(values(all.get(`${name}!/runs/a`)!, 'rollout/ep_rew_mean')).toEqual(list);
      expect(all.get(`${name}!/runs/a`)!.config.get('learning_rate')).toBe(0.5);
      expect(values(all.get(`${name}!/runs/b`)!, 'rollout/ep_rew_mean')).toEqual(list.map(i => 2 * i));
      expect([...(await runsAt(root, join(root, name))).keys()]).toEqual([
        `${name}!/runs/a`,
        `${name}!/runs/b`,
      ]);
    },
  );

  it('with one run are that run, and change with their file', async () => {
    const root = writeTree(temporaryDirectory(), {
      'one.zip': zipFile([{ name: 'x/progress.csv', content: csv(i => i) }]),
    });
    const { candidates } = await findRuns(root);
    expect(candidates.map(one => relative(root, one.path))).toEqual(['one.zip']);
    const before = signature(candidates[0]);
    writeTree(root, { 'one.zip': zipFile([{ name: 'x/progress.csv', content: csv(i => i + 0.123) }]) });
    expect(signature(candidates[0])).not.toBe(before);
  });

  it('hold notebooks and archives, which are opened, and archives in those, which are not', async () => {
    const inner = zipFile([
      { name: 'deep/progress.csv', content: csv(i => i) },
      { name: 'deeper.zip', content: zipFile([{ name: 'x.csv', content: csv(i => i) }]) },
    ]);
    const root = writeTree(temporaryDirectory(), {
      'outer.zip': zipFile([{ name: 'a/inner.zip', content: inner }]),
    });
    const { candidates } = await findRuns(root);
    expect(candidates.map(one => relative(root, one.path))).toEqual(['outer.zip']);
    expect(values(await readRun(candidates[0]), 'rollout/ep_rew_mean')).toEqual(list);
  });

  it('names that lead out of one, encrypted files and bombs are left out, and that is said', async () => {
    const root = writeTree(temporaryDirectory(), {
      'x.zip': zipFile([
        { name: 'good/progress.csv', content: csv(i => i) },
        { name: '../../evil.csv', content: csv(i => i) },
        { name: '/etc/evil.csv', content: csv(i => i) },
        { name: 'c:\\evil.csv', content: csv(i => i) },
        { name: 'a!/b.csv', content: csv(i => i) },
        { name: 'secret.csv', content: csv(i => i), encrypted: true },
        { name: 'bomb.csv', content: '', claims: 2 ** 31 },
      ]),
    });
    const { candidates, notes } = await findRuns(root);
    expect(candidates).toHaveLength(1);
    expect(notes.join('\n')).toMatch(/names that lead out of it are left out \(4\)/);
    expect(notes.join('\n')).toMatch(/encrypted files are left out \(1\)/);
    expect(notes.join('\n')).toMatch(/too large for a log are left out \(1\)/);
  });

  it('a file that unpacks to more than it says is damage, whatever it says', async () => {
    const zeros = Buffer.alloc(64 * 2 ** 20, '0');
    const root = writeTree(temporaryDirectory(), {
      'x.zip': zipFile([
        { name: 'a.csv', content: zeros, claims: 100 },
        { name: 'b.csv', content: csv(i => i) },
      ]),
    });
    const { candidates, notes } = await findRuns(root);
    expect(candidates).toHaveLength(1);
    expect(notes.join()).toMatch(/1 files or directories could not be read/);
  });

  it('whose files overlap, and such as are cut, are refused in a sentence', async () => {
    const content = csv(i => i).repeat(50);
    const root = writeTree(temporaryDirectory(), {
      'overlap.zip': zipFile([{ name: 'a.csv', content }], 40),
      'cut.zip': trees['logs.zip'].subarray(0, -30),
      'cut.tar.gz': gzipSync(trees['logs.tar']).subarray(0, -20),
      'bomb.tar.gz': gzipSync(tarFile([{ name: 'a.csv', content: Buffer.alloc(2 ** 26) }])),
    });
    expect(await message(join(root, 'overlap.zip'))).toMatch(/overlap: unpack it/);
    expect(await message(join(root, 'cut.zip'))).toMatch(/cut or damaged: unpack it/);
    expect(await message(join(root, 'cut.tar.gz'))).toMatch(/cut or damaged/);
    expect(await message(join(root, 'bomb.tar.gz'))).toMatch(/unpacks to more than/);
  });

  it('the weights of a policy are no logs', async () => {
    const root = writeTree(temporaryDirectory(), {
      'run/progress.csv': csv(i => i),
      'run/best_model.zip': zipFile([
        { name: 'data', content: '{"n_epochs": 10, "rewards": [1, 2, 3], "losses": [1, 2, 3]}' },
        { name: 'policy.pth', content: 'x' },
      ]),
    });
    expect([...(await runsAt(root)).keys()]).toEqual(['run']);
  });
});

describe("docker's own log", () => {
  const lines = (text: string): string =>
    text
      .split(/(?<=\n)/)
      .map(log => `${JSON.stringify({ log, stream: 'stdout', time: '2026-01-01T00:00:00.5Z' })}\n`)
      .join('');

  it('is what was printed', async () => {
    const root = writeTree(temporaryDirectory(), { 'abc-json.log': `${lines(printed(i => i))}{"log": "cut` });
    const runs = await runsAt(root);
    expect([...runs.keys()]).toEqual(['abc-json.log']);
    expect(values(runs.get('abc-json.log')!, 'rollout/ep_rew_mean')).toEqual(list);
  });

  it('with nothing but talk is no log', async () => {
    const root = writeTree(temporaryDirectory(), { 'abc-json.log': lines('hello\nstep by step\n') });
    expect(await message(join(root, 'abc-json.log'))).toMatch(/found none/);
  });
});

describe('notebooks', () => {
  it('of three algorithms have three runs', async () => {
    const root = writeTree(temporaryDirectory(), {
      'rl.ipynb': notebookFile([
        [streamOutput('Using cpu device\n'), streamOutput(printed(i => i))],
        [streamOutput('nothing to see')],
        [streamOutput(`${printed(i => 10 * i)}Using cpu device\n${printed(i => 20 * i)}`)],
      ]),
    });
    const runs = await runsAt(root);
    expect([...runs.keys()]).toEqual([
      'rl.ipynb!/cell-1.log',
      'rl.ipynb!/cell-3.log!/training 1',
      'rl.ipynb!/cell-3.log!/training 2',
    ]);
    expect([...runs.values()].map(run => values(run, 'rollout/ep_rew_mean').at(-1))).toEqual([6, 60, 120]);
  });

  it('have bars of progress, which are no tables though they have commas', async () => {
    const bars = `Adding requests:   0%|          | 0/1 [00:00<?, ?it/s]
Processed prompts:   0%| | 0/1 [00:00<?, ?it/s, est. speed input: 0.00 toks/s, output: 0.00 toks/s]
From the second guess, we see that none of 8, 7, or 2 is in it.
`;
    const root = writeTree(temporaryDirectory(), {
      'rl.ipynb': notebookFile([[streamOutput(printed(i => i))], [streamOutput(bars)]]),
    });
    expect([...(await runsAt(root)).keys()]).toEqual(['rl.ipynb']);
  });

  it("have TRL's tables, and what is printed beside one is of the same run", async () => {
    const header = [
      'Step',
      'Training Loss',
      'reward',
      'reward_std',
      'completions / mean_length',
      'kl',
      'rewards / fmt / mean',
    ];
    const rows = list.map(i => [i, '0.000100', i / 10, 0.25, 100 + i, 0.01 * i, '&lt;b&gt;']);
    const root = writeTree(temporaryDirectory(), {
      'grpo.ipynb': notebookFile([[streamOutput("{'loss': 0.1, 'reward': 5}\n"), tableOutput(header, rows)]]),
    });
    const runs = await runsAt(root);
    expect([...runs.keys()]).toEqual(['grpo.ipynb']);
    const run = toCanonical(runs.get('grpo.ipynb')!);
    expect(run.trainer).toBe('trl-grpo');
    expect([...run.series.get('reward/mean')!.series.values]).toEqual(list.map(i => i / 10));
    expect(run.series.get('completion/length')!.theirs).toBe('completions / mean_length');
    expect(run.series.get('kl/ref')!.series.x[5]).toBe(6);
  });

  it('have the error that ended a run, and tables of other things are left out', async () => {
    const error = { output_type: 'error', ename: 'ValueError', evalue: 'nan', traceback: [] };
    const root = writeTree(temporaryDirectory(), {
      'x.ipynb': notebookFile([
        [streamOutput(printed(i => i)), error],
        [
          tableOutput(
            ['city', 'rain'],
            list.map(i => ['a', i]),
          ),
        ],
      ]),
    });
    const runs = [...(await runsAt(root)).values()];
    expect(runs).toHaveLength(1);
    expect(runs[0].texts.get('error')).toBe('ValueError: nan');
  });

  it('that are cut, or have other things where outputs should be, are refused or empty', async () => {
    const whole = notebookFile([[streamOutput(printed(i => i))]]);
    const root = writeTree(temporaryDirectory(), {
      'cut.ipynb': whole.slice(0, -40),
      'odd.ipynb':
        '{"cells": [null, 3, {"outputs": {}}, {"cell_type": "code", "outputs": [null, {"data": 5}, {"output_type": "stream", "text": {}}]}], "nbformat": 4}',
    });
    expect(await message(join(root, 'cut.ipynb'))).toMatch(/cut or damaged/);
    expect(await message(join(root, 'odd.ipynb'))).toMatch(/found none/);
    // Beside a log they do not stop the search.
    writeTree(root, { 'run/progress.csv': csv(i => i) });
    expect([...(await runsAt(root)).keys()]).toEqual(['run']);
  });
});

describe('evaluations.npz', () => {
  it('has the mean over the episodes of each evaluation', async () => {
    const root = writeTree(temporaryDirectory(), { 'evaluations.npz': evaluationsFile(8, 5) });
    const run = (await runsAt(root)).get('evaluations.npz')!;
    expect(points(run, 'eval/mean_reward')).toEqual(
      Array.from({ length: 8 }, (_, i) => [1000 * (i + 1), i + 2]),
    );
  });

  it('is of the run beside whose log it lies', async () => {
    const root = writeTree(temporaryDirectory(), {
      'a/progress.csv': csv(i => i),
      'a/evaluations.npz': evaluationsFile(8, 5),
    });
    expect([...(await runsAt(root)).keys()]).toEqual(['a']);
  });

  it('that claims more values than it has, or holds other arrays, is refused', async () => {
    const other = zipFile([{ name: 'weights.npy', content: npyFile([1, 2], '(2,)', '<f8') }]);
    const liar = zipFile([
      { name: 'timesteps.npy', content: npyFile([1, 2], '(4000000,)', '<i8') },
      { name: 'results.npy', content: npyFile([1, 2], '(2, 1000000)', '<f8') },
    ]);
    await expect(readContent(other)).rejects.toThrow(/NumPy's arrays weights\.npy/);
    await expect(readContent(liar)).rejects.toThrow(ReadError);
  });
});
