/**
 * What a setting is, and a table of them: all that is known of a key, in one place. Resolving, explaining, `keel config`,
 * the JSON schemas, the page's form, what may change in a run and the doctor's names are read from it.
 */
// The small zod, which reading a run loads anyway: the doctor and the page read these tables too.
import * as z from 'zod/mini';
import type { Problem } from '../base/errors.ts';

/** Settings by key, whatever they are. */
export type Values = Readonly<Record<string, unknown>>;

/** When a setting may change: in a live run, on resuming and forking, or not without a new run. */
export type Change = 'live' | 'resume' | 'never';

/** What a setting does nothing without: another one that is, or is not, at a value. */
export interface Needs {
  readonly key: string;
  readonly is?: Value;
  readonly not?: Value;
  /** What to add to make it matter, in words; its key, with the value that it must be at, unless told. */
  readonly add?: string;
  /** The value that switches it off, which contradicts nothing. */
  readonly off?: Value;
}
type Value = string | number | boolean | null;

/** What the doctor calls settings of many trainers (src/doctor/canonical.ts). */
export type DoctorSetting =
  | 'learningRate'
  | 'learningRateSchedule'
  | 'epochs'
  | 'minibatchSize'
  | 'stepsPerRollout'
  | 'envs'
  | 'totalSteps'
  | 'clipRange'
  | 'clipRangeHigh'
  | 'targetKl'
  | 'guard'
  | 'guardP99'
  | 'guardMax'
  | 'entropyCoef'
  | 'logStdInitial'
  | 'logStdMax'
  | 'valueCoef'
  | 'gamma'
  | 'maxGradNorm'
  | 'refCoef'
  | 'groupSize'
  | 'temperature'
  | 'maxCompletionLength';

/** What is known of a setting beside its schema and its doc. */
export interface SettingFacts {
  /** What other trainers call it, without case and separators: words with a space between them. */
  readonly aliases?: string;
  /** `resume` unless told. `live` is read anew for each update, `never` is part of the shape of a run. */
  readonly change?: Change;
  /** For a live setting that some configs have compiled in: whether this one can change to the value. */
  readonly liveIf?: (config: Values, value: unknown) => boolean;
  readonly needs?: Needs;
  /** The actions without which it does nothing: any that are continuous, or all in one box. */
  readonly actions?: 'continuous' | 'one box';
  /** Whether the page offers to change it in a live run: always, or where it is in use. */
  readonly offered?: 'always' | 'in use';
  /** For a list: how one is written. */
  readonly example?: string;
  /** Why its least value is where it is, if that does not speak for itself. */
  readonly reason?: string;
  /** What the doctor reads it as, and what advice of the doctor's is written for it. */
  readonly doctor?:
    | DoctorSetting
    | { readonly reads?: DoctorSetting; readonly writes: readonly DoctorSetting[] };
  /** Says how large a new model is, so that it does nothing where one is loaded. */
  readonly newModel?: true;
}

/** One setting; its schema has the default and the doc inside. */
export interface Setting<V = unknown> extends Omit<SettingFacts, 'aliases'> {
  readonly schema: z.ZodMiniType<V, V | undefined>;
  readonly fallback: V;
  readonly doc: string;
  readonly change: Change;
  readonly aliases: readonly string[];
}

const settingThat =
  (change: Change) =>
  <Schema extends z.ZodMiniType>(
    schema: Schema,
    fallback: z.output<Schema>,
    doc: string,
    { aliases, ...facts }: SettingFacts = {},
  ): Setting<z.output<Schema>> => {
    const optional = z._default(schema, fallback as never) as unknown as Setting<z.output<Schema>>['schema'];
    z.globalRegistry.add(optional, { description: doc });
    return { change, ...facts, aliases: aliases?.split(' ') ?? [], schema: optional, fallback, doc };
  };

/** A setting with these values and this default, which may change on resuming. */
export const setting = settingThat('resume');
/** One that may change in a live run. */
export const live = settingThat('live');
/** One that is part of the shape of a run. */
export const fixed = settingThat('never');

