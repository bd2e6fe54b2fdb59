/** The kinds of run that are killed, each as small as it can be with all that a checkpoint of it must hold. */
import { join } from 'node:path';

/** A kind of run, as command lines of `keel`. */
export interface Kind {
  /** Begins it, in the root of runs that is given after it. */
  readonly begin: readonly string[];
  /** A run that is copied into the root first, for what goes on with one: the name of a parent. */
  readonly goesOnWith?: string;
}

const set = (...pairs: readonly string[]): string[] => pairs.flatMap(pair => ['--set', pair]);
const train = (what: string, ...settings: readonly string[]): string[] => [
  'train',
  what,
  '--no-preset',
  ...set('seed=3', ...settings),
];
const policy = [
  ...['envs=2', 'stepsPerRollout=16', 'minibatchSize=16', 'epochs=2', 'hidden=[4]', 'checkpointEvery=2'],
  ...['workers=0', 'record=false'],
];
/** Both normalisers, schedules, a reference and a guard that has to act. */
const rich = [
  ...policy,
  ...['normaliseObservations=true', 'normaliseRewards=true', 'learningRateSchedule=linear', 'keepEvery=4'],
  ...['targetKl=0.003', 'learningRate=0.02', 'reference=averaged', 'guard=0.002'],
];
const model = ['layers=1', 'width=8', 'heads=1', 'threads=1', 'checkpointEvery=2'];
const groups = ['promptsPerIteration=2', 'groupSize=2', 'microbatchSize=4', 'minibatchSize=4', 'steps=20'];

/** Runs that others begin from, made once. */
export const parents: Readonly<Record<string, readonly string[]>> = {
  policy: train('pendulum', ...rich, 'steps=96'),
  language: [
    ...['clone', 'arithmetic', '--no-preset'],
    ...set('seed=3', ...model, 'steps=32', 'batchSize=4', 'batchesPerIteration=2'),
  ],
};

/** All of them; `place` has the parents, `multi` is the file of an environment with several choices at once. */
export function kindsOf(place: (parent: string) => string, multi: string): Readonly<Record<string, Kind>> {
  const weights = join(place('policy'), 'checkpoints', '96', 'policy.safetensors');
  const language = ['train', 'arithmetic', '--no-preset', ...set('seed=3', 'threads=1', 'checkpointEvery=2')];
  return {
    'ppo, one choice': { begin: train('cartpole', ...policy, 'steps=192') },
    'ppo, numbers': { begin: train('pendulum', ...rich, 'steps=192') },
    'ppo, several choices': { begin: train(multi, ...policy, 'steps=192') },
    'ppo, both at once': { begin: train('courier', ...policy, 'steps=160') },
    grpo: { begin: train('arithmetic', ...model, ...groups) },
    'cloned policy': {
      begin: [
        ...['clone', 'cluster', '--no-preset', '--set', 'seed=3'],
        ...set(
          'envOptions.replicas=h100,a40',
          'envOptions.requests=64',
          'steps=64',
          'epochs=6',
          'batchSize=32',
          'envs=2',
        ),
        ...set('hidden=[4]', 'network=mlp', 'normaliseObservations=true', 'checkpointEvery=2'),
        ...set('demonstrators=["least-finish"]', 'workers=0'),
      ],
    },
    'cloned text': {
      begin: [
        ...['clone', 'arithmetic', '--no-preset'],
        ...set('seed=3', ...model, 'steps=48', 'batchSize=4', 'batchesPerIteration=2'),
      ],
    },
    'fork of a policy': {
      begin: ['fork', place('policy'), '--steps', '224', ...set('learningRate=0.01', 'clipRange=0.1')],
    },
    'fork with rewards of another scale': {
      begin: ['fork', place('policy'), '--steps', '192', '--rescale-critic', ...set('rewardScale=0.5')],
    },
    'fork of a model': { begin: ['fork', place('language'), '--steps', '64'] },
    'policy from weights of a run': {
      begin: [...train('pendulum', ...rich, 'steps=128'), '--from', place('policy')],
    },
    'policy from a file': { begin: [...train('pendulum', ...rich, 'steps=128'), '--from', weights] },
    'model from a run': { begin: [...language, ...set(...groups), '--from', place('language')] },
    'resumed with more steps and another rate': {
      begin: ['resume', 'last', '--steps', '192', ...set('learningRate=0.01')],
      goesOnWith: 'policy',
    },
  };
}

/** An environment with several choices at once, as a user writes one. */
export const severalChoices = (envs: string): string => `
import { box, defineEnv, multiDiscrete, simulation } from ${JSON.stringify(envs)};
export default defineEnv({
  id: 'Several-v0',
  description: 'Two choices at once, rewarded for agreeing with what is seen.',
  maxEpisodeSteps: 20,
  make: () =>
    simulation({
      observationSpace: box({ shape: [1], low: -1, high: 1 }),
      actionSpace: multiDiscrete([3, 2]),
      start: rng => ({ x: rng.uniform() * 2 - 1 }),
      observe: state => [state.x],
      step(state, action, result) {
        result.reward = (action[0] === 2) === state.x > 0 ? 1 + action[1] : 0;
        state.x = Math.sin(state.x * 12.9 + action[0] + 1);
      },
    }),
});
`;
