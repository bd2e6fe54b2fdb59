/**
 * `learn` and `measure` against the documented update in float64 (support/reference-ppo.ts): losses, KL, entropy, clip
 * fraction, gradient norm and parameters after some minibatches, for every kind of policy and many configs.
 */
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { measure } from '../../../src/algos/ppo/programs.ts';
import { estimateKl } from '../../../src/kl/index.ts';
import { secondMomentScale } from '../../../src/nn/adam.ts';
import { Rng } from '../../../src/random/index.ts';
import { scale, seed } from '../../engine/support/check.ts';
import { largestError } from '../../nn/support/reference.ts';
import { Tape } from './support/autodiff.ts';
import {
  type Course,
  distributionAt,
  entropy,
  kl,
  learnReference,
  logProb,
  lookAt,
  placesOf,
} from './support/reference-ppo.ts';
import {
  disposePrograms,
  distance,
  knobsOf,
  part,
  programsOf,
  type Settings,
  sameBits,
  shapes,
  type Task,
  taskOf,
  type Updated,
  update,
} from './support/update.ts';

fc.configureGlobal({ seed });
afterAll(disposePrograms);

const mean = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0) / values.length;

function courseOf(task: Task, knobs = knobsOf(task.config), reference?: Float32Array): Course {
  const { m, v, weights } = task.state;
  const start = { weights, m, v: Array.from(v, x => x * secondMomentScale()) };
  return learnReference(
    task.shape,
    task.config,
    task.batch,
    task.order,
    task.minibatches,
    start,
    knobs,
    reference,
  );
}

/** The statistics are means over the minibatches; the state is that after the last one taken. */
function expectCourse(task: Task, { learnt, state }: Updated, course: Course): void {
  expect(learnt.minibatches).toBe(course.minibatches.length);
  expect(learnt.stopped).toBe(course.stopped ? 'kl' : 'no');
  expect(learnt.skipped).toBe(0);
  const { entropyCoef, entropyWarmupCoef, entropyWarmupSteps, entropyMin } = task.config;
  // Where the loss has no entropy, none is computed.
  const hasEntropy =
    entropyCoef > 0 || (entropyWarmupCoef > 0 && entropyWarmupSteps > 0) || entropyMin !== null;
  if (!hasEntropy) expect(learnt.entropy).toBeNaN();
  for (const name of [
    ...(['policyLoss', 'valueLoss', 'loss', 'clipFraction', 'gradNorm'] as const),
    ...(hasEntropy ? (['entropy'] as const) : []),
  ]) {
    const wanted = mean(course.minibatches.map(seen => seen[name]));
    const error = Math.abs(learnt[name] - wanted);
    expect(error, `${name}: ${learnt[name]} instead of ${wanted}`).toBeLessThan(
      2e-4 * Math.max(0.05, Math.abs(wanted)),
    );
  }
  const last = course.minibatches.at(-1)!;
  expect(Math.abs(learnt.lastKl - last.kl)).toBeLessThan(1e-5 + 1e-4 * last.kl);
  const largest = (values: ArrayLike<number>): number =>
    Math.max(...Array.from(values, Math.abs), Number.MIN_VALUE);
  const moved = (now: ArrayLike<number>): number[] => Array.from(now, (p, i) => p - task.state.weights[i]);
  const path = moved(course.weights);
  expect(largestError(moved(state.weights), path, largest(path)), 'parameters').toBeLessThan(3e-3);
  expect(largestError(state.m, course.m, largest(course.m)), 'm').toBeLessThan(1e-3);
  const v = Array.from(state.v, x => x * secondMomentScale());
  expect(largestError(v, course.v, largest(course.v)), 'v').toBeLessThan(1e-3);
}

