/**
 * Probe environments: each needs one part of a trainer to be right, and is learnt in seconds when it is. Try them in
 * order; the first that fails says where to look (after Andy Jones, "Debugging RL, without the agonizing pain").
 *
 * | id | learns | checks |
 * |---|---|---|
 * | ProbeConstant-v0 | V = 1 | value loss, optimiser |
 * | ProbeObservation-v0 | V(obs) = obs | the observation reaches the critic |
 * | ProbeDiscount-v0 | V(first) = gamma, V(second) = 1 | discounting, GAE |
 * | ProbeAction-v0 | the action that pays | policy loss, advantages |
 * | ProbeBoth-v0 | the action that fits the observation | all of it together |
 * | ProbeEndless-v0 | V = 1 / (1 - gamma) | bootstrapping where an episode is truncated |
 *
 * `actions: 'continuous'` gives the same as `Box(1)` in ±1, for policies with a Gaussian; where the action pays, the
 * reward is then 1 - (action - best)² with `best` at ±0.5.
 */
import { createEnv, defineEnv, type EnvDefinition, type MadeEnv, type MakeOptions } from '../definition.ts';
import { simulation } from '../simulation.ts';
import { box, discrete, type Space } from '../spaces.ts';

/** Options of all probe environments. */
export type ProbeOptions = {
  readonly actions: 'discrete' | 'continuous';
};

interface Probe {
  readonly id: string;
  readonly description: string;
  readonly maxEpisodeSteps: number;
  /** Steps until it terminates; null for never. */
  readonly length: number | null;
  /** What is seen after `stepsDone` steps, of an episode that drew this sign, ±1. */
  observe(sign: number, stepsDone: number): number;
  /** Which way the action should go, ±1; null where it does not matter. */
  best(sign: number): number | null;
  /** The reward of step number `stepsDone`, apart from the action's. */
  reward(sign: number, stepsDone: number): number;
}

const actionOptions = {
  actions: {
    default: 'discrete',
    oneOf: ['discrete', 'continuous'],
    doc: 'two categories, or one number in ±1',
  },
} as const;

function probe(spec: Probe): EnvDefinition<ProbeOptions> {
  return defineEnv<ProbeOptions>({
    id: spec.id,
    description: spec.description,
    options: actionOptions,
    maxEpisodeSteps: spec.maxEpisodeSteps,
    make: ({ actions }) =>
      simulation({
        observationSpace: box({ shape: [1], low: -1, high: 1 }),
        actionSpace: (actions === 'discrete' ? discrete(2) : box({ shape: [1], low: -1, high: 1 })) as Space,
        start: rng => ({ sign: 2 * rng.integer(2) - 1, stepsDone: 0 }),
        observe(state, obs) {
          obs[0] = spec.observe(state.sign, state.stepsDone);
        },
        step(state, action, result) {
          state.stepsDone++;
          result.reward = spec.reward(state.sign, state.stepsDone);
          const best = spec.best(state.sign);
          if (best !== null) result.reward += payOf(action[0], best, actions);
          result.terminated = spec.length !== null && state.stepsDone >= spec.length;
        },
      }),
  });
}

/** What an action pays that should go in the direction `best`, ±1. */
function payOf(action: number, best: number, actions: ProbeOptions['actions']): number {
  if (actions === 'discrete') return (action === 1) === (best === 1) ? 1 : -1;
  return 1 - (action - best / 2) ** 2;
}

/**
 * ProbeConstant-v0: one step, observation 0, reward 1 whatever is done. The value must become 1.
 *
 * **Actions** `Discrete(2)` (or `Box(1)`), without effect. **Observations** `Box(1)`: 0. **Reward** 1. **End** terminated
 * after one step. **Versions** v0.
 */
export const probeConstantDefinition = probe({
  id: 'ProbeConstant-v0',
  description: 'One step, reward 1: the value must become 1.',
  maxEpisodeSteps: 10,
  length: 1,
  observe: () => 0,
  best: () => null,
  reward: () => 1,
});

/**
 * ProbeObservation-v0: one step whose reward is the observation. The value must become the observation.
 *
 * **Actions** `Discrete(2)` (or `Box(1)`), without effect. **Observations** `Box(1)`: -1 or 1 at random. **Reward** the
 * observation. **End** terminated after one step. **Versions** v0.
 */
