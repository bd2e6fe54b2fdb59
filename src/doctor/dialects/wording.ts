/** How a change to a setting is said in the words of a trainer. */
import type { Wording } from '../canonical.ts';
import { type Fix, fixOf, type SettingChange, together } from '../fixes.ts';
import type { KnownConfig, KnownSetting } from '../known-settings.ts';
import type { Dialect, Log, Otherwise, WordingSpec } from './dialect.ts';
import { emptyLog } from './log.ts';

/** A wording from a trainer's names. Some depend on the version, which the log tells; without one, the newest's. */
export function wordingOf(wording: Dialect['wording'], log: Log = emptyLog): Wording {
  const spec = typeof wording === 'function' ? wording(log) : wording;
  return {
    nameOf: setting => spec.names[setting] ?? otherName(spec, setting),
    lacks: setting => spec.absent?.includes(setting) ?? false,
    setting: changes => {
      const named: SettingChange[] = [];
      const others: Fix[] = [];
      for (const [setting, wanted] of Object.entries(changes) as [KnownSetting, number | string][]) {
        const value = typeof wanted === 'string' ? wanted : shortened(wanted);
        const name = spec.names[setting];
        if (name !== undefined) named.push({ setting, name, from: null, value });
        else {
          const said = spec.otherwise?.[setting]?.(typed(value), value);
          if (said !== undefined) others.push(otherFix(setting, said));
        }
      }
      const pairs = named.map(({ name, value }) => [name, typed(value)] as const);
      return together([...(named.length > 0 ? [fixOf(spec.write(pairs), named)] : []), ...others]);
    },
  };
}

/** The name of a setting that is typed in another form than the others. */
function otherName(spec: WordingSpec, setting: KnownSetting): string | undefined {
  const said = spec.otherwise?.[setting]?.(typed(0), 0);
  return typeof said === 'string' ? undefined : said?.sets?.[0]?.[0];
}

function otherFix(setting: KnownSetting, said: Otherwise): Fix {
  if (typeof said === 'string') return fixOf(said);
  const { sets = [], ...phrase } = said;
  return fixOf(
    phrase,
    sets.map(([name, value]) => ({ setting, name, from: null, value })),
  );
}

/** Six digits: more are noise of the arithmetic. */
const shortened = (value: number): number => Number(value.toPrecision(6));

/** A value as a person types it: `1e-4`, `2.5e-4`, `0.015`, `64`. */
export function typed(value: SettingChange['value']): string {
  if (typeof value !== 'number') return String(value);
  const short = shortened(value);
  const size = Math.abs(short);
  if (size !== 0 && (size < 1e-3 || size >= 1e9)) return short.toExponential().replace('e+', 'e');
  return String(short);
}

/** Writers that several trainers share. A call: `PPO(..., learning_rate=1e-4)`; `rest` stands for what else is there. */
export const call =
  (head: string, rest = '..., '): WordingSpec['write'] =>
  pairs => ({
    code: `${head}(${rest}${pairs.map(([name, value]) => `${name}=${python(value)}`).join(', ')})`,
  });

/** A value in Python: what is no number, list or constant is a string. */
const python = (value: string): string =>
  /^(?:[-+.\d[(].*|True|False|None)$/.test(value) ? value : JSON.stringify(value);

export const flags: WordingSpec['write'] = pairs => ({
  code: pairs.map(([name, value]) => `${name} ${value}`).join(' '),
});

export const assignments: WordingSpec['write'] = pairs => ({
  code: pairs.map(([name, value]) => `${name}=${value}`).join(' '),
});

export const yaml: WordingSpec['write'] = pairs => ({
  code: pairs.map(([name, value]) => `${name}: ${value}`).join(', '),
});

/**
 * How settings are typed, by where they are read: the last part of the first name that a config has for each. `as` puts
 * what a trainer's users write around it; `without` are those that are read only, or typed in another form; `and` are
 * those that are typed and cannot be read, or have another name.
 */
export function namesIn(
  config: Dialect['config'],
  options: {
    readonly as?: (leaf: string) => string;
    readonly without?: readonly (keyof KnownConfig)[];
    readonly and?: WordingSpec['names'];
  } = {},
): WordingSpec['names'] {
  const names: Partial<Record<KnownSetting, string>> = {};
  for (const [setting, reads] of Object.entries(config) as [KnownSetting, readonly string[]][]) {
    const leaf = reads[0]?.split(/[/.]/).at(-1);
    if (leaf !== undefined && options.without?.includes(setting) !== true)
      names[setting] = options.as?.(leaf) ?? leaf;
  }
  return { ...names, ...options.and };
}