describe('the reference itself', () => {
  it.each(Object.entries(shapes))('%s: its derivatives are those of finite differences', (_, shape) => {
    const task = taskOf(
      shape,
      { entropyCoef: 0.02, klCoef: 0.3, valueClip: 0.5, valueHuber: true },
      { drift: 0.05 },
    );
    const reference = task.old.map((p, i) => p + 0.05 * Math.sin(i));
    const at = Float64Array.from(task.state.weights);
    const knobs = { ...knobsOf(task.config), step: 0 };
    const look = (p: Float64Array) =>
      lookAt(shape, { ...task.config, reference: 'frozen' }, task.batch, task.order[0], p, knobs, reference);
    const { gradient } = look(at);
    const rng = new Rng(2);
    const { logStdAt, logStds } = placesOf(shape, task.config);
    const spots = Array.from({ length: 25 }, () => rng.integer(at.length));
    for (let i = 0; i < logStds; i++) spots.push(logStdAt + i);
    for (const spot of spots) {
      const h = 1e-6;
      const slope =
        (look(at.with(spot, at[spot] + h)).loss - look(at.with(spot, at[spot] - h)).loss) / (2 * h);
      expect(Math.abs(slope - gradient[spot]), `at ${spot}`).toBeLessThan(1e-7);
    }
  });

  it.each(Object.entries(shapes))('%s: has the places of the model', (_, shape) => {
    const { model, config } = taskOf(shape);
    const places = placesOf(shape, config);
    expect(model.layout.size).toBe(places.size);
    expect(model.layout.groups.map(g => g.name)).toEqual(['actor', 'critic']);
    expect(model.layout.groups[1].offset).toBe(places.criticAt);
    const spread = model.layout.specs.find(s => s.name === 'actor.logStd');
    expect(spread?.offset).toBe(places.logStds > 0 ? places.logStdAt : undefined);
    expect(model.distribution.paramSize).toBe(places.paramSize);
    expect(model.distribution.actionSize).toBe(places.actionSize);
  });
});

