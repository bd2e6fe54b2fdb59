/**
 * Spaces: which numbers an observation or an action may hold, after Gymnasium's.
 *
 * Every value is flat: a row of `flatSize` numbers in a Float32Array. Layouts:
 *
 * | space | numbers | layout |
 * |---|---|---|
 * | `box({ shape: [2, 3], … })` | 6 | row-major |
 * | `discrete(3)` | 1 | the index 0, 1 or 2 |
 * | `multiDiscrete([3, 5])` | 2 | an index each |
 * | `multiBinary(4)` | 4 | 0 or 1 each |
 * | `tuple([a, b])` | a's + b's | a, then b |
 * | `dict({ move: a, task: b })` | a's + b's | in the order written (Gymnasium sorts the names) |
 */
import type { Rng } from '../random/rng.ts';
import { fail, show } from './errors.ts';
import { type Json, numberFromJson, numberToJson } from './plain-data.ts';

/** What the numbers of a box stand for; they travel as float32 whichever it is. */
export type BoxDType = 'float32' | 'int32' | 'uint8';

interface SpaceMethods {
  /** Numbers in one value. */
  readonly flatSize: number;
  /** Which number from `start` on is not allowed at its place, or -1. NaN never is. Allocates nothing. */
  firstOutside(values: ArrayLike<number>, start?: number): number;
  /** Whether the row has the right length and every number is allowed. */
  contains(values: ArrayLike<number>): boolean;
  /** Writes a random value: uniform where it is bounded, normal or exponential (Gymnasium's choice) where it is not. */
  sample(rng: Rng, out: Float32Array, start?: number): void;
  /**
   * Moves each number of a box to the nearest allowed one, in place, in as many rows from `start` on, one unless told.
   * Categories stay: their order means nothing. Allocates nothing.
   */
  clip(values: Float32Array, start?: number, rows?: number): void;
  /** As one would write it, short, for messages. */
  describe(): string;
  toJSON(): SpaceJson;
}

/** Numbers within limits, in a tensor of any shape. */
export interface BoxSpace extends SpaceMethods {
  readonly kind: 'box';
  readonly shape: readonly number[];
  readonly dtype: BoxDType;
  /** (flatSize) Rounded to float32, as the values are; may be infinite. */
  readonly low: readonly number[];
  readonly high: readonly number[];
}
/** One of `n` choices, counted from 0. */
export interface DiscreteSpace extends SpaceMethods {
  readonly kind: 'discrete';
  readonly n: number;
}
/** Several choices at once, each of its own number. */
export interface MultiDiscreteSpace extends SpaceMethods {
  readonly kind: 'multiDiscrete';
  readonly counts: readonly number[];
}
/** `n` switches, each 0 or 1. */
export interface MultiBinarySpace extends SpaceMethods {
  readonly kind: 'multiBinary';
  readonly n: number;
}
/** Several spaces, in order. */
export interface TupleSpace extends SpaceMethods {
  readonly kind: 'tuple';
  readonly spaces: readonly Space[];
}
/** Several spaces by name. */
export interface DictSpace extends SpaceMethods {
  readonly kind: 'dict';
  readonly spaces: Readonly<Record<string, Space>>;
}

/** A space without parts. */
export type LeafSpace = BoxSpace | DiscreteSpace | MultiDiscreteSpace | MultiBinarySpace;
/** What observations and actions can be. */
export type Space = LeafSpace | TupleSpace | DictSpace;

/** A space as JSON holds it. */
export type SpaceJson = { readonly kind: Space['kind'] } & { readonly [key: string]: Json };

/** Integers are exact in float32 up to here. */
const MAX_INTEGER = 2 ** 24;

const invalid = (message: string): never => fail('space-invalid', message);

/** Shape, limits and type of a {@link box}. */
export interface BoxOptions {
  /** Sizes of the axes; `[]` is one number. */
  readonly shape: readonly number[];
  /** One limit for all numbers, or one for each in row-major order. Unlimited unless given. */
  readonly low?: number | ArrayLike<number>;
  readonly high?: number | ArrayLike<number>;
  readonly dtype?: BoxDType;
}

const dtypeLimits: Record<BoxDType, readonly [number, number]> = {
  float32: [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY],
  int32: [-MAX_INTEGER, MAX_INTEGER],
  uint8: [0, 255],
};

