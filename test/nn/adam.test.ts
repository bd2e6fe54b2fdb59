import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  cast,
  compile,
  evaluate,
  Graph,
  grad,
  loop,
  mul,
  type Operand,
  reduceMean,
  sub,
  type Tensor,
} from '../../src/engine/index.ts';
import {
  type AdamOptions,
  adam,
  adamCorrections,
  clipScale,
  correctionsAt,
  ratesByGroup,
  secondMomentScale,
} from '../../src/nn/adam.ts';
import { zeros } from '../../src/nn/initialise.ts';
import { mlp } from '../../src/nn/mlp.ts';
import { parameters } from '../../src/nn/parameters.ts';
import { Rng } from '../../src/random/index.ts';
import { expectClose, type PlainFeeds, runCompiled, typed } from '../engine/support/check.ts';
import { type AdamSettings, largestError, normals, ReferenceAdam } from './support/reference.ts';

interface StepGraphOptions {
  shape: readonly number[];
  options?: AdamOptions;
  /** Builds further operands of the step in its graph. */
  extra?: (g: Graph) => { gradientScale?: Operand; learningRate?: Operand; apply?: Tensor };
  decay?: (g: Graph) => Operand;
}

/** One step as a graph with the inputs weights, m, v, gradient, learningRate, step. */
function stepGraph({ shape, options = {}, extra, decay }: StepGraphOptions): Graph {
  const g = new Graph();
  const [weights, m, v, gradient] = ['weights', 'm', 'v', 'gradient'].map(name => g.input(name, shape));
  const more = extra?.(g) ?? {};
  const learningRate = more.learningRate ?? g.input('learningRate', []);
  const corrections = adamCorrections(g.input('step', []), options);
  const weightDecay = decay ? { weightDecay: decay(g) } : {};
  const next = adam({ weights, m, v }, { gradient, corrections, ...more, ...weightDecay, learningRate });
  for (const [name, t] of Object.entries(next)) g.output(`next.${name}`, t as Tensor);
  return g;
}

type State = Record<'weights' | 'm' | 'v', ArrayLike<number>>;
type Runner = (feeds: PlainFeeds) => State;

const inFloat64 =
  (graph: Graph): Runner =>
  feeds => {
    const out = evaluate(graph, feeds);
    return { weights: out['next.weights'].data, m: out['next.m'].data, v: out['next.v'].data };
  };

async function inFloat32(graph: Graph): Promise<Runner & { dispose(): void }> {
  const program = await compile(graph);
  const run: Runner = feeds => {
    const given = Object.fromEntries(
      program.inputs.map(({ name, dtype }) => [name, typed(feeds[name] ?? [], dtype)]),
    );
    const out = program.run<Record<string, Float32Array>>(given);
    return { weights: out['next.weights'], m: out['next.m'], v: out['next.v'] };
  };
  return Object.assign(run, { dispose: () => program.dispose() });
}

/** What a run of many steps feeds at each. */
interface Course {
  steps?: number;
  size: number;
  seed?: number;
  settings?: AdamSettings;
  learningRate?: (t: number) => number | readonly number[];
  weightDecay?: number | readonly number[];
  gradientScale?: (t: number) => number;
  /** Feeds beyond the usual, at each step. */
  feeds?: (t: number) => PlainFeeds;
}

