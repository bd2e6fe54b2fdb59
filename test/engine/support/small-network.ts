import { add, Graph, grad, less, loop, matmul, mul, reduceSum, tanh } from '../../../src/engine/index.ts';

/** x (8, 16): a recurrence with an early end, its last state, its losses, and the gradient by x. */
export function smallNetwork(): Graph {
  const g = new Graph();
  const x = g.input('x', [8, 16]);
  const w = g.constant(
    Float64Array.from({ length: 256 }, (_, i) => Math.sin(i) / 4),
    [16, 16],
  );
  const { carry, scan, iterations } = loop({
    trips: 5,
    carry: { h: x },
    body: ({ iteration, carry: { h } }) => {
      const next = tanh(add(matmul(h, w), mul(x, 0.5)));
      return { carry: { h: next }, scan: { loss: reduceSum(mul(next, next)) }, goOn: less(iteration, 3) };
    },
  });
  g.output('h', carry.h);
  g.output('loss', scan.loss);
  g.output('iterations', iterations);
  g.output('dx', grad(add(reduceSum(carry.h), reduceSum(scan.loss)), [x])[0]);
  return g;
}