/** Numbers between limits, which are part of it: a force, a position. */
export function box(options: BoxOptions): BoxSpace {
  const { shape, dtype = 'float32' } = options;
  if (!Object.hasOwn(dtypeLimits, dtype))
    invalid(`box: dtype ${show(dtype)} is unknown: use ${Object.keys(dtypeLimits).join(', ')}`);
  if (!Array.isArray(shape) || shape.some(size => !Number.isInteger(size) || size < 1))
    invalid(`box: shape ${show(shape)} is not a list of whole numbers of at least 1: try [3]`);
  const size = shape.reduce((product: number, axis: number) => product * axis, 1);
  const [least, most] = dtypeLimits[dtype];
  const low = limits('low', options.low ?? least, size);
  const high = limits('high', options.high ?? most, size);
  const whole = dtype !== 'float32';
  for (let i = 0; i < size; i++) {
    if (!(low[i] <= high[i]))
      invalid(`box: low[${i}] ${low[i]} is above high[${i}] ${high[i]}: exchange them`);
    if (whole && !(Number.isInteger(low[i]) && Number.isInteger(high[i])))
      invalid(`box: the limits ${low[i]}..${high[i]} of ${dtype} number ${i} must be whole numbers`);
    if (low[i] < least || high[i] > most)
      invalid(
        `box: the limits ${low[i]}..${high[i]} of number ${i} leave the range ${least}..${most} of ${dtype}`,
      );
  }
  const firstOutside = (values: ArrayLike<number>, start = 0): number => {
    for (let i = 0; i < size; i++) {
      const value = values[start + i];
      if (!(value >= low[i] && value <= high[i]) || (whole && !Number.isInteger(value))) return i;
    }
    return -1;
  };

  const lows = Array.from(low, v => (v === -Number.MAX_VALUE ? Number.NEGATIVE_INFINITY : v));
  const highs = Array.from(high, v => (v === Number.MAX_VALUE ? Number.POSITIVE_INFINITY : v));
  return {
    kind: 'box',
    shape: [...shape],
    dtype,
    low: lows,
    high: highs,
    flatSize: size,
    firstOutside,
    contains: values => values.length === size && firstOutside(values) === -1,
    sample(rng, out, start = 0) {
      for (let i = 0; i < size; i++) out[start + i] = drawBetween(rng, lows[i], highs[i], whole);
    },
    clip(values, start = 0, rows = 1) {
      for (let at = start; at < start + rows * size; at += size) {
        for (let i = 0; i < size; i++) {
          const value = values[at + i];
          if (value < low[i]) values[at + i] = low[i];
          else if (value > high[i]) values[at + i] = high[i];
          else if (whole) values[at + i] = Math.round(value);
        }
      }
    },
    describe() {
      const ranges = lows.map((low, i) => `${brief(low)}..${brief(highs[i])}`);
      const alike = ranges.every(range => range === ranges[0]);
      const shown = alike ? ranges[0] : ranges.length <= 8 ? ranges.join(', ') : 'limits differ';
      return `Box(${shape.join('x') || '1'} ${dtype}: ${shown})`;
    },
    toJSON: () => ({
      kind: 'box',
      shape: [...shape],
      dtype,
      low: lows.map(numberToJson),
      high: highs.map(numberToJson),
    }),
  };
}

/** (size) limits rounded to float32; infinite ones as the largest number, so that an infinite value is outside. */
function limits(name: string, given: number | ArrayLike<number>, size: number): Float64Array {
  const values = new Float64Array(size);
  if (typeof given === 'number') values.fill(given);
  else if (given === null || typeof given !== 'object' || given.length !== size)
    invalid(
      `box: ${name} ${show(given)} has ${given?.length ?? 'no'} numbers, the shape has ${size}: give one for each, or one for all`,
    );
  else for (let i = 0; i < size; i++) values[i] = given[i];
  return values.map((value, i) => {
    if (Number.isNaN(value) || typeof value !== 'number')
      invalid(`box: ${name}[${i}] is ${show(value)}: use a number or Infinity`);
    const rounded = Math.fround(value);
    return Number.isFinite(rounded) ? rounded : Math.sign(rounded) * Number.MAX_VALUE;
  });
}

/** A limit for messages. */
function brief(limit: number): string {
  return String(Number(limit.toPrecision(4))).replace('Infinity', '∞');
}

function drawBetween(rng: Rng, low: number, high: number, whole: boolean): number {
  if (whole) return low + rng.integer(high - low + 1);
  const fromLow = Number.isFinite(low);
  const fromHigh = Number.isFinite(high);
  if (fromLow && fromHigh)
    return Math.min(high, Math.max(low, Math.fround(low + (high - low) * rng.uniform())));
  if (!fromLow && !fromHigh) return rng.normal();
  const distance = -Math.log(1 - rng.uniform());
  return fromLow ? low + distance : high - distance;
}

function checkCount(what: string, n: unknown): void {
  if (typeof n !== 'number' || !Number.isInteger(n) || n < 1 || n > MAX_INTEGER)
    invalid(`${what}: ${show(n)} is not a whole number in 1..${MAX_INTEGER}: try 2`);
}

/** Whether it is an index below n. */
const isIndex = (value: number, n: number): boolean => value >= 0 && value < n && Math.floor(value) === value;

