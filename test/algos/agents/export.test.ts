/** The exported policy against the trainer's own, in plain onnxruntime. */
import { createRequire } from 'node:module';
import { describe, expect, it } from 'vitest';
import { policyGraph } from '../../../src/algos/agents/export.ts';
import type { ActorCritic } from '../../../src/algos/agents/networks/actor-critic.ts';
import { networkFor } from '../../../src/algos/agents/networks/network.ts';
import { createPpoTrainer } from '../../../src/algos/ppo/iteration.ts';
import { ppoSettings } from '../../../src/algos/ppo/settings.ts';
import { compile, Graph, toOnnx } from '../../../src/engine/index.ts';
import {
  box,
  dict,
  discrete,
  makeVectorEnv,
  multiBinary,
  multiDiscrete,
  type Space,
  tuple,
} from '../../../src/envs/index.ts';
import { Rng } from '../../../src/random/index.ts';
import { ObservationNormaliser } from '../../../src/rollout/normalise.ts';
import { settingsJsonSchema } from '../../../src/settings/resolve.ts';
import { checkModel, describeValue } from '../../engine/support/onnx-model.ts';

const ort = createRequire(import.meta.url)('onnxruntime-node') as typeof import('onnxruntime-node');

describe('policyGraph', () => {
  it.each(['CartPole-v1', 'Pendulum-v1', 'Courier-v0'])(
    'of %s acts as the trainer does, to 1e-6',
    async env => {
      const envs = await makeVectorEnv(env, { envCount: 2 });
      const config = ppoSettings.schema.parse({
        stepsPerRollout: 64,
        minibatchSize: 32,
        epochs: 2,
        normaliseObservations: true,
        seed: 3,
        steps: 1000,
      });
      const trainer = await createPpoTrainer({ envs, config });
      await trainer.start();
      await trainer.iterate();
      await trainer.iterate();
      const { model, weights, observationNormaliser } = trainer;
      const session = await ort.InferenceSession.create(
        toOnnx(policyGraph(model, weights, envs.actionSpace, observationNormaliser)).bytes,
      );

      // What the trainer does itself: normalise, evaluate, take the mode, hold it in its bounds.
      const g = new Graph();
      const seen = g.input('seen', [1, model.observationSize]);
      g.output('policy', model.policy(model.layout.tensors(g.constant(weights)), seen));
      const program = await compile(g);
      const rng = new Rng(1);
      for (let round = 0; round < 50; round++) {
        // Far out as well, where the normaliser clips and actions meet their bounds.
        const raw = Float32Array.from(
          { length: model.observationSize },
          () => rng.normal() * (round < 40 ? 1 : 100),
        );
        const normalised = new Float32Array(raw.length);
        observationNormaliser!.apply(raw, normalised);
        const { policy } = program.run<{ policy: Float32Array }>({ seen: normalised });
        const action = new Float32Array(model.distribution.actionSize);
        model.distribution.mode(policy, action);
        envs.actionSpace.clip(action);
        const out = await session.run({ observation: new ort.Tensor('float32', raw, [1, raw.length]) });
        const close = (name: string, wanted: Float32Array): void => {
          (out[name].data as Float32Array).forEach((value, i) => {
            expect(Math.abs(value - wanted[i]), `${name} ${i}`).toBeLessThan(
              1e-6 * Math.max(1, Math.abs(wanted[i])) * 4,
            );
          });
        };
        close('distribution', policy);
        close('action', action);
      }
      program.dispose();
      trainer.dispose();
      await envs.close();
    },
  );
});

