/** What is wrong with settings, in words: unknown keys with what was meant, values with what is expected. */
import type * as z from 'zod/mini';
import { nearest } from '../base/nearest.ts';
import { programName } from '../base/typed.ts';
import type { Setting, SettingTable, Values } from './spec.ts';

/** Something wrong with one setting. */
export interface SettingProblem {
  readonly key: string;
  readonly text: string;
  /** The same without the remedy. */
  readonly wrong: string;
}

export const settingProblem = (key: string, wrong: string, remedy: string): SettingProblem => ({
  key,
  wrong,
  text: `${wrong}: ${remedy}`,
});

const plain = (word: string): string => word.toLowerCase().replaceAll(/[-_.\s]/g, '');

/** The key that was meant: by another trainer's name for it, in other letters (`learning_rate`), or misspelt. */
export function meantKey(table: SettingTable, word: string): string | undefined {
  const keys = Object.keys(table.keys);
  const wanted = plain(word);
  return (
    keys.find(key => plain(key) === wanted) ??
    keys.find(key => table.keys[key].aliases.includes(wanted)) ??
    nearest(word, keys)
  );
}

/**
 * Unknown keys and values of a wrong kind, one by one. What keys mean together is checked after. `below` is what counts
 * without them: a preset, or the settings of the run that goes on.
 */
export function settingProblems(table: SettingTable, settings: Values, below: Values = {}): SettingProblem[] {
  return Object.entries(settings).flatMap(([key, value]) => {
    if (!Object.hasOwn(table.keys, key)) {
      const meant = meantKey(table, key);
      const remedy = meant === undefined ? whichKeys(table) : `did you mean ${meant}?`;
      return settingProblem(key, `${key} is not a config key`, remedy);
    }
    const setting = table.keys[key];
    const { error } = setting.schema.safeParse(value);
    return (error?.issues ?? []).map(issue => {
      const given = issue.path.reduce<unknown>(
        (at, part) => (at as Record<PropertyKey, unknown>)?.[part],
        value,
      );
      const remedy =
        Object.hasOwn(below, key) && below[key] !== value
          ? `without this ${key} is ${shown(below[key])}`
          : `the default ${issue.path.length > 0 ? `of ${key} ` : ''}is ${shown(table.defaults[key])}`;
      const path = [key, ...issue.path].join('.');
      return settingProblem(key, `${path} is ${shown(given)}, ${expectation(issue, setting)}`, remedy);
    });
  });
}

/** Where all keys of a table are told: by a command, or, of an algorithm that is not Keel's own, here. */
const whichKeys = ({ keys, listedBy }: SettingTable): string =>
  listedBy === undefined
    ? `there are ${Object.keys(keys).join(', ')}`
    : `${programName()} ${listedBy} lists them`;

/** "not a number", "below its least value 1". */
function expectation(issue: z.core.$ZodIssue, { schema, reason, example }: Setting): string {
  const orNull = schema.safeParse(null).success ? ' or null' : '';
  const why = reason === undefined ? '' : ` (${reason})`;
  switch (issue.code) {
    case 'invalid_type':
      return `not ${kinds[issue.expected] ?? issue.expected}${issue.expected === 'array' && example ? ` such as ${example}` : ''}${orNull}`;
    case 'invalid_value':
      return `not one of ${issue.values.map(String).join(', ')}${orNull}`;
    case 'too_small':
      if (issue.origin === 'array') return `which needs at least ${issue.minimum} of them${why}`;
      return `${issue.inclusive === false ? 'not above' : 'below its least value'} ${issue.minimum}${why}`;
    case 'too_big':
      return issue.inclusive === false
        ? `not below ${issue.maximum}`
        : `above its largest value ${issue.maximum}`;
    default:
      return `which does not fit (${issue.message})`;
  }
}

const kinds: Readonly<Record<string, string>> = {
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  string: 'a text',
  object: 'keys with values',
};

/** A value in a message: as JSON, one line, short. */
function shown(value: unknown): string {
  const text = typeof value === 'number' ? String(value) : (JSON.stringify(value) ?? String(value));
  return text.length > 60 ? `${text.slice(0, 57)}...` : text;
}