/** Runs a graph next to the textbook, and gives the largest relative error of each part of the state over all steps. */
function courseErrors(run: Runner, course: Course): Record<keyof State, number> {
  const { steps = 50, size, seed = 1, settings = {}, learningRate = () => 0.01 } = course;
  const { weightDecay = 0, gradientScale = () => 1, feeds = () => ({}) } = course;
  const { beta1 = 0.9, beta2 = 0.999 } = settings;
  const rng = new Rng(seed);
  const start = normals(rng, size);
  const reference = new ReferenceAdam(start, settings);
  // Gradients of very different sizes, some of them often 0.
  const scales = start.map((_, i) => 10 ** ((i % 7) - 4));
  let state: State = { weights: start, m: new Float32Array(size), v: new Float32Array(size) };
  const errors = { weights: 0, m: 0, v: 0 };
  for (let t = 1; t <= steps; t++) {
    const gradient = scales.map((scale, i) =>
      i % 5 === 4 && t % 3 !== 0 ? 0 : Math.fround(scale * rng.normal()),
    );
    const rate = learningRate(t);
    state = run({
      ...state,
      gradient,
      step: [t],
      learningRate: typeof rate === 'number' ? [rate] : rate,
      ...feeds(t),
    });
    const scale = gradientScale(t);
    reference.step(
      gradient.map(g => g * scale),
      rate,
      weightDecay,
    );
    const found = { ...state, v: Array.from(state.v, v => v * secondMomentScale(beta1, beta2)) };
    // Parameters relative to 1, about the size they have, and the first moment to a twentieth of the gradient's size:
    // where they pass 0, earlier steps have left their rounding.
    errors.weights = Math.max(errors.weights, largestError(found.weights, reference.weights, 1));
    scales.forEach((size, i) => {
      errors.m = Math.max(errors.m, largestError([found.m[i]], [reference.m[i]], size / 20));
    });
    errors.v = Math.max(errors.v, largestError(found.v, reference.v));
  }
  return errors;
}

async function expectTextbook(options: StepGraphOptions, course: Course): Promise<void> {
  const exact = courseErrors(inFloat64(stepGraph(options)), course);
  for (const [name, error] of Object.entries(exact)) expect(error, `${name} in float64`).toBeLessThan(1e-10);
  const run = await inFloat32(stepGraph(options));
  const rounded = courseErrors(run, course);
  run.dispose();
  for (const [name, error] of Object.entries(rounded)) expect(error, `${name} in float32`).toBeLessThan(1e-5);
}