describe('learn', () => {
  const cases: { name: string; settings: Settings; options?: Parameters<typeof taskOf>[2] }[] = [
    { name: 'the defaults', settings: {} },
    {
      name: 'a policy that has drifted, an optimiser with a past',
      settings: { learningRate: 1e-3 },
      options: { drift: 0.05, past: true },
    },
    {
      name: 'every penalty at once',
      settings: {
        entropyCoef: 0.02,
        entropyWarmupCoef: 0.1,
        entropyWarmupSteps: 5,
        entropyMin: 30,
        entropyMinCoef: 0.3,
        klCoef: 0.7,
        reference: 'frozen',
        klRefCoefInitial: 1,
        klRefCoefFinal: 0.2,
        klRefDecaySteps: 6,
        valueClip: 0.2,
        valueHuber: true,
        gradientClip: null,
        criticLearningRate: 2e-3,
      },
      options: { drift: 0.05 },
    },
  ];
  for (const [kind, shape] of Object.entries(shapes)) {
    it.each(cases)(`${kind}: $name`, async ({ settings, options }) => {
      const task = taskOf(shape, settings, options);
      const reference =
        task.config.reference === 'none' ? undefined : task.old.map((p, i) => p + 0.05 * Math.sin(i));
      const out = await update(task, {}, reference);
      const course = courseOf(task, knobsOf(task.config), reference);
      expectCourse(task, out, course);
      if (reference) expect(out.learnt.klRef).toBeCloseTo(mean(course.minibatches.map(s => s.klRef)), 4);
      else expect(out.learnt.klRef).toBeNaN();
    });
  }

  it('holds for any config', async () => {
    const config: fc.Arbitrary<Settings> = fc.record({
      learningRate: fc.constantFrom(1e-4, 1e-3, 1e-2),
      criticLearningRate: fc.constantFrom(null, 1e-4, 3e-3),
      adamEpsilon: fc.constantFrom(1e-8, 1e-5, 1e-2),
      gradientClip: fc.constantFrom(null, 0.1, 0.5),
      clipRange: fc.constantFrom(0.05, 0.2, 0.5),
      valueCoef: fc.constantFrom(0, 0.5, 2),
      valueClip: fc.constantFrom(null, 0.05, 1),
      valueHuber: fc.boolean(),
      normaliseAdvantages: fc.boolean(),
      entropyCoef: fc.constantFrom(0, 0.01),
      entropyWarmupCoef: fc.constantFrom(0, 0.3),
      entropyWarmupSteps: fc.constantFrom(0, 3, 50),
      entropyMin: fc.constantFrom(null, -1, 3),
      entropyMinCoef: fc.constantFrom(0.1, 2),
      klCoef: fc.constantFrom(0, 1),
      reference: fc.constantFrom('none', 'frozen'),
      klRefCoefInitial: fc.constantFrom(0, 1),
      klRefCoefFinal: fc.constantFrom(0, 0.5),
      klRefDecaySteps: fc.constantFrom(0, 3, 1000),
      logStdMin: fc.constantFrom(-5, -0.4),
      logStdMax: fc.constantFrom(2, -0.2),
      activation: fc.constantFrom('tanh', 'relu', 'gelu'),
      hidden: fc.constantFrom([6], [4, 3]),
      epochs: fc.constantFrom(1, 2),
      minibatchSize: fc.constantFrom(4, 8),
      guard: fc.constantFrom(null, 0.05, 1e-3),
    });
    await fc.assert(
      fc.asyncProperty(
        config,
        fc.constantFrom(...Object.values(shapes)),
        fc.record({
          seed: fc.nat(1e6),
          drift: fc.constantFrom(0, 0.03),
          advantageScale: fc.constantFrom(1e-3, 1),
          past: fc.boolean(),
        }),
        fc.constantFrom(0, 2, 40),
        async (settings, shape, options, stepsDone) => {
          const task = taskOf(shape, settings, { samples: 16, ...options });
          const reference =
            task.config.reference === 'none' ? undefined : task.old.map((p, i) => p + 0.05 * Math.sin(i));
          const out = await update(task, { stepsDone }, reference);
          expectCourse(task, out, courseOf(task, knobsOf(task.config, { stepsDone }), reference));
        },
      ),
      { numRuns: 14 * scale },
    );
  });

  it('divides advantages by any spread from .01 on, and only centres those below', async () => {
    for (const advantageScale of [0.02, 0.003]) {
      const task = taskOf(shapes.gaussian, { epochs: 1, normaliseAdvantages: true }, { advantageScale });
      const spreads = task.order.map(rows => {
        const own = rows.map(row => task.batch.advantages[row]);
        return Math.sqrt(mean(own.map(a => (a - mean(own)) ** 2)));
      });
      const [low, high] = advantageScale > 0.01 ? [0.0101, 0.05] : [0.002, 0.0099];
      for (const spread of spreads) {
        expect(spread).toBeGreaterThan(low);
        expect(spread).toBeLessThan(high);
      }
      expectCourse(task, await update(task), courseOf(task));
    }
  });

  it('is the same at each run, to the bit, and leaves what it was given alone', async () => {
    const task = taskOf(shapes.composite);
    const copies = Object.values({ ...task.batch, ...task.state }).map(a => a.slice());
    const [one, two] = [await update(task), await update(task)];
    expect(sameBits(one.state.weights, two.state.weights)).toBe(true);
    Object.values({ ...task.batch, ...task.state }).forEach((array, i) => {
      expect(sameBits(array, copies[i])).toBe(true);
    });
  });

  it('starts from ratio 1 and KL 0', async () => {
    for (const shape of Object.values(shapes)) {
      const task = taskOf(shape, { epochs: 1, minibatchSize: 32, normaliseAdvantages: true });
      const { learnt } = await update(task);
      expect(Math.abs(learnt.policyLoss)).toBeLessThan(1e-5);
      expect(learnt.lastKl).toBeLessThan(1e-6);
      expect(learnt.clipFraction).toBe(0);
      // Ties of the minimum: at ratio 1 both sides are equal, and the gradient must be there all the same.
      expect(learnt.gradNorm).toBeGreaterThan(0.05);
    }
  });
});

describe('beyond the guard', () => {
  it('the policy waits and the value function goes on', async () => {
    for (const shape of [shapes.gaussian, shapes.composite]) {
      const task = taskOf(shape, { learningRate: 2e-2, guard: 0.01, epochs: 3 });
      const course = courseOf(task);
      const beyond = course.minibatches.filter(seen => seen.kl > 0.01).length;
      expect(beyond).toBeGreaterThan(1);
      expectCourse(task, await update(task), course);
    }
  });

  it('does not wait without a guard', async () => {
    const task = taskOf(shapes.gaussian, { learningRate: 2e-2, guard: null, epochs: 3 });
    expectCourse(task, await update(task), courseOf(task));
  });
});

