/** What a dialect is: one trainer's names, what they mean, and how its user would type a change. Data, mostly. */
import type { KlMeaning, KlProxy } from '../canonical.ts';
import type { StepName } from '../counters.ts';
import type { Phrase, SettingChange, Typed } from '../fixes.ts';
import type { KnownConfig, KnownSetting } from '../known-settings.ts';
import type { RawRun } from '../raw-run.ts';
import type { Series } from '../series.ts';

/** A name in the log, or a pattern that the whole name must fit. Prefixes of the dialect are off already. */
export type NamePattern = string | RegExp;

/** What a KL is, without what every mapping has in common. */
export type KlOf = Omit<KlMeaning, 'lag'> & { readonly lag?: number };

/** What one of their names is in the registry. Of two that lead to one id the first in the table wins. */
export interface Mapping {
  readonly theirs: NamePattern;
  /** The registry's id; `$1` stands for the pattern's first group, made safe for an id. */
  readonly id: string;
  /** For a KL: what it is, or how to tell from the log and its settings. */
  readonly kl?: KlOf | ((log: Log) => KlOf);
  /** What their value is multiplied by: -1 where they log -H. */
  readonly times?: number;
  /** Whether it is logged later than the update that it tells of; `refine` moves it back. */
  readonly late?: boolean;
  /** A sentence for the documentation. */
  readonly note?: string;
}

/** A sign that a log is of this trainer: 3 or more points together make it so. */
export interface Sign {
  readonly name: NamePattern;
  readonly points: number;
}

/** The log as a dialect sees it. */
export interface Log {
  readonly raw: RawRun;
  /** By the name without the dialect's prefixes. The first of two that fall together is kept. */
  readonly series: ReadonlyMap<string, NamedSeries>;
  /** What the renaming found. */
  readonly notes: readonly string[];
  /** One setting by any of these names, a name alone or the end of a path; undefined if none is there. */
  setting(names: readonly string[]): string | number | boolean | null | undefined;
}

export interface NamedSeries {
  /** As in the log. */
  readonly theirs: string;
  readonly series: Series;
}

/** What is typed or read where a trainer has no setting of the kind; `sets` are the settings of its own that it names. */
export type Otherwise =
  | string
  | (Typed & { readonly sets?: readonly (readonly [name: string, value: SettingChange['value']])[] });

/** How a change is typed for a trainer. */
export interface WordingSpec {
  /** Their names of settings. One that is missing does not exist in the trainer. */
  readonly names: Partial<Record<KnownSetting, string>>;
  /** Settings that exist in another form, by the new value: as it is typed, and itself. */
  readonly otherwise?: Partial<Record<KnownSetting, (typed: string, value: number | string) => Otherwise>>;
  /** Settings that the algorithm cannot have: nothing is said of them at all. */
  readonly absent?: readonly KnownSetting[];
  /** Puts `name`, `value` pairs into one line of code or command, or into a sentence. */
  write(pairs: readonly (readonly [name: string, value: string])[]): Phrase;
}

/** One trainer. */
export interface Dialect {
  /** A stable name: `stable-baselines3`. */
  readonly name: string;
  readonly title: string;
  readonly kind: 'classic' | 'language-model';
  /** For a trainer that does both. */
  readonly kindOf?: (log: Log) => 'classic' | 'language-model';
  /** Taken off the front of every name, repeatedly: `ray/tune/`. */
  readonly prefixes?: readonly string[];
  /** Other names for some names, after the prefixes are off: RLlib's without the policy that they are of. */
  readonly rename?: (names: readonly string[]) => Renamed;
  readonly signs: readonly Sign[];
  /** Signs in the config: a setting's name that only this trainer has. */
  readonly configSigns?: readonly Sign[];
  readonly mappings: readonly Mapping[];
  /** Names that are understood and not needed. */
  readonly ignored: readonly NamePattern[];
  /** Series that count, best first; in a table one of them is x. */
  readonly steps: readonly StepName[];
  /** Without a counter: a series of lengths of episodes, one a row, whose running sum counts steps. */
  readonly lengths?: string;
  /** What the step of an event file counts, and a series that counts better where there is one. */
  readonly eventStep: { readonly unit: string; readonly better?: readonly StepName[] };
  /** Where the settings are: their names by ours, best first; a path's end will do. */
  readonly config: Partial<Record<keyof KnownConfig, readonly string[]>>;
  readonly wording: WordingSpec | ((log: Log) => WordingSpec);
  /** Shifts late series, adds series that follow from others, or picks among several agents. */
  readonly refine?: Refine;
  /** What tells the KL where none is logged, with the defaults of its bounds and where else to find them. */
  readonly klProxy?: Omit<KlProxy, 'theirs' | 'target'> & {
    readonly settings: Partial<Record<'floor' | 'ceiling' | 'target', readonly string[]>>;
  };
  /** The kind of actions, where other names than entropy and spread tell it. */
  readonly actions?: (log: Log) => 'discrete' | 'continuous' | undefined;
  /** A sentence or two on traps, for the documentation. */
  readonly remarks?: string;
}

export interface Renamed {
  readonly names: ReadonlyMap<string, string>;
  readonly notes: readonly string[];
}

/** A series on its way into the registry's names. */
export interface Draft {
  readonly id: string;
  readonly theirs: string;
  readonly series: Series;
  readonly mapping: Mapping;
}

export interface Refined {
  readonly drafts?: readonly Draft[];
  readonly config?: KnownConfig;
  readonly notes?: readonly string[];
}

/** `x` of the drafts is the run's step already. */
export type Refine = (drafts: readonly Draft[], log: Log, stepOf: (x: number) => number) => Refined;