describe('many steps are those of the textbook', () => {
  it.each<{ settings: AdamSettings; rate: number }>([
    { settings: {}, rate: 0.01 },
    { settings: { epsilon: 1e-5 }, rate: 3e-4 },
    { settings: { epsilon: 0.1 }, rate: 0.1 },
    { settings: { epsilon: 1e-8, beta1: 0.5, beta2: 0.9 }, rate: 0.05 },
    { settings: { beta1: 0, beta2: 0.99 }, rate: 0.01 },
    { settings: { beta1: 0.95, beta2: 0.95 }, rate: 0.01 },
  ])('with $settings at $rate', async ({ settings, rate }) => {
    await expectTextbook(
      { shape: [23], options: settings },
      { size: 23, settings, learningRate: () => rate },
    );
  });

  it('for any settings', () => {
    fc.assert(
      fc.property(
        fc.record({
          beta1: fc.double({ min: 0, max: 0.99, noNaN: true }),
          beta2: fc.double({ min: 0.1, max: 0.9999, noNaN: true }),
          epsilon: fc.constantFrom(1e-10, 1e-8, 1e-5, 1e-3, 1),
        }),
        fc.nat(),
        (settings, seed) => {
          const run = inFloat64(stepGraph({ shape: [6], options: settings }));
          const errors = courseErrors(run, { size: 6, steps: 12, settings, seed });
          expect(errors.weights).toBeLessThan(1e-10);
        },
      ),
      { numRuns: 40, seed: 1 },
    );
  });

  it('with a learning rate that changes from step to step, in one program', async () => {
    await expectTextbook({ shape: [9] }, { size: 9, learningRate: t => 0.05 / t });
    // One of 0 stops the parameters, but not the moments.
    await expectTextbook({ shape: [9] }, { size: 9, learningRate: t => (t % 2 ? 0.01 : 0) });
  });

  it('with a learning rate that is a number', async () => {
    await expectTextbook(
      { shape: [9], extra: () => ({ learningRate: 0.02 }) },
      { size: 9, learningRate: () => 0.02 },
    );
  });

  it('with a learning rate for each value', async () => {
    const rates = Array.from({ length: 9 }, (_, i) => Math.fround(0.001 * i));
    await expectTextbook(
      { shape: [9], extra: g => ({ learningRate: g.input('learningRate', [9]) }) },
      { size: 9, learningRate: () => rates },
    );
  });

  it.each([0.01, 0.3])('with weight decay %d', async weightDecay => {
    await expectTextbook(
      { shape: [11], decay: () => weightDecay },
      { size: 11, weightDecay, learningRate: t => 0.1 / t },
    );
  });

  it('with a weight decay for each value, and an input for one', async () => {
    const weightDecay = Array.from({ length: 8 }, (_, i) => (i % 2 ? 0.25 : 0));
    await expectTextbook({ shape: [8], decay: g => g.constant(weightDecay) }, { size: 8, weightDecay });
    await expectTextbook(
      { shape: [8], decay: g => g.input('decay', []) },
      { size: 8, weightDecay: 0.125, feeds: () => ({ decay: [0.125] }) },
    );
  });

  it('with a factor on the gradient, as a number or an input', async () => {
    await expectTextbook(
      { shape: [8], extra: () => ({ gradientScale: 0.25 }) },
      { size: 8, gradientScale: () => 0.25 },
    );
    const gradientScale = (t: number): number => (t % 4) / 4;
    await expectTextbook(
      { shape: [8], extra: g => ({ gradientScale: g.input('scale', []) }) },
      { size: 8, gradientScale, feeds: t => ({ scale: [gradientScale(t)] }) },
    );
  });

  it('with all of it at once, and a step that is always applied', async () => {
    const settings = { beta1: 0.8, beta2: 0.98, epsilon: 1e-6 };
    await expectTextbook(
      {
        shape: [10],
        options: settings,
        decay: () => 0.05,
        extra: g => ({
          gradientScale: g.input('scale', []),
          learningRate: mul(g.input('learningRate', []), g.constant(Array(10).fill(1))),
          apply: g.input('apply', [], 'bool'),
        }),
      },
      {
        size: 10,
        settings,
        weightDecay: 0.05,
        learningRate: t => 0.02 + 0.001 * t,
        gradientScale: t => 1 / t,
        feeds: t => ({ scale: [1 / t], apply: [1] }),
      },
    );
  });

  it('on a matrix and on a scalar', async () => {
    await expectTextbook({ shape: [3, 4], decay: () => 0.1 }, { size: 12, weightDecay: 0.1 });
    await expectTextbook({ shape: [] }, { size: 1 });
    const apply = { extra: (g: Graph) => ({ apply: g.input('apply', [], 'bool') }) };
    await expectTextbook({ shape: [2, 3, 2], ...apply }, { size: 12, feeds: () => ({ apply: [1] }) });
  });
});

describe('the first steps', () => {
  it('are precise to float32, although 1 - β² starts at a thousandth', async () => {
    const run = await inFloat32(stepGraph({ shape: [5] }));
    // From 0, so that the sum is what was added: rounding is not hidden by a large parameter.
    const gradients = [3, -1e-3, 1e-5, 40, -0.7].map(Math.fround);
    const reference = new ReferenceAdam(Array(5).fill(0));
    let state: State = { weights: Array(5).fill(0), m: Array(5).fill(0), v: Array(5).fill(0) };
    for (let t = 1; t <= 20; t++) {
      state = run({ ...state, gradient: gradients, step: [t], learningRate: [0.25] });
      reference.step(gradients, 0.25);
      expect(largestError(state.weights, reference.weights), `step ${t}`).toBeLessThan(2e-6);
      if (t === 1)
        expectClose('the first is lr·sign', state.weights, [-0.25, 0.25, -0.25, -0.25, 0.25], 1e-3);
    }
    run.dispose();
  });

  it('do not divide by 0 where the gradient is 0', async () => {
    const run = await inFloat32(stepGraph({ shape: [2], options: { epsilon: 1e-8 } }));
    const state = run({
      weights: [1.5, -2],
      m: [0, 0],
      v: [0, 0],
      gradient: [0, 0],
      step: [1],
      learningRate: [1],
    });
    run.dispose();
    expect(Array.from(state.weights)).toEqual([1.5, -2]);
  });
});

