/** Steps of a language model's optimiser, with gradients that are made up: what is taken, left out and counted. */
import { expect, test } from 'vitest';
import { type StepConfig, TextOptimiser } from '../../../src/algos/text/optimiser.ts';
import type { Minibatch, TextPrograms } from '../../../src/algos/text/programs.ts';
import { drawFitting } from '../../../src/algos/text/prompts.ts';
import { adamW } from '../../../src/nn/index.ts';
import { smallModel } from '../../lm/support.ts';

const settings: StepConfig = {
  gradientClip: null,
  adamBeta1: 0.9,
  adamBeta2: 0.999,
  adamEpsilon: 1e-8,
  weightDecay: 0,
};
const minibatch = {} as Minibatch;

/** One whose gradients have this value everywhere, one after the other; `loss` goes with them. */
function optimiserOf(steps: readonly { gradient: number; loss?: number }[]) {
  const model = smallModel(1, { layers: 1, width: 4 });
  const rest = [...steps];
  const programs = {
    async gradient(_: Float32Array, __: Minibatch, into: Float32Array) {
      const { gradient, loss = 1 } = rest.shift()!;
      into.fill(gradient);
      return { loss };
    },
  } as unknown as TextPrograms;
  return { model, optimiser: new TextOptimiser(model, programs) };
}

test('steps are counted on from those of the run, for Adam’s corrections', async () => {
  const { model, optimiser } = optimiserOf([{ gradient: 0.5 }, { gradient: -0.1 }]);
  const expected = {
    weights: model.weights.slice(),
    m: new Float32Array(model.weights.length),
    v: new Float32Array(model.weights.length),
  };
  optimiser.begin(0);
  for (const [step, value] of [
    [8, 0.5],
    [9, -0.1],
  ]) {
    await optimiser.step(minibatch, { learningRate: 0.01, stepsDone: 7 }, settings);
    const gradient = new Float32Array(model.weights.length).fill(value);
    adamW(model.layout, expected, { gradient, learningRate: 0.01, step });
  }
  expect([...optimiser.draft]).toEqual([...expected.weights]);
  // Nothing stands before it is adopted.
  expect(model.weights).not.toEqual(optimiser.draft);
  expect(optimiser.counts).toEqual({ taken: 2, skipped: 0, streak: 0 });
});

test('a gradient is brought down to the norm that is allowed, and not up to it', async () => {
  const size = smallModel(1, { layers: 1, width: 4 }).weights.length;
  for (const [gradient, clip, scaled] of [
    [10, 1, 1 / Math.sqrt(size)],
    [1e-4, 1, 1e-4],
  ]) {
    const { optimiser } = optimiserOf([{ gradient }]);
    optimiser.begin(0);
    await optimiser.step(
      minibatch,
      { learningRate: 0.01, stepsDone: 0 },
      { ...settings, gradientClip: clip },
    );
    optimiser.adopt();
    // The first moment of the first step is a tenth of the gradient.
    expect(optimiser.state.m[0] / (0.1 * scaled)).toBeCloseTo(1, 4);
    expect(optimiser.sums.gradNorm / (gradient * Math.sqrt(size))).toBeCloseTo(1, 4);
  }
});

test('what is not finite, in loss or gradient, is left out and counted; a good step ends a streak', async () => {
  const { model, optimiser } = optimiserOf([
    { gradient: Number.NaN },
    { gradient: 0.1, loss: Number.POSITIVE_INFINITY },
    { gradient: 0.1 },
    { gradient: 0.1, loss: Number.NaN },
  ]);
  const before = model.weights.slice();
  const knobs = { learningRate: 0.01, stepsDone: 0 };
  optimiser.begin(3);
  expect(await optimiser.step(minibatch, knobs, settings)).toBe(false);
  expect(await optimiser.step(minibatch, knobs, settings)).toBe(false);
  expect(optimiser.counts).toEqual({ taken: 0, skipped: 2, streak: 5 });
  expect(optimiser.draft).toEqual(before);
  expect(await optimiser.step(minibatch, knobs, settings)).toBe(true);
  expect(optimiser.counts).toEqual({ taken: 1, skipped: 2, streak: 0 });
  expect(await optimiser.step(minibatch, knobs, settings)).toBe(false);
  expect(optimiser.counts).toEqual({ taken: 1, skipped: 3, streak: 1 });
  expect(optimiser.sums).toMatchObject({ loss: 1 });
});

test('drawing goes on until so many fit, to the token; a hundred in a row that do not are a mistake', async () => {
  const draw = (lengths: readonly number[], count: number) => {
    const rest = [...lengths];
    const one = async () => ({ item: rest.length, tokens: rest.shift()! });
    return drawFitting(count, one, 10, (inARow, tokens) => `${inARow} are too long, such as ${tokens}`);
  };
  expect(await draw([10, 11, 9], 2)).toMatchObject({ skipped: 1 });
  const many = Array.from({ length: 99 }, () => 11);
  expect((await draw([...many, 10, ...many, 10], 2)).skipped).toBe(198);
  await expect(draw([...many, 12], 1)).rejects.toThrow(/^100 are too long, such as 12$/);
});
