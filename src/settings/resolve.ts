/** From what a user wrote to a whole config, and what of it may change: unknown, wrong, inert and contradicting keys are errors. */
import * as z from 'zod/mini';
import { ConfigError, type Problem, RunError, TrainError } from '../base/errors.ts';
import { type SettingProblem, settingProblem, settingProblems } from './explain.ts';
import { type ConfigOf, type SettingsOf, type SettingTable, type Values, wrong } from './spec.ts';

/** What a caller passed as settings; nothing is none. Types do not hold for who writes JavaScript. */
export function settingsOf(given: unknown): Record<string, unknown> {
  if (given === undefined || given === null) return {};
  if (typeof given !== 'object' || Array.isArray(given))
    throw new ConfigError(
      `config is ${JSON.stringify(given)?.slice(0, 40)}, not keys with values: write { steps: 100_000 }`,
    );
  return { ...given };
}

/** Checks settings and fills in defaults. `preset` is below what was `given`, which alone can be inert. */
export function resolveSettings<Table extends SettingTable>(
  table: Table,
  { preset, given }: { readonly preset?: object | undefined; readonly given?: object | undefined } = {},
): ConfigOf<Table> {
  const below = settingsOf(preset);
  const written = settingsOf(given);
  const settings = { ...below, ...written };
  // In the order in which the user wrote them.
  refuse(settingProblems(table, { ...written, ...settings }, below));
  const config = table.schema.parse(settings);
  refuse([...inertProblems(table, config, Object.keys(written)), ...(table.contradictions?.(config) ?? [])]);
  return config;
}

function refuse(problems: readonly Problem[]): void {
  if (problems.length > 0) throw new ConfigError(problems.map(({ key, text }) => ({ key, text })));
}

/** Each key with its default and what it does, for `keel config` and the documentation. */
export function describeSettings({ keys }: SettingTable): { key: string; fallback: unknown; doc: string }[] {
  return Object.entries(keys).map(([key, { fallback, doc }]) => ({ key, fallback, doc }));
}

/** The same for editors: a JSON schema of config files, which may also name the environment or the task. */
export function settingsJsonSchema({ schema, title, of }: SettingTable): Record<string, unknown> {
  const plain = z.toJSONSchema(schema, { io: 'input' });
  const properties = { $schema: { type: 'string' }, ...subjects[of], ...plain.properties };
  return { ...plain, title, properties };
}

const subjects = {
  env: {
    env: { type: 'string', description: 'An environment by its id, or a file such as ./my-env.ts.' },
    envOptions: { type: 'object', description: "The environment's own options, and maxEpisodeSteps." },
  },
  task: {
    task: { type: 'string', description: 'A text task by its name, or a file such as ./my-task.ts.' },
    taskOptions: { type: 'object', description: "The task's own options." },
  },
} as const;

// ---- what matters --------------------------------------------------------------------------------------------------

/** Keys that do nothing with the others as they are. */
export function inertKeys(table: SettingTable, config: Values): Set<string> {
  return new Set(inertProblems(table, config, Object.keys(table.keys)).map(({ key }) => key));
}

function inertProblems({ keys }: SettingTable, config: Values, written: readonly string[]): SettingProblem[] {
  const asked = new Set(written);
  return Object.entries(keys).flatMap(([key, { needs }]) => {
    if (needs === undefined || !asked.has(key) || config[key] === needs.off) return [];
    const needed = config[needs.key];
    if (needs.is === undefined ? needed !== needs.not : needed === needs.is) return [];
    const { add = needs.is === undefined ? needs.key : `${needs.key} ${needs.is}` } = needs;
    return settingProblem(key, `${key} has no effect without ${add}`, `add that, or remove ${key}`);
  });
}

/** What must be known of a space of actions: its kind, and the spaces that it is made of. */
export interface ActionSpace {
  readonly kind: string;
  readonly spaces?: readonly ActionSpace[] | Readonly<Record<string, ActionSpace>>;
  describe(): string;
}

const actionReasons = {
  continuous: 'only continuous actions have a std',
  'one box': 'only actions that are all in one box remember their noise',
} as const;