describe('adamCorrections', () => {
  const steps = [1, 2, 3, 5, 10, 77, 100, 1000, 9999, 1e5, 1e6];

  it.each<AdamSettings>([{}, { epsilon: 1e-5 }, { beta1: 0.5, beta2: 0.9 }, { beta1: 0, beta2: 0.9999 }])(
    'with %j are those of the formula, to float32 precision, from the first step to the millionth',
    async settings => {
      const { beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8 } = settings;
      const root = steps.map(t =>
        Math.sqrt(-Math.expm1(t * Math.log(beta2)) / secondMomentScale(beta1, beta2)),
      );
      const expected = {
        rate: root.map((r, i) => r / -Math.expm1(steps[i] * Math.log(beta1))),
        epsilon: root.map(r => r * epsilon),
      };
      const g = new Graph();
      const { rate, epsilon: eps } = adamCorrections(g.input('step', [steps.length]), settings);
      g.output('rate', rate);
      g.output('epsilon', eps);
      const exact = evaluate(g, { step: steps });
      const rounded = await runCompiled(g, { step: steps });
      for (const name of ['rate', 'epsilon'] as const) {
        expect(largestError(exact[name].data, expected[name]), name).toBeLessThan(1e-12);
        expect(largestError(rounded[name], expected[name]), name).toBeLessThan(1e-6);
      }
    },
  );

  it('of many steps at once are those of each', async () => {
    const alone = new Graph();
    const one = adamCorrections(alone.input('step', []), { epsilon: 1e-5 });
    alone.output('rate', one.rate);
    alone.output('epsilon', one.epsilon);
    const program = await compile(alone);
    const each = steps.map(t => program.run({ step: Float32Array.of(t) }) as Record<string, Float32Array>);
    program.dispose();
    for (const shape of [[11], [11, 1]]) {
      const g = new Graph();
      const many = adamCorrections(g.input('step', shape), { epsilon: 1e-5 });
      expect(many.rate.shape).toEqual(shape);
      g.output('rate', many.rate);
      g.output('epsilon', many.epsilon);
      const all = await runCompiled(g, { step: steps });
      for (const name of ['rate', 'epsilon']) {
        // Vectorised code may round the last bit another way.
        expect(
          largestError(
            all[name],
            each.map(out => out[name][0]),
          ),
        ).toBeLessThan(4e-7);
      }
    }
  });
});

