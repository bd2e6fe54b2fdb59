import { describe, expect, it } from 'vitest';
import { policyGraph } from '../../../../src/algos/agents/export.ts';
import type { ActorCritic } from '../../../../src/algos/agents/networks/actor-critic.ts';
import { setActorCritic, setLayoutOf } from '../../../../src/algos/agents/networks/set-network.ts';
import { compile, Graph } from '../../../../src/engine/index.ts';
import { box, dict, discrete, tuple } from '../../../../src/envs/index.ts';
import { categorical } from '../../../../src/kl/index.ts';
import { Rng } from '../../../../src/random/index.ts';

const [FEATURES, SHARED] = [3, 2];

const made = (items: number, hidden = [6, 5]): ActorCritic =>
  setActorCritic({
    layout: { items, itemFeatures: FEATURES, sharedFeatures: SHARED },
    distribution: categorical(items),
    hidden,
    activation: 'tanh',
  });

/** Parameters away from their start, where the policy's head is almost 0. */
const weightsOf = (model: ActorCritic): Float32Array => {
  const rng = new Rng(3);
  return Float32Array.from({ length: model.layout.size }, () => 0.5 * rng.normal());
};

/** Logits and values of rows of observations. */
async function run(model: ActorCritic, weights: Float32Array, rows: number[][]) {
  const g = new Graph();
  const obs = g.input('obs', [rows.length, model.observationSize]);
  const tensors = model.layout.tensors(g.constant(weights, [model.layout.size]));
  g.output('logits', model.policy(tensors, obs));
  g.output('values', model.value(tensors, obs));
  const program = await compile(g);
  const out = program.run<Record<string, Float32Array>>({ obs: Float32Array.from(rows.flat()) });
  program.dispose();
  return { logits: [...out.logits], values: [...out.values] };
}

const draw = (rng: Rng, count: number): number[] => Array.from({ length: count }, () => rng.normal());

/** The same function written plainly, one row at a time. */
function plain(
  model: ActorCritic,
  weights: Float32Array,
  items: number[][],
  shared: number[],
  name: 'actor' | 'critic',
): number[] {
  const views = model.layout.views(weights);
  const times = (x: number[], key: string): number[] => {
    const w = views[key];
    const outputs = w.length / x.length;
    return Array.from({ length: outputs }, (_, j) =>
      x.reduce((sum, v, i) => sum + v * w[i * outputs + j], 0),
    );
  };
  const bias = (key: string, x: number[]): number[] => x.map((v, j) => v + views[key][j]);
  const pool = (rows: number[][]): number[] => {
    const columns = rows[0].map((_, j) => rows.map(row => row[j]));
    return [
      ...columns.map(c => c.reduce((a, b) => a + b, 0) / c.length),
      ...columns.map(c => Math.max(...c)),
    ];
  };
  let [own, context] = [items, shared];
  for (let i = 0; i < 2; i++) {
    const all = times(context, `${name}.${i}.context`);
    own = own.map(item =>
      bias(`${name}.${i}.bias`, times(item, `${name}.${i}.weight`)).map((v, j) => Math.tanh(v + all[j])),
    );
    context = pool(own);
  }
  if (name === 'critic') return bias('critic.2.bias', times(context, 'critic.2.weight'));
  return own.map(item => bias('actor.2.bias', times(item, 'actor.2.weight'))[0]);
}

describe('set network', () => {
  it('is what a plain program computes', async () => {
    const model = made(4);
    const weights = weightsOf(model);
    const rng = new Rng(1);
    const items = Array.from({ length: 4 }, () => draw(rng, FEATURES));
    const shared = draw(rng, SHARED);
    const { logits, values } = await run(model, weights, [[...items.flat(), ...shared], draw(rng, 14)]);
    plain(model, weights, items, shared, 'actor').forEach((value, i) => {
      expect(logits[i]).toBeCloseTo(value, 5);
    });
    expect(values[0]).toBeCloseTo(plain(model, weights, items, shared, 'critic')[0], 5);
  });

  it('items in another order: their scores go with them, the value stays', async () => {
    const model = made(4);
    const weights = weightsOf(model);
    const rng = new Rng(2);
    const items = Array.from({ length: 4 }, () => draw(rng, FEATURES));
    const shared = draw(rng, SHARED);
    const order = [2, 0, 3, 1];
    const one = await run(model, weights, [[...items.flat(), ...shared]]);
    const two = await run(model, weights, [[...order.flatMap(i => items[i]), ...shared]]);
    order.forEach((from, to) => {
      expect(two.logits[to]).toBeCloseTo(one.logits[from], 5);
    });
    expect(two.values[0]).toBeCloseTo(one.values[0], 5);
  });

  it('the same parameters fit any number of items; each item twice scores as once', async () => {
    const [four, eight] = [made(4), made(8)];
    expect(eight.layout.specs.map(({ name, shape }) => [name, shape])).toEqual(
      four.layout.specs.map(({ name, shape }) => [name, shape]),
    );
    const weights = weightsOf(four);
    const rng = new Rng(5);
    const items = Array.from({ length: 4 }, () => draw(rng, FEATURES));
    const shared = draw(rng, SHARED);
    const one = await run(four, weights, [[...items.flat(), ...shared]]);
    const two = await run(eight, weights, [[...items.flat(), ...items.flat(), ...shared]]);
    // Neither the mean nor the maximum changes.
    two.logits.forEach((logit, i) => {
      expect(logit).toBeCloseTo(one.logits[i % 4], 5);
    });
    expect(two.values[0]).toBeCloseTo(one.values[0], 5);
  });

  it('the exported policy chooses the item of the highest score', async () => {
    const model = made(3);
    const weights = weightsOf(model);
    const rng = new Rng(6);
    const obs = draw(rng, model.observationSize);
    const { logits } = await run(model, weights, [obs]);
    const program = await compile(policyGraph(model, weights, discrete(3), undefined)(1));
    const { action } = program.run<{ action: Float32Array }>({ observation: Float32Array.from(obs) });
    program.dispose();
    expect(action[0]).toBe(logits.indexOf(Math.max(...logits)));
  });

  it('fits spaces with a row for each action, and no others', () => {
    const items = box({ shape: [4, 3] });
    const shared = box({ shape: [2] });
    expect(setLayoutOf(dict({ items, shared }), discrete(4))).toEqual({
      items: 4,
      itemFeatures: 3,
      sharedFeatures: 2,
    });
    expect(setLayoutOf(dict({ items, shared }), discrete(3))).toBeUndefined();
    expect(setLayoutOf(dict({ items: box({ shape: [12] }), shared }), discrete(4))).toBeUndefined();
    expect(setLayoutOf(dict({ items }), discrete(4))).toBeUndefined();
    expect(setLayoutOf(tuple([items, shared]), discrete(4))).toBeUndefined();
    expect(setLayoutOf(items, discrete(4))).toBeUndefined();
  });
});
