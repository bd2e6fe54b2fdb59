/**
 * A search space from what a study file says:
 *
 * ```yaml
 * learningRate: { log: [1e-5, 1e-2] }
 * gamma: [0.98, 0.99, 0.995]
 * epochs: { range: [3, 20], step: 1 }
 * adaptiveRate: [true, false]
 * adaptiveRateTarget: { log: [1e-3, 1e-1], when: { adaptiveRate: true } }
 * ```
 */
import { ConfigError, type Problem, show } from '../base/errors.ts';
import { didYouMean } from '../base/nearest.ts';
import { settingProblems } from '../settings/explain.ts';
import type { SettingTable } from '../settings/spec.ts';
import { maxAxes, maxChoices } from './checks.ts';
import type { Axis, Domain, ParamValue, Space } from './schema.ts';
import { has, lastOnGrid, onGrid } from './space.ts';

const axisKeys = ['log', 'range', 'values', 'step', 'int', 'when'] as const;

/** The axes of a file's `space`, those that depend on another after it; all that is wrong is told at once. */
export function parseSpace(given: unknown, table: SettingTable): Space {
  const { space, problems } = checkSpace(given, table);
  if (problems.length > 0) throw new ConfigError(problems);
  return space;
}

/** The same, with what is wrong as data, for who has more to check. */
export function checkSpace(
  given: unknown,
  table: SettingTable,
): { readonly space: Space; readonly problems: readonly Problem[] } {
  if (given === undefined || given === null) return { space: [], problems: [] };
  if (!isObject(given)) {
    const text = `space is ${show(given)}, not settings with their values: write learningRate: { log: [1e-5, 1e-2] }`;
    return { space: [], problems: [{ key: 'space', text }] };
  }
  const entries = Object.entries(given);
  if (entries.length > maxAxes) {
    const text = `space has ${entries.length} axes, at most ${maxAxes}: search fewer settings`;
    return { space: [], problems: [{ key: 'space', text }] };
  }
  const problems: Problem[] = [];
  const axes = new Map<string, Axis>();
  for (const [key, value] of entries) {
    const say = (text: string): undefined => {
      // Of a part of a list, the text begins with the part: hidden.0.
      problems.push({ key: `space.${key}`, text: `space.${key}${text.startsWith('.') ? '' : ' '}${text}` });
    };
    const axis = axisOf(key, value, table, say);
    if (axis !== undefined) axes.set(key, axis);
  }
  // A name that is wrong has been told; what depends on it is not wrong itself.
  const names = entries.map(([key]) => key);
  for (const { key, when } of axes.values()) {
    if (when === undefined) continue;
    const say = (text: string) => problems.push({ key: `space.${key}`, text: `space.${key} ${text}` });
    const other = axes.get(when.key);
    if (!names.includes(when.key)) {
      const meant =
        didYouMean(
          when.key,
          names.filter(name => name !== key),
        ) || 'add it to the space, or remove the condition';
      say(`depends on ${when.key}, which is not an axis: ${meant}`);
    } else if (other !== undefined) {
      const never = when.in.filter(value => !has(other.domain, value));
      if (never.length > 0)
        say(
          `depends on ${when.key} being ${never.map(show).join(' or ')}, which it never is: ${described(other)}`,
        );
    }
  }
  const { ordered, inCycle } = inOrder(axes);
  if (inCycle.length > 0)
    problems.push({
      key: `space.${inCycle[0]}`,
      text: `space: ${inCycle.join(', ')} depend on each other in a circle: remove one of their conditions`,
    });
  return { space: ordered, problems };
}

