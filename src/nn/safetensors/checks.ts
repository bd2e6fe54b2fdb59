/** Limits of the format and what writing and reading both check. */
import { endianness } from 'node:os';
import { type Dtype, spec } from './dtypes.ts';
import { refuse, show } from './refuse.ts';

/** What a header says about a tensor. Row-major; a scalar has shape `[]`. */
export interface TensorInfo {
  readonly dtype: Dtype;
  readonly shape: readonly number[];
}

/** The reference implementation's limit: a header that is longer is an attack or another format. */
export const maxHeaderBytes = 100_000_000;

export const maxDimensions = 64;

/** Well under what one read or write may transfer on any system (2 GiB less a page on Linux). */
export const maxTransferBytes = 2 ** 28;

export const lengthBytes = 8;

export function byteCount(source: string, what: string, dtype: Dtype, shape: unknown): number {
  if (!Array.isArray(shape) || !shape.every(isCount)) {
    return refuse(
      source,
      `${what}: shape ${show(shape)}, must be integers from 0 to ${Number.MAX_SAFE_INTEGER}; correct the shape`,
    );
  }
  if (shape.length > maxDimensions) {
    refuse(source, `${what}: ${shape.length} dimensions, at most ${maxDimensions}; merge some`);
  }
  let total = spec(dtype).bits;
  for (const size of shape as number[]) {
    total *= size;
    if (total > Number.MAX_SAFE_INTEGER) {
      refuse(
        source,
        `${what}: shape ${show(shape)} of ${dtype} has more than ${Number.MAX_SAFE_INTEGER} bits; correct the shape`,
      );
    }
  }
  if (total % 8 !== 0) {
    refuse(source, `${what}: shape ${show(shape)} of ${dtype} is ${total} bits, must be whole bytes; pad it`);
  }
  return total / 8;
}

/** A size or an offset. JSON can also say -0, which is nobody's size. */
export const isCount = (value: unknown): boolean =>
  Number.isSafeInteger(value) && !(Object.is(value, -0) || Number(value) < 0);

/** Half of a surrogate pair has no UTF-8: two names could become one, and the reference refuses its JSON escape. */
export function requireWellFormed(source: string, what: string, text: string): void {
  if (!/\p{Surrogate}/u.test(text)) return;
  refuse(source, `${what} ${show(text)} has half of a surrogate pair, which UTF-8 cannot hold; rename it`);
}

/** onnxruntime-node exists for x64 and arm64 only, so byte swapping would be code that never runs. */
export function requireLittleEndian(source: string): void {
  if (endianness() === 'LE') return;
  refuse(source, 'safetensors is little-endian and this machine is not; use an x64 or arm64 machine');
}
