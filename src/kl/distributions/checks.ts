import type { Tensor } from '../../engine/graph.ts';
import type { Vector } from './distribution.ts';

/** Fails unless `size` counts something; `what` names the factory and the argument. */
export function checkCount(what: string, size: number, minimum: number, example: string): void {
  if (!Number.isInteger(size) || size < minimum) {
    throw new RangeError(`${what} is ${String(size)}, not an integer of at least ${minimum}: try ${example}`);
  }
}

/** Fails unless the row has `size` numbers. One comparison where it does. */
export function checkLength(name: string, what: string, row: Vector, size: number): void {
  if (row.length !== size) {
    throw new RangeError(
      `${name}: ${what} has ${row.length} numbers, not ${size}: pass one sample's row, such as batch.subarray(i * ${size}, (i + 1) * ${size})`,
    );
  }
}

/** Fails unless `out` holds whole rows of noise. */
export function checkNoiseRows(name: string, out: Vector, noiseSize: number): void {
  if (out.length % noiseSize !== 0) {
    throw new RangeError(
      `${name}: noise of ${out.length} numbers is not whole rows of ${noiseSize}: pass a multiple of ${noiseSize}`,
    );
  }
}

/** Fails unless a tensor is (B, size), with the B of `batchOf` where given. */
export function checkBatch(name: string, what: string, tensor: Tensor, size: number, batchOf?: Tensor): void {
  const { shape } = tensor;
  if (shape.length !== 2 || shape[1] !== size) {
    throw new RangeError(`${name}: ${what} has shape (${shape.join(', ')}), not (B, ${size}): reshape it`);
  }
  if (batchOf && shape[0] !== batchOf.shape[0]) {
    throw new RangeError(
      `${name}: ${what} has ${shape[0]} rows, the parameters ${batchOf.shape[0]}: pass as many of each`,
    );
  }
}