function axisOf(
  key: string,
  value: unknown,
  table: SettingTable,
  say: (text: string) => undefined,
): Axis | undefined {
  const ofSubject = /^(env|task)Options\.(.+)$/.exec(key);
  if (key === 'seed')
    return say('cannot be searched: every trial is repeated over the seeds of the study; write seeds: 0..2');
  if (ofSubject === null && (key === 'steps' || key === table.length))
    return say(`cannot be searched: trials of other lengths do not compare; write it under config`);
  if (ofSubject !== null && ofSubject[1] !== table.of)
    return say(
      `is of ${/^env/.test(key) ? 'an environment' : 'a task'}: write ${table.of}Options.${ofSubject[2]}`,
    );
  const isSetting = Object.hasOwn(table.keys, key);
  if (ofSubject === null && !isSetting) {
    const [problem] = settingProblems(table, { [key]: null });
    return say(problem.text.slice(key.length).trimStart());
  }
  const domain = domainOf(value, say, isSetting ? v => fits(table, key, v) : undefined);
  if (domain === undefined) return undefined;
  if (isSetting) {
    const wrongOf = (values: readonly unknown[]) =>
      values.flatMap(one => settingProblems(table, { [key]: one }));
    const atEnds = wrongOf(domain.kind === 'choice' ? domain.values : [domain.low, domain.high]);
    // Both ends may be whole and what lies between is not.
    const wrong = atEnds.length > 0 || domain.kind === 'choice' ? atEnds : wrongOf([between(domain)]);
    // The key is said before.
    for (const text of new Set(wrong.map(problem => problem.text))) say(text.slice(key.length).trimStart());
    if (wrong.length > 0) return undefined;
  }
  const when = isObject(value) && value.when !== undefined ? whenOf(key, value.when, say) : undefined;
  return { key, domain, ...(when && { when }) };
}

/** Whether a setting takes a value. */
const fits = (table: SettingTable, key: string, value: unknown): boolean =>
  settingProblems(table, { [key]: value }).length === 0;

function domainOf(
  given: unknown,
  say: (text: string) => undefined,
  takes: ((value: unknown) => boolean) | undefined,
): Domain | undefined {
  if (Array.isArray(given)) return choiceOf(given, say);
  if (!isObject(given))
    return say(
      `is ${show(given)}, not values to search: write [a, b], { range: [low, high] } or { log: [low, high] }`,
    );
  for (const name of Object.keys(given)) {
    if ((axisKeys as readonly string[]).includes(name)) continue;
    return say(`has ${show(name)}: ${didYouMean(name, axisKeys) || `there are ${axisKeys.join(', ')}`}`);
  }
  const { log, range, values, step, int } = given;
  const said = Object.entries({ log, range, values }).filter(([, value]) => value !== undefined);
  if (said.length !== 1)
    return say(
      `has ${said.length === 0 ? 'no values' : said.map(([name]) => name).join(' and ')}: write one of values: [a, b], range: [low, high] and log: [low, high]`,
    );
  if (int !== undefined && typeof int !== 'boolean')
    return say(`has int ${show(int)}: write true, or leave it out`);
  if (values !== undefined) {
    if (step !== undefined || int !== undefined)
      return say('has a list and a step: a list takes neither step nor int');
    return Array.isArray(values) ? choiceOf(values, say) : say(`has values ${show(values)}: write a list`);
  }
  const pair: unknown = log ?? range;
  const isLog = log !== undefined;
  const name = isLog ? 'log' : 'range';
  if (!Array.isArray(pair) || pair.length !== 2 || !pair.every(isNumber))
    return say(`has ${name} ${show(pair)}: write ${name}: [low, high] with two numbers`);
  const [low, high] = pair as [number, number];
  if (!(low < high))
    return say(
      `has ${name} [${low}, ${high}], which is empty: write the lower number first, or a list with one value`,
    );
  if (isLog && low <= 0)
    return say(`has log [${low}, ${high}]: there is no logarithm of ${low}; begin above 0, or use range`);
  if (step !== undefined && !(isNumber(step) && step > 0))
    return say(`has step ${show(step)}: write a number above 0`);
  if (step !== undefined && step > high - low)
    return say(`has step ${step} in [${low}, ${high}], which has no second value: take a smaller step`);
  if (isLog && step !== undefined)
    return say('has log and step: a logarithmic range has no even steps; remove one');
  const whole = [low, high, step ?? 1].every(Number.isSafeInteger);
  if (int === true && !whole)
    return say(
      `is to be whole numbers from ${low} to ${high}${step === undefined ? '' : ` by ${step}`}: write whole ones`,
    );
  // What a setting that takes fractions is searched over are fractions, whatever the ends look like.
  const takesHalves = takes === undefined || takes(low + 0.5);
  if (int === true || (int === undefined && whole && !takesHalves))
    return {
      kind: 'int',
      low,
      high: lastOnGrid(low, high, (step as number) ?? 1),
      log: isLog,
      step: (step as number) ?? 1,
    };
  return {
    kind: 'float',
    low,
    high: step === undefined ? high : lastOnGrid(low, high, step as number),
    log: isLog,
    ...(step !== undefined && { step: step as number }),
  };
}

