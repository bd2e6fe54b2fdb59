/** Collecting experience: the policy acts in N environments for T steps. */
import type { VectorEnv } from '../envs/vector/vector.ts';
import type { Distribution } from '../kl/distributions/distribution.ts';
import type { Rng } from '../random/rng.ts';
import type { Rollout } from './buffer.ts';
import type { ActionNoise } from './noise.ts';
import type { ObservationNormaliser, RewardNormaliser } from './normalise.ts';

/** A network that runs on so many observations, with arrays that stay the same. */
export interface Network {
  readonly rows: number;
  /** (rows, observationSize) To be written before a run. */
  readonly observations: Float32Array;
  /** (rows, …) What the last run gave. */
  readonly out: Float32Array;
  run(): void;
}

export interface CollectParts {
  readonly envs: VectorEnv;
  /** The policy on the N observations of a step: the distribution's parameters (N, paramSize). */
  readonly acting: Network;
  /** The value function on the N observations of a step. */
  readonly valuing: Network;
  /** The same on many observations at once, for all of the rollout. */
  readonly valuingMany: Network;
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

/**
 * Fills a rollout. The environments must have been reset; they go on from where the last rollout left them.
 *
 * The loop over steps is where an environment that is quick spends its time: nothing is allocated in it, and it waits for
 * nothing where the environments are done when they return.
 */
export async function collect(rollout: Rollout, parts: CollectParts): Promise<CollectStats> {
  const { envs, acting, valuing, distribution, rng, actionNoise, observationNormaliser, rewardNormaliser } =
    parts;
  const { rewardScale = 1 } = parts;
  const { envCount, obsSize, actionSize, termCount, measureCount, actionSpace } = envs;
  const { paramSize, noiseSize } = distribution;
  const { observations, out: params } = acting;
  const episodeReturns: number[] = [];
  const episodeLengths: number[] = [];
  const termMeans = new Float64Array(termCount);
  const measureMeans = new Float64Array(measureCount);
  let blowUps = 0;
  let envMs = 0;
  let timedSteps = 0;
  let timedEvery = 1;
  // One step's arrays and their rows, made once: a view costs more than what is done with it.
  const noise = new Float32Array(envCount * noiseSize);
  const actions = new Float32Array(envCount * actionSize);
  const bounded = new Float32Array(envCount * actionSize);
  const done = new Uint8Array(envCount);
  const scaled = new Float64Array(envCount);
  const learnt = new Float32Array(envCount);
  const rows = Array.from({ length: envCount }, (_, n) => ({
    params: params.subarray(n * paramSize, (n + 1) * paramSize),
    noise: noise.subarray(n * noiseSize, (n + 1) * noiseSize),
    action: actions.subarray(n * actionSize, (n + 1) * actionSize),
  }));
  const look = (raw: Float32Array, out: Float32Array): void => {
    if (observationNormaliser) observationNormaliser.apply(raw, out);
    else copy(raw, out, 0);
  };
  let [sum, sumOfSquares] = [0, 0];

  for (let t = 0; t < rollout.steps; t++) {
    const at = t * envCount;
    observationNormaliser?.moments.update(envs.observations);
    look(envs.observations, observations);
    acting.run();
    actionNoise.fill(rng, noise);
    for (let n = 0; n < envCount; n++) {
      const row = rows[n];
      distribution.sample(row.params, row.noise, row.action);
    }
    copy(actions, bounded, 0);
    actionSpace.clip(bounded, 0, envCount);
    const isTimed = t % timedEvery === 0;
    const steppedAt = isTimed ? performance.now() : 0;
    const stepping = envs.step(bounded);
    // Of quick environments every 16th step is timed: looking at the clock takes as long as they do.
    if (t === 0 && stepping === undefined) timedEvery = 16;
    // Worker threads are at work now. What the environments do not wait for is done meanwhile; it reads nothing that they write.
    copy(observations, rollout.observations, at * obsSize);
    copy(params, rollout.params, at * paramSize);
    copy(actions, rollout.actions, at * actionSize);
    for (let n = 0; n < envCount; n++) {
      rollout.logProbs[at + n] = distribution.logProb(rows[n].params, rows[n].action);
    }
    if (stepping) await stepping;
    if (isTimed) {
      envMs += performance.now() - steppedAt;
      timedSteps++;
    }

    let anyTruncated = 0;
    for (let n = 0; n < envCount; n++) {
      const reward = envs.rewards[n];
      const terminated = envs.terminated[n];
      const truncated = envs.truncated[n];
      sum += reward;
      sumOfSquares += reward * reward;
      scaled[n] = reward * rewardScale;
      rollout.terminated[at + n] = terminated;
      rollout.truncated[at + n] = truncated;
      anyTruncated |= truncated;
      done[n] = terminated | truncated;
      if (done[n]) {
        episodeReturns.push(envs.episodeReturns[n]);
        episodeLengths.push(envs.episodeLengths[n]);
        blowUps += envs.blownUp[n];
        for (let k = 0; k < termCount; k++) termMeans[k] += envs.episodeRewardTerms[n * termCount + k];
        for (let k = 0; k < measureCount; k++) measureMeans[k] += envs.episodeMeasures[n * measureCount + k];
      }
    }
    if (rewardNormaliser) {
      rewardNormaliser.apply(scaled, done, learnt);
      copy(learnt, rollout.rewards, at);
    } else {
      copy(scaled, rollout.rewards, at);
    }
    if (anyTruncated) {
      // Rows of episodes that go on are evaluated along with them, and not used.
      look(envs.finalObservations, valuing.observations);
      valuing.run();
      rollout.finalValues.set(valuing.out, at);
    }
  }
  look(envs.observations, valuing.observations);
  valuing.run();
  rollout.lastValues.set(valuing.out);
  valueAll(rollout, parts.valuingMany, obsSize);

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
    envSeconds: (envMs / 1000) * (rollout.steps / timedSteps),
  };
}

/** The value of every observation: all of them afterwards, because nobody asks for them before, and as many at once as the network takes. */
function valueAll({ observations, values }: Rollout, network: Network, obsSize: number): void {
  const { rows } = network;
  for (let first = 0; first < values.length; first += rows) {
    const count = Math.min(rows, values.length - first);
    network.observations.set(observations.subarray(first * obsSize, (first + count) * obsSize));
    network.run();
    values.set(network.out.subarray(0, count), first);
  }
}

/** A loop, because `set` takes longer than copying the few numbers of a step; long rows are left to it. */
function copy(from: Float32Array | Float64Array, to: Float32Array, at: number): void {
  if (from.length > 64) {
    to.set(from, at);
    return;
  }
  for (let i = 0; i < from.length; i++) to[at + i] = from[i];
}
