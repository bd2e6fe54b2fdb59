/**
 * One PPO update as one program: all epochs and minibatches, forward, loss, backward, clipping, Adam, exact KL, stop.
 *
 * This is the shape of update that the engine is built for, with the engine's parts only; the trainer has its own.
 */
import {
  add,
  clip,
  concat,
  div,
  exp,
  Graph,
  gather,
  grad,
  lessEqual,
  loop,
  matmul,
  min,
  mul,
  neg,
  reduceMean,
  reduceSum,
  split,
  sqrt,
  stopGradient,
  sub,
  type Tensor,
} from '../src/engine/index.ts';
import { adam, adamCorrections, clipScale, correctionsAt, mlp, parameters } from '../src/nn/index.ts';
import { constant } from '../src/nn/initialise.ts';

export interface PpoSizes {
  readonly samples: number;
  readonly batch: number;
  readonly epochs: number;
  readonly observation: number;
  readonly action: number;
  readonly hidden: number;
}

/** What is timed: 320 minibatches of 64. */
export const timed: PpoSizes = {
  samples: 2048,
  batch: 64,
  epochs: 10,
  observation: 27,
  action: 8,
  hidden: 64,
};

const networks = ({ observation, action, hidden }: PpoSizes) => ({
  actor: mlp({ name: 'actor', sizes: [observation, hidden, hidden, action], outputGain: 0.01 }),
  critic: mlp({ name: 'critic', sizes: [observation, hidden, hidden, 1] }),
});

export const stepsOf = ({ samples, batch, epochs }: PpoSizes): number => (samples / batch) * epochs;

export function layoutOf(sizes: PpoSizes) {
  const { actor, critic } = networks(sizes);
  return parameters([
    ...actor.specs,
    { name: 'actor.logStd', shape: [sizes.action], init: constant(0), group: 'actor' },
    ...critic.specs,
  ]);
}

/** Columns of the rollout: observation, action, old mean, old log-prob, advantage, return. */
export const columnsOf = ({ observation, action }: PpoSizes): number[] => [
  observation,
  action,
  action,
  1,
  1,
  1,
];

