/** What a rule is. One file a rule, in the folder of its family; `all.ts` lists them. */
import type { CanonicalRun } from '../canonical.ts';
import type { Finding, RootCause } from '../findings.ts';
import type { Signals } from './signals.ts';

/** What `keel doctor --explain <code>` prints and the documentation is made of. Plain sentences. */
export interface RuleText {
  /** What is going on when it fires. */
  readonly means: string;
  /** What it looks for, with the numbers. */
  readonly seen: string;
  /** What to do. */
  readonly todo: string;
  /** When it must stay silent, and why. */
  readonly silent: string;
  /** Threads and papers in which this was met. */
  readonly references: readonly string[];
}

/** A number of a run beside the limit of a rule, from which on the rule may speak. */
export interface Gauge {
  /** What it is, in words: `the clip range`. */
  readonly of: string;
  readonly at: number;
  readonly value: number;
  /** The rule speaks above the limit, or below it. */
  readonly speaks: 'above' | 'below';
}

/** Something that can be wrong with a run: what it looks at, and what it says. */
export interface Rule {
  /** Stable: people write it into scripts. */
  readonly code: string;
  readonly title: string;
  /** Metric ids, in the registry's names. */
  readonly looksAt: readonly string[];
  /** Which causes it may argue for. */
  readonly causes: readonly RootCause[];
  readonly text: RuleText;
  /** How far the run is from the limits of the rule, where single numbers tell that; those that the log lacks are left out. */
  gauges?(run: CanonicalRun, signals: Signals): readonly (Gauge | undefined)[];
  /** What it sees in this run, given what the rules before it found. Never throws, whatever is in the series. */
  check(run: CanonicalRun, signals: Signals, found: readonly Finding[]): readonly Finding[];
}
