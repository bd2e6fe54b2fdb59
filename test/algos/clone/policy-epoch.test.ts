/** One epoch of cloning on demonstrations that are made up, against the textbook. */
import { expect, test } from 'vitest';
import { networkFor } from '../../../src/algos/agents/networks/network.ts';
import { createClonePolicyTrainer } from '../../../src/algos/clone/policy/iteration.ts';
import { clonePolicySettings } from '../../../src/algos/clone/policy/settings.ts';
import { compile, Graph } from '../../../src/engine/index.ts';
import { box, discrete } from '../../../src/envs/index.ts';
import { Rng } from '../../../src/random/index.ts';

const [count, inputs, actions] = [8, 2, 3];
const config = {
  ...clonePolicySettings.defaults,
  ...{ hidden: [4], network: 'mlp', batchSize: count, learningRate: 1e-30, normaliseObservations: true },
} as typeof clonePolicySettings.defaults;
const model = networkFor(config, box({ shape: [inputs] }), discrete(actions));
const rng = new Rng(4);
const draw = (n: number, scale: number, mean = 0): Float32Array =>
  Float32Array.from({ length: n }, () => mean + scale * rng.normal());

const observations = draw(count * inputs, 3, 5);
const demonstrated = {
  count,
  actions: Float32Array.from({ length: count }, (_, i) => i % actions),
  logits: draw(count * actions, 2),
  returns: draw(count, 1),
  scores: [],
};

test('observations are normalised by all of them, and the loss is the cross-entropy to the odds shown', async () => {
  const trainer = createClonePolicyTrainer({
    model,
    config,
    count,
    record: async () => ({ ...demonstrated, observations: observations.slice() }),
  });
  const { row } = await trainer.iterate();
  const seen = trainer.demonstrations!.observations;
  for (let i = 0; i < inputs; i++) {
    const column = (of: Float32Array): number[] =>
      Array.from({ length: count }, (_, n) => of[n * inputs + i]);
    const mean = column(observations).reduce((a, b) => a + b) / count;
    const std = Math.sqrt(column(observations).reduce((sum, x) => sum + (x - mean) ** 2, 0) / count);
    column(seen).forEach((x, n) => {
      expect(x).toBeCloseTo((column(observations)[n] - mean) / std, 4);
    });
  }
  const g = new Graph();
  const weights = g.input('weights', [model.layout.size]);
  g.output('policy', model.policy(model.layout.tensors(weights), g.input('seen', [count, inputs])));
  const program = await compile(g);
  const { policy } = program.run<Record<string, Float32Array>>({ weights: trainer.weights, seen });
  program.dispose();
  const logs = (of: Float32Array, n: number): number[] => {
    const own = Array.from(of.subarray(n * actions, (n + 1) * actions));
    const sum = Math.log(own.reduce((total, logit) => total + Math.exp(logit), 0));
    return own.map(logit => logit - sum);
  };
  let loss = 0;
  for (let n = 0; n < count; n++) {
    const [shown, own] = [logs(demonstrated.logits, n), logs(policy, n)];
    loss -= shown.reduce((sum, log, a) => sum + Math.exp(log) * own[a], 0) / count;
  }
  expect(row['loss/clone']).toBeCloseTo(loss, 4);
  trainer.dispose();
});