export const probeObservationDefinition = probe({
  id: 'ProbeObservation-v0',
  description: 'One step, the reward is the observation: the value must follow it.',
  maxEpisodeSteps: 10,
  length: 1,
  observe: sign => sign,
  best: () => null,
  reward: sign => sign,
});

/**
 * ProbeDiscount-v0: two steps with the reward at the end. The value must become gamma at 0 and 1 at 1.
 *
 * **Actions** `Discrete(2)` (or `Box(1)`), without effect. **Observations** `Box(1)`: 0, then 1. **Reward** 0, then 1.
 * **End** terminated after two steps; the final observation is 1. **Versions** v0.
 */
export const probeDiscountDefinition = probe({
  id: 'ProbeDiscount-v0',
  description: 'Two steps, reward 1 at the end: the first value must become gamma.',
  maxEpisodeSteps: 10,
  length: 2,
  observe: (_, stepsDone) => Math.min(stepsDone, 1),
  best: () => null,
  reward: (_, stepsDone) => (stepsDone === 2 ? 1 : 0),
});

/**
 * ProbeAction-v0: one step, two actions, one of them better. The policy must choose it.
 *
 * **Actions** `Discrete(2)`, or `Box(1)`. **Observations** `Box(1)`: 0. **Reward** 1 for action 1 and -1 for action 0; or
 * 1 - (action - 0.5)². **End** terminated after one step. **Versions** v0.
 */
export const probeActionDefinition = probe({
  id: 'ProbeAction-v0',
  description: 'One step, one of two actions pays: the policy must choose it.',
  maxEpisodeSteps: 10,
  length: 1,
  observe: () => 0,
  best: () => 1,
  reward: () => 0,
});

/**
 * ProbeBoth-v0: one step, and which action is better depends on the observation.
 *
 * **Actions** `Discrete(2)`, or `Box(1)`. **Observations** `Box(1)`: -1 or 1 at random. **Reward** 1 for action 1 at 1 and
 * action 0 at -1, else -1; or 1 - (action - observation / 2)². **End** terminated after one step. **Versions** v0.
 */
export const probeBothDefinition = probe({
  id: 'ProbeBoth-v0',
  description: 'One step, the observation says which action pays.',
  maxEpisodeSteps: 10,
  length: 1,
  observe: sign => sign,
  best: sign => sign,
  reward: () => 0,
});

/**
 * ProbeEndless-v0: reward 1 for ever. The value must become 1 / (1 - gamma), which it does only where truncation is
 * bootstrapped: with truncation taken for termination it stays below the episode's length.
 *
 * **Actions** `Discrete(2)` (or `Box(1)`), without effect. **Observations** `Box(1)`: 0. **Reward** 1. **End** never
 * terminated; truncated at 10 steps. **Versions** v0.
 */
export const probeEndlessDefinition = probe({
  id: 'ProbeEndless-v0',
  description: 'Reward 1 for ever: the value must become 1 / (1 - gamma), through truncation.',
  maxEpisodeSteps: 10,
  length: null,
  observe: () => 0,
  best: () => null,
  reward: () => 1,
});

/** In the order to try them in. */
export const probeDefinitions: readonly EnvDefinition<ProbeOptions>[] = [
  probeConstantDefinition,
  probeObservationDefinition,
  probeDiscountDefinition,
  probeActionDefinition,
  probeBothDefinition,
  probeEndlessDefinition,
];

const maker =
  (definition: EnvDefinition<ProbeOptions>) =>
  (options: MakeOptions<ProbeOptions> = {}): MadeEnv =>
    createEnv(definition, options);

/** {@link probeConstantDefinition} */
export const probeConstant = maker(probeConstantDefinition);
/** {@link probeObservationDefinition} */
export const probeObservation = maker(probeObservationDefinition);
/** {@link probeDiscountDefinition} */
export const probeDiscount = maker(probeDiscountDefinition);
/** {@link probeActionDefinition} */
export const probeAction = maker(probeActionDefinition);
/** {@link probeBothDefinition} */
export const probeBoth = maker(probeBothDefinition);
/** {@link probeEndlessDefinition} */
export const probeEndless = maker(probeEndlessDefinition);