export function ppoUpdate(sizes: PpoSizes): Graph {
  const { samples, batch, action } = sizes;
  const { actor, critic } = networks(sizes);
  const [layout, columns, steps] = [layoutOf(sizes), columnsOf(sizes), stepsOf(sizes)];
  const width = columns.reduce((a, b) => a + b, 0);
  const g = new Graph();
  const rollout = g.input('rollout', [samples, width]);
  const oldLogStd = g.input('oldLogStd', [action]);
  const order = g.input('order', [steps, batch], 'int64');
  const [weights, m, v] = ['weights', 'm', 'v'].map(name => g.input(name, [layout.size]));
  const stepsDone = g.input('stepsDone', []);
  const learningRate = g.input('learningRate', []);
  const klLimit = g.input('klLimit', []);

  // What depends on the data alone is computed for all minibatches at once, before the loop.
  const rows = gather(rollout, order); // (steps, batch, width)
  const [plain, advantage, returns] = split(rows, [width - 2, 1, 1], 2);
  const centred = sub(advantage, reduceMean(advantage, { axes: [1], keepDims: true }));
  const std = sqrt(reduceMean(mul(centred, centred), { axes: [1], keepDims: true }));
  const minibatches = concat([plain, div(centred, add(std, 1e-8)), returns], 2);
  const oldVariance = exp(mul(oldLogStd, 2));
  const klOffset = add(reduceSum(oldLogStd), action / 2);
  const counts = add(g.constant(Float64Array.from({ length: steps }, (_, i) => i + 1)), stepsDone);
  const corrections = adamCorrections(counts, { epsilon: 1e-5 }); // (steps) each
  const schedule = { ...corrections, rate: mul(corrections.rate, learningRate) };

  /** Loss, its derivative and the KL of a minibatch under these parameters. */
  function look(flat: Tensor, index: Tensor) {
    const [obs, act, oldMean, oldLogProb, adv, ret] = split(gather(minibatches, index), columns, 1);
    const p = layout.tensors(flat);
    const mean = actor.forward(p, obs);
    const value = critic.forward(p, obs);
    const logStd = p['actor.logStd'];

    // Gaussian log-prob, without the constant that cancels in the ratio; half of z² comes from the √½ in invStd.
    const invStd = exp(sub(-0.5 * Math.LN2, logStd));
    const z = mul(sub(act, mean), invStd);
    const sumLogStd = reduceSum(logStd);
    const halfSquares = reduceSum(mul(z, z), { axes: [1], keepDims: true });
    const ratio = exp(neg(add(halfSquares, add(sumLogStd, oldLogProb))));
    // min(ratio·adv, clipped·adv): where the clipped side is the smaller, it is constant.
    const gain = reduceSum(min(mul(ratio, adv), stopGradient(mul(clip(ratio, 0.8, 1.2), adv))));
    const error = sub(value, ret);
    const squares = reduceSum(mul(error, error));
    // Summed over the minibatch, not averaged: the division by its size is one factor on the gradient's scale.
    const loss = sub(sub(mul(squares, 0.5), gain), mul(sumLogStd, 0.01 * batch));
    const [gradient] = grad(loss, [flat]);
    const { scale, norm } = clipScale(gradient, 0.5 * batch);

    // Exact KL(old || new), mean over the minibatch.
    const shift = mul(sub(oldMean, mean), invStd);
    const spread = reduceSum(mul(oldVariance, mul(invStd, invStd)));
    const kl = add(add(mul(reduceSum(mul(shift, shift)), 1 / batch), spread), sub(sumLogStd, klOffset));
    const goOn = lessEqual(kl, klLimit);
    const metrics = {
      policyLoss: mul(gain, -1 / batch),
      valueLoss: mul(squares, 1 / batch),
      kl,
      norm: mul(norm, 1 / batch),
    };
    return { gradient, gradientScale: mul(scale, 1 / batch), goOn, metrics };
  }

  const result = loop({
    trips: steps,
    carry: { weights, m, v },
    body({ iteration, carry }) {
      const { gradient, gradientScale, goOn, metrics } = look(carry.weights, iteration);
      // Past the limit the step is not taken and the loop ends: the last good minibatch stands.
      const next = adam(carry, {
        gradient,
        gradientScale,
        learningRate: 1,
        corrections: correctionsAt(schedule, iteration),
        apply: goOn,
      });
      return { carry: { ...next }, scan: metrics, goOn };
    },
  });
  g.output('newWeights', result.carry.weights);
  g.output('newM', result.carry.m);
  g.output('newV', result.carry.v);
  g.output('policyLoss', result.scan.policyLoss);
  g.output('valueLoss', result.scan.valueLoss);
  g.output('kl', result.scan.kl);
  g.output('norm', result.scan.norm);
  g.output('iterations', result.iterations);
  return g;
}

/** The same loop with nothing but the matrix products: what the update would cost if all else were free. */
export function matrixProductsOnly(sizes: PpoSizes): Graph {
  const { batch, observation, action, hidden } = sizes;
  const steps = stepsOf(sizes);
  const g = new Graph();
  const minibatches = g.input('minibatches', [steps, batch, observation]);
  const nets = [action, 1].map((outputs, k) => {
    const widths = [observation, hidden, hidden, outputs];
    return widths.slice(1).map((n, i) => g.input(`w${k}${i}`, [widths[i], n]));
  });
  const weights = nets.flat();
  const names = weights.map((_, i) => `g${i}`);
  const result = loop({
    trips: steps,
    carry: Object.fromEntries(weights.map((w, i) => [names[i], w])),
    body({ iteration }) {
      const obs = gather(minibatches, iteration);
      const gradients: Tensor[] = [];
      for (const layers of nets) {
        const inputs = [obs];
        for (const w of layers) inputs.push(matmul(inputs.at(-1)!, w));
        let back = inputs.pop()!;
        const byLayer: Tensor[] = [];
        for (let i = layers.length - 1; i >= 0; i--) {
          byLayer.unshift(matmul(inputs[i], back, { transposeA: true }));
          if (i > 0) back = matmul(back, layers[i], { transposeB: true });
        }
        gradients.push(...byLayer);
      }
      return { carry: Object.fromEntries(gradients.map((t, i) => [names[i], t])) };
    },
  });
  for (const name of names) g.output(name, result.carry[name]);
  return g;
}