describe('early stop', () => {
  const settings: Settings = { learningRate: 1e-2, epochs: 4 };
  const task = taskOf(shapes.gaussian, settings);
  const free = courseOf(task);
  /** Minibatches whose KL is the first above those before it, with room for float32. */
  const records = free.minibatches
    .map(({ kl: own }, i) => ({ own, i, before: Math.max(...free.minibatches.slice(0, i).map(s => s.kl)) }))
    .filter(({ own, i, before }) => i > 0 && own > before * 1.05 + 1e-5);

  it('there is something to stop', () => {
    expect(records.length).toBeGreaterThan(3);
  });

  it('per minibatch: ends before the first step beyond, and the last good minibatch stands', async () => {
    for (const { own, before, i } of records.slice(0, 4)) {
      const klLimit = (own + before) / 2;
      const out = await update(task, { klLimit });
      expectCourse(task, out, courseOf(task, knobsOf(task.config, { klLimit })));
      expect(out.learnt.minibatches).toBe(i + 1);
      expect(out.learnt.lastKl).toBeGreaterThan(klLimit);
    }
  });

  it('per minibatch: the parameters are those after the last applied step, to the bit', async () => {
    // Stopped where an epoch begins, it must leave what a program of just the epochs before leaves.
    let checked = 0;
    for (let s = 1; s < 40 && checked < 2; s++) {
      const long = taskOf(shapes.gaussian, settings, { seed: s });
      const kls = courseOf(long).minibatches.map(seen => seen.kl);
      const at = [4, 8, 12].find(i => kls[i] > 1.05 * Math.max(...kls.slice(0, i)) + 1e-5);
      if (at === undefined) continue;
      checked++;
      const stopped = await update(long, { klLimit: (kls[at] + Math.max(...kls.slice(0, at))) / 2 });
      expect(stopped.learnt.minibatches).toBe(at + 1);
      const short = taskOf(shapes.gaussian, { ...settings, epochs: at / 4 }, { seed: s });
      const whole = await update({ ...short, order: long.order.slice(0, at) });
      for (const name of ['weights', 'm', 'v'] as const)
        expect(sameBits(stopped.state[name], whole.state[name]), name).toBe(true);
    }
    expect(checked).toBe(2);
  });

  it('per epoch: ends after the first epoch whose mean is beyond, which stands', async () => {
    const perEpoch = taskOf(shapes.gaussian, { ...settings, targetKlPer: 'epoch' });
    const n = perEpoch.minibatches;
    const means = Array.from({ length: 4 }, (_, e) =>
      mean(free.minibatches.slice(e * n, (e + 1) * n).map(s => s.kl)),
    );
    expect(means[1]).toBeGreaterThan(means[0] * 1.2);
    expect(means[2]).toBeGreaterThan(means[1] * 1.2);
    // Just above the second: were the first's KL counted again in it, it would end there.
    const klLimit = 1.1 * means[1];
    expect(means[0] + means[1]).toBeGreaterThan(1.1 * klLimit);
    const out = await update(perEpoch, { klLimit });
    expect(out.learnt.minibatches).toBe(3 * n);
    expect(out.learnt.stopped).toBe('kl');
    expectCourse(perEpoch, out, courseOf(perEpoch, knobsOf(perEpoch.config, { klLimit })));
  });

  it('never stops without a limit', async () => {
    const wild = taskOf(shapes.gaussian, { ...settings, learningRate: 0.1 });
    const { learnt } = await update(wild);
    expect(learnt.stopped).toBe('no');
    expect(learnt.minibatches).toBe(16);
    expect(learnt.lastKl).toBeGreaterThan(0.1);
  });
});

