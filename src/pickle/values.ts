/**
 * What a pickle holds, as data.
 *
 * Lists and tuples are arrays, dicts are Maps, sets are Sets; numbers, text, bytes, None and booleans are themselves. All
 * else that a pickle can name, a class, a function, an object made by calling one, is an {@link Inert} value that says its
 * name and what it was given. Nothing is ever called, looked up or imported.
 */
import { KeelError, show } from '../base/errors.ts';

/** A file from Python that cannot be read, or has something else than what is needed. One line: what, the limit, the remedy. */
export class PickleError extends KeelError {
  override name = 'PickleError';
}

/** A class or a function by its name: `numpy.dtype`. */
export interface GlobalName {
  readonly inert: 'global';
  readonly name: string;
}

/** What would have come of calling something: the callee, its arguments, and what was put into it afterwards. */
export interface InertCall {
  readonly inert: 'call';
  readonly callee: PickleValue;
  readonly args: readonly PickleValue[];
  /** What `__setstate__` would have got, last. */
  state?: PickleValue;
  /** Items that would have been set, as in an OrderedDict. */
  readonly entries: Map<PickleValue, PickleValue>;
  /** Items that would have been appended, as in a deque. */
  readonly items: PickleValue[];
}

/** Something that lies outside of the pickle, by what the program calls it: a storage of tensors. */
export interface PersistentId {
  readonly inert: 'persistent';
  readonly id: PickleValue;
}

/** What nothing calls. */
export type Inert = GlobalName | InertCall | PersistentId;

export type PickleValue =
  | null
  | boolean
  | number
  | bigint
  | string
  | Uint8Array
  | PickleValue[]
  | Map<PickleValue, PickleValue>
  | Set<PickleValue>
  | Inert;

const isInert = (value: PickleValue | undefined): value is Inert =>
  typeof value === 'object' && value !== null && 'inert' in value;

/** The name of a class or a function; undefined for anything else. */
export const globalName = (value: PickleValue | undefined): string | undefined =>
  isInert(value) && value.inert === 'global' ? value.name : undefined;

/** A call of something that has a name, such as `numpy.dtype(…)`; an object's class is what was called. */
export function callOf(value: PickleValue | undefined): (InertCall & { readonly name: string }) | undefined {
  if (!isInert(value) || value.inert !== 'call') return undefined;
  const name = globalName(value.callee);
  return name === undefined ? undefined : { ...value, name };
}

/** A storage's id and the like. */
export const persistentIdOf = (value: PickleValue | undefined): PickleValue | undefined =>
  isInert(value) && value.inert === 'persistent' ? value.id : undefined;

/** A dict, or a call that makes one (`OrderedDict`); undefined for anything else. */
export function dictOf(value: PickleValue | undefined): ReadonlyMap<PickleValue, PickleValue> | undefined {
  if (value instanceof Map) return value;
  const call = callOf(value);
  if (call?.name !== 'collections.OrderedDict' && call?.name !== 'collections.defaultdict') return undefined;
  const [pairs] = call.args;
  // Old protocols give an OrderedDict its items as a list of pairs.
  if (call.entries.size > 0 || !Array.isArray(pairs)) return call.entries;
  return new Map(
    pairs.flatMap(pair => (Array.isArray(pair) && pair.length === 2 ? [[pair[0], pair[1]] as const] : [])),
  );
}

/** The attributes of an object: what its state says. */
export function attributesOf(
  value: PickleValue | undefined,
): ReadonlyMap<PickleValue, PickleValue> | undefined {
  const state = callOf(value)?.state;
  if (state === undefined) return undefined;
  // With slots it is a pair: the attributes, then the slots.
  if (Array.isArray(state) && state.length === 2) return dictOf(state[0]) ?? dictOf(state[1]);
  return dictOf(state);
}

/** What a value is, in a few words, for errors: which needed value is not there is said by its name. */
export function describe(value: PickleValue | undefined): string {
  if (value === undefined) return 'missing';
  if (value === null) return 'None';
  if (value instanceof Uint8Array) return `${value.length} bytes`;
  if (Array.isArray(value)) return `a list of ${value.length}`;
  if (value instanceof Map) return `a dict of ${value.size}`;
  if (value instanceof Set) return `a set of ${value.size}`;
  if (!isInert(value)) return show(value);
  switch (value.inert) {
    case 'global':
      return `${shortened(value.name)}, which is not run`;
    case 'call':
      return `what ${shortened(globalName(value.callee) ?? 'a function')} makes, which is not run`;
    case 'persistent':
      return 'something outside of the pickle';
    default:
      return value satisfies never;
  }
}

const shortened = (name: string): string => (name.length > 80 ? `${name.slice(0, 79)}…` : name);
