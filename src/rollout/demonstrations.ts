/**
 * Demonstrations of a policy: an environment's own rules play, each in environments of its own, with the same seeds.
 */

import { ConfigError } from '../base/errors.ts';
import { didYouMean } from '../base/nearest.ts';
import { typed } from '../base/typed.ts';
import type { EnvDefinition } from '../envs/definition.ts';
import type { VectorEnv } from '../envs/vector/vector.ts';
import { Rng } from '../random/rng.ts';

/** What a demonstrator's play is worth. */
export interface DemonstratorScore {
  readonly name: string;
  readonly rewardMean: number;
}

/** All that was demonstrated; rows are steps. */
export interface Demonstrations {
  readonly count: number;
  readonly observations: Float32Array; // (count, obsSize)
  readonly actions: Float32Array; // (count, actionSize)
  /** (count, actions) Log-odds, for one discrete action: the demonstrator's own, else all for the action. */
  readonly logits: Float32Array | undefined;
  readonly returns: Float32Array; // (count), discounted
  readonly scores: readonly DemonstratorScore[];
}

/** How much is demonstrated, and what it is worth. */
export interface DemonstrationConfig {
  /** Of all demonstrators together. */
  readonly steps: number;
  readonly envs: number;
  readonly seed: number;
  readonly gamma: number;
  readonly rewardScale: number;
}

/** Log-odds of an action that was not demonstrated. */
const NEVER = -30;

type DemonstratedEnv = Pick<EnvDefinition, 'id' | 'demonstrators'>;

/** The demonstrators asked for, which the environment must have. */
export function demonstratorsOf(
  { id: envId, demonstrators: rules = {} }: DemonstratedEnv,
  wanted: readonly string[] | null,
): string[] {
  const known = Object.keys(rules);
  if (known.length === 0)
    throw new ConfigError(
      `${envId} has no demonstrators to clone: there are some for ${typed('clone', 'cluster')} and for text tasks (${typed('clone', 'chess')}); an environment of yours names its own as demonstrators in its definition`,
    );
  const names = wanted ?? known.filter(name => !rules[name].onlyIfNamed);
  if (names.length === 0) throw new ConfigError(`no demonstrator is named: use ${known.join(', ')}`);
  for (const name of names) {
    if (!known.includes(name))
      throw new ConfigError(
        `${envId} has no demonstrator ${JSON.stringify(name)}: ${didYouMean(name, known) || `there are ${known.join(', ')}`}`,
      );
  }
  return [...names];
}

/** Steps that each demonstrator plays in each environment. */
const stepsOfEach = ({ steps, envs }: DemonstrationConfig, names: readonly string[]): number =>
  Math.max(1, Math.round(steps / names.length / envs));

/** How many demonstrations there will be: whole shares of the steps that were asked for. */
export const demonstrationCount = (config: DemonstrationConfig, names: readonly string[]): number =>
  names.length * stepsOfEach(config, names) * config.envs;

/** Lets each demonstrator play its share of the steps, in environments that are opened for it. */
export async function recordDemonstrations(
  demonstrators: NonNullable<EnvDefinition['demonstrators']>,
  names: readonly string[],
  config: DemonstrationConfig,
  open: () => Promise<VectorEnv>,
): Promise<Demonstrations> {
  const { envs: envCount, gamma, rewardScale } = config;
  const stepsEach = stepsOfEach(config, names);
  const scores: DemonstratorScore[] = [];
  const count = demonstrationCount(config, names);
  let out: Omit<Demonstrations, 'scores'> | undefined;
  for (const [k, name] of names.entries()) {
    const envs = await open();
    try {
      const { obsSize, actionSize, actionSpace } = envs;
      const rule = demonstrators[name];
      const choices = actionSpace.kind === 'discrete' ? actionSpace.n : 0;
      if (rule.logits && choices === 0)
        throw new ConfigError(
          `the demonstrator ${name} has logits, which are of one discrete action, not of ${actionSpace.describe()}: remove them`,
        );
      out ??= {
        count,
        observations: new Float32Array(count * obsSize),
        actions: new Float32Array(count * actionSize),
        logits: choices === 0 ? undefined : new Float32Array(count * choices).fill(NEVER),
        returns: new Float32Array(count),
      };
      const rngs = new Rng(config.seed).split(envCount);
      const options = envs.spec?.options ?? {};
      const players = rngs.map(rng => rule.make(options, rng));
      const odds = rule.logits?.(options);
      const rewards = new Float64Array(stepsEach * envCount);
      const ended = new Uint8Array(stepsEach * envCount);
      const actions = new Float32Array(envCount * actionSize);
      const first = k * stepsEach * envCount;
      await envs.reset({ seed: config.seed });
      for (let t = 0; t < stepsEach; t++) {
        const at = first + t * envCount;
        out.observations.set(envs.observations, at * obsSize);
        for (const [n, play] of players.entries()) {
          const obs = envs.observations.subarray(n * obsSize, (n + 1) * obsSize);
          const action = actions.subarray(n * actionSize, (n + 1) * actionSize);
          play(obs, action);
          const logits = out.logits?.subarray((at + n) * choices, (at + n + 1) * choices);
          if (logits && odds) odds(obs, logits);
          else if (logits) logits[action[0]] = 0;
        }
        out.actions.set(actions, at * actionSize);
        await envs.step(actions);
        for (let n = 0; n < envCount; n++) {
          rewards[t * envCount + n] = envs.rewards[n];
          ended[t * envCount + n] = envs.terminated[n] | envs.truncated[n];
        }
      }
      returnsTo(rewards, ended, { envCount, gamma, rewardScale }, out.returns.subarray(first));
      scores.push({ name, rewardMean: rewards.reduce((a, b) => a + b, 0) / rewards.length });
    } finally {
      await envs.close();
    }
  }
  return { ...out!, scores };
}

/**
 * Discounted rewards that followed each step. What lies beyond the end of an episode or of the recording is unknown; there
 * the mean return of a reward that goes on stands for it.
 */
function returnsTo(
  rewards: Float64Array,
  ended: Uint8Array,
  { envCount, gamma, rewardScale }: { envCount: number; gamma: number; rewardScale: number },
  out: Float32Array,
): void {
  const mean = rewards.reduce((a, b) => a + b, 0) / rewards.length;
  const beyond = gamma < 1 ? (mean * rewardScale) / (1 - gamma) : 0;
  for (let n = 0; n < envCount; n++) {
    let following = beyond;
    for (let i = rewards.length - envCount + n; i >= 0; i -= envCount) {
      if (ended[i] === 1) following = beyond;
      following = rewards[i] * rewardScale + gamma * following;
      out[i] = following;
    }
  }
}
