/** How a change to a setting is said in the words of a trainer. */
import type { KnownConfig, Wording } from '../canonical.ts';
import type { Dialect, Log, WordingSpec } from './dialect.ts';
import { emptyLog } from './log.ts';

type Setting = keyof KnownConfig;

/** A wording from a trainer's names. Some depend on the version, which the log tells; without one, the newest's. */
export function wordingOf(wording: Dialect['wording'], log: Log = emptyLog): Wording {
  const spec = typeof wording === 'function' ? wording(log) : wording;
  return {
    nameOf: setting => spec.names[setting],
    lacks: setting => spec.absent?.includes(setting) ?? false,
    setting: changes => {
      const pairs: [string, string][] = [];
      const sentences: string[] = [];
      for (const [setting, value] of Object.entries(changes) as [Setting, number | string][]) {
        const text = typed(value);
        const name = spec.names[setting];
        if (name !== undefined) pairs.push([name, text]);
        else {
          const sentence = spec.otherwise?.[setting]?.(text);
          if (sentence !== undefined) sentences.push(sentence);
        }
      }
      return [...(pairs.length > 0 ? [spec.write(pairs)] : []), ...sentences].join('; ');
    },
  };
}

/** A number as a person types it: `1e-4`, `2.5e-4`, `0.015`, `64`. */
export function typed(value: number | string): string {
  if (typeof value === 'string') return value;
  const short = Number(value.toPrecision(6));
  const size = Math.abs(short);
  if (size !== 0 && (size < 1e-3 || size >= 1e9)) return short.toExponential().replace('e+', 'e');
  return String(short);
}

/** Writers that several trainers share. A call: `PPO(..., learning_rate=1e-4)`; `rest` stands for what else is there. */
export const call =
  (head: string, rest = '..., '): WordingSpec['write'] =>
  pairs =>
    `${head}(${rest}${pairs.map(([name, value]) => `${name}=${python(value)}`).join(', ')})`;

/** A value in Python: what is no number, list or constant is a string. */
const python = (value: string): string =>
  /^(?:[-+.\d[(].*|True|False|None)$/.test(value) ? value : JSON.stringify(value);

export const flags: WordingSpec['write'] = pairs =>
  pairs.map(([name, value]) => `${name} ${value}`).join(' ');

export const assignments: WordingSpec['write'] = pairs =>
  pairs.map(([name, value]) => `${name}=${value}`).join(' ');

export const yaml: WordingSpec['write'] = pairs =>
  pairs.map(([name, value]) => `${name}: ${value}`).join(', ');
