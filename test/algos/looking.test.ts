/**
 * Whole runs that look at themselves: training is not disturbed, kills cost nothing, old runs go on, the two kinds of
 * score are kept apart. Of all four algorithms, which share the life of a run.
 */
import { cpSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Settings } from '../../src/algos/algorithm.ts';
import { roundSeed } from '../../src/algos/evaluation.ts';
import type { TrainHooks, TrainResult } from '../../src/algos/hooks.ts';
import { clone, fork, openPolicy, resume, train } from '../../src/algos/runs.ts';
import { box, defineEnv, discrete, simulation } from '../../src/envs/index.ts';
import {
  checkpointDir,
  listCheckpoints,
  loadCheckpoint,
  readEvents,
  readRows,
  readTrajectory,
} from '../../src/runs/index.ts';
import { createTask, type TextTask, type TextTaskDefinition } from '../../src/tasks/index.ts';
import { temporaryRoot } from '../runs/support/temporary.ts';
import { echoFile, tiny } from './grpo/support.ts';

const root = temporaryRoot('looking');
const task = join(root, 'echo.ts');
const log = { tensorboard: false, csv: false };
const small = { ...log, envs: 2, stepsPerRollout: 64, minibatchSize: 64, epochs: 2, hidden: [8] };

type Begin = (config?: Settings, hooks?: TrainHooks & { root?: string }) => Promise<TrainResult>;
const begins: Readonly<Record<string, Begin>> = {
  // Moments of observations: an evaluation that counted what it sees would change them.
  ppo: (config, hooks) =>
    train({
      env: 'cartpole',
      preset: {},
      config: { ...small, steps: 128 * 8, normaliseObservations: true, checkpointEvery: 3, ...config },
      root,
      ...hooks,
    }),
  grpo: (config, hooks) =>
    train({
      task,
      config: { ...tiny, ...log, steps: 32 * 6, checkpointEvery: 3, learningRate: 3e-3, ...config },
      root,
      ...hooks,
    }),
  clone: (config, hooks) =>
    clone({
      env: 'cluster',
      envOptions: { replicas: 'h100,a40', requests: 64 },
      preset: {},
      config: {
        ...log,
        ...{ steps: 256, epochs: 6, batchSize: 32, envs: 2, hidden: [8], network: 'mlp', checkpointEvery: 3 },
        ...{ normaliseObservations: true, demonstrators: ['least-finish'] },
        ...config,
      },
      root,
      ...hooks,
    }),
  'clone-text': (config, hooks) =>
    clone({
      task,
      config: {
        ...log,
        ...{
          layers: 1,
          width: 16,
          heads: 2,
          threads: 1,
          steps: 16 * 2 * 6,
          batchSize: 16,
          batchesPerIteration: 2,
        },
        ...{ checkpointEvery: 3, ...config },
      },
      root,
      ...hooks,
    }),
};
const looking = { evaluateEvery: 2, evaluateEpisodes: 20 };

beforeAll(() => {
  writeFileSync(task, echoFile(fileURLToPath(new URL('../../src/tasks/index.ts', import.meta.url))));
});