/** One of n categories, as its index. */
export function discrete(n: number): DiscreteSpace {
  checkCount('discrete', n);
  return {
    kind: 'discrete',
    n,
    flatSize: 1,
    firstOutside: (values, start = 0) => (isIndex(values[start], n) ? -1 : 0),
    contains: values => values.length === 1 && isIndex(values[0], n),
    sample(rng, out, start = 0) {
      out[start] = rng.integer(n);
    },
    clip() {},
    describe: () => `Discrete(${n})`,
    toJSON: () => ({ kind: 'discrete', n }),
  };
}

/** Several categories at once, each as its index. */
export function multiDiscrete(counts: readonly number[]): MultiDiscreteSpace {
  if (!Array.isArray(counts) || counts.length === 0)
    invalid(`multiDiscrete: ${show(counts)} is not a list of counts: try multiDiscrete([3, 5])`);
  counts.forEach((n, i) => {
    checkCount(`multiDiscrete, count ${i}`, n);
  });
  const ns = [...counts];
  const size = ns.length;
  const firstOutside = (values: ArrayLike<number>, start = 0): number => {
    for (let i = 0; i < size; i++) if (!isIndex(values[start + i], ns[i])) return i;
    return -1;
  };
  return {
    kind: 'multiDiscrete',
    counts: ns,
    flatSize: size,
    firstOutside,
    contains: values => values.length === size && firstOutside(values) === -1,
    sample(rng, out, start = 0) {
      for (let i = 0; i < size; i++) out[start + i] = rng.integer(ns[i]);
    },
    clip() {},
    describe: () => `MultiDiscrete(${ns.join(', ')})`,
    toJSON: () => ({ kind: 'multiDiscrete', counts: [...ns] }),
  };
}

/** n switches, each 0 or 1. */
export function multiBinary(n: number): MultiBinarySpace {
  checkCount('multiBinary', n);
  const firstOutside = (values: ArrayLike<number>, start = 0): number => {
    for (let i = 0; i < n; i++) if (values[start + i] !== 0 && values[start + i] !== 1) return i;
    return -1;
  };
  return {
    kind: 'multiBinary',
    n,
    flatSize: n,
    firstOutside,
    contains: values => values.length === n && firstOutside(values) === -1,
    sample(rng, out, start = 0) {
      for (let i = 0; i < n; i++) out[start + i] = rng.integer(2);
    },
    clip() {},
    describe: () => `MultiBinary(${n})`,
    toJSON: () => ({ kind: 'multiBinary', n }),
  };
}

/** Parts one after the other. */
export function tuple(spaces: readonly Space[]): TupleSpace {
  if (!Array.isArray(spaces) || spaces.length === 0)
    invalid(`tuple: ${show(spaces)} is not a list of spaces: try tuple([discrete(2), discrete(3)])`);
  const parts = [...(spaces as readonly Space[])];
  return {
    kind: 'tuple',
    spaces: parts,
    ...inTurn(parts),
    describe: () => `Tuple(${parts.map(part => part.describe()).join(', ')})`,
    toJSON: () => ({ kind: 'tuple', spaces: parts.map(part => part.toJSON()) }),
  };
}

/** Named parts, in the order written: a hybrid action is `dict({ move: box(…), task: discrete(3) })`. */
export function dict(spaces: Readonly<Record<string, Space>>): DictSpace {
  const named: Record<string, Space> = { ...spaces };
  const names = Object.keys(named);
  if (names.length === 0)
    invalid('dict: no parts: try dict({ move: box({ shape: [2] }), task: discrete(3) })');
  for (const name of names) {
    // JavaScript puts names that look like indices first, so they could not keep the order written.
    if (!/^[a-z_][\w-]*$/i.test(name)) invalid(`dict: ${show(name)} is not a name: begin with a letter`);
  }
  return {
    kind: 'dict',
    spaces: named,
    ...inTurn(names.map(name => named[name])),
    describe: () => `Dict(${names.map(name => `${name}: ${named[name].describe()}`).join(', ')})`,
    toJSON: () => ({
      kind: 'dict',
      spaces: Object.fromEntries(names.map(name => [name, named[name].toJSON()])),
    }),
  };
}

type Composite = Pick<SpaceMethods, 'flatSize' | 'firstOutside' | 'contains' | 'sample' | 'clip'>;

