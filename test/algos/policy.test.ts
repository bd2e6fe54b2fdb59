/** A policy that one can hold: opened by whatever names its run, it acts, is tried, exported and recorded. */

import { readdirSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { policyStart } from '../../src/algos/agents/start.ts';
import type { TrainResult } from '../../src/algos/hooks.ts';
import type { Policy } from '../../src/algos/policy.ts';
import { clone, openPolicy, openPolicyOn, train } from '../../src/algos/runs.ts';
import { TrainError } from '../../src/base/errors.ts';
import { loadModel } from '../../src/lm/index.ts';
import { listReplays, loadCheckpoint, openRun, saveCheckpoint } from '../../src/runs/index.ts';
import { keel } from '../cli/support/keel.ts';
import { temporaryRoot } from '../runs/support/temporary.ts';
import { echoFile } from './grpo/support.ts';

const ort = createRequire(import.meta.url)('onnxruntime-node') as typeof import('onnxruntime-node');

const root = temporaryRoot('policy');
const opened: Policy[] = [];
afterAll(async () => {
  for (const policy of opened) await policy.close();
});
const open = async (...args: Parameters<typeof openPolicy>): Promise<Policy> => {
  const policy = await openPolicy(args[0], { root, ...args[1] });
  opened.push(policy);
  return policy;
};

const config = {
  ...{ envs: 4, stepsPerRollout: 32, minibatchSize: 32, epochs: 2, hidden: [8], steps: 128 * 5 },
  ...{ checkpointEvery: 1, keepEvery: 1, csv: false, tensorboard: false, seed: 1 },
};
/** Makes a checkpoint the best of its run, whatever was learnt. */
async function makeBest({ dir }: TrainResult, step: number): Promise<void> {
  const { index, files, state } = loadCheckpoint(dir, step)!;
  const { iteration, environment, keep } = index;
  const own = Object.fromEntries([...files].filter(([name]) => name !== 'state.json'));
  await saveCheckpoint(dir, {
    step,
    iteration,
    environment: environment!,
    keep,
    files: own,
    state,
    score: 1e6,
  });
}

let pendulum: TrainResult;
let pole: TrainResult;
beforeAll(async () => {
  const begin = (env: string, settings: object) => train({ env, preset: {}, config: settings, root });
  pole = await begin('cartpole', config);
  await makeBest(pole, 384);
  pendulum = await begin('pendulum', { ...config, normaliseObservations: true, logStdInitial: 1 });
});

const observations = [
  [1, 0, 0],
  [0.6, -0.8, 2],
  [-1, 0, -7],
];

describe('opening', () => {
  test('by id, by directory, by the end of its id, and the last', async () => {
    const policies = [
      await open(pendulum.id),
      await open(pendulum.dir),
      await open(pendulum.id.slice(-4)),
      await open('last'),
    ];
    for (const policy of policies) {
      expect(policy.run).toMatchObject({ id: pendulum.id, dir: pendulum.dir });
      expect(policy.subject).toMatchObject({ kind: 'env', id: 'Pendulum-v1' });
    }
    const [first, ...others] = policies.map(policy => policy.act(observations));
    for (const actions of others) expect(actions).toEqual(first);
  });

  test('by what it learns in: the newest run of it', async () => {
    const policy = await openPolicyOn('cartpole', { root });
    opened.push(policy);
    expect(policy.run.id).toBe(pole.id);
    await expect(openPolicyOn('courier', { root })).rejects.toThrow(
      /Courier-v0 needs a policy, and .* has no run of Courier-v0: keel train courier makes one/,
    );
  });

  test('says what it needs, and what is not there', async () => {
    await expect(openPolicy(undefined as never)).rejects.toThrow(
      "openPolicy needs a run, not undefined: openPolicy('last'), its id or its directory",
    );
    await expect(open('nothing')).rejects.toThrow(/nothing/);
    await expect(open(pole.id, { checkpoint: 99 })).rejects.toThrow(/99/);
    const empty = temporaryRoot('empty');
    const die = (): never => {
      throw new Error('killed');
    };
    const early = train({ env: 'cartpole', preset: {}, config, root: empty, onStart: die });
    await expect(early).rejects.toThrow('killed');
    await expect(openPolicy('last', { root: empty })).rejects.toThrow(
      /has no checkpoint yet: train it first/,
    );
  });

  test('a checkpoint of a run; the best unless told', async () => {
    expect(await open(pole.id)).toMatchObject({ step: 384, iteration: 3 });
    expect((await open(pole.id, { checkpoint: 'best' })).step).toBe(384);
    expect(await open(pole.id, { checkpoint: 'last' })).toMatchObject({ step: pole.step, iteration: 5 });
    expect(await open(pole.id, { checkpoint: 256 })).toMatchObject({ step: 256, iteration: 2 });
  });
});

describe('acting', () => {
  test('on one observation: the most likely action, within its bounds, and always the same', async () => {
    const policy = await open(pendulum.id);
    for (const observation of observations) {
      const action = policy.act(observation);
      expect(action).toBeInstanceOf(Float32Array);
      expect(action).toHaveLength(1);
      expect(Math.abs(action[0])).toBeLessThanOrEqual(2);
      expect(policy.act(observation)).toEqual(action);
      expect(policy.act(Float32Array.from(observation))).toEqual(action);
    }
    const mean = new Float32Array(2);
    policy.score(Float32Array.from(observations[1]), mean);
    expect(policy.act(observations[1])[0]).toBeCloseTo(Math.max(-2, Math.min(2, mean[0])), 6);
  });

  test('on several: an action for each, in their order', async () => {
    const policy = await open(pendulum.id);
    const alone = observations.map(observation => policy.act(observation));
    expect(policy.act(observations)).toEqual(alone);
    expect(policy.act(observations.map(row => Float32Array.from(row)))).toEqual(alone);
    expect(alone[0]).not.toEqual(alone[2]);
    // Each action is an array of its own.
    policy.act([9, 9, 9]);
    expect(policy.act(observations)).toEqual(alone);
  });

  test('drawn as in training: others each time, the same from each opening, within the bounds', async () => {
    const draw = (policy: Policy) =>
      Array.from({ length: 30 }, () => policy.act(observations[1], { sampled: true })[0]);
    const [one, two] = [draw(await open(pendulum.id)), draw(await open(pendulum.id))];
    expect(new Set(one).size).toBeGreaterThan(10);
    expect(two).toEqual(one);
    expect(Math.max(...one.map(Math.abs))).toBe(2);
    const pair = (await open(pendulum.id)).act([observations[1], observations[1]], { sampled: true });
    expect(pair.map(([action]) => action)).toEqual(one.slice(0, 2));
  });

  test.each([
    ['too few', [1, 2], /^the observation has 2 numbers, Pendulum-v1 has 3: pass all of them/],
    ['too many', new Float32Array(6), /^the observation has 6 numbers/],
    ['none', new Float32Array(0), /^the observation has 0 numbers/],
    ['one of several too few', [[1, 2, 3], [1]], /^the observation has 1 numbers/],
    [
      'text',
      'left or right',
      /is a policy of Pendulum-v1: it acts on observations of 3 numbers, not on text/,
    ],
    ['texts', ['left', 'right', 'up'], /acts on observations of 3 numbers, not on text/],
    ['a number', 5, /^the observation is 5, Pendulum-v1 has 3: pass all of them/],
    ['what is no number', [1, Number.NaN, 0], /^the observation has NaN at place 1: pass finite numbers/],
    ['none among several', [[1, 0, 0], null], /^the observation is null, Pendulum-v1 has 3/],
  ])('refuses %s', async (_, input, message) => {
    const policy = await open(pendulum.id);
    expect(() => policy.act(input as number[])).toThrow(TrainError);
    expect(() => policy.act(input as number[])).toThrow(message);
  });
});

/** What every policy refuses, whatever it acts on. */
async function refusesNothing(policy: Policy, input: 'observation' | 'prompt', good: unknown): Promise<void> {
  const act = async (given: unknown) => policy.act(given as string);
  const { id } = policy.run;
  const refused = async (asked: Promise<unknown>, message: string): Promise<void> => {
    const error: unknown = await asked.catch(error => error);
    expect(error).toBeInstanceOf(TrainError);
    expect((error as TrainError).message).toBe(message);
  };
  const remedy = `pass one ${input}, or several in a list`;
  await refused(act([]), `act([]) has nothing to act on: ${remedy}`);
  await refused(act(undefined), `act(undefined) has nothing to act on: ${remedy}`);
  await refused(act(null), `act(null) has nothing to act on: ${remedy}`);
  for (const episodes of [0, -1, 1.5, Number.NaN])
    await refused(
      policy.evaluate({ episodes }),
      `episodes is ${episodes}, not a whole number from 1: give one, or leave it out for 100`,
    );
  await policy.close();
  await policy.close();
  await refused(act(good), `the policy of ${id} is closed, act needs an open one: open it again`);
  await refused(
    policy.evaluate({ episodes: 1 }),
    `the policy of ${id} is closed, evaluate needs an open one: open it again`,
  );
  await refused(
    policy.export('never-written'),
    `the policy of ${id} is closed, export needs an open one: open it again`,
  );
}

test('nothing to act on, no episodes, and what is asked after closing are refused', async () => {
  const policy = await open(pendulum.id);
  await refusesNothing(policy, 'observation', observations[0]);
  expect(() => policy.score(new Float32Array(3), new Float32Array(2))).toThrow(/is closed, score needs/);
});

describe('evaluating', () => {
  const evaluated = async (reference: string, ...flags: string[]) => {
    const { code, stdout, stderr } = await keel([
      ...['eval', reference, '--run-dir', root, '--json', '-n', '12'],
      ...flags,
    ]);
    expect(code, stderr).toBe(0);
    return JSON.parse(stdout) as Record<string, unknown>;
  };

  test.each([
    ['the most likely actions', {}, []],
    ['actions that are drawn', { sampled: true }, ['--sampled']],
    ['another seed', { seed: 77 }, ['--seed', '77']],
  ])('gives the numbers of the command line: %s', async (_, options, flags) => {
    const policy = await open(pendulum.id);
    const result = await policy.evaluate({ episodes: 12, ...options });
    if (result.kind !== 'episodes') throw new Error(`it plays ${result.kind}`);
    expect(result.returns).toHaveLength(12);
    expect(result.mean).toBeCloseTo(result.returns.reduce((a, b) => a + b, 0) / 12, 6);
    const { kind: __, ...numbers } = result;
    expect(await evaluated(pendulum.id, ...flags)).toMatchObject({
      run: pendulum.id,
      checkpoint: policy.step,
      environment: 'Pendulum-v1',
      ...numbers,
    });
  });

  test('plays as many episodes as were asked for, however long each is', async () => {
    const policy = await open(pole.id);
    for (const episodes of [5, 20]) {
      const result = await policy.evaluate({ episodes });
      if (result.kind !== 'episodes') throw new Error(`it plays ${result.kind}`);
      expect([result.returns.length, result.lengths.length]).toEqual([episodes, episodes]);
      // Of CartPole a return is a length: not all are alike, so some environments have ended more than once.
      expect(result.returns).toEqual(result.lengths);
      expect(new Set(result.lengths).size).toBeGreaterThan(1);
    }
  });

  test('is the same twice, and differs between seeds and ways to act', async () => {
    const policy = await open(pendulum.id);
    const play = (options: object) => policy.evaluate({ episodes: 3, ...options });
    const [one, again, seed, drawn] = [
      await play({}),
      await play({}),
      await play({ seed: 5 }),
      await play({ sampled: true }),
    ];
    expect(again).toEqual(one);
    expect(seed).not.toEqual(one);
    expect(drawn).not.toEqual(one);
  });
});

describe('exporting', () => {
  test.each([1, 2, 17])('a file that acts as the policy does, for %i rows at once', async rows => {
    const policy = await open(pendulum.id);
    const path = join(root, `pendulum-${rows}.onnx`);
    expect(await policy.export(path)).toEqual({ kind: 'onnx', observation: 3, action: 1, distribution: 2 });
    const session = await ort.InferenceSession.create(path);
    const batch = Array.from({ length: rows }, (_, i) => [Math.cos(i), Math.sin(i), i - 8]);
    const observation = new ort.Tensor('float32', Float32Array.from(batch.flat()), [rows, 3]);
    const { action, distribution } = await session.run({ observation });
    expect([action.dims, distribution.dims]).toEqual([
      [rows, 1],
      [rows, 2],
    ]);
    policy.act(batch).forEach(([wanted], i) => {
      expect((action.data as Float32Array)[i]).toBeCloseTo(wanted, 5);
    });
    await session.release();
  });

  test('its name is that of the command line', async () => {
    const policy = await open(pole.id);
    expect(policy.exportName).toBe('policy.onnx');
    const file = join(root, 'by-command.onnx');
    const { code, stdout, stderr } = await keel(['export', pole.id, '--run-dir', root, '-o', file]);
    expect(code, stderr).toBe(0);
    expect(stdout).toContain(`checkpoint ${policy.step}`);
    const own = join(root, 'by-hand.onnx');
    await policy.export(own);
    const sessions = await Promise.all([file, own].map(path => ort.InferenceSession.create(path)));
    const observation = new ort.Tensor('float32', Float32Array.of(0.1, -0.2, 0.03, 0.4), [1, 4]);
    const [a, b] = await Promise.all(sessions.map(session => session.run({ observation })));
    expect(a.distribution.data).toEqual(b.distribution.data);
  });
});

describe('recording', () => {
  test('is refused where there is no body, and leaves nothing', async () => {
    const policy = await open(pole.id);
    await expect(policy.record()).rejects.toThrow(
      /^CartPole-v1 cannot be drawn: it has no view; environments of your own can have one, .*docs.robot-view\.md\)$/,
    );
    expect(listReplays(pole.dir)).toEqual([]);
  });
});

