/** Playing episodes with a policy, to know what it is worth. */

import { TrainError } from '../../base/errors.ts';
import type { OptionValues } from '../../envs/options.ts';
import { makeVectorEnv } from '../../envs/vector/make.ts';
import { Rng } from '../../random/rng.ts';
import { moments } from '../update/moments.ts';
import { compileActor, type PolicyWeights } from './actor.ts';
import type { ActorCritic } from './networks/actor-critic.ts';

export interface EvaluateOptions extends PolicyWeights {
  readonly env: string;
  readonly envOptions?: OptionValues;
  readonly model: ActorCritic;
  readonly episodes: number;
  readonly seed: number;
  /** Actions drawn as in training, instead of the most likely ones. */
  readonly sampled?: boolean | undefined;
}

/** What episodes came to. */
export interface EpisodeEvaluation {
  readonly kind: 'episodes';
  readonly returns: number[];
  readonly lengths: number[];
  readonly mean: number;
  readonly std: number;
}

/** An environment may never end by itself and have no limit. */
const MAX_STEPS = 2_000_000;

/** Plays whole episodes; the first ones of each environment count, so that short episodes are not favoured. */
export async function evaluatePolicy(options: EvaluateOptions): Promise<EpisodeEvaluation> {
  const { model, episodes, seed, sampled = false } = options;
  const envCount = Math.min(16, episodes);
  const envs = await makeVectorEnv(options.env, { envCount, options: options.envOptions ?? {} });
  const actor = await compileActor(model, envs.actionSpace, envCount);
  const rng = sampled ? new Rng(seed) : undefined;
  // Each environment plays its share; the first ones play one more where it does not divide.
  const left = Array.from({ length: envCount }, (_, n) =>
    Math.floor((episodes + envCount - 1 - n) / envCount),
  );
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
      actor.act(options, envs.observations, actions, rng);
      await envs.step(actions);
      for (let n = 0; n < envCount; n++) {
        if (!envs.terminated[n] && !envs.truncated[n]) continue;
        if (left[n]-- <= 0) continue;
        returns.push(envs.episodeReturns[n]);
        lengths.push(envs.episodeLengths[n]);
      }
    }
  } finally {
    actor.dispose();
    await envs.close();
  }
  return { kind: 'episodes', returns, lengths, ...moments(returns) };
}