/** Keys that do nothing for these actions, each with why. */
export function inertForActions({ keys }: SettingTable, space: ActionSpace): Map<string, string> {
  const kinds = leafKinds(space);
  const has = { continuous: kinds.includes('box'), 'one box': kinds.length === 1 && kinds[0] === 'box' };
  const inert = new Map<string, string>();
  for (const [key, { actions }] of Object.entries(keys))
    if (actions !== undefined && !has[actions]) inert.set(key, actionReasons[actions]);
  return inert;
}

const leafKinds = ({ kind, spaces }: ActionSpace): readonly string[] =>
  spaces === undefined ? [kind] : Object.values(spaces).flatMap(leafKinds);

/**
 * Refuses what a user wrote that would change nothing. Defaults may stay: a file with all keys (`keel config`) is for every
 * environment.
 */
export function refuseInertForActions(table: SettingTable, given: object, space: ActionSpace): void {
  const written = settingsOf(given);
  const actions = space.describe();
  refuse(
    [...inertForActions(table, space)]
      .filter(([key]) => written[key] !== undefined && written[key] !== table.defaults[key])
      .map(([key, why]) => wrong(key, `has no effect on the actions ${actions}: ${why}; remove ${key}`)),
  );
}

/** A config as these actions can use it: a preset, which is for every use of it, may hold what they cannot. */
export function fittingActions<Config>(table: SettingTable, config: Config, space: ActionSpace): Config {
  const inert = [...inertForActions(table, space).keys()];
  return { ...config, ...Object.fromEntries(inert.map(key => [key, table.defaults[key]])) };
}

/** A model that is loaded has its own size. */
export function refuseModelSizes({ keys }: Pick<SettingTable, 'keys'>, given: object): void {
  const written = settingsOf(given);
  const without = 'has no effect with a model to start from, which has its own';
  refuse(
    Object.keys(keys)
      .filter(key => keys[key].newModel && Object.hasOwn(written, key))
      .map(key => wrong(key, `${without}: remove ${key}, or --from`)),
  );
}

/** Of a preset for training, what also says how to clone: the network and the environments, not how it learns. */
export function ofTrainingPreset<Table extends SettingTable>(table: Table, preset: Values) {
  const taken = Object.entries(preset).filter(([key]) => table.ofTraining?.includes(key));
  return Object.fromEntries(taken) as SettingsOf<Table>;
}

// ---- what may change -----------------------------------------------------------------------------------------------

/** The settings of a run as its manifest has them, which must be those of this version. */
export function savedSettings<Table extends SettingTable>(
  table: Table,
  manifest: ManifestSettings,
): ConfigOf<Table> {
  const { id, config, versions } = manifest;
  const { env: _, task: __, from: ___, sources: ____, sourcesBefore: _____, ...settings } = config as Values;
  const current = table.upgrade?.(settings, manifest) ?? settings;
  const [problem] = settingProblems(table, current);
  if (problem !== undefined) {
    throw new RunError(
      `${id} was written by another version of Keel (${versions.keel ?? 'unknown'}): ${problem.wrong}; use that version, or train again`,
      { code: 'other-version' },
    );
  }
  return table.schema.parse(current);
}

/** What of a manifest tells its settings. */
export interface ManifestSettings {
  readonly id: string;
  readonly config: object;
  readonly versions: Readonly<Record<string, string>>;
  readonly status: string;
  readonly iteration: number;
}

/** Sizes cannot change in mid-run, nor in a run that is forked from it. */
export function refuseOtherShape(
  { keys }: SettingTable,
  saved: Values,
  wanted: Values,
  on: 'resuming' | 'forking',
): void {
  for (const [key, { change }] of Object.entries(keys)) {
    const [before, now] = [saved, wanted].map(config => JSON.stringify(config[key]));
    if (change === 'never' && before !== now)
      refuse([wrong(key, `is ${before} in this run and cannot become ${now} on ${on}: start a new run`)]);
  }
}

/** Refuses changes that a live run cannot take: of what is compiled in, and to values that are wrong. */
export function refuseLiveChange(table: SettingTable, config: Values, changes: Values): void {
  for (const [key, value] of Object.entries(changes)) {
    const setting = Object.hasOwn(table.keys, key) ? table.keys[key] : undefined;
    const live = setting?.change === 'live' && (setting.liveIf?.(config, value) ?? true);
    if (!live)
      throw new TrainError(`${key} cannot change in a run that is under way: start a new run with it`);
    const [problem] = settingProblems(table, { [key]: value });
    if (problem !== undefined) throw new TrainError(problem.text);
  }
}
