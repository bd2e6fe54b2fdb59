import { afterEach, describe, expect, it } from 'vitest';
import type { Env, MadeEnv, VectorEnv } from '../../../src/envs/index.ts';
// Not by the folder's index, which registers Keel's environments: who tests the compiled ones has those already.
import { leavesOf, sameSpace, spaceFromJson } from '../../../src/envs/spaces.ts';
import { Rng } from '../../../src/random/index.ts';

/** A walk of random actions, to the bit; starts new episodes where one ends. */
export function walk(env: Env, steps: number, actionSeed: number, obs: Float32Array): string[] {
  const rng = new Rng(actionSeed).split(1)[0];
  const lines: string[] = [];
  for (let i = 0; i < steps; i++) {
    const action = new Float32Array(env.actionSpace.flatSize); // a new one each time: the environment must not keep it
    env.actionSpace.sample(rng, action);
    const { reward, terminated, truncated, rewardTerms } = env.step(action, obs);
    lines.push(`${bits(obs)} ${bits([reward])} ${terminated} ${truncated} ${bits(rewardTerms)}`);
    if (terminated || truncated) {
      env.reset({}, obs);
      lines.push(`reset ${bits(obs)}`);
    }
  }
  return lines;
}

/** Numbers as their bits, so that -0 and 0 differ. */
export function bits(values: ArrayLike<number>): string {
  return Buffer.from(Float64Array.from(values).buffer).toString('base64');
}

export const obsFor = (env: Env): Float32Array => new Float32Array(env.observationSpace.flatSize);

/** The same, and closes what it has made after each test: the memory of a physics engine has an end. */
function closing<A extends unknown[]>(make: (...args: A) => MadeEnv): (...args: A) => MadeEnv {
  const made: MadeEnv[] = [];
  afterEach(() => {
    for (const env of made.splice(0)) env.close?.();
  });
  return (...args) => {
    const env = make(...args);
    made.push(env);
    return env;
  };
}