/** The methods of a space whose values are those of its parts, one after the other. */
function inTurn(parts: readonly Space[]): Composite {
  parts.forEach((part, i) => {
    if (!isSpace(part)) invalid(`part ${i} is ${show(part)}, not a space: use box, discrete, …`);
  });
  const starts: number[] = [];
  let size = 0;
  for (const part of parts) {
    starts.push(size);
    size += part.flatSize;
  }
  const firstOutside = (values: ArrayLike<number>, start = 0): number => {
    for (let i = 0; i < parts.length; i++) {
      const outside = parts[i].firstOutside(values, start + starts[i]);
      if (outside !== -1) return starts[i] + outside;
    }
    return -1;
  };
  return {
    flatSize: size,
    firstOutside,
    contains: values => values.length === size && firstOutside(values) === -1,
    sample(rng, out, start = 0) {
      parts.forEach((part, i) => {
        part.sample(rng, out, start + starts[i]);
      });
    },
    clip(values, start = 0, rows = 1) {
      for (let at = start; at < start + rows * size; at += size) {
        for (let i = 0; i < parts.length; i++) parts[i].clip(values, at + starts[i]);
      }
    },
  };
}

/** A part without parts of its own, and where its numbers are in the whole. */
export interface Leaf {
  /** `move`, `0`, `arm.grip`; empty when the space itself is the leaf. */
  readonly path: string;
  readonly space: LeafSpace;
  readonly start: number;
}

/** The leaves in the order of the flat layout: what a policy needs a head for. */
export function leavesOf(space: Space, path = '', start = 0): Leaf[] {
  const below = (name: string): string => (path ? `${path}.${name}` : name);
  switch (space.kind) {
    case 'box':
    case 'discrete':
    case 'multiDiscrete':
    case 'multiBinary':
      return [{ path, space, start }];
    case 'tuple':
    case 'dict': {
      let at = start;
      return Object.entries(space.spaces).flatMap(([name, part]) => {
        const leaves = leavesOf(part, below(name), at);
        at += part.flatSize;
        return leaves;
      });
    }
    default:
      return space satisfies never;
  }
}

/** Where number `index` of a flat value is, for messages: `[3]`, or `[3] (move[1])` in a composite. */
export function placeOf(space: Space, index: number): string {
  const leaf = leavesOf(space).findLast(({ start }) => start <= index);
  return leaf?.path ? `[${index}] (${leaf.path}[${index - leaf.start}])` : `[${index}]`;
}

/** What number `index` of a flat value may be, for messages. */
export function allowedAt(space: Space, index: number): string {
  const leaf = leavesOf(space).findLast(({ start }) => start <= index)!;
  const { space: part } = leaf;
  switch (part.kind) {
    case 'box': {
      const [low, high] = [part.low[index - leaf.start], part.high[index - leaf.start]];
      return `${part.dtype === 'float32' ? 'a number' : 'a whole number'} in ${low}..${high}`;
    }
    case 'discrete':
      return `an index in 0..${part.n - 1}`;
    case 'multiDiscrete':
      return `an index in 0..${part.counts[index - leaf.start] - 1}`;
    case 'multiBinary':
      return '0 or 1';
    default:
      return part satisfies never;
  }
}

/** Whether a value is a space, whichever copy of this package made it. */
export function isSpace(value: unknown): value is Space {
  const space = value as Partial<Space> | null;
  return (
    typeof space === 'object' &&
    space !== null &&
    typeof space.kind === 'string' &&
    Number.isInteger(space.flatSize) &&
    typeof space.firstOutside === 'function' &&
    typeof space.sample === 'function' &&
    typeof space.toJSON === 'function'
  );
}

/** Whether the two allow the same values in the same layout. */
export function sameSpace(a: Space, b: Space): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

/** The space that `JSON.stringify` wrote; checks it, because it comes from a file. */
export function spaceFromJson(json: unknown): Space {
  const record = json as Record<string, unknown> | null;
  if (typeof record !== 'object' || record === null)
    return invalid(`${show(json)} is not a space: pass what toJSON gave`);
  const numbers = (values: unknown): number[] => {
    if (!Array.isArray(values)) return invalid(`${show(values)} is not a list: pass what toJSON gave`);
    return values.map((value, i) => numberFromJson(value, `[${i}]`));
  };
  switch (record.kind) {
    case 'box':
      return box({
        shape: numbers(record.shape),
        dtype: record.dtype as BoxDType,
        low: numbers(record.low),
        high: numbers(record.high),
      });
    case 'discrete':
      return discrete(record.n as number);
    case 'multiDiscrete':
      return multiDiscrete(numbers(record.counts));
    case 'multiBinary':
      return multiBinary(record.n as number);
    case 'tuple':
      if (!Array.isArray(record.spaces))
        return invalid(`tuple: ${show(record.spaces)} is not a list of spaces`);
      return tuple(record.spaces.map(spaceFromJson));
    case 'dict':
      if (typeof record.spaces !== 'object' || record.spaces === null)
        return invalid(`dict: ${show(record.spaces)} has no spaces`);
      return dict(
        Object.fromEntries(Object.entries(record.spaces).map(([name, part]) => [name, spaceFromJson(part)])),
      );
    default:
      return invalid(`${show(record.kind)} is no kind of space: pass what toJSON gave`);
  }
}