describe('which checkpoint, where returns do not compare', () => {
  let cluster: TrainResult;
  beforeAll(async () => {
    const envOptions = { replicas: 'h100,a40', requests: 32 };
    cluster = await train({
      ...{ env: 'cluster', envOptions, preset: {}, root },
      config: { ...config, network: 'set', record: false },
    });
    await makeBest(cluster, 256);
  });

  test('the last, whatever the best is: to hold, to evaluate, to export and to begin from', async () => {
    expect((await open(cluster.id)).step).toBe(cluster.step);
    const evaluated = await keel(['eval', cluster.id, '--run-dir', root, '-n', '1', '--json']);
    expect(JSON.parse(evaluated.stdout).checkpoint).toBe(cluster.step);
    const file = join(root, 'cluster.onnx');
    const exported = await keel(['export', cluster.id, '--run-dir', root, '-o', file]);
    expect(exported.stdout).toContain(`checkpoint ${cluster.step}`);
    expect(policyStart(cluster.id, { root }).parent).toEqual({ id: cluster.id, step: cluster.step });
    const child = await train({
      ...{ env: 'cluster', envOptions: { replicas: 'h100,a40', requests: 32 }, preset: {}, root },
      config: { ...config, network: 'set', steps: 128, record: false },
      from: cluster.id,
    });
    expect(openRun(child.dir).manifest.parent).toEqual({ id: cluster.id, step: cluster.step });
    // Elsewhere it is the best.
    expect(policyStart(pole.id, { root }).parent!.step).toBe(384);
  });

  test('the best where it is asked for', async () => {
    expect((await open(cluster.id, { checkpoint: 'best' })).step).toBe(256);
    expect(policyStart(cluster.id, { checkpoint: 'best', root }).parent!.step).toBe(256);
    const { stdout } = await keel([
      ...['eval', cluster.id, '--run-dir', root, '-n', '1', '--json', '--checkpoint', 'best'],
    ]);
    expect(JSON.parse(stdout).checkpoint).toBe(256);
  });
});

