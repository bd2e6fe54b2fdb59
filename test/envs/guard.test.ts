import { describe, expect, it } from 'vitest';
import {
  box,
  createEnv,
  discrete,
  type Env,
  type EnvDefinition,
  EnvError,
  simulation,
} from '../../src/envs/index.ts';
import faulty from './fixtures/files/faulty.ts';

/** The error that the environment ends with. */
function errorOf(fault: string, atStep = 3): EnvError {
  const env = createEnv(faulty, { fault, atStep });
  const obs = new Float32Array(2);
  try {
    env.reset({ seed: 1 }, obs);
    for (let i = 0; i < 10; i++) env.step(new Float32Array(1), obs);
  } catch (error) {
    expect(error).toBeInstanceOf(EnvError);
    // It cannot go on as if nothing had happened, but it can start anew.
    expect(() => env.step(new Float32Array(1), obs)).toThrow(/step after an error: call reset/);
    return error as EnvError;
  }
  throw new Error(`${fault} went unnoticed`);
}

describe("an environment's faults are named where they happen", () => {
  it.each([
    [
      'nan',
      'observation-not-finite',
      /^Faulty-v0: observation\[0\] is NaN after step 3 of the episode: .*never written/,
    ],
    [
      'unwritten',
      'observation-not-finite',
      /observation\[1\] is NaN after step 3.*each call must write all numbers/,
    ],
    ['infinite', 'observation-not-finite', /observation\[0\] is Infinity after step 3.*above 3.4e38/],
    ['shape', 'observation-size', /observe returned 3 numbers, Box\(2 float32: -10000..10000\) has 2/],
    [
      'reward',
      'reward-not-finite',
      /the reward is Infinity after step 3 of the episode: it must be a finite number/,
    ],
    ['reward-missing', 'reward-not-finite', /the reward is undefined after step 3/],
    [
      'flags',
      'flags-invalid',
      /terminated is 1 and truncated false after step 3.*both must be true or false/,
    ],
    ['both', 'flags-invalid', /terminated and truncated are both true after step 3/],
    [
      'throw',
      'env-threw',
      /^Faulty-v0 threw in step 3 of the episode: the simulator lost its licence \(faulty\.ts:\d+\)$/,
    ],
    ['throw-text', 'env-threw', /threw in step 3 of the episode: just a string/],
  ])('%s', (fault, code, message) => {
    const error = errorOf(fault);
    expect(error.message).toMatch(message);
    expect(error.code).toBe(code);
  });

  it('keeps what was thrown as the cause', () => {
    expect((errorOf('throw').cause as Error).stack).toMatch(/faulty\.ts/);
  });

  it('in reset as well', () => {
    const env = createEnv(faulty, { fault: 'throw-in-reset' });
    expect(() => env.reset({}, new Float32Array(2))).toThrow(/threw in reset: the simulator lost/);
    const nan = createEnv(faulty, { fault: 'nan', atStep: 0 });
    expect(() => nan.reset({}, new Float32Array(2))).toThrow(/observation\[0\] is NaN after reset/);
  });

  it('a state that JSON cannot hold', () => {
    const env = createEnv(faulty, { fault: 'map', atStep: 1 });
    const obs = new Float32Array(2);
    env.reset({}, obs);
    expect(() => env.step(new Float32Array(1), obs)).toThrow(/NaN/);
    expect(() => env.state()).toThrow(/state.t is a Map, which JSON cannot hold/);
  });

  it('composite actions are named by their part', () => {
    const env = createEnv({
      id: 'Hand-v0',
      description: 'x',
      maxEpisodeSteps: null,
      make: () =>
        simulation({
          observationSpace: box({ shape: [1] }),
          actionSpace: box({ shape: [2], low: -1, high: 0.5 }),
          start: () => ({ t: 0 }),
          observe: () => [0],
          step() {},
        }),
    });
    const obs = new Float32Array(1);
    env.reset({}, obs);
    expect(() => env.step(new Float32Array([0, 0.75]), obs)).toThrow(
      /Hand-v0: action\[1\] is 0.75, not a number in -1..0.5: clip it with actionSpace.clip/,
    );
    env.step(new Float32Array([0, 0.5]), obs);
    for (let i = 0; i < 5_000; i++) expect(env.step(new Float32Array(2), obs).truncated).toBe(false);
  });
});

