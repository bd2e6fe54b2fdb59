/** The engine by itself: gradient descent as one program, all of its steps in one run. */
import { engine } from 'keel';

const { compile, Graph, grad, loop, matmul, mul, reduceMean, sub } = engine;

const g = new Graph();
const x = g.input('x', [5, 2]); // a column of ones for the offset
const y = g.input('y', [5, 1]);
const start = g.input('start', [2, 1]);
const learningRate = g.input('learningRate', []);
const { carry, scan } = loop({
  trips: 200,
  carry: { weights: start },
  body({ carry: { weights } }) {
    const error = sub(matmul(x, weights), y);
    const loss = reduceMean(mul(error, error));
    const [gradient] = grad(loss, [weights]);
    return { carry: { weights: sub(weights, mul(gradient, learningRate)) }, scan: { loss } };
  },
});
g.output('weights', carry.weights);
g.output('losses', scan.loss);

const program = await compile(g);
const { weights, losses } = program.run({
  x: Float32Array.of(0, 1, 1, 1, 2, 1, 3, 1, 4, 1),
  y: Float32Array.of(1, 3, 5, 7, 9), // 2x + 1
  start: new Float32Array(2),
  learningRate: Float32Array.of(0.1),
});
console.log(`y = ${Number(weights[0]).toFixed(3)} x + ${Number(weights[1]).toFixed(3)}`);
console.log(
  `loss ${Number(losses[0]).toFixed(3)} at first, ${Number(losses[199]).toExponential(1)} in the end`,
);
