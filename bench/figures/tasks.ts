/** What is judged, on how many fresh seeds, and what it is to reach. */
import { findEnv } from '../../src/envs/index.ts';
import { loadPreset } from '../../src/settings/files.ts';
import { refuse } from '../refuse.ts';

export interface FigureTask {
  /** Names it in records, tables and on the command line. */
  readonly id: string;
  /** The table that it stands in. */
  readonly group: 'classic' | 'unguarded' | 'wild' | 'other' | 'suite' | 'walking';
  readonly env: string;
  /** Settings beside the preset's. */
  readonly changes: Readonly<Record<string, unknown>>;
  /** How many fresh seeds judge it. */
  readonly seeds: number;
  /** Episodes that judge a policy, the same for all of its task: in Pendulum the start alone decides over 100 points. */
  readonly episodes: number;
  readonly aim?: number;
  /** How many of the seeds are to reach the aim by themselves; without it, their interquartile mean is. */
  readonly seedsAtAim?: number;
  readonly published?: Published;
}

/** Scores of others' PPO after 1M steps, of versions 2 to 4 of the tasks. */
export interface Published {
  readonly best: number;
  readonly from: 'rl-zoo3' | 'Tianshou' | 'CleanRL';
  /** CleanRL's recipe, or what the PPO paper has where CleanRL has none. */
  readonly plain: string;
}

/** The learning rate of the `wild` tasks, in that of the presets. */
const WILD_FACTOR = 30;

const preset = (env: string, aim: number, seeds = 20, atAim = seeds): FigureTask => ({
  id: env,
  group: 'classic',
  env,
  changes: {},
  seeds,
  episodes: 200,
  aim,
  seedsAtAim: atAim,
});

const classic = [
  preset('CartPole-v1', 475, 40, 39),
  preset('Pendulum-v1', -200),
  preset('Acrobot-v1', -90),
  preset('MountainCarContinuous-v0', 85),
];

/** The same without the guard: what it costs. */
const unguarded = classic.map(
  (task): FigureTask => ({
    ...task,
    id: `${task.env} unguarded`,
    group: 'unguarded',
    changes: { guard: null },
  }),
);

const constant = { learningRateSchedule: 'constant', clipRangeSchedule: 'constant' } as const;
/** A learning rate far too high, as the presets have it (falling to 0) and held; with the guard and without. */
const wild = ['CartPole-v1', 'Pendulum-v1'].flatMap(env => {
  const learningRate = (loadPreset(env).learningRate as number) * WILD_FACTOR;
  return (['falling', 'constant'] as const).flatMap(schedule =>
    ([true, false] as const).map(
      (guarded): FigureTask => ({
        id: `${env} wild ${schedule}${guarded ? '' : ' unguarded'}`,
        group: 'wild',
        env,
        changes: {
          learningRate,
          ...(schedule === 'constant' ? constant : {}),
          ...(guarded ? {} : { guard: null }),
        },
        seeds: 10,
        episodes: 200,
      }),
    ),
  );
});

const robot = (env: string, seeds: number, published: Published): FigureTask => ({
  id: env,
  group: 'suite',
  env,
  changes: {},
  seeds,
  episodes: 50,
  aim: published.best,
  published,
});

const suite = [
  robot('HalfCheetah-v5', 5, { best: 5819, from: 'rl-zoo3', plain: '1,443 ± 46' }),
  robot('Hopper-v5', 5, { best: 2609, from: 'Tianshou', plain: '2,383 ± 272' }),
  robot('Walker2d-v5', 5, { best: 3589, from: 'Tianshou', plain: '2,288 ± 572' }),
  robot('Ant-v5', 5, { best: 3258, from: 'Tianshou', plain: '1,327 ± 452 (rl-zoo3)' }),
  robot('Swimmer-v5', 3, { best: 282, from: 'rl-zoo3', plain: '~108 (PPO paper)' }),
  robot('InvertedPendulum-v5', 3, { best: 1000, from: 'Tianshou', plain: '963 ± 22' }),
  robot('InvertedDoublePendulum-v5', 3, { best: 9231, from: 'Tianshou', plain: '~8,000 (PPO paper)' }),
  robot('Humanoid-v5', 3, { best: 787, from: 'Tianshou', plain: '716 ± 49' }),
  robot('Reacher-v5', 3, { best: -4.1, from: 'Tianshou', plain: '~-7 (PPO paper)' }),
];

const walker = (name: string, seeds: number): FigureTask => {
  const { id } = findEnv(name);
  return { id, group: 'walking', env: id, changes: {}, seeds, episodes: 100 };
};

/** A hybrid action, which no other preset has; nothing published to reach. */
const other: readonly FigureTask[] = [
  { id: 'Courier-v0', group: 'other', env: 'Courier-v0', changes: {}, seeds: 10, episodes: 200 },
];

export const tasks: readonly FigureTask[] = [
  ...classic,
  ...unguarded,
  ...wild,
  ...other,
  ...suite,
  walker('arachne', 10),
  walker('quadruped', 3),
];

/** Those of the groups whose names begin with one of the words, whatever their case and hyphens; all of them without words. */
export function pickTasks(groups: readonly FigureTask['group'][], words: readonly string[]): FigureTask[] {
  const plain = (text: string): string => text.toLowerCase().replaceAll(/[-_ ]/g, '');
  const inGroups = tasks.filter(({ group }) => groups.includes(group));
  if (words.length === 0) return inGroups;
  const found = words.flatMap(word => {
    const meant = inGroups.filter(({ id }) => plain(id).startsWith(plain(word)));
    if (meant.length > 0) return meant;
    return refuse(`'${word}' is none of ${[...new Set(inGroups.map(({ env }) => env))].join(', ')}`);
  });
  return [...new Set(found)];
}
