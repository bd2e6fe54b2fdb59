/** NumPy's arrays and numbers in a pickle, as data: the bytes, and what says how to read them. */
import { attributesOf, callOf, describe, PickleError, type PickleValue } from './values.ts';

/** An array's numbers, row-major, whatever its type was. */
export interface NumpyArray {
  readonly shape: readonly number[];
  /** As numpy writes it: `f4`, `i8`, `b1`. */
  readonly dtype: string;
  readonly values: Float64Array;
}

const maxValues = 2 ** 24;

type Read = (view: DataView, offset: number, little: boolean) => number;
const types: Readonly<Record<string, readonly [bytes: number, read: Read]>> = {
  b1: [1, (view, at) => (view.getUint8(at) === 0 ? 0 : 1)],
  i1: [1, (view, at) => view.getInt8(at)],
  u1: [1, (view, at) => view.getUint8(at)],
  i2: [2, (view, at, little) => view.getInt16(at, little)],
  u2: [2, (view, at, little) => view.getUint16(at, little)],
  i4: [4, (view, at, little) => view.getInt32(at, little)],
  u4: [4, (view, at, little) => view.getUint32(at, little)],
  i8: [8, (view, at, little) => Number(view.getBigInt64(at, little))],
  u8: [8, (view, at, little) => Number(view.getBigUint64(at, little))],
  f4: [4, (view, at, little) => view.getFloat32(at, little)],
  f8: [8, (view, at, little) => view.getFloat64(at, little)],
};

/** `numpy.core` is `numpy._core` from version 2 on. */
const plainName = (name: string | undefined): string | undefined =>
  name?.replace(/^numpy\._?core\./, 'numpy.core.');

/** An array; anything else is refused by the name of the field that it stands in. */
export function arrayOf(value: PickleValue | undefined, field: string): NumpyArray {
  const call = callOf(value);
  switch (plainName(call?.name)) {
    case 'numpy.core.multiarray._reconstruct': {
      const state = call!.state;
      if (!Array.isArray(state)) break;
      const [, shape, dtype, fortran, data] = state;
      return decode(data, dtype, shape, fortran === true, field);
    }
    case 'numpy.core.numeric._frombuffer': {
      const [data, dtype, shape, order] = call!.args;
      return decode(data, dtype, shape, order === 'F', field);
    }
    default:
  }
  throw new PickleError(`${field} is ${describe(value)}, a numpy array is needed`);
}

/** A number, plain or numpy's; an array of one is one as well. */
export function numberOf(value: PickleValue | undefined, field: string): number {
  if (typeof value === 'number') return value;
  if (typeof value === 'boolean') return Number(value);
  const call = callOf(value);
  if (plainName(call?.name) === 'numpy.core.multiarray.scalar') {
    const [dtype, data] = call!.args;
    return decode(data, dtype, [], false, field).values[0];
  }
  if (call !== undefined) {
    const { values } = arrayOf(value, field);
    if (values.length === 1) return values[0];
  }
  throw new PickleError(`${field} is ${describe(value)}, a number is needed`);
}

/** A type's name without the order of its bytes: `f4`. */
export function dtypeOf(value: PickleValue | undefined, field: string): string {
  return typeOf(value, field).name;
}

function typeOf(value: PickleValue | undefined, field: string): { name: string; little: boolean } {
  const call = callOf(value);
  const [name] = call?.args ?? [];
  if (call?.name !== 'numpy.dtype' || typeof name !== 'string')
    throw new PickleError(`the type of ${field} is ${describe(value)}, one of numpy's is needed`);
  const order = Array.isArray(call.state) ? call.state[1] : '<';
  return { name: name.replace(/^[<>|=]/, ''), little: order !== '>' };
}

function decode(
  data: PickleValue | undefined,
  dtype: PickleValue | undefined,
  shape: PickleValue | undefined,
  fortran: boolean,
  field: string,
): NumpyArray {
  const { name, little } = typeOf(dtype, field);
  const type = Object.hasOwn(types, name) ? types[name] : undefined;
  if (type === undefined) throw new PickleError(`${field} is an array of ${name}, numbers are needed`);
  const [size, read] = type;
  const bytes = bytesOf(data, field);
  const axes = typeof shape === 'number' ? [shape] : shape;
  if (
    !Array.isArray(axes) ||
    axes.length > 32 ||
    !axes.every(axis => Number.isSafeInteger(axis) && Number(axis) >= 0)
  )
    throw new PickleError(`the shape of ${field} is ${describe(shape)}, whole numbers are needed`);
  const count = (axes as number[]).reduce((product, axis) => product * axis, 1);
  if (count > maxValues || count * size !== bytes.length)
    throw new PickleError(
      `${field} has ${bytes.length} bytes for ${count} numbers of ${size}: it is damaged or more than ${maxValues} numbers`,
    );
  if (fortran && axes.length > 1)
    throw new PickleError(`${field} is stored column by column: save it as numpy.ascontiguousarray`);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const values = Float64Array.from({ length: count }, (_, i) => read(view, i * size, little));
  return { shape: axes as number[], dtype: name, values };
}

/** Bytes; protocols below 3 write them as text that is encoded again. */
function bytesOf(value: PickleValue | undefined, field: string): Uint8Array {
  if (value instanceof Uint8Array) return value;
  const call = callOf(value);
  const [text, encoding] = call?.args ?? [];
  if (call?.name === '_codecs.encode' && typeof text === 'string' && encoding === 'latin1')
    return Buffer.from(text, 'latin1');
  if (call?.name === 'builtins.bytearray' && text instanceof Uint8Array) return text;
  if (call?.name === 'builtins.bytes' && call.args.length === 0) return new Uint8Array(0);
  throw new PickleError(`the bytes of ${field} are ${describe(value)}`);
}

/** The running moments that Stable-Baselines3, Gymnasium and their like keep: mean, variance and count. */
export interface Moments {
  readonly count: number;
  readonly mean: Float64Array;
  readonly variance: Float64Array;
}

/** Moments out of an object with `mean`, `var` and `count`. */
export function momentsOf(value: PickleValue | undefined, field: string): Moments {
  const attributes = attributesOf(value);
  if (attributes === undefined)
    throw new PickleError(`${field} is ${describe(value)}, running moments are needed`);
  const [mean, variance] = ['mean', 'var'].map(name => numbersOf(attributes.get(name), `${field}.${name}`));
  const count = numberOf(attributes.get('count'), `${field}.count`);
  if (
    mean.length !== variance.length ||
    !(count >= 0) ||
    ![...mean, ...variance, count].every(Number.isFinite)
  )
    throw new PickleError(
      `${field} has ${mean.length} means, ${variance.length} variances and a count of ${count}: it is damaged`,
    );
  if (variance.some(value => value < 0))
    throw new PickleError(`${field}.var has a value below 0: it is damaged`);
  return { count, mean, variance };
}

/** An array's numbers, or the one number where it is none. */
function numbersOf(value: PickleValue | undefined, field: string): Float64Array {
  const call = callOf(value);
  return call === undefined || plainName(call.name) === 'numpy.core.multiarray.scalar'
    ? Float64Array.of(numberOf(value, field))
    : arrayOf(value, field).values;
}