describe('a language model', () => {
  let echo: TrainResult;
  beforeAll(async () => {
    const task = join(root, 'echo.ts');
    writeFileSync(task, echoFile(fileURLToPath(new URL('../../src/tasks/index.ts', import.meta.url))));
    echo = await clone({
      task,
      preset: {},
      config: {
        ...{ layers: 1, width: 16, heads: 2, threads: 1, steps: 2560, batchSize: 64, learningRate: 1e-2 },
        ...{ tensorboard: false, csv: false, seed: 4 },
      },
      root,
    });
  });

  test('completes a prompt', async () => {
    const policy = await open(echo.id);
    expect(policy).toMatchObject({ subject: { kind: 'task', id: 'echo' }, step: echo.step });
    expect(await policy.act('b')).toBe('b');
    expect(await policy.act('d')).toBe('d');
  });

  test('completes several prompts: a completion for each, in their order', async () => {
    const policy = await open(echo.id);
    expect(await policy.act(['d', 'b', 'c'])).toEqual(['d', 'b', 'c']);
    expect(await policy.act(['a'])).toEqual(['a']);
    await expect(policy.act(['a', 3] as never) as unknown as Promise<unknown>).rejects.toThrow(
      /which are text, not \["a",3\]$/,
    );
  });

  test('refuses nothing to complete, no prompts, and what is asked after closing', async () => {
    await refusesNothing(await open(echo.id), 'prompt', 'a');
  });

  test('draws: other completions from call to call, the same from each opening', async () => {
    // Before anything was learnt it is unsure of everything.
    const fresh = await train({
      ...{ task: join(root, 'echo.ts'), preset: {}, root },
      config: {
        ...{ layers: 1, width: 16, heads: 2, threads: 1, promptsPerIteration: 2, groupSize: 2, steps: 4 },
        ...{ learningRate: 1e-6, tensorboard: false, csv: false },
      },
    });
    const draw = async (): Promise<string[]> => {
      const policy = await open(fresh.id);
      const texts: string[] = [];
      for (let i = 0; i < 6; i++) texts.push(await policy.act('a', { sampled: true }));
      return texts;
    };
    const one = await draw();
    expect(new Set(one).size).toBeGreaterThan(1);
    expect(await draw()).toEqual(one);
  });

  test('refuses an observation, to score, and to be recorded', async () => {
    const policy = await open(echo.id);
    const asked = policy.act([1, 2, 3] as never) as unknown as Promise<unknown>;
    await expect(asked).rejects.toThrow(/is a language model: it completes prompts, which are text/);
    expect(() => policy.score(new Float32Array(1), new Float32Array(1))).toThrow(
      /has no observations to score/,
    );
    await expect(policy.record()).rejects.toThrow(/cannot be drawn: it completes prompts of echo/);
  });

  test('is evaluated to the numbers of the command line', async () => {
    const result = await (await open(echo.id)).evaluate({ episodes: 20 });
    expect(result).toMatchObject({ kind: 'completions', completions: 20, metrics: { exact: 1 } });
    const { code, stdout, stderr } = await keel(['eval', echo.id, '--run-dir', root, '-n', '20', '--json']);
    expect(code, stderr).toBe(0);
    const { kind: _, ...numbers } = result;
    expect(JSON.parse(stdout)).toMatchObject({ run: echo.id, task: 'echo', ...numbers });
  });

  test("is exported as a model's directory", async () => {
    const policy = await open(echo.id);
    expect(policy.exportName).toBe('model');
    const path = join(root, 'exported');
    const exported = await policy.export(path);
    expect(exported).toEqual({ kind: 'model', files: expect.arrayContaining(['model.safetensors']) });
    expect(readdirSync(path).sort()).toEqual(exported.kind === 'model' ? [...exported.files].sort() : []);
    const model = await loadModel(path);
    expect(model.options).toMatchObject({ layers: 1, width: 16 });
    // As a model that no run has made it completes as well.
    const held = await openPolicyOn(join(root, 'echo.ts'), { from: path, root });
    opened.push(held);
    expect(await held.act('c')).toBe('c');
  });
});