/** Something wrong with a setting, together with others. */
export type Contradiction = Problem & { readonly key: string };

/** The sentence begins with the key. */
export const wrong = (key: string, text: string): Contradiction => ({ key, text: `${key} ${text}` });

type Keys = Readonly<Record<string, Setting>>;
type ConfigFrom<K extends Keys> = { [Key in keyof K]: K[Key]['fallback'] };
type SettingsFrom<K extends Keys> = { readonly [Key in keyof K]?: K[Key]['fallback'] | undefined };

/** What is told of a table beside its settings. */
export interface TableFacts<Config> {
  /** The algorithm, by its name in manifests. */
  readonly name: string;
  /** Of its config files, for editors. */
  readonly title: string;
  /** The file in configs/ with the JSON schema of those, where the package has one. */
  readonly schemaFile?: string;
  /** The command that prints all keys, where there is one. */
  readonly listedBy?: string;
  /** What a config file may name: an environment or a text task. */
  readonly of: 'env' | 'task';
  /** The setting that says how long a run is; `steps` unless told. */
  readonly length?: 'steps' | 'epochs';
  /** What is wrong with values together, each with the key that is to change. */
  contradictions?(config: Config): Iterable<Contradiction>;
  /** Of cloning: what it takes from an environment's preset, which is for training. */
  readonly ofTraining?: readonly string[];
  /** Settings as this version names them, of a run that an earlier one wrote. */
  readonly upgrade?: (saved: Values, run: { readonly status: string; readonly iteration: number }) => Values;
}

/** All settings of an algorithm, in the order in which they are shown. */
export interface SettingTable<Config = Values, Settings = object> extends TableFacts<Config> {
  readonly keys: Keys;
  readonly schema: z.ZodMiniType<Config>;
  /** Every key at its default. */
  readonly defaults: Config;
  /** What a user may write; for its type alone. */
  readonly settings?: Settings;
}

/** A whole config of a table. */
export type ConfigOf<Table extends SettingTable> = Table['defaults'];
/** What a user may write for a table. */
export type SettingsOf<Table extends SettingTable> = NonNullable<Table['settings']>;

/** Makes a table; a setting that depends on one that is not there is a mistake in it. */
export function table<K extends Keys>(
  keys: K,
  facts: TableFacts<ConfigFrom<K>>,
): SettingTable<ConfigFrom<K>, SettingsFrom<K>> {
  for (const [key, { needs }] of Object.entries(keys)) {
    if (needs !== undefined && !Object.hasOwn(keys, needs.key))
      throw new Error(`${facts.name}: ${key} needs ${needs.key}, which is no setting of the table`);
  }
  const of = <V>(part: (setting: Setting) => V): Record<string, V> =>
    Object.fromEntries(Object.entries(keys).map(([key, setting]) => [key, part(setting)]));
  return {
    ...facts,
    keys,
    schema: z.strictObject(of(({ schema }) => schema)) as unknown as z.ZodMiniType<ConfigFrom<K>>,
    defaults: Object.freeze(of(({ fallback }) => fallback)) as ConfigFrom<K>,
  };
}

/** What the life of a run needs of a config: every table has these. A type, which unlike an interface is also `Values`. */
export type RunConfig = {
  readonly steps: number;
  readonly seed: number;
  /** Where it has one. */
  readonly learningRate?: number;
  readonly checkpointEvery: number;
  readonly keepEvery: number;
  /** Where it has them (`evaluationKeys`). */
  readonly evaluateEvery?: number;
  readonly evaluateEpisodes?: number;
  readonly stopAt?: number | null;
  /** Where it has them (`autopilotKeys`). */
  readonly autopilot?: boolean;
  readonly autopilotEvery?: number;
  readonly autopilotWait?: number;
  readonly autopilotSteps?: number;
  readonly autopilotConfidence?: number;
  readonly csv: boolean;
  readonly tensorboard: boolean;
};