describe('the file of a policy', () => {
  const ROWS = [1, 7, 1000];
  const { POSITIVE_INFINITY: FAR } = Number;
  const heads: Record<string, Space> = {
    box: box({ shape: [3], low: -0.5, high: 0.5 }),
    'box without limits': box({ shape: [2] }),
    'box with infinite sides': box({ shape: [3], low: [-FAR, -0.2, -FAR], high: [0.1, FAR, FAR] }),
    discrete: discrete(5),
    multiDiscrete: multiDiscrete([3, 2, 4]),
    'multiDiscrete of equal parts': multiDiscrete([3, 3]),
    multiBinary: multiBinary(4),
    tuple: tuple([discrete(3), box({ shape: [2], low: -0.3, high: 0.3 }), multiBinary(2)]),
    'tuple of boxes': tuple([box({ shape: [1], low: 0, high: FAR }), box({ shape: [2], low: -1, high: 1 })]),
    dict: dict({
      aim: box({ shape: [2], low: [-FAR, 0], high: [0, FAR] }),
      tools: tuple([multiDiscrete([2, 3]), discrete(2)]),
    }),
    // Sizes that are those of the builds which the file is made from.
    'discrete with 101 categories': discrete(101),
    'box of 103 numbers': box({ shape: [103], low: -0.5, high: 0.5 }),
  };
  const activations = ['tanh', 'relu', 'gelu'] as const;

  it('every network and activation of the settings is tried', () => {
    const { properties } = settingsJsonSchema(ppoSettings) as {
      properties: Record<string, { enum?: string[] }>;
    };
    expect(properties.network.enum).toEqual(['mlp', 'set']);
    expect(properties.activation.enum).toEqual(activations);
  });

  it.each(
    // With each other as often as it takes to see each pair.
    Object.keys(heads).flatMap((head, i) =>
      activations.map((activation, k) => [head, activation, (i + k) % 2 === 0] as const),
    ),
  )('takes any number of rows: %s, mlp of %s, normaliser %s', async (head, activation, normalised) => {
    const space = heads[head];
    const model = networkFor(
      ppoSettings.schema.parse({ hidden: [16, 16], activation }),
      box({ shape: [6] }),
      space,
    );
    await expectAnyRows(model, space, normalised);
  });

  it.each(
    [3, 16, 101].flatMap((items, i) =>
      activations.map((activation, k) => [items, activation, (i + k) % 2 === 0] as const),
    ),
  )(
    'takes any number of rows: set network of %s items, %s, normaliser %s',
    async (items, activation, normalised) => {
      const space = discrete(items);
      const model = networkFor(
        ppoSettings.schema.parse({ network: 'set', hidden: [8, 12, 8], activation }),
        dict({ items: box({ shape: [items, 4] }), shared: box({ shape: [3] }) }),
        space,
      );
      await expectAnyRows(model, space, normalised);
    },
  );

  it('takes any number of rows where weights are too many to be folded', async () => {
    const space = tuple([box({ shape: [3], low: -1, high: 1 }), discrete(4)]);
    const model = networkFor(ppoSettings.schema.parse({ hidden: [128, 128] }), box({ shape: [40] }), space);
    await expectAnyRows(model, space, true);
  });

  /** The file in plain onnxruntime, all rows at once, against the engine's own policy, a row at a time. */
  async function expectAnyRows(model: ActorCritic, space: Space, normalised: boolean): Promise<void> {
    const { observationSize: size, distribution: family } = model;
    const { paramSize, actionSize } = family;
    const rng = new Rng(7);
    const normal = (length: number, scale: number): Float32Array =>
      Float32Array.from({ length }, () => scale * rng.normal());
    // Away from the start, where the policy's head is almost 0.
    const weights = normal(model.layout.size, 0.3);
    const normaliser = normalised ? new ObservationNormaliser(size, 2) : undefined;
    normaliser?.moments.update(normal(100 * size, 3));
    const build = policyGraph(model, weights, space, normaliser);

    const { bytes } = toOnnx(build);
    const { graph } = checkModel(bytes);
    expect(graph!.input!.map(describeValue)).toEqual([
      { name: 'observation', dtype: 'float32', shape: ['rows', size] },
    ]);
    expect(graph!.output!.map(describeValue)).toEqual([
      { name: 'distribution', dtype: 'float32', shape: ['rows', paramSize] },
      { name: 'action', dtype: 'float32', shape: ['rows', actionSize] },
    ]);
    // Shapes of values in between are left to the reader, so that none can contradict.
    expect(graph!.valueInfo).toEqual([]);

    const most = Math.max(...ROWS);
    const observations = normal(most * size, 2);
    const rowOf = (of: Float32Array, width: number, i: number): Float32Array =>
      of.subarray(i * width, (i + 1) * width);
    const alone = await compile(build(1));
    const g = new Graph();
    const seen = g.input('seen', [1, size]);
    g.output('policy', model.policy(model.layout.tensors(g.constant(weights)), seen));
    const trained = await compile(g);
    const [graphs, trainers] = [new Float32Array(most * paramSize), new Float32Array(most * paramSize)];
    for (let i = 0; i < most; i++) {
      const observation = rowOf(observations, size, i).slice();
      graphs.set(alone.run<{ distribution: Float32Array }>({ observation }).distribution, i * paramSize);
      normaliser?.apply(observation, observation);
      trainers.set(trained.run<{ policy: Float32Array }>({ seen: observation }).policy, i * paramSize);
    }
    alone.dispose();
    trained.dispose();

    const session = await ort.InferenceSession.create(bytes);
    for (const rows of ROWS) {
      const fed = new ort.Tensor('float32', observations.slice(0, rows * size), [rows, size]);
      const { distribution, action } = await session.run({ observation: fed });
      expect(distribution.dims).toEqual([rows, paramSize]);
      expect(action.dims).toEqual([rows, actionSize]);
      const given = distribution.data as Float32Array;
      const wanted = new Float32Array(rows * actionSize);
      const worst = { graph: 0, trainer: 0 };
      for (let i = 0; i < rows; i++) {
        const [own, mode] = [rowOf(given, paramSize, i), rowOf(wanted, actionSize, i)];
        worst.graph = Math.max(worst.graph, distance(own, rowOf(graphs, paramSize, i)));
        worst.trainer = Math.max(worst.trainer, distance(own, rowOf(trainers, paramSize, i)));
        // Of the file's own parameters: two categories may be as likely but for the last digit.
        family.mode(own, mode);
        space.clip(mode);
      }
      // Sums of many rows may be taken in another order than those of one.
      expect(worst.graph, `${rows} rows against one`).toBeLessThan(rows === 1 ? 1e-6 : 2e-6);
      // The trainer normalises in float64.
      expect(worst.trainer, `${rows} rows against the trainer`).toBeLessThan(4e-6);
      const other = wanted.findIndex((value, i) => value !== action.data[i]);
      expect(other, `an action of ${rows} rows that is not the mode`).toBe(-1);
    }
    await session.release();
  }

  /** The largest difference, relative to the largest value of the row or 1. */
  function distance(given: Float32Array, wanted: Float32Array): number {
    let [worst, scale] = [0, 1];
    for (let i = 0; i < wanted.length; i++) {
      worst = Math.max(worst, Math.abs(given[i] - wanted[i]));
      scale = Math.max(scale, Math.abs(wanted[i]));
    }
    return worst / scale;
  }
});
