/** What is said of a run beside another: settings and series that differ, as data and in words. */
import { amount, whole } from '../../base/numbers.ts';
import { type Verdict, verdictWords } from '../findings.ts';

/** A setting that both logs have, with other values. */
export interface SettingApart {
  readonly name: string;
  readonly value: string;
  /** The other run's name for it, if that is another, and its value. */
  readonly otherName: string;
  readonly other: string;
  /** It says what is learnt, so that levels cannot be compared. */
  readonly isTask?: true;
  /** The first finding asks for the opposite. */
  readonly isAdvisedAgainst?: true;
}

/** A series that goes another way from some step on. */
export interface Parting {
  readonly metric: string;
  readonly theirs: string;
  readonly step: number;
  /** What both are there, smoothed. */
  readonly value: number;
  readonly other: number;
}

/** A run beside another. */
export interface Beside {
  readonly path: string;
  readonly verdict: Verdict;
  readonly settings: readonly SettingApart[];
  /** The first to part at the head. */
  readonly partings: readonly Parting[];
  /** Series that were compared: both logs have them, on the same axis. */
  readonly compared: readonly string[];
}

/** Beside whom, in a sentence. */
export const besideWhom = ({ path, verdict }: Beside): string =>
  `Beside ${path}, which is ${verdictWords(verdict)}`;

export const settingWords = ({ name, value, otherName, other }: SettingApart): string =>
  `\`${name}\` is ${value}${otherName === name ? '' : ` (there \`${otherName}\`)`}; there it is ${other}`;

export const partingWords = ({ theirs, step, value, other }: Parting, unit: string): string =>
  `\`${theirs}\` from ${unit.replace(/s$/, '')} ${whole(step)} on: ${amount(value)}; there ${amount(other)}`;

export const changeWords = ({ name, value, other }: SettingApart): string =>
  `set \`${name}\` to ${other} (now ${value})`;
