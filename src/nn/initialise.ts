/** Starting values for weights. Each initialiser fills an array that is laid out row by row. */
import type { Rng } from '../random/rng.ts';

/** Fills `out`, which holds a tensor of `shape`. */
export type Initialiser = (rng: Rng, shape: readonly number[], out: Float32Array) => void;

export const zeros: Initialiser = (_, __, out) => {
  out.fill(0);
};

export function constant(value: number): Initialiser {
  return (_, __, out) => {
    out.fill(value);
  };
}

/** Independent normal values. */
export function normal(std: number): Initialiser {
  return (rng, _, out) => {
    for (let i = 0; i < out.length; i++) out[i] = std * rng.normal();
  };
}

/**
 * A (rows, columns) matrix whose shorter side is orthonormal, times `gain` (Saxe et al. 2013, arXiv 1312.6120): what
 * PPO needs to start well, with gain √2 for hidden layers, .01 for a policy head and 1 for a value head.
 */
export function orthogonal(gain: number): Initialiser {
  return (rng, shape, out) => {
    if (shape.length !== 2)
      throw new RangeError(`orthogonal: shape (${shape.join(', ')}) has not two axes: give a matrix`);
    const [rows, columns] = shape;
    const [count, length] = rows <= columns ? [rows, columns] : [columns, rows];
    const vectors = orthonormal(rng, count, length);
    for (let i = 0; i < rows; i++) {
      for (let j = 0; j < columns; j++) {
        out[i * columns + j] = gain * (rows <= columns ? vectors[i][j] : vectors[j][i]);
      }
    }
  };
}

/** `count` orthonormal vectors, uniformly distributed: normal vectors through Gram-Schmidt, twice for precision. */
function orthonormal(rng: Rng, count: number, length: number): Float64Array[] {
  const vectors: Float64Array[] = [];
  while (vectors.length < count) {
    const v = Float64Array.from({ length }, () => rng.normal());
    for (let pass = 0; pass < 2; pass++) {
      for (const other of vectors) {
        let dot = 0;
        for (let i = 0; i < length; i++) dot += v[i] * other[i];
        for (let i = 0; i < length; i++) v[i] -= dot * other[i];
      }
    }
    const norm = Math.sqrt(v.reduce((sum, x) => sum + x * x, 0));
    // Drawn into the span of the others: draw again.
    if (norm > 1e-6) vectors.push(v.map(x => x / norm));
  }
  return vectors;
}