/** The rows without what evaluations say, and without times. */
const trainingRows = (dir: string): unknown[] =>
  readRows(dir).items.map(row =>
    Object.fromEntries(Object.entries(row).filter(([id]) => !/^(eval|time)\//.test(id))),
  );
const evaluations = (dir: string): unknown[] =>
  readRows(dir).items.map(row => [
    row['eval/return'],
    row['eval/return_se'],
    row['eval/length'],
    row['eval/episodes'],
  ]);

/** The same checkpoint at the end, to the bit. */
function sameEnd(a: string, b: string, step: number): void {
  for (const file of ['policy.safetensors', 'model.safetensors', 'optimizer.safetensors', 'state.json']) {
    const paths = [a, b].map(dir => join(checkpointDir(dir, step), file));
    expect(existsSync(paths[0])).toBe(existsSync(paths[1]));
    if (existsSync(paths[0])) expect(readFileSync(paths[0]).equals(readFileSync(paths[1])), file).toBe(true);
  }
}

describe.each(Object.entries(begins))('%s', (name, begin) => {
  let whole: TrainResult;
  beforeAll(async () => {
    whole = await begin(looking);
  });

  test('trains to the same bits with evaluations and without', async () => {
    const blind = await begin();
    expect(trainingRows(whole.dir)).toEqual(trainingRows(blind.dir));
    sameEnd(whole.dir, blind.dir, whole.step);
    const rows = readRows(whole.dir).items;
    const evaluated = rows.map(row => row['eval/return'] !== undefined);
    expect(evaluated).toEqual(rows.map((_, i) => (i + 1) % 2 === 0 || i === rows.length - 1));
    expect(rows[1]['eval/episodes']).toBe(20);
  });

  test('killed between an evaluation and its checkpoint, it goes on to the same bits and the same evaluations', async () => {
    const own = join(root, `killed-${name}`);
    const die = (row: Readonly<Record<string, number>>): void => {
      if (row['train/iteration'] === 4) throw new Error('killed');
    };
    await expect(begin(looking, { root: own, onRow: die })).rejects.toThrow('killed');
    const { dir } = await resume('last', { root: own });
    expect(evaluations(dir)).toEqual(evaluations(whole.dir));
    expect(readTrajectory(dir)).toEqual(readTrajectory(whole.dir));
    sameEnd(whole.dir, dir, whole.step);
  });

  test('the best is the one whose evaluation was the best, and keeps its policy', async () => {
    const rows = readRows(whole.dir).items.filter(row => row['eval/return'] !== undefined);
    const best = rows.reduce((a, b) => (b['eval/return'] > a['eval/return'] ? b : a));
    const { index } = loadCheckpoint(whole.dir, 'best')!;
    expect(index).toMatchObject({
      step: best['train/step'],
      score: best['eval/return'],
      scoredBy: 'evaluation',
    });
  });

  test('a run from before there were evaluations goes on, with and without them', async () => {
    const controller = new AbortController();
    const stopped = await begin(
      {},
      {
        signal: controller.signal,
        onRow: row => row['train/iteration'] === 3 && controller.abort(),
      },
    );
    const path = join(stopped.dir, 'manifest.json');
    const { config, ...manifest } = JSON.parse(readFileSync(path, 'utf8'));
    const { evaluateEvery, evaluateEpisodes, stopAt, ...older } = config;
    expect([evaluateEvery, stopAt]).toEqual([0, null]);
    expect(evaluateEpisodes).toBeGreaterThan(1);
    writeFileSync(path, JSON.stringify({ ...manifest, config: older }));
    const other = `${stopped.dir}-looking`;
    cpSync(stopped.dir, other, { recursive: true });
    const [blind, seeing] = [
      await resume(stopped.dir),
      await resume(other, { config: looking, trust: true }),
    ];
    for (const { dir } of [blind, seeing]) {
      expect(trainingRows(dir)).toEqual(trainingRows(whole.dir));
      sameEnd(whole.dir, dir, whole.step);
    }
    expect(readRows(blind.dir).items.some(row => 'eval/return' in row)).toBe(false);
    expect(evaluations(seeing.dir).slice(3)).toEqual(evaluations(whole.dir).slice(3));
    // Scores of training and of evaluations are never compared.
    const scored = listCheckpoints(seeing.dir).filter(({ index }) => index!.score !== null);
    for (const { index, isBest } of scored) if (isBest) expect(index!.scoredBy).toBe('evaluation');
    expect(scored.some(({ isBest }) => isBest)).toBe(true);
  });
});

describe('a return to stop at', () => {
  const probe = (config: Settings, hooks: TrainHooks & { root?: string } = {}) =>
    train({
      env: 'ProbeConstant-v0',
      preset: {},
      config: { ...small, steps: 128 * 6, ...config },
      root,
      ...hooks,
    });

  test.each([
    [{ stopAt: 1 }, 1, 'training'],
    [{ stopAt: 1, evaluateEvery: 2 }, 2, 'evaluation'],
  ])('%j ends it when it is reached', async (config, iteration, of) => {
    const result = await probe(config);
    expect(result).toMatchObject({
      status: 'finished',
      step: 128 * iteration,
      reached: { return: 1, stopAt: 1, of },
    });
    expect(readEvents(result.dir).items.filter(({ type }) => type === 'reached')).toHaveLength(1);
    expect(listCheckpoints(result.dir).at(-1)!.step).toBe(result.step);
    // A resume has nothing to do, and says so; a higher one has.
    const again = await resume(result.dir);
    expect(again).toMatchObject({
      status: 'finished',
      step: result.step,
      lastRow: undefined,
      reached: { return: 1 },
    });
    const further = await resume(result.dir, { config: { stopAt: 1.5 } });
    expect(further).toMatchObject({ status: 'finished', step: 128 * 6 });
    expect(further).not.toHaveProperty('reached');
  });

  test('never ends it where it is not', async () => {
    expect((await probe({ stopAt: 1.001, evaluateEvery: 1 })).step).toBe(128 * 6);
  });

  test.each([[{ stopAt: 1 }], [{ stopAt: 1, evaluateEvery: 2 }]])(
    '%j, killed at its last checkpoint before it could end, it ends there',
    async config => {
      const own = join(root, `reached-${JSON.stringify(config).length}`);
      const die = ({ type }: { readonly type: string }): void => {
        if (type === 'checkpoint') throw new Error('killed');
      };
      await expect(probe(config, { root: own, onEvent: die })).rejects.toThrow('killed');
      const [{ dir, status }, whole] = [await resume('last', { root: own }), await probe(config)];
      expect(status).toBe('finished');
      expect(readTrajectory(dir)).toEqual(readTrajectory(whole.dir));
      sameEnd(dir, whole.dir, whole.step);
    },
  );

  test('a fork begins to look anew', async () => {
    const { dir } = await probe({ stopAt: 1 });
    const child = await fork(dir, { config: { stopAt: 2 } });
    expect(child.step).toBe(128 * 6);
    expect((await fork(dir)).step).toBe(128 * 2);
  });
});

test('an evaluation is what the checkpoint of its iteration gives, with what normalised its observations', async () => {
  const { dir } = await begins.ppo({ evaluateEvery: 4, evaluateEpisodes: 8 });
  for (const row of readRows(dir).items.filter(one => 'eval/return' in one)) {
    const policy = await openPolicy(dir, { checkpoint: row['train/step'] });
    const seen = await policy.evaluate({ episodes: 8, seed: roundSeed(0, 0) });
    await policy.close();
    expect(seen).toMatchObject({ mean: row['eval/return'], standardError: row['eval/return_se'] });
  }
});

test('every evaluation plays the same episodes, none of which training plays, in environments that are made once', async () => {
  const starts: { made: number; start: number }[] = [];
  let [made, closed] = [0, 0];
  const env = defineEnv({
    id: 'ProbeStarts-v0',
    description: 'Tells where its episodes begin; how much randomness they use depends on the actions.',
    maxEpisodeSteps: 20,
    make: () => {
      const number = made++;
      const inner = simulation({
        observationSpace: box({ shape: [1] }),
        actionSpace: discrete(2),
        start: rng => {
          const start = rng.uniform();
          starts.push({ made: number, start });
          return { start, t: 0 };
        },
        observe: ({ start, t }) => [start + t / 10],
        step(state, action, result, rng) {
          state.t += action[0] === 1 ? 1 : 0.5;
          if (action[0] === 1) rng.uniform();
          result.reward = 1;
          result.terminated = state.t > 4;
        },
      });
      return Object.assign(inner, { close: () => void closed++ });
    },
  });
  await train({
    env,
    preset: {},
    config: {
      ...small,
      steps: 128 * 6,
      learningRate: 0.05,
      guard: null,
      evaluateEvery: 2,
      evaluateEpisodes: 37,
    },
    root,
  });
  // 37 are three rounds in 13 environments; some more are made to be asked for their spaces.
  const trained = starts.filter(({ made }) => made < 2).map(({ start }) => start);
  const evaluated = starts.filter(({ made }) => made >= 2).map(({ start }) => start);
  const each = new Map<number, number>();
  for (const start of evaluated) each.set(start, (each.get(start) ?? 0) + 1);
  expect([...each.values()].filter(times => times === 3).length).toBeGreaterThanOrEqual(37);
  expect(evaluated.some(start => trained.includes(start))).toBe(false);
  expect(closed).toBe(made);
});

test('a task that has prompts held out is evaluated on them', async () => {
  const { default: echo } = (await import(task)) as { default: TextTaskDefinition };
  const asked: string[] = [];
  const closed: string[] = [];
  const told = (name: string, made: TextTask): TextTask => ({
    ...made,
    prompt: rng => {
      asked.push(name);
      return made.prompt(rng);
    },
    grade(prompt, completion, out) {
      made.grade(prompt, completion, out);
      if (name === 'held out') [out.reward, out.parts[0]] = [7, 7];
    },
    close: () => void closed.push(name),
  });
  const { dir } = await train({
    task: {
      ...echo,
      make: async (options, context) => told('training', await echo.make(options, context)),
      heldOut: async (options, context) => told('held out', await createTask(echo, options, context)),
    },
    config: { ...tiny, ...log, steps: 32 * 4, evaluateEvery: 2, evaluateEpisodes: 11 },
    root,
  });
  expect(readRows(dir).items.map(row => row['eval/return'])).toEqual([undefined, 7, undefined, 7]);
  // Its prompts are drawn once, for all evaluations.
  expect(asked.filter(name => name === 'held out')).toHaveLength(11);
  expect(closed.toSorted()).toEqual(['held out', 'training']);
});