describe('measure', () => {
  it.each(Object.entries(shapes))(
    '%s: the exact KL, k1, k3, entropy and ratios of the whole rollout',
    async (_, shape) => {
      const task = taskOf(shape, { guard: null, learningRate: 5e-3 });
      const { measured, weights } = await update(task);
      const tape = new Tape();
      const { paramSize, actionSize } = placesOf(shape, task.config);
      const [kls, entropies, logs, olds]: number[][] = [[], [], [], []];
      for (let s = 0; s < 32; s++) {
        const row = (values: Float32Array, size: number): number[] =>
          Array.from(values.subarray(s * size, (s + 1) * size));
        const policy = distributionAt(
          shape,
          task.config,
          weights,
          row(task.batch.observations, shape.observationSize),
        );
        kls.push(kl(tape, shape, row(task.batch.oldParams, paramSize), policy).value);
        entropies.push(entropy(tape, shape, policy).value);
        logs.push(logProb(tape, shape, policy, row(task.batch.actions, actionSize)).value);
        olds.push(task.batch.oldLogProbs[s]);
      }
      expect(measured.kl).toBeGreaterThan(1e-4);
      expect(Math.abs(measured.kl - mean(kls))).toBeLessThan(1e-5);
      expect(measured.klRaw).toBe(measured.kl);
      expect(Math.abs(measured.k1 - estimateKl('k1', logs, olds))).toBeLessThan(1e-5);
      expect(Math.abs(measured.k3 - estimateKl('k3', logs, olds))).toBeLessThan(1e-5);
      expect(measured.k3).toBeGreaterThanOrEqual(0);
      expect(Math.abs(measured.entropy - mean(entropies))).toBeLessThan(1e-5);
      const ratios = logs.map((l, i) => Math.exp(l - olds[i]));
      expect(Math.abs(measured.ratioMean - mean(ratios))).toBeLessThan(1e-4);
      expect(Math.abs(measured.ratioMax - Math.max(...ratios))).toBeLessThan(1e-3);
    },
  );

  it.each(Object.entries(shapes))(
    '%s: the guard holds the bound and leaves the critic alone',
    async (_, shape) => {
      for (const [bound, learningRate] of [
        [0.05, 0.3],
        [0.01, 0.1],
        [0.05, 1e-4],
      ]) {
        const task = taskOf(shape, { guard: bound, learningRate });
        const { measured, weights, state } = await update(task);
        const { paramSize } = placesOf(shape, task.config);
        const exact = (flat: Float32Array): number =>
          mean(
            Array.from({ length: 32 }, (_, s) => {
              const row = (values: Float32Array, size: number): number[] =>
                Array.from(values.subarray(s * size, (s + 1) * size));
              const obs = row(task.batch.observations, shape.observationSize);
              const policy = distributionAt(shape, task.config, flat, obs);
              return kl(new Tape(), shape, row(task.batch.oldParams, paramSize), policy).value;
            }),
          );
        expect(exact(weights)).toBeLessThanOrEqual(bound);
        expect(sameBits(part(task, weights, 'critic'), part(task, state.weights, 'critic'))).toBe(true);
        expect(
          distance(part(task, state.weights, 'critic'), part(task, task.state.weights, 'critic')),
        ).toBeGreaterThan(0);
        if (exact(state.weights) <= bound * 0.999) {
          expect(measured.scale).toBe(1);
          expect(sameBits(weights, state.weights)).toBe(true);
        } else {
          expect(measured.scale).toBeLessThan(1);
          expect(exact(weights)).toBeGreaterThan(0.3 * bound);
          expect(Math.abs(measured.klRaw / exact(state.weights) - 1)).toBeLessThan(1e-3);
        }
      }
    },
  );

  it('an update that is infinite goes back to the old policy to the bit, with its critic kept', async () => {
    const task = taskOf(shapes.composite);
    const programs = await programsOf(task);
    const after = task.state.weights.map(p => p + 1);
    after[3] = Number.POSITIVE_INFINITY;
    const { weights, stats } = measure(programs, task.batch, task.state.weights, after, 0.05);
    expect(stats.scale).toBe(0);
    expect(stats.kl).toBe(0);
    expect(sameBits(part(task, weights, 'actor'), part(task, task.state.weights, 'actor'))).toBe(true);
    expect(sameBits(part(task, weights, 'critic'), part(task, after, 'critic'))).toBe(true);
  });

  // A fault that was here: NaN in `after` is refused as a feed (EngineError) before the guard can take it back.
  it('so does one that is not a number', async () => {
    const task = taskOf(shapes.composite);
    const programs = await programsOf(task);
    const after = task.state.weights.slice();
    after[3] = Number.NaN;
    const { weights, stats } = measure(programs, task.batch, task.state.weights, after, 0.05);
    expect(stats.scale).toBe(0);
    expect(sameBits(weights, task.state.weights)).toBe(true);
  });
});
