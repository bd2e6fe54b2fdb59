/** Playing episodes with a policy, to know what it is worth. */
import { compile, Graph } from '../engine/index.ts';
import { makeVectorEnv, type OptionValues } from '../envs/index.ts';
import { Rng } from '../random/index.ts';
import type { ObservationNormaliser } from '../rollout/normalise.ts';
import type { ActorCritic } from './actor-critic.ts';
import { TrainError } from './train-error.ts';

export interface EvaluateOptions {
  env: string;
  envOptions?: OptionValues;
  model: ActorCritic;
  params: Float32Array;
  normaliser: ObservationNormaliser | undefined;
  episodes: number;
  seed: number;
  /** The most likely action (the default), or one drawn as in training. */
  deterministic?: boolean;
}

export interface Evaluation {
  readonly returns: number[];
  readonly lengths: number[];
  readonly mean: number;
  readonly std: number;
}

/** An environment may never end by itself and have no limit. */
const MAX_STEPS = 2_000_000;

/** Plays whole episodes; the first ones of each environment count, so that short episodes are not favoured. */
export async function evaluatePolicy(options: EvaluateOptions): Promise<Evaluation> {
  const { model, params, normaliser, episodes, seed, deterministic = true } = options;
  const envCount = Math.min(16, episodes);
  const envs = await makeVectorEnv(options.env, { envCount, options: options.envOptions ?? {} });
  const { distribution, layout, observationSize } = model;
  const g = new Graph();
  const observations = g.input('observations', [envCount, observationSize]);
  g.output('policy', model.policy(layout.tensors(g.input('params', [layout.size])), observations));
  const program = await compile(g, { checkFeeds: false });
  const rng = new Rng(seed);
  // Each environment plays its share; the first ones play one more where it does not divide.
  const left = Array.from({ length: envCount }, (_, n) =>
    Math.floor((episodes + envCount - 1 - n) / envCount),
  );
  const seen = new Float32Array(envCount * envs.obsSize);
  const noise = new Float32Array(envCount * distribution.noiseSize);
  const actions = new Float32Array(envCount * envs.actionSize);
  const returns: number[] = [];
  const lengths: number[] = [];
  try {
    await envs.reset({ seed });
    for (let step = 0; left.some(n => n > 0); step++) {
      if (step === MAX_STEPS) {
        throw new TrainError(
          `${options.env}: episodes have not ended after ${MAX_STEPS} steps: give the environment a maxEpisodeSteps`,
        );
      }
      if (normaliser) normaliser.apply(envs.observations, seen);
      else seen.set(envs.observations);
      const { policy } = program.run<{ policy: Float32Array }>({ params, observations: seen });
      if (!deterministic) distribution.fillNoise(rng, noise);
      for (let n = 0; n < envCount; n++) {
        const own = policy.subarray(n * distribution.paramSize, (n + 1) * distribution.paramSize);
        const action = actions.subarray(n * envs.actionSize, (n + 1) * envs.actionSize);
        if (deterministic) distribution.mode(own, action);
        else
          distribution.sample(
            own,
            noise.subarray(n * distribution.noiseSize, (n + 1) * distribution.noiseSize),
            action,
          );
        envs.actionSpace.clip(action);
      }
      await envs.step(actions);
      for (let n = 0; n < envCount; n++) {
        if (!envs.terminated[n] && !envs.truncated[n]) continue;
        if (left[n]-- <= 0) continue;
        returns.push(envs.episodeReturns[n]);
        lengths.push(envs.episodeLengths[n]);
      }
    }
  } finally {
    program.dispose();
    await envs.close();
  }
  const mean = returns.reduce((a, b) => a + b, 0) / returns.length;
  const std = Math.sqrt(returns.reduce((sum, r) => sum + (r - mean) ** 2, 0) / returns.length);
  return { returns, lengths, mean, std };
}
