/**
 * What stands in a line of Optuna's journal file: operation codes, distributions and Python's JSON, as JournalStorage of
 * Optuna 3.1 writes and reads them.
 */
import { show } from '../base/errors.ts';
import { jsonOf } from '../base/json.ts';
import { decodeNumber } from '../metrics/row.ts';
import type { Direction, Domain, ParamValue, TrialState } from './schema.ts';

/** `op_code` of a line. */
export const operations = {
  createStudy: 0,
  deleteStudy: 1,
  setStudyUserAttr: 2,
  setStudySystemAttr: 3,
  createTrial: 4,
  setTrialParam: 5,
  setTrialStateValues: 6,
  setTrialIntermediateValue: 7,
  setTrialUserAttr: 8,
  setTrialSystemAttr: 9,
} as const;

/** Optuna's TrialState by its number. */
const states: readonly TrialState[] = ['running', 'complete', 'pruned', 'failed', 'waiting'];
export const stateNumber = (state: TrialState): number => states.indexOf(state);
export const stateOf = (number: unknown): TrialState | undefined =>
  typeof number === 'number' ? states[number] : undefined;
export const isOver = (state: TrialState): boolean => state !== 'running' && state !== 'waiting';

/** Optuna's StudyDirection by its number; 0 is not set. */
export const directionNumber = (direction: Direction): number => (direction === 'minimize' ? 1 : 2);

// ---- JSON as Python writes it --------------------------------------------------------------------------------------

/**
 * A value as Python's `json` reads it back: NaN and infinities stand bare, -0 keeps its sign. `as` floats writes whole numbers
 * with a point, without which Python takes them for integers.
 */
export function pythonJson(value: unknown, as: 'floats' | 'numbers' = 'numbers'): string {
  if (typeof value === 'number') {
    if (Object.is(value, -0)) return '-0.0';
    const digits = String(value);
    return as === 'floats' && /^-?\d+$/.test(digits) ? `${digits}.0` : digits;
  }
  if (Array.isArray(value)) return `[${value.map(item => pythonJson(item, as)).join(', ')}]`;
  if (typeof value === 'object' && value !== null) {
    const members = Object.entries(value)
      .filter(([, member]) => member !== undefined)
      .map(([key, member]) => `${JSON.stringify(key)}: ${pythonJson(member, as)}`);
    return `{${members.join(', ')}}`;
  }
  return JSON.stringify(value ?? null);
}

/** Texts, whole, and what Python writes for numbers that JSON has not. */
const textsAndBare = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\bInfinity\b|\bNaN\b/g;

/** A value from a line; numbers that are not finite become the texts "NaN" and "±Infinity", as `decodeNumber` takes them. */
export function fromPythonJson(text: string): unknown {
  try {
    return jsonOf(text);
  } catch (error) {
    if (!(error instanceof SyntaxError) || !/NaN|Infinity/.test(text)) throw error;
    return jsonOf(text.replaceAll(textsAndBare, found => (found.startsWith('"') ? found : `"${found}"`)));
  }
}

// ---- distributions -------------------------------------------------------------------------------------------------

/** A value as a choice of Optuna's may be: a list stands as its JSON text. */
const asChoice = (value: ParamValue): string | number | boolean | null =>
  typeof value === 'object' && value !== null ? JSON.stringify(value) : (value as string);

/** `distribution_to_json` of a domain. */
export function distributionJson(domain: Domain): string {
  switch (domain.kind) {
    case 'choice':
      return `{"name": "CategoricalDistribution", "attributes": {"choices": ${pythonJson(domain.values.map(asChoice))}}}`;
    case 'float': {
      const { step = null, low, high, log } = domain;
      return `{"name": "FloatDistribution", "attributes": ${pythonJson({ step, low, high, log }, 'floats')}}`;
    }
    case 'int': {
      const { log, step, low, high } = domain;
      return `{"name": "IntDistribution", "attributes": ${pythonJson({ log, step, low, high })}}`;
    }
    default:
      return domain satisfies never;
  }
}

/** A number as Optuna keeps a value of a domain: a choice by its place. Undefined where the domain does not have it. */
export function internalOf(domain: Domain, value: ParamValue): number | undefined {
  if (domain.kind === 'choice') {
    const wanted = JSON.stringify(value);
    const at = domain.values.findIndex(one => JSON.stringify(one) === wanted);
    return at < 0 ? undefined : at;
  }
  const fits = domain.kind === 'int' ? Number.isSafeInteger(value) : Number.isFinite(value);
  return fits ? (value as number) : undefined;
}

/**
 * The value that a number stands for. `domain` is what Keel knows of the axis: it tells a list from its text. What is wrong is
 * an error that says what.
 */
export function externalOf(distribution: unknown, internal: unknown, domain: Domain | undefined): ParamValue {
  if (typeof distribution !== 'string') throw new TypeError(`its distribution is ${show(distribution)}`);
  const number = decodeNumber(internal);
  if (number === undefined || !Number.isFinite(number)) throw new TypeError(`its value is ${show(internal)}`);
  const parsed = fromPythonJson(distribution) as Record<string, unknown> | null;
  const kind = String(parsed?.name ?? parsed?.type);
  if (/^(Float|Uniform|LogUniform|DiscreteUniform)Distribution$|^float$/.test(kind)) return number;
  if (/^Int(Uniform|LogUniform)?Distribution$|^int$/.test(kind)) return Math.trunc(number);
  if (!/^CategoricalDistribution$|^categorical$/.test(kind))
    throw new TypeError(`its distribution is ${show(kind)}, which is not one of Optuna's`);
  const { choices } = (parsed?.attributes ?? parsed) as { choices?: unknown };
  const place = Math.trunc(number);
  if (!Array.isArray(choices) || !(place >= 0 && place < choices.length))
    throw new TypeError(`its value is choice ${show(internal)} of ${show(choices)}`);
  const choice: unknown = choices[place];
  if (domain?.kind === 'choice' && domain.values.length === choices.length) {
    const ours = domain.values[place];
    if (asChoice(ours) === choice) return ours;
  }
  if (typeof choice === 'object' && choice !== null) throw new TypeError(`its choice is ${show(choice)}`);
  return choice as ParamValue;
}

// ---- times ---------------------------------------------------------------------------------------------------------

/** Local time without a zone, as Python's `isoformat(timespec="microseconds")` has it. */
export function localIso(ms: number): string {
  const at = new Date(ms);
  const two = (value: number): string => String(value).padStart(2, '0');
  const day = `${String(at.getFullYear()).padStart(4, '0')}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  const clock = `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
  return `${day}T${clock}.${String(at.getMilliseconds()).padStart(3, '0')}000`;
}

/** The time that Optuna wrote; null if it is none. */
export function timeOf(iso: unknown): number | null {
  if (typeof iso !== 'string' || !/^\d{4}-\d\d-\d\dT[\d:.]+$/.test(iso)) return null;
  // More digits than milliseconds are not in the language's own format.
  const ms = Date.parse(iso.replace(/(\.\d{3})\d+$/, '$1'));
  return Number.isNaN(ms) ? null : ms;
}