/** What every environment promises. */
export function testEnv(
  name: string,
  makeOne: (options?: { maxEpisodeSteps?: number | null }) => MadeEnv,
  { slow = false }: { readonly slow?: boolean | undefined } = {},
): void {
  const make = closing(makeOne);
  /** A step of physics takes a hundred times as long as one of a formula. */
  const some = (steps: number): number => (slow ? Math.ceil(steps / 4) : steps);
  const started = (seed = 1): [MadeEnv, Float32Array] => {
    const env = make();
    const obs = obsFor(env);
    env.reset({ seed }, obs);
    return [env, obs];
  };

  describe(`${name}: contract`, () => {
    it('says where it comes from, and its spaces survive JSON', () => {
      const env = make();
      expect(env.spec.id).toMatch(/^(py:\w+\.)?[A-Z]\w*-v\d+$/);
      expect(JSON.parse(JSON.stringify(env.spec))).toEqual(env.spec);
      for (const space of [env.observationSpace, env.actionSpace]) {
        expect(sameSpace(spaceFromJson(JSON.parse(JSON.stringify(space))), space)).toBe(true);
        expect(leavesOf(space).reduce((size, leaf) => size + leaf.space.flatSize, 0)).toBe(space.flatSize);
      }
    });

    it('observations stay in their space, rewards are finite and the sum of their terms, one flag at most', () => {
      const [env, obs] = started();
      const action = new Float32Array(env.actionSpace.flatSize);
      const rng = new Rng(7);
      expect(env.observationSpace.contains(obs)).toBe(true);
      for (let i = 0; i < some(1_500); i++) {
        env.actionSpace.sample(rng, action);
        const { reward, terminated, truncated, rewardTerms } = env.step(action, obs);
        if (!env.observationSpace.contains(obs)) expect.fail(`step ${i}: [${obs}] is outside`);
        if (!Number.isFinite(reward)) expect.fail(`step ${i}: reward ${reward}`);
        if (terminated && truncated) expect.fail(`step ${i}: both flags`);
        if (rewardTerms.length !== env.rewardTerms.length)
          expect.fail(`step ${i}: ${rewardTerms.length} terms`);
        const sum = rewardTerms.reduce((a, b) => a + b, 0);
        if (rewardTerms.length > 0 && Math.abs(sum - reward) > 1e-12)
          expect.fail(`step ${i}: terms sum to ${sum}`);
        if (terminated || truncated) env.reset({}, obs);
      }
    });

    it('takes actions at the limits of the space', () => {
      for (const end of ['low', 'high'] as const) {
        const [env, obs] = started();
        const action = new Float32Array(env.actionSpace.flatSize);
        for (const { space, start } of leavesOf(env.actionSpace)) {
          for (let i = 0; i < space.flatSize; i++) {
            const last = space.kind === 'box' ? space.high[i] : space.kind === 'discrete' ? space.n - 1 : 1;
            action[start + i] = end === 'high' ? last : space.kind === 'box' ? space.low[i] : 0;
          }
        }
        for (let i = 0; i < some(200); i++) {
          const { terminated, truncated } = env.step(action, obs);
          if (!env.observationSpace.contains(obs)) expect.fail(`step ${i}: [${obs}] is outside`);
          if (terminated || truncated) env.reset({}, obs);
        }
      }
    });

    it('the same seed and actions give the same walk, in a new environment and in a used one', () => {
      const [env, obs] = started(5);
      const first = walk(env, some(300), 1, obs);
      env.reset({ seed: 5 }, obs);
      expect(walk(env, some(300), 1, obs)).toEqual(first);
      const [other, otherObs] = started(5);
      expect(walk(other, some(300), 1, otherObs)).toEqual(first);
    });

    it('without a seed it starts as from 0, and episodes go on in one stream', () => {
      const env = make();
      const obs = obsFor(env);
      env.reset({}, obs);
      const [seeded, seededObs] = started(0);
      expect(bits(obs)).toBe(bits(seededObs));
      env.reset({}, obs);
      seeded.reset({}, seededObs);
      expect(bits(obs)).toBe(bits(seededObs));
    });

    it('continues from a saved state to the bit, at any step', () => {
      for (const steps of slow ? [0, 1, 9, 101] : [0, 1, 2, 9, 61, 333]) {
        const [env, obs] = started(3);
        walk(env, steps, 1, obs);
        const saved = JSON.stringify(env.state());
        const expected = walk(env, some(150), 2, obs.slice());
        for (const restored of [make(), env]) {
          restored.restore(JSON.parse(saved));
          expect(JSON.stringify(restored.state())).toBe(saved);
          expect(walk(restored, some(150), 2, obs.slice())).toEqual(expected);
        }
      }
    });

    it('a state remembers that the episode is over, or has not begun', () => {
      const short = slow ? { maxEpisodeSteps: 50 } : {};
      const env = make(short);
      const obs = obsFor(env);
      env.reset({ seed: 1 }, obs);
      const action = new Float32Array(env.actionSpace.flatSize);
      let over = false;
      while (!over) {
        const { terminated, truncated } = env.step(action, obs);
        over = terminated || truncated;
      }
      const restored = make(short);
      restored.restore(JSON.parse(JSON.stringify(env.state())));
      expect(() => restored.step(action, obs)).toThrow(/after the episode's end/);
      restored.restore(JSON.parse(JSON.stringify(make(short).state())));
      expect(() => restored.step(action, obs)).toThrow(/before reset/);
    });

    it('refuses a state that is not one of its own', () => {
      const [env] = started();
      const good = JSON.parse(JSON.stringify(env.state())) as Record<string, unknown>;
      const inner = good.env as Record<string, unknown>;
      const bad: unknown[] = [
        null,
        undefined,
        7,
        'text',
        [],
        {},
        { ...good, id: 'Other-v0' },
        { ...good, phase: 'asleep' },
        { ...good, episodeStep: -1 },
        { ...good, more: 1 },
        { ...good, env: null },
        { ...good, env: { ...inner, elapsedSteps: 1.5 } },
        { ...good, env: { ...inner, env: { rng: {}, state: null } } },
        { ...good, env: { ...inner, env: { ...(inner.env as object), state: {} } } },
        { ...good, env: { ...inner, env: { ...(inner.env as object), state: { x: 'no' } } } },
      ];
      for (const state of bad)
        expect(() => make().restore(state), JSON.stringify(state)).toThrow(/state|phase/);
    });

    it('refuses calls out of order, and buffers and actions that do not fit', () => {
      const env = make();
      const obs = obsFor(env);
      const action = new Float32Array(env.actionSpace.flatSize);
      expect(() => env.step(action, obs)).toThrow(/step before reset: call reset first/);
      expect(() => env.reset({ seed: -1 }, obs)).toThrow(/seed -1 is not a whole number/);
      expect(() => env.reset({ seed: 0.5 }, obs)).toThrow(/seed 0.5/);
      expect(() => env.reset({}, new Float32Array(obs.length + 1))).toThrow(/pass a Float32Array of/);
      env.reset({}, obs);
      expect(() => env.step(new Float32Array(action.length + 1), obs)).toThrow(/the action has \d+ numbers/);
      expect(() => env.step(action, new Float32Array(0))).toThrow(/for the observation has 0 numbers/);
      for (const value of [Number.NaN, Number.POSITIVE_INFINITY, -1e6, 0.5e7]) {
        const wrong = action.slice();
        wrong[0] = value;
        expect(() => env.step(wrong, obs)).toThrow(/action\[0\].* is (NaN|Infinity|-1000000|5000000), not /);
      }
      env.step(action, obs); // a refused action has changed nothing
      env.close?.();
      expect(() => env.step(action, obs)).toThrow(/after close/);
      expect(() => env.reset({}, obs)).toThrow(/after close/);
    });

    it('is truncated at its time limit, unless it ends before', () => {
      const env = make({ maxEpisodeSteps: 3 });
      const obs = obsFor(env);
      const action = new Float32Array(env.actionSpace.flatSize);
      env.reset({ seed: 2 }, obs);
      for (let step = 1; step <= 3; step++) {
        const { terminated, truncated } = env.step(action, obs);
        expect(truncated).toBe(step === 3 && !terminated);
        if (terminated) return;
      }
      expect(() => env.step(action, obs)).toThrow(/after the episode's end at step 3/);
    });
  });
}

/** What every vector environment promises, against environments stepped by hand. */
export function testVectorEnv(
  name: string,
  make: (envCount: number) => Promise<VectorEnv>,
  makeSingle: () => MadeEnv,
  seedsOf: (seed: number, envCount: number) => number[],
  { slow = false }: { readonly slow?: boolean | undefined } = {},
): void {
  const some = (steps: number): number => (slow ? Math.ceil(steps / 3) : steps);
  describe(`${name}: vector contract`, () => {
    const makeOne = closing(makeSingle);
    it('gives what its environments give one by one: auto-reset, final observations, returns, lengths', async () => {
      const envCount = 5;
      const envs = await make(envCount);
      try {
        const { obsSize, actionSize, termCount, measureCount } = envs;
        await envs.reset({ seed: 11 });
        const seeds = seedsOf(11, envCount);
        const singles = seeds.map(seed => {
          const env = makeOne();
          const obs = obsFor(env);
          env.reset({ seed }, obs);
          return {
            env,
            obs,
            sum: 0,
            length: 0,
            terms: new Float64Array(termCount),
            measures: new Float64Array(measureCount),
          };
        });
        const actions = new Float32Array(envCount * actionSize);
        const rng = new Rng(4);
        for (let step = 0; step < some(150); step++) {
          for (let i = 0; i < envCount; i++) envs.actionSpace.sample(rng, actions, i * actionSize);
          const sent = actions.slice();
          await envs.step(actions);
          expect(actions).toEqual(sent);
          let ended = 0;
          singles.forEach((single, i) => {
            const rowOf = (array: Float32Array): Float32Array =>
              array.subarray(i * obsSize, (i + 1) * obsSize);
            const result = single.env.step(sent.subarray(i * actionSize, (i + 1) * actionSize), single.obs);
            single.sum += result.reward;
            single.length++;
            result.rewardTerms.forEach((term, t) => {
              single.terms[t] += term;
            });
            result.measures?.forEach((measure, m) => {
              single.measures[m] += measure;
            });
            expect(envs.rewards[i]).toBe(result.reward);
            expect([envs.terminated[i], envs.truncated[i]]).toEqual([+result.terminated, +result.truncated]);
            if (result.terminated || result.truncated) {
              ended++;
              expect(bits(rowOf(envs.finalObservations))).toBe(bits(single.obs));
              expect(envs.episodeReturns[i]).toBe(single.sum);
              expect(envs.episodeLengths[i]).toBe(single.length);
              expect(envs.episodeRewardTerms.slice(i * termCount, (i + 1) * termCount)).toEqual(single.terms);
              expect(envs.episodeMeasures.slice(i * measureCount, (i + 1) * measureCount)).toEqual(
                single.measures,
              );
              [single.sum, single.length] = [0, 0];
              single.terms.fill(0);
              single.measures.fill(0);
              single.env.reset({}, single.obs);
            }
            expect(bits(rowOf(envs.observations))).toBe(bits(single.obs));
          });
          expect(envs.endedCount).toBe(ended);
        }
      } finally {
        await envs.close();
      }
    });

    it('continues from a saved state to the bit, and keeps the running return', async () => {
      const [a, b] = [await make(3), await make(3)];
      try {
        await a.reset({ seed: 2 });
        const rng = new Rng(8);
        const next = (): Float32Array => {
          const actions = new Float32Array(3 * a.actionSize);
          for (let i = 0; i < 3; i++) a.actionSpace.sample(rng, actions, i * a.actionSize);
          return actions;
        };
        for (let i = 0; i < some(47); i++) await a.step(next());
        const state = JSON.parse(JSON.stringify(await a.state()));
        await b.restore(state);
        expect(bits(b.observations)).toBe(bits(a.observations));
        expect(await b.state()).toEqual(state);
        for (let i = 0; i < some(120); i++) {
          const actions = next();
          await Promise.all([a.step(actions), b.step(actions)]);
          expect(bits(b.observations)).toBe(bits(a.observations));
          expect(bits(b.rewards)).toBe(bits(a.rewards));
          expect([...b.terminated, ...b.truncated]).toEqual([...a.terminated, ...a.truncated]);
          for (let k = 0; k < 3; k++) {
            if (!(a.terminated[k] || a.truncated[k])) continue;
            expect(b.episodeReturns[k]).toBe(a.episodeReturns[k]);
            expect(b.episodeLengths[k]).toBe(a.episodeLengths[k]);
          }
        }
      } finally {
        await Promise.all([a.close(), b.close()]);
      }
    });

    it('refuses calls out of order, wrong lengths and states of others', async () => {
      const envs = await make(2);
      try {
        const actions = new Float32Array(2 * envs.actionSize);
        await expect(async () => envs.step(actions)).rejects.toThrow(/before reset/);
        await expect(envs.state()).rejects.toThrow(/before reset/);
        await expect(envs.reset({ seed: -3 })).rejects.toThrow(/seed -3/);
        await envs.reset();
        await expect(async () => envs.step(new Float32Array(1 + actions.length))).rejects.toThrow(
          /2 environments need 2 x/,
        );
        const state = await envs.state();
        await expect(envs.restore({ ...state, version: 9 })).rejects.toThrow(/version 9, this Keel reads 1/);
        await expect(envs.restore({ ...state, id: 'Other-v0' })).rejects.toThrow(/"Other-v0"/);
        await expect(envs.restore({ ...state, envs: state.envs.slice(1) })).rejects.toThrow(
          /holds 1 environments/,
        );
        // In process a step is done before the next can be asked for; in workers it is not.
        const step = async (): Promise<void> => envs.step(actions);
        const [first, second] = await Promise.allSettled([step(), step()]);
        expect(first.status).toBe('fulfilled');
        if (second.status === 'rejected')
          expect(String(second.reason)).toMatch(/while another call is under way/);
        await envs.step(actions); // none of these has stopped it
      } finally {
        await envs.close();
      }
      await envs.close();
      await expect(envs.reset()).rejects.toThrow(/after close/);
    });
  });
}
