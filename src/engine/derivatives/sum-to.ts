import type { Tensor } from '../graph.ts';
import { reduceSum } from '../ops/reduce.ts';
import { reshape } from '../ops/shape.ts';
import type { Shape } from '../shape.ts';

/** Undoes broadcasting: the derivative of a value that was repeated is the sum over its repeats. */
export function sumTo(g: Tensor, shape: Shape): Tensor {
  const extra = g.shape.length - shape.length;
  const axes = g.shape
    .map((_, i) => i)
    .filter(i => i < extra || (shape[i - extra] === 1 && g.shape[i] !== 1));
  if (axes.length === 0) return reshape(g, shape);
  // Summing with the axes kept needs a reshape only if outer axes vanish; without, only if inner ones of size 1 stay.
  const keepDims = axes.some(i => i >= extra);
  return reshape(reduceSum(g, { axes, keepDims }), shape);
}