describe('apply', () => {
  const extra = (g: Graph) => ({
    apply: g.input('apply', [], 'bool'),
    gradientScale: g.input('scale', []),
  });

  it('false changes nothing, to the bit', async () => {
    const run = await inFloat32(stepGraph({ shape: [64], decay: () => 0.1, extra }));
    const bits = (values: ArrayLike<number>): number[] =>
      Array.from(new Uint32Array(Float32Array.from(values).buffer));
    fc.assert(
      fc.property(fc.nat(), fc.integer({ min: 1, max: 1e6 }), (seed, step) => {
        const rng = new Rng(seed);
        const size = (from: number, to: number): number => 10 ** (from + rng.integer(to - from + 1));
        // Parameters from subnormal to nearly the largest that float32 has; moments as gradients of any size leave them.
        const weights = Array.from({ length: 64 }, () => Math.fround(rng.normal() * size(-44, 37)) || 0);
        const m = Array.from({ length: 64 }, () => Math.fround(rng.normal() * size(-44, 17)) || 0);
        const v = m.map(moment => Math.fround(moment * moment * size(-1, 3)));
        const before = { weights, m, v };
        const after = run({
          ...before,
          gradient: normals(rng, 64, 10 ** (rng.integer(20) - 10)),
          scale: [rng.uniform()],
          learningRate: [rng.uniform()],
          step: [step],
          apply: [0],
        });
        for (const name of ['weights', 'm', 'v'] as const)
          expect(bits(after[name])).toEqual(bits(before[name]));
      }),
      { numRuns: 100, seed: 1 },
    );
    run.dispose();
  });

  it('false keeps the value of a negative zero, if not its sign', async () => {
    const run = await inFloat32(stepGraph({ shape: [2], extra }));
    const state = { weights: [-0, -0], m: [-0, -0], v: [0, 0] };
    const after = run({ ...state, gradient: [1, -1], scale: [1], learningRate: [1], step: [1], apply: [0] });
    for (const name of ['weights', 'm', 'v'] as const)
      expect(Array.from(after[name], v => v + 0)).toEqual([0, 0]);
    run.dispose();
  });

  it('false holds inside a run of steps: the others go on as if it had not been', async () => {
    const run = await inFloat32(stepGraph({ shape: [7], extra }));
    const reference = new ReferenceAdam(normals(1, 7));
    let state: State = { weights: normals(1, 7), m: Array(7).fill(0), v: Array(7).fill(0) };
    for (let n = 0; n < 30; n++) {
      const gradient = normals(n, 7);
      const taken = n % 3 !== 1;
      const step = [reference.t + 1];
      state = run({ ...state, gradient, step, learningRate: [0.1], scale: [1], apply: [taken ? 1 : 0] });
      if (taken) reference.step(gradient, 0.1);
      expect(largestError(state.weights, reference.weights, 1), `step ${n}`).toBeLessThan(1e-5);
    }
    run.dispose();
  });

  // Documented, but the reason to refuse a step is often that its gradient has overflowed.
  it.each([Number.POSITIVE_INFINITY, Number.NaN])('false holds with a gradient of %d', async gradient => {
    const graph = stepGraph({ shape: [1], extra });
    const program = await compile(graph, { checkFeeds: false });
    const one = (x: number): Float32Array => Float32Array.of(x);
    const feeds = { weights: one(1), m: one(2), v: one(3), gradient: one(gradient), learningRate: one(0.1) };
    const out = program.run({ ...feeds, scale: one(Number.NaN), step: one(1), apply: Uint8Array.of(0) });
    expect([out['next.weights'][0], out['next.m'][0], out['next.v'][0]]).toEqual([1, 2, 3]);
    program.dispose();
  });
});

describe('ratesByGroup', () => {
  const layout = parameters([
    { name: 'a', shape: [2, 2], init: zeros, group: 'actor' },
    { name: 'b', shape: [1], init: zeros, group: 'actor' },
    { name: 'c', shape: [3], init: zeros, group: 'critic' },
  ]);

  it('moves each group by its own rate', async () => {
    const rates = [0.05, 0.05, 0.05, 0.05, 0.05, 0.002, 0.002, 0.002].map(Math.fround);
    await expectTextbook(
      {
        shape: [8],
        extra: g => ({
          learningRate: ratesByGroup(layout, { critic: g.input('critic', []), actor: g.input('actor', []) }),
        }),
      },
      { size: 8, learningRate: () => rates, feeds: () => ({ actor: [rates[0]], critic: [rates[5]] }) },
    );
  });

  it('leaves a group with the rate 0 where it is, to the bit', async () => {
    const g = new Graph();
    const [weights, m, v, gradient] = ['weights', 'm', 'v', 'gradient'].map(name => g.input(name, [8]));
    const learningRate = ratesByGroup(layout, { actor: g.input('actor', []), critic: g.input('critic', []) });
    const corrections = adamCorrections(g.input('step', []));
    g.output('next', adam({ weights, m, v }, { gradient, learningRate, corrections }).weights);
    const start = normals(1, 8);
    const [nothing, ones] = [Array(8).fill(0), Array(8).fill(1)];
    const feeds = { weights: start, m: nothing, v: nothing, gradient: ones, step: [1] };
    const out = (await runCompiled(g, { ...feeds, actor: [0], critic: [0.5] })).next;
    expect(out.slice(0, 5)).toEqual(start.slice(0, 5));
    expectClose(
      'critic',
      out.slice(5),
      start.slice(5).map(p => p - 0.5),
      1e-6,
    );
  });

  it('refuses a group that is not there, and one without a rate', () => {
    const g = new Graph();
    const [actor, critic] = ['actor', 'critic'].map(name => g.input(name, []));
    expect(() => ratesByGroup(layout, { actor, critic, value: critic })).toThrow(RangeError);
    expect(() => ratesByGroup(layout, { actor, critic, value: critic })).toThrow(
      "ratesByGroup: there is no group 'value': there are actor, critic",
    );
    expect(() => ratesByGroup(layout, { actor })).toThrow(
      "ratesByGroup: group 'critic' has no learning rate: give one",
    );
  });
});

