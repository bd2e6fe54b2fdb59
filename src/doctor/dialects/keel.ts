/** Keel's own log: its names are the registry's. */
import { grpoSettings } from '../../algos/grpo/settings.ts';
import { ppoSettings } from '../../algos/ppo/settings.ts';
import { settingTables } from '../../algos/settings.ts';
import { typed as typedCommand } from '../../base/typed.ts';
import { metrics } from '../../metrics/registry.ts';
import type { DoctorSetting, SettingTable } from '../../settings/spec.ts';
import type { SettingChange } from '../fixes.ts';
import type { Dialect, Log, Mapping, Refine, WordingSpec } from './dialect.ts';
import { typed } from './wording.ts';

const family = '<name>';

const isText = (log: Log): boolean => log.series.has('completion/length');

const mappings: readonly Mapping[] = metrics.map(({ id, kl }) => ({
  theirs: id.endsWith(family)
    ? new RegExp(`${id.slice(0, -family.length).replaceAll('/', '\\/')}([^/]+)`)
    : id,
  id: id.replace(family, '$1'),
  ...(kl === undefined
    ? {}
    : { kl: { pair: kl.pair, estimator: kl.estimator, per: kl.per, aggregation: kl.aggregation } }),
}));

/** What stands for a KL that is not logged itself, the best first: other trainers that write our log have estimates alone. */
const estimates: Readonly<Record<string, readonly string[]>> = {
  'kl/step': ['kl/step_k3', 'kl/step_k2', 'kl/step_k1'],
  'kl/ref': ['kl/ref_k3'],
};

/** The KL that a trainer watches goes by the pair's own id, and says which estimate it is. */
const refine: Refine = drafts => {
  const logged = new Set(drafts.filter(({ series }) => series.length > 0).map(({ id }) => id));
  const renamed = new Map(
    Object.entries(estimates).flatMap(([id, stands]): [string, string][] => {
      const best = logged.has(id) ? undefined : stands.find(estimate => logged.has(estimate));
      return best === undefined ? [] : [[best, id]];
    }),
  );
  return { drafts: drafts.map(draft => ({ ...draft, id: renamed.get(draft.id) ?? draft.id })) };
};

export const keel: Dialect = {
  name: 'keel',
  title: 'Keel',
  kind: 'classic',
  kindOf: log => (isText(log) ? 'language-model' : 'classic'),
  signs: [
    { name: 'kl/step', points: 4 },
    { name: 'kl/step_k3', points: 3 },
    { name: 'train/iteration', points: 3 },
    { name: 'guard/scale', points: 4 },
    { name: 'train/epochs_run', points: 3 },
    { name: 'policy/entropy_relative', points: 2 },
    { name: 'value/explained_variance', points: 1 },
    { name: 'episode/return', points: 2 },
  ],
  mappings,
  refine,
  ignored: [],
  steps: [
    { theirs: 'train/step', unit: 'steps' },
    { theirs: 'train/iteration', unit: 'iterations' },
  ],
  eventStep: { unit: 'steps' },
  config: { ...settingsRead(), task: ['environment/id', 'environment'] },
  wording: log => (isText(log) ? textWording(log) : classicWording(log)),
  remarks: 'One row an iteration, written after its update; every value is as the registry says.',
};

/** A task's name if it can stand in a command as it is. */
const taskOf = (id: unknown): string =>
  typeof id === 'string' && /^[A-Za-z0-9_./-]{1,80}$/.test(id) ? id : '…';

/** Where settings are: `envs` alone may be of something else. */
function settingsRead(): Partial<Record<DoctorSetting, string[]>> {
  const names: Partial<Record<DoctorSetting, string[]>> = {};
  for (const { keys } of settingTables) {
    for (const [key, { doctor }] of Object.entries(keys)) {
      const read = typeof doctor === 'string' ? doctor : doctor?.reads;
      if (read === undefined || names[read]?.includes(key)) continue;
      names[read] = [...(names[read] ?? []), `config/${key}`, key];
    }
  }
  return names;
}

/** What a change is written with. */
function settingsWritten({ keys }: SettingTable): Partial<Record<DoctorSetting, string>> {
  const names: Partial<Record<DoctorSetting, string>> = {};
  for (const [key, { doctor }] of Object.entries(keys))
    for (const written of typeof doctor === 'string' ? [doctor] : (doctor?.writes ?? []))
      names[written] = key;
  return names;
}

type Pairs = readonly (readonly [name: string, value: SettingChange['value']])[];

const flagsOf = (pairs: Pairs): string =>
  pairs.map(([name, value]) => `--set ${name}=${typed(value)}`).join(' ');

const commandOf = (log: Log, pairs: Pairs): string =>
  `${typedCommand('train')} ${taskOf(log.setting(['environment/id']))} ${flagsOf(pairs)}`;

const classicWording = (log: Log): WordingSpec => ({
  names: settingsWritten(ppoSettings),
  otherwise: {
    rewardScale: () => {
      const sets: Pairs = [['normaliseRewards', true]];
      return { code: commandOf(log, sets), sets };
    },
    refCoef: (_, value) => {
      const sets: Pairs = [
        ['reference', 'frozen'],
        ['klRefCoefInitial', value],
        ['klRefCoefFinal', value],
      ];
      return { code: flagsOf(sets), sets };
    },
  },
  write: pairs => ({ code: commandOf(log, pairs) }),
});

/** GRPO: docs/grpo.md. What bounds an update there is the guard. */
const textWording = (log: Log): WordingSpec => ({
  names: settingsWritten(grpoSettings),
  write: pairs => ({ code: commandOf(log, pairs) }),
});
