/** Collecting experience: the policy acts in N environments for T steps. */
import type { VectorEnv } from '../envs/vector/vector.ts';
import type { Distribution } from '../kl/distributions/distribution.ts';
import type { Rng } from '../random/rng.ts';
import type { Rollout } from './buffer.ts';
import type { ActionNoise } from './noise.ts';
import type { ObservationNormaliser, RewardNormaliser } from './normalise.ts';

/** The policy on (N, observationSize): writes the distribution's parameters, (N, paramSize). */
export type Act = (observations: Float32Array, params: Float32Array) => void;

/** The value function on the N observations of a step, or on the T x N of a rollout: writes one value for each. */
export type Evaluate = (observations: Float32Array, values: Float32Array) => void;

export interface CollectParts {
  readonly envs: VectorEnv;
  readonly act: Act;
  readonly evaluate: Evaluate;
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
  /** (T) Each reward term: mean over the steps of the episodes that ended. */
  readonly termMeans: Float64Array;
  /** (M) Each measure, likewise. */
  readonly measureMeans: Float64Array;
  /** Episodes that ended because the simulation broke down. */
  readonly blowUps: number;
  /** Wall time in which the environments stepped, what was done meanwhile included. */
  readonly envSeconds: number;
}

/** Fills a rollout. The environments must have been reset; they go on from where the last rollout left them. */
export async function collect(rollout: Rollout, parts: CollectParts): Promise<CollectStats> {
  const {
    envs,
    act,
    evaluate,
    distribution,
    rng,
    actionNoise,
    observationNormaliser,
    rewardNormaliser,
    rewardScale = 1,
  } = parts;
  const { envCount, obsSize, actionSize, termCount, measureCount } = envs;
  const { paramSize, noiseSize } = distribution;
  const episodeReturns: number[] = [];
  const episodeLengths: number[] = [];
  const termMeans = new Float64Array(termCount);
  const measureMeans = new Float64Array(measureCount);
  let blowUps = 0;
  let envMs = 0;
  // One step's arrays and their rows, made once: a view costs more than what is done with it.
  const observations = new Float32Array(envCount * obsSize);
  const params = new Float32Array(envCount * paramSize);
  const noise = new Float32Array(envCount * noiseSize);
  const actions = new Float32Array(envCount * actionSize);
  const bounded = new Float32Array(envCount * actionSize);
  const done = new Uint8Array(envCount);
  const scaled = new Float64Array(envCount);
  const learnt = new Float32Array(envCount);
  const finalValues = new Float32Array(envCount);
  const rows = Array.from({ length: envCount }, (_, n) => ({
    params: params.subarray(n * paramSize, (n + 1) * paramSize),
    noise: noise.subarray(n * noiseSize, (n + 1) * noiseSize),
    action: actions.subarray(n * actionSize, (n + 1) * actionSize),
  }));
  const look = (raw: Float32Array): void => {
    if (observationNormaliser) observationNormaliser.apply(raw, observations);
    else observations.set(raw);
  };
  let [sum, sumOfSquares] = [0, 0];

  for (let t = 0; t < rollout.steps; t++) {
    const at = t * envCount;
    observationNormaliser?.moments.update(envs.observations);
    look(envs.observations);
    act(observations, params);
    actionNoise.fill(rng, noise);
    for (let n = 0; n < envCount; n++) {
      const row = rows[n];
      distribution.sample(row.params, row.noise, row.action);
    }
    bounded.set(actions);
    for (let n = 0; n < envCount; n++) envs.actionSpace.clip(bounded, n * actionSize);
    const steppedAt = performance.now();
    const stepping = envs.step(bounded);
    // Worker threads are at work now. What the environments do not wait for is done meanwhile; it reads nothing that they write.
    rollout.observations.set(observations, at * obsSize);
    rollout.params.set(params, at * paramSize);
    rollout.actions.set(actions, at * actionSize);
    for (let n = 0; n < envCount; n++) {
      rollout.logProbs[at + n] = distribution.logProb(rows[n].params, rows[n].action);
    }
    await stepping;
    envMs += performance.now() - steppedAt;

    rollout.terminated.set(envs.terminated, at);
    rollout.truncated.set(envs.truncated, at);
    for (let n = 0; n < envCount; n++) {
      const reward = envs.rewards[n];
      sum += reward;
      sumOfSquares += reward * reward;
      scaled[n] = reward * rewardScale;
      done[n] = envs.terminated[n] | envs.truncated[n];
      if (done[n]) {
        episodeReturns.push(envs.episodeReturns[n]);
        episodeLengths.push(envs.episodeLengths[n]);
        blowUps += envs.blownUp[n];
        for (let k = 0; k < termCount; k++) termMeans[k] += envs.episodeRewardTerms[n * termCount + k];
        for (let k = 0; k < measureCount; k++) measureMeans[k] += envs.episodeMeasures[n * measureCount + k];
      }
    }
    if (rewardNormaliser) rewardNormaliser.apply(scaled, done, learnt);
    else learnt.set(scaled);
    rollout.rewards.set(learnt, at);
    if (envs.truncated.includes(1)) {
      // Rows of episodes that go on are evaluated along with them, and not used.
      look(envs.finalObservations);
      evaluate(observations, finalValues);
      rollout.finalValues.set(finalValues, at);
    }
  }
  look(envs.observations);
  evaluate(observations, rollout.lastValues);
  // All at once, because nobody asks for them before: one large call instead of T small ones.
  evaluate(rollout.observations, rollout.values);

  const samples = rollout.steps * envCount;
  const rewardMean = sum / samples;
  const endedSteps = episodeLengths.reduce((a, b) => a + b, 0);
  for (let k = 0; k < termCount; k++) termMeans[k] /= endedSteps;
  for (let k = 0; k < measureCount; k++) measureMeans[k] /= endedSteps;
  return {
    episodeReturns,
    episodeLengths,
    rewardMean,
    rewardStd: Math.sqrt(Math.max(0, sumOfSquares / samples - rewardMean ** 2)),
    termMeans,
    measureMeans,
    blowUps,
    envSeconds: envMs / 1000,
  };
}
