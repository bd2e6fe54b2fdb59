/** Collecting experience: the policy acts in N environments for T steps. */
import type { VectorEnv } from '../envs/index.ts';
import type { Distribution } from '../kl/index.ts';
import type { Rng } from '../random/index.ts';
import type { Rollout } from './buffer.ts';
import type { ActionNoise } from './noise.ts';
import type { ObservationNormaliser, RewardNormaliser } from './normalise.ts';

/** Evaluates policy and value function on (N, observationSize). The arrays may be reused by the next call. */
export type Act = (observations: Float32Array) => { params: Float32Array; values: Float32Array };

export interface CollectParts {
  readonly envs: VectorEnv;
  readonly act: Act;
  readonly distribution: Distribution;
  readonly rng: Rng;
  readonly actionNoise: ActionNoise;
  readonly observationNormaliser: ObservationNormaliser | undefined;
  readonly rewardNormaliser: RewardNormaliser | undefined;
  /** A factor on the environment's rewards before anything is learnt from them. */
  readonly rewardScale?: number;
}

/** What happened besides the samples. */
export interface CollectStats {
  /** Episodes that ended, in order. */
  readonly episodeReturns: number[];
  readonly episodeLengths: number[];
  /** Of the environment's own rewards. */
  readonly rewardMean: number;
  readonly rewardStd: number;
}

/** Fills a rollout. The environments must have been reset; they go on from where the last rollout left them. */
export async function collect(rollout: Rollout, parts: CollectParts): Promise<CollectStats> {
  const {
    envs,
    act,
    distribution,
    rng,
    actionNoise,
    observationNormaliser,
    rewardNormaliser,
    rewardScale = 1,
  } = parts;
  const { envCount, obsSize, actionSize } = envs;
  const { paramSize, noiseSize } = distribution;
  const stats: CollectStats & { rewardMean: number; rewardStd: number } = {
    episodeReturns: [],
    episodeLengths: [],
    rewardMean: 0,
    rewardStd: 0,
  };
  const noise = new Float32Array(envCount * noiseSize);
  const bounded = new Float32Array(envCount * actionSize);
  const seen = new Float32Array(envCount * obsSize);
  const done = new Uint8Array(envCount);
  const scaled = new Float64Array(envCount);
  const look = (raw: Float32Array, out: Float32Array): void => {
    if (observationNormaliser) observationNormaliser.apply(raw, out);
    else out.set(raw);
  };
  let [sum, sumOfSquares] = [0, 0];

  for (let t = 0; t < rollout.steps; t++) {
    const at = t * envCount;
    const observations = rollout.observations.subarray(at * obsSize, (at + envCount) * obsSize);
    observationNormaliser?.moments.update(envs.observations);
    look(envs.observations, observations);
    const { params, values } = act(observations);
    rollout.params.set(params, at * paramSize);
    rollout.values.set(values, at);

    actionNoise.fill(rng, noise);
    for (let n = 0; n < envCount; n++) {
      const own = params.subarray(n * paramSize, (n + 1) * paramSize);
      const action = rollout.actions.subarray((at + n) * actionSize, (at + n + 1) * actionSize);
      distribution.sample(own, noise.subarray(n * noiseSize, (n + 1) * noiseSize), action);
      rollout.logProbs[at + n] = distribution.logProb(own, action);
      bounded.set(action, n * actionSize);
      envs.actionSpace.clip(bounded, n * actionSize);
    }
    await envs.step(bounded);

    rollout.terminated.set(envs.terminated, at);
    rollout.truncated.set(envs.truncated, at);
    for (let n = 0; n < envCount; n++) {
      const reward = envs.rewards[n];
      sum += reward;
      sumOfSquares += reward * reward;
      scaled[n] = reward * rewardScale;
      done[n] = envs.terminated[n] | envs.truncated[n];
      if (done[n]) {
        stats.episodeReturns.push(envs.episodeReturns[n]);
        stats.episodeLengths.push(envs.episodeLengths[n]);
      }
    }
    const rewards = rollout.rewards.subarray(at, at + envCount);
    if (rewardNormaliser) rewardNormaliser.apply(scaled, done, rewards);
    else rewards.set(scaled);
    if (envs.truncated.includes(1)) {
      // Rows of episodes that go on are evaluated along with them, and not used.
      look(envs.finalObservations, seen);
      rollout.finalValues.set(act(seen).values, at);
    }
  }
  look(envs.observations, seen);
  rollout.lastValues.set(act(seen).values);

  const samples = rollout.steps * envCount;
  stats.rewardMean = sum / samples;
  stats.rewardStd = Math.sqrt(Math.max(0, sumOfSquares / samples - stats.rewardMean ** 2));
  return stats;
}
