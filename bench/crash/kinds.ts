/** The kinds of run that are killed, each as small as it can be with all that a checkpoint of it must hold. */
import { join } from 'node:path';

/** A kind of run, as a command line of `keel`. */
export interface Kind {
  /** Begins it; `parent` is the directory of the run that it begins from or goes on with. */
  readonly begin: (parent: string) => readonly string[];
  readonly parent?: keyof typeof parents;
  /** Whether it goes on with its parent, which is then copied. */
  readonly goesOn?: boolean;
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
const cloneText = (length: string): string[] => [
  ...['clone', 'arithmetic', '--no-preset'],
  ...set('seed=3', ...model, length, 'batchSize=4', 'batchesPerIteration=2'),
];
const groups = ['promptsPerIteration=2', 'groupSize=2', 'microbatchSize=4', 'minibatchSize=4', 'steps=20'];

/** Runs that others begin from. */
export const parents = {
  policy: train('pendulum', ...rich, 'steps=96'),
  language: cloneText('steps=32'),
} as const;

/** All of them; `several` is the file of an environment with several choices at once. */
export function kindsOf(several: string): Readonly<Record<string, Kind>> {
  const anew = (begin: readonly string[]): Kind => ({ begin: () => begin });
  const ofPolicy = (begin: Kind['begin']): Kind => ({ begin, parent: 'policy' });
  const ofModel = (begin: Kind['begin']): Kind => ({ begin, parent: 'language' });
  const weights = (parent: string): string => join(parent, 'checkpoints', '96', 'policy.safetensors');
  return {
    'ppo, one choice': anew(train('cartpole', ...policy, 'steps=192')),
    'ppo, numbers': anew(train('pendulum', ...rich, 'steps=192')),
    'ppo, shards in processes': anew(
      train('pendulum', ...rich, 'steps=192', 'shards=2', 'collectors=2', 'workers="auto"'),
    ),
    'ppo, several choices': anew(train(several, ...policy, 'steps=192')),
    'ppo, both at once': anew(train('courier', ...policy, 'steps=160')),
    grpo: anew(train('arithmetic', ...model, ...groups)),
    'cloned policy': anew([
      ...['clone', 'cluster', '--no-preset', '--set', 'seed=3'],
      ...set('envOptions.replicas=h100,a40', 'envOptions.requests=64', 'steps=64', 'epochs=6', 'envs=2'),
      ...set('batchSize=32', 'hidden=[4]', 'network=mlp', 'normaliseObservations=true', 'checkpointEvery=2'),
      ...set('demonstrators=["least-finish"]', 'workers=0'),
    ]),
    'cloned text': anew(cloneText('steps=48')),
    'fork of a policy': ofPolicy(parent => [
      ...['fork', parent, '--steps', '224', ...set('learningRate=0.01', 'clipRange=0.1')],
    ]),
    'fork with rewards of another scale': ofPolicy(parent => [
      ...['fork', parent, '--steps', '192', '--rescale-critic', ...set('rewardScale=0.5')],
    ]),
    'fork of a model': ofModel(parent => ['fork', parent, '--steps', '64']),
    'policy from weights of a run': ofPolicy(parent => [
      ...train('pendulum', ...rich, 'steps=128'),
      ...['--from', parent],
    ]),
    'policy from a file': ofPolicy(parent => [
      ...train('pendulum', ...rich, 'steps=128'),
      ...['--from', weights(parent)],
    ]),
    'model from a run': ofModel(parent => [
      ...train('arithmetic', 'threads=1', 'checkpointEvery=2', ...groups),
      ...['--from', parent],
    ]),
    'resumed with more steps and another rate': {
      ...ofPolicy(() => ['resume', 'last', '--steps', '192', ...set('learningRate=0.01')]),
      goesOn: true,
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