function choiceOf(values: readonly unknown[], say: (text: string) => undefined): Domain | undefined {
  if (values.length === 0) return say('has an empty list: write the values to try');
  if (values.length > maxChoices)
    return say(`has ${values.length} values, at most ${maxChoices}: use a range`);
  const wrong = values.find(value => !isParam(value));
  if (wrong !== undefined)
    return say(`has the value ${show(wrong)}: use numbers, texts, true, false, null and lists of them`);
  const seen = new Set<string>();
  for (const value of values) {
    const text = JSON.stringify(value);
    if (seen.has(text)) return say(`has ${show(value)} twice: write each value once`);
    seen.add(text);
  }
  return { kind: 'choice', values: values as ParamValue[] };
}

function whenOf(key: string, given: unknown, say: (text: string) => undefined): Axis['when'] {
  const entries = isObject(given) ? Object.entries(given) : [];
  if (entries.length !== 1)
    return say(`has the condition ${show(given)}: write when: { key: value }, with one key`);
  const [[other, value]] = entries;
  if (other === key) return say('depends on itself: remove the condition');
  const values = Array.isArray(value) ? value : [value];
  if (values.length === 0 || values.length > maxChoices || !values.every(isParam))
    return say(`depends on ${other} being ${show(value)}: write a value or a list of values`);
  return { key: other, in: values };
}

/** Axes so that each comes after what it depends on, otherwise as they were written; and those that depend in a circle. */
function inOrder(axes: ReadonlyMap<string, Axis>): { ordered: Axis[]; inCycle: string[] } {
  const ordered: Axis[] = [];
  const placed = new Set<string>();
  let left = [...axes.values()];
  for (;;) {
    const ready = left.filter(
      ({ when }) => when === undefined || placed.has(when.key) || !axes.has(when.key),
    );
    if (ready.length === 0) return { ordered, inCycle: left.map(({ key }) => key) };
    // One after another, so that the order of the file is kept where it can be.
    const [next] = ready;
    ordered.push(next);
    placed.add(next.key);
    left = left.filter(axis => axis !== next);
    if (left.length === 0) return { ordered, inCycle: [] };
  }
}

/** A value that is not at an end, and not whole where values need not be. */
function between(domain: Exclude<Domain, { kind: 'choice' }>): number {
  const { low, high, step } = domain;
  return step === undefined ? low + (high - low) / Math.E : onGrid(low, step, 1);
}

/** What an axis may be, in a message. */
function described({ key, domain }: Axis): string {
  if (domain.kind === 'choice') return `${key} is one of ${domain.values.slice(0, 6).map(show).join(', ')}`;
  return `${key} is from ${domain.low} to ${domain.high}${domain.step === undefined ? '' : ` by ${domain.step}`}`;
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const isNumber = (value: unknown): value is number => Number.isFinite(value);
const isScalar = (value: unknown): boolean =>
  value === null || typeof value === 'string' || typeof value === 'boolean' || isNumber(value);
const isParam = (value: unknown): value is ParamValue =>
  isScalar(value) || (Array.isArray(value) && value.length <= 1000 && value.every(isScalar));
