/** Random search in its plainest form: a linear policy is changed at random, and a change that is no worse stays. */
import * as keel from '../../../src/index.ts';

const settings = keel.table(
  {
    ...keel.runKeys(4000, 'Steps of the environment.'),
    noise: keel.setting(keel.values.positive, 0.3, 'Std of the change that is tried.', { change: 'live' }),
    episodes: keel.setting(keel.values.count, 2, 'Episodes that a change is judged by.'),
  },
  { name: 'random-search', title: 'Random search', of: 'env' },
);
type Config = typeof settings.defaults;

/** All that the future depends on. */
interface State {
  readonly best: { readonly weights: readonly number[]; readonly score: number | null };
  readonly rng: keel.RngState;
  readonly counters: { readonly iteration: number; readonly steps: number };
}

export const randomSearch: keel.Algorithm<Config> = {
  name: 'random-search',
  verb: 'train',
  learnsIn: 'env',
  unit: 'steps',
  settings,
  preset: () => ({}),
  open,
};

async function open({ subject, config: first }: keel.Opening<Config>): Promise<keel.Learner> {
  const env = keel.makeEnv(subject.id, subject.options);
  const { id, version, options } = env.spec;
  if (env.actionSpace.kind !== 'discrete')
    throw new keel.ConfigError(
      `${id} has the actions ${env.actionSpace.describe()}: random search chooses one of a few`,
    );
  const { n: actions } = env.actionSpace;
  const [observation, action] = [new Float32Array(env.observationSpace.flatSize), new Float32Array(1)];
  const { length: inputs } = observation;
  let config = first;
  let rng = new keel.Rng(config.seed);
  let best: State['best'] = { weights: Array<number>(actions * inputs).fill(0), score: null };
  const counters = { iteration: 0, steps: 0 };

  /** What an episode returns. */
  function play(weights: readonly number[]): number {
    env.reset({ seed: rng.integer(2 ** 31) }, observation);
    for (let total = 0; ; ) {
      const scores = Array.from({ length: actions }, (_, a) =>
        observation.reduce((sum, x, i) => sum + x * weights[a * inputs + i], 0),
      );
      action[0] = scores.indexOf(Math.max(...scores));
      const { reward, terminated, truncated } = env.step(action, observation);
      counters.steps++;
      total += reward;
      if (terminated || truncated) return total;
    }
  }

  return {
    get config() {
      return config;
    },
    counters,
    totalSteps: first.steps,
    environment: { id, version: String(version), options, reward: { scale: 1, normalised: false } },
    begin: async () => {},
    async restore({ state }, { forkedWith }) {
      const saved = state as unknown as State;
      best = saved.best;
      rng = keel.Rng.fromState(saved.rng);
      Object.assign(counters, saved.counters, forkedWith && { iteration: 0 });
    },
    async iterate() {
      const weights = best.weights.map(weight => weight + config.noise * rng.normal());
      const returns = Array.from({ length: config.episodes }, () => play(weights));
      const score = returns.reduce((a, b) => a + b, 0) / returns.length;
      if (best.score === null || score >= best.score) best = { weights, score };
      counters.iteration++;
      const row = {
        'train/iteration': counters.iteration,
        'train/step': counters.steps,
        'train/lr': config.noise,
        'episode/return': score,
        'episode/return_best': best.score!,
        'episode/count': returns.length,
      };
      return { row, events: [] };
    },
    adjust(changes) {
      keel.refuseLiveChange(settings, config, changes);
      config = { ...config, ...changes };
    },
    save: async () => ({ files: {}, state: { best, rng: rng.state(), counters: { ...counters } } }),
    close: async () => env.close?.(),
  };
}