describe('clipScale', () => {
  const norm = (values: readonly number[]): number => Math.sqrt(values.reduce((sum, v) => sum + v * v, 0));

  function clipGraph(shapes: readonly (readonly number[])[], alone = false): Graph {
    const g = new Graph();
    const gradients = shapes.map((shape, i) => g.input(`g${i}`, shape));
    const { scale, norm } = clipScale(alone ? gradients[0] : gradients, g.input('limit', []));
    expect([scale.shape, norm.shape]).toEqual([[], []]);
    g.output('scale', scale);
    g.output('norm', norm);
    return g;
  }

  it('is exactly 1 up to the limit, and brings the norm down to it beyond', async () => {
    const program = await compile(clipGraph([[13]], true));
    fc.assert(
      fc.property(
        fc.array(fc.double({ min: -10, max: 10, noNaN: true }).map(Math.fround), {
          minLength: 13,
          maxLength: 13,
        }),
        fc.double({ min: 0.01, max: 40, noNaN: true }).map(Math.fround),
        (gradient, limit) => {
          const out = program.run<Record<string, Float32Array>>({
            g0: new Float32Array(gradient),
            limit: Float32Array.of(limit),
          });
          const [scale, found] = [out.scale[0], out.norm[0]];
          const exact = norm(gradient);
          expect(Math.abs(found - exact)).toBeLessThanOrEqual(1e-6 * exact + 1e-18);
          if (found <= limit) expect(scale).toBe(1);
          else {
            expect(scale).toBeLessThanOrEqual(1);
            const scaled = norm(gradient.map(v => v * scale));
            expect(Math.abs(scaled / limit - 1)).toBeLessThan(1e-6);
          }
        },
      ),
      { numRuns: 200, seed: 1 },
    );
    program.dispose();
  });

  it('takes several tensors as one vector', async () => {
    const shapes = [[3, 2], [], [4], [1, 2, 2]];
    const g = clipGraph(shapes);
    const parts = shapes.map((shape, i) =>
      normals(
        i,
        shape.reduce((a, b) => a * b, 1),
      ),
    );
    const total = norm(parts.flat());
    for (const limit of [total / 3, total * 1.01]) {
      const feeds = { ...Object.fromEntries(parts.map((part, i) => [`g${i}`, part])), limit: [limit] };
      const exact = evaluate(g, feeds);
      expectClose('norm', exact.norm.data, [total], 1e-14);
      expectClose('scale', exact.scale.data, [Math.min(1, limit / total)], 1e-14);
      const rounded = await runCompiled(g, feeds);
      expectClose('norm', rounded.norm, [total], 1e-6);
      expectClose('scale', rounded.scale, [Math.min(1, limit / total)], 1e-6);
    }
    const one = clipGraph([[2, 2]]);
    expect(evaluate(one, { g0: [1, 1, 1, 1], limit: [1] }).scale.data[0]).toBe(0.5);
  });

  it('leaves a zero gradient alone', async () => {
    for (const shapes of [[[4]], [[4], [2]]]) {
      const feeds = { g0: [0, 0, 0, 0], g1: [0, 0], limit: [0.5] };
      const out = await runCompiled(clipGraph(shapes), feeds);
      expect(out).toEqual({ scale: [1], norm: [0] });
    }
  });

  it('takes a number for the limit', () => {
    const g = new Graph();
    const { scale } = clipScale(g.input('x', [2]), 1);
    g.output('scale', scale);
    expect(evaluate(g, { x: [3, 4] }).scale.data[0]).toBeCloseTo(0.2, 15);
  });

  it('takes a norm whose square is beyond float32 for infinite, and its gradient for unusable', async () => {
    const out = await runCompiled(clipGraph([[2]]), { g0: [3e20, 4e20], limit: [0.5] });
    expect(out.norm[0]).toBe(Number.POSITIVE_INFINITY);
    expect(out.scale[0]).toBe(0);
  });

  it.each([0, -1, Number.NaN])('refuses the limit %d', limit => {
    expect(() => clipScale(new Graph().input('x', [2]), limit)).toThrow(/limit/);
  });

  it('refuses no gradients in its own name', () => {
    expect(() => clipScale([], 1)).toThrow(/clipScale/);
  });
});