describe('the end of an episode', () => {
  /** Ends by itself after so many steps. */
  const ending = (steps: number, maxEpisodeSteps: number | null) =>
    createEnv({
      id: 'Ending-v0',
      description: 'x',
      maxEpisodeSteps,
      make: () =>
        simulation({
          observationSpace: box({ shape: [1] }),
          actionSpace: discrete(2),
          start: () => ({ t: 0 }),
          observe: state => [state.t],
          step(state, _, result) {
            state.t++;
            result.terminated = state.t === steps;
          },
        }),
    });
  const [action, obs] = [new Float32Array(1), new Float32Array(1)];
  const play = (env: Env): { terminated: boolean; truncated: boolean; steps: number } => {
    env.reset({ seed: 1 }, obs);
    for (let steps = 1; ; steps++) {
      const { terminated, truncated } = env.step(action, obs);
      if (terminated || truncated) return { terminated, truncated, steps };
    }
  };

  it('is its own where it comes with the time limit, and the limit’s only before it', () => {
    expect(play(ending(3, 3))).toEqual({ terminated: true, truncated: false, steps: 3 });
    expect(play(ending(3, 2))).toEqual({ terminated: false, truncated: true, steps: 2 });
    expect(play(ending(3, 4))).toEqual({ terminated: true, truncated: false, steps: 3 });
  });

  it.each([2, 3])('is one whichever it is: a step after it is refused (a limit of %d)', limit => {
    const env = ending(3, limit);
    const { steps } = play(env);
    expect(() => env.step(action, obs)).toThrow(`step after the episode's end at step ${steps}: call reset`);
    expect(play(env).steps).toBe(steps);
  });
});

describe('a definition that cannot be', () => {
  const good: EnvDefinition = {
    id: 'Good-v0',
    description: 'x',
    maxEpisodeSteps: 10,
    make: () =>
      simulation({
        observationSpace: box({ shape: [1] }),
        actionSpace: discrete(2),
        start: () => ({ t: 0 }),
        observe: () => [0],
        step() {},
      }),
  };
  const make = (change: object): Env => createEnv({ ...good, ...change } as EnvDefinition);

  it.each([
    [{ id: '7-v0' }, /the id "7-v0" is not a name such as MyEnv-v0/],
    [{ id: undefined }, /the id undefined/],
    [{ version: 1 }, /the id says version 0, the field 1/],
    [{ id: 'Good', version: -1 }, /version -1 is not a whole number/],
    [{ make: 5 }, /make is 5, not a function/],
    [{ description: ' ' }, /needs a description/],
    [{ maxEpisodeSteps: 0 }, /maxEpisodeSteps 0 is not a whole number of at least 1: try 1000, or null/],
    [{ maxEpisodeSteps: undefined }, /maxEpisodeSteps undefined/],
    [{ rewardThreshold: Number.NaN }, /rewardThreshold NaN/],
    [{ aliases: 'x' }, /aliases "x" is not a list/],
    [{ options: { a: {} } }, /option a needs a default/],
    [
      { options: { a: { default: 3, max: 2, doc: '' } } },
      /option a has the default 3, above its largest value 2/,
    ],
    [{ options: { maxEpisodeSteps: { default: 3, doc: '' } } }, /exists for every environment/],
    [{ make: () => null }, /make returned null: return simulation/],
    [{ make: () => ({ reset() {} }) }, /make returned an object without step\(\)/],
    [
      { make: () => ({ reset() {}, step() {}, state() {}, restore() {} }) },
      /observationSpace is undefined, not a space/,
    ],
    [
      {
        make: () => ({
          ...good.make({}),
          reset() {},
          step() {},
          state() {},
          restore() {},
          rewardTerms: ['a', 'a'],
        }),
      },
      /rewardTerms \["a","a"\] is not a list of distinct names/,
    ],
    [
      {
        make: () => {
          throw new Error('no GPU');
        },
      },
      /Good-v0 could not be made: no GPU/,
    ],
  ])('%s', (change, message) => {
    expect(() => make(change)).toThrow(message);
  });

  it('a good one can', () => {
    expect(make({ id: 'Good', version: 4 }).spec).toMatchObject({
      id: 'Good-v4',
      version: 4,
      maxEpisodeSteps: 10,
    });
  });
});
