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
import { adam, adamCorrections, clipScale, mlp, parameters } from '../src/nn/index.ts';
import { constant } from '../src/nn/initialise.ts';

export const sizes = { samples: 2048, batch: 64, epochs: 10, observation: 27, action: 8, hidden: 64 };

const { samples, batch, epochs, observation, action, hidden } = sizes;
export const steps = (samples / batch) * epochs;

const actor = mlp({ name: 'actor', sizes: [observation, hidden, hidden, action], outputGain: 0.01 });
const critic = mlp({ name: 'critic', sizes: [observation, hidden, hidden, 1] });
export const layout = parameters([
  ...actor.specs,
  { name: 'actor.logStd', shape: [action], init: constant(0), group: 'actor' },
  ...critic.specs,
]);

/** Columns of the rollout: observation, action, old mean, old log-prob, advantage, return. */
export const columns = [observation, action, action, 1, 1, 1];
const width = columns.reduce((a, b) => a + b, 0);

export function ppoUpdate(): Graph {
  const g = new Graph();
  const rollout = g.input('rollout', [samples, width]);
  const oldLogStd = g.input('oldLogStd', [action]);
  const order = g.input('order', [steps, batch], 'int64');
  const params = g.input('params', [layout.size]);
  const m = g.input('m', [layout.size]);
  const v = g.input('v', [layout.size]);
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
  const adamOptions = { epsilon: 1e-5 };
  const counts = add(g.constant(Float64Array.from({ length: steps }, (_, i) => i + 1)), stepsDone);
  const corrections = adamCorrections(counts, adamOptions); // (steps) each

  const result = loop({
    trips: steps,
    carry: { params, m, v },
    body({ iteration, carry }) {
      const [obs, act, oldMean, oldLogProb, adv, ret] = split(gather(minibatches, iteration), columns, 1);
      const p = layout.tensors(carry.params);
      const mean = actor.forward(p, obs);
      const value = critic.forward(p, obs);
      const logStd = p['actor.logStd'];

      // Gaussian log-prob, without the constant that cancels in the ratio.
      const invStd = exp(neg(logStd));
      const z = mul(sub(act, mean), invStd);
      const sumLogStd = reduceSum(logStd);
      const logProb = sub(mul(reduceSum(mul(z, z), { axes: [1], keepDims: true }), -0.5), sumLogStd);
      const ratio = exp(sub(logProb, oldLogProb));
      // min(ratio·adv, clipped·adv): where the clipped side is the smaller, it is constant.
      const plainGain = mul(ratio, adv);
      const clippedGain = mul(clip(ratio, 0.8, 1.2), adv);
      const gain = min(plainGain, stopGradient(clippedGain));
      const policyLoss = neg(reduceMean(gain));
      const error = sub(value, ret);
      const valueLoss = reduceMean(mul(error, error));
      const loss = sub(add(policyLoss, mul(valueLoss, 0.5)), mul(sumLogStd, 0.01));

      // Exact KL(old || new), mean over the minibatch.
      const shift = sub(oldMean, mean);
      const spread = mul(add(mul(shift, shift), oldVariance), mul(invStd, invStd));
      const kl = add(
        mul(reduceSum(spread), 0.5 / batch),
        sub(sumLogStd, add(reduceSum(oldLogStd), action / 2)),
      );

      const [gradient] = grad(loss, [carry.params]);
      const { scale, norm } = clipScale(gradient, 0.5);
      // Past the limit the step is not taken and the loop ends: the last good minibatch stands.
      const goOn = lessEqual(kl, klLimit);
      const next = adam(
        carry,
        {
          gradient,
          gradientScale: scale,
          learningRate,
          corrections: {
            rate: gather(corrections.rate, iteration),
            epsilon: gather(corrections.epsilon, iteration),
          },
          apply: goOn,
        },
        adamOptions,
      );
      return { carry: { ...next }, scan: { policyLoss, valueLoss, kl, norm }, goOn };
    },
  });
  g.output('newParams', result.carry.params);
  g.output('newM', result.carry.m);
  g.output('newV', result.carry.v);
  for (const [name, tensor] of Object.entries(result.scan)) g.output(name, tensor);
  g.output('iterations', result.iterations);
  return g;
}

/** The same loop with nothing but the matrix products: what the update would cost if all else were free. */
export function matrixProductsOnly(): Graph {
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