describe('adamCorrections', () => {
  it.each([{ beta1: 1 }, { beta1: -0.1 }, { beta2: 1.5 }, { beta2: Number.NaN }, { epsilon: 0 }])(
    'refuses %j',
    options => {
      const [name] = Object.keys(options);
      expect(() => adamCorrections(new Graph().input('step', []), options)).toThrow(
        new RegExp(`^adam: ${name} is `),
      );
    },
  );

  it('carries the decays to the step', async () => {
    await expectTextbook(
      { shape: [4], options: { beta1: 0, beta2: 0.5 } },
      { size: 4, settings: { beta1: 0, beta2: 0.5, epsilon: 1e-8 } },
    );
  });
});

describe('a network learns', () => {
  it('a curve, in one program with a loop of steps', async () => {
    const [rows, steps] = [32, 400];
    const net = mlp({ name: 'net', sizes: [1, 24, 1] });
    const layout = parameters(net.specs);
    const g = new Graph();
    const x = g.input('x', [rows, 1]);
    const y = g.input('y', [rows, 1]);
    const counts = g.constant(Float64Array.from({ length: steps }, (_, i) => i + 1));
    const corrections = adamCorrections(counts);
    const [weights, m, v] = ['weights', 'm', 'v'].map(name => g.input(name, [layout.size]));
    const learningRate = g.input('learningRate', []);
    const result = loop({
      trips: steps,
      carry: { weights, m, v },
      body({ iteration, carry }) {
        const error = sub(net.forward(layout.tensors(carry.weights), x), y);
        const loss = reduceMean(mul(error, error));
        const [gradient] = grad(loss, [carry.weights]);
        const { scale } = clipScale(gradient, 1);
        const next = adam(carry, {
          gradient,
          gradientScale: scale,
          learningRate,
          corrections: correctionsAt(corrections, iteration),
        });
        return { carry: { ...next }, scan: { loss } };
      },
    });
    g.output('loss', result.scan.loss);
    g.output('iterations', cast(result.iterations, 'float32'));
    g.output('learnt', result.carry.weights);
    const xs = Array.from({ length: rows }, (_, i) => (4 * i) / (rows - 1) - 2);
    const feeds = {
      x: xs,
      y: xs.map(v => Math.sin(2 * v)),
      weights: layout.initialise(new Rng(1)),
      m: new Float32Array(layout.size),
      v: new Float32Array(layout.size),
      learningRate: [0.02],
    };
    const out = await runCompiled(g, feeds, { wasm: false });
    expect(out.iterations).toEqual([steps]);
    expect(out.loss[0]).toBeGreaterThan(0.2);
    expect(out.loss[steps - 1]).toBeLessThan(2e-3);
    expect(out.learnt.every(Number.isFinite)).toBe(true);
  });
});
