/** Playing episodes with a policy, to know what it is worth. */

import { TrainError } from '../../base/errors.ts';
import type { OptionValues } from '../../envs/options.ts';
import { makeVectorEnv } from '../../envs/vector/make.ts';
import { Rng } from '../../random/rng.ts';
import { type LearnerEvaluation, roundSeed } from '../evaluation.ts';
import { type Summary, summaryOf } from '../update/moments.ts';
import { compileActor, type LivePolicy, type PolicyWeights } from './actor.ts';
import type { ActorCritic } from './networks/actor-critic.ts';

/** What is played in, and by which network. */
interface PlayerOptions {
  readonly env: string;
  readonly envOptions?: OptionValues;
  readonly model: ActorCritic;
}

/** How many episodes, from which seed. */
interface PlayOptions {
  readonly episodes: number;
  readonly seed: number;
  /** Actions drawn as in training, instead of the most likely ones. */
  readonly sampled?: boolean | undefined;
}

export interface EvaluateOptions extends PolicyWeights, PlayerOptions, PlayOptions {}

/** What episodes came to. */
export interface EpisodeEvaluation extends Summary {
  readonly kind: 'episodes';
  readonly returns: number[];
  readonly lengths: number[];
}

/** An environment may never end by itself and have no limit. */
const MAX_STEPS = 2_000_000;

/** Environments that an evaluation plays in side by side. */
const SIDE_BY_SIDE = 16;

/** Environments and a compiled network, for one evaluation after the other. */
interface Player {
  /** Whole episodes; the first ones of each environment count, so that short episodes are not favoured. */
  play(policy: PolicyWeights, how: PlayOptions): Promise<{ returns: number[]; lengths: number[] }>;
  close(): Promise<void>;
}

async function openPlayer(
  { env, envOptions = {}, model }: PlayerOptions,
  envCount: number,
  workers?: number | 'auto',
): Promise<Player> {
  const envs = await makeVectorEnv(env, {
    envCount,
    options: envOptions,
    ...(workers !== undefined && { workers }),
  });
  const actor = await compileActor(model, envs.actionSpace, envCount);
  const actions = new Float32Array(envCount * envs.actionSize);
  return {
    async play(policy, { episodes, seed, sampled = false }) {
      const rng = sampled ? new Rng(seed) : undefined;
      // Each environment plays its share; the first ones play one more where it does not divide.
      const left = Array.from({ length: envCount }, (_, n) =>
        Math.floor((episodes + envCount - 1 - n) / envCount),
      );
      const returns: number[] = [];
      const lengths: number[] = [];
      await envs.reset({ seed });
      for (let step = 0; left.some(n => n > 0); step++) {
        if (step === MAX_STEPS) {
          throw new TrainError(
            `${env}: episodes have not ended after ${MAX_STEPS} steps: give the environment a maxEpisodeSteps`,
          );
        }
        actor.act(policy, envs.observations, actions, rng);
        await envs.step(actions);
        for (let n = 0; n < envCount; n++) {
          if (!envs.terminated[n] && !envs.truncated[n]) continue;
          if (left[n]-- <= 0) continue;
          returns.push(envs.episodeReturns[n]);
          lengths.push(envs.episodeLengths[n]);
        }
      }
      return { returns, lengths };
    },
    async close() {
      actor.dispose();
      await envs.close();
    },
  };
}

/** Plays so many episodes in environments of their own. */
export async function evaluatePolicy(options: EvaluateOptions): Promise<EpisodeEvaluation> {
  const player = await openPlayer(options, Math.min(SIDE_BY_SIDE, options.episodes));
  try {
    const { returns, lengths } = await player.play(options, options);
    return { kind: 'episodes', returns, lengths, ...summaryOf(returns) };
  } finally {
    await player.close();
  }
}

/**
 * Evaluations of a policy while it is trained, in environments that are made at the first one and kept. Every episode
 * begins from a seed of its own, whatever the policy did in those before: all evaluations play the same ones.
 */
export function evaluationsOf(
  { env, options: envOptions, model, policy }: LivePolicy,
  {
    evaluateEpisodes: episodes,
    seed,
    workers,
  }: { readonly evaluateEpisodes: number; readonly seed: number; readonly workers: number | 'auto' },
): { evaluate(): Promise<LearnerEvaluation>; close(): Promise<void> } {
  const rounds = Math.ceil(episodes / SIDE_BY_SIDE);
  const each = Math.ceil(episodes / rounds);
  let player: Player | undefined;
  return {
    async evaluate() {
      player ??= await openPlayer({ env, envOptions, model }, each, workers);
      const returns: number[] = [];
      const lengths: number[] = [];
      for (let round = 0; round < rounds; round++) {
        const played = await player.play(policy(), {
          episodes: Math.min(each, episodes - returns.length),
          seed: roundSeed(seed, round),
        });
        returns.push(...played.returns);
        lengths.push(...played.lengths);
      }
      return { returns, lengths };
    },
    close: async () => player?.close(),
  };
}
