/** Faults that live in the environment: rewards and observations that are not what they were, behind the true ones. */
import type { VectorEnv } from '../../src/envs/index.ts';
import { Rng } from '../../src/random/index.ts';

/** What is done to a rollout's data. Iterations count from 0. */
export type Tampering =
  /** Every reward is this number. */
  | { readonly kind: 'constant-reward'; readonly value: number }
  /** Every reward is noise that no action changes. */
  | { readonly kind: 'noise-reward' }
  /** From this iteration on, now and then a reward is infinite. */
  | { readonly kind: 'infinite-reward'; readonly from: number }
  /** From this iteration on observations grow ten orders of magnitude from one rollout to the next, until they are infinite. */
  | { readonly kind: 'growing-observations'; readonly from: number };

/** The episodes that ended in one iteration. */
export interface Episodes {
  /** Sums of the environment's true rewards: what a monitor inside the wrappers logs. */
  readonly inner: number[];
  /** Sums of what the learner was given. */
  readonly outer: number[];
  readonly lengths: number[];
}

export interface Tampered {
  readonly envs: VectorEnv;
  /** The episodes since the last call; call once after each iteration. */
  nextIteration(): Episodes;
}

/** Environments whose rewards and observations pass through a fault, and which keep a list of their episodes. */
export function tamper(envs: VectorEnv, how: Tampering | null, seed: number, iteration = 0): Tampered {
  const rng = new Rng(seed + 7919);
  const sums = new Float64Array(envs.envCount);
  let episodes: Episodes = { inner: [], outer: [], lengths: [] };

  function afterStep(): void {
    for (let n = 0; n < envs.envCount; n++) {
      envs.rewards[n] = rewardOf(how, envs.rewards[n], iteration, rng);
      sums[n] = sums[n] + envs.rewards[n];
      if (!(envs.terminated[n] || envs.truncated[n])) continue;
      episodes.inner.push(envs.episodeReturns[n]);
      episodes.outer.push(sums[n]);
      episodes.lengths.push(envs.episodeLengths[n]);
      envs.episodeReturns[n] = sums[n];
      sums[n] = 0;
    }
    if (how?.kind !== 'growing-observations' || iteration < how.from) return;
    const factor = 10 ** (10 * (iteration - how.from + 1));
    for (const seen of [envs.observations, envs.finalObservations]) {
      for (let i = 0; i < seen.length; i++) seen[i] = seen[i] * factor;
    }
  }

  return {
    envs: {
      ...envs,
      // A spread does not take what a class defines.
      get endedCount() {
        return envs.endedCount;
      },
      reset: options => envs.reset(options),
      setProgress: fraction => envs.setProgress(fraction),
      async step(actions) {
        await envs.step(actions);
        afterStep();
      },
      state: () => envs.state(),
      restore: state => envs.restore(state),
      close: () => envs.close(),
    },
    nextIteration() {
      const done = episodes;
      episodes = { inner: [], outer: [], lengths: [] };
      iteration++;
      return done;
    },
  };
}

function rewardOf(how: Tampering | null, reward: number, iteration: number, rng: Rng): number {
  switch (how?.kind) {
    case undefined:
    case 'growing-observations':
      return reward;
    case 'constant-reward':
      return how.value;
    case 'noise-reward':
      return rng.normal();
    case 'infinite-reward':
      return iteration >= how.from && rng.uniform() < 0.01 ? Number.POSITIVE_INFINITY : reward;
    default:
      return how satisfies never;
  }
}
