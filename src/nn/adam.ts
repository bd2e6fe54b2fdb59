/**
 * Adam and AdamW as graph expressions (Kingma & Ba 2014, arXiv 1412.6980; Loshchilov & Hutter 2017, arXiv 1711.05101).
 *
 * The bias corrections depend on the step's number only. They are a function of their own, so that a loop over many
 * steps computes them for all of its steps at once, outside, and picks a row at each step.
 */
import {
  add,
  cast,
  concat,
  div,
  exp,
  expand,
  l2Norm,
  max,
  mul,
  neg,
  type Operand,
  reshape,
  sqrt,
  sub,
  type Tensor,
  tanh,
} from '../engine/index.ts';
import type { Parameters } from './parameters.ts';

export interface AdamOptions {
  beta1?: number;
  beta2?: number;
  /** Added to the root of the second moment. PPO's 1e-5 keeps early steps small; PyTorch's default is 1e-8. */
  epsilon?: number;
  /** AdamW's decay: each step takes learningRate · weightDecay of a parameter away. A tensor decays each value by its own. */
  weightDecay?: Operand;
}

const defaults = { beta1: 0.9, beta2: 0.999, epsilon: 1e-8 };

/** What bias correction makes of a step's number: a factor on the learning rate, and the epsilon to use. */
export interface AdamCorrections {
  rate: Tensor;
  epsilon: Tensor;
}

/** The corrections of a step, or of many at once; steps count from 1. */
export function adamCorrections(step: Tensor, options: AdamOptions = {}): AdamCorrections {
  const { beta1, beta2, epsilon } = { ...defaults, ...options };
  // 1 - β^t as -(e^y + 1)·tanh(y/2) with y = t·log β: subtracting from 1 would lose half of float32's digits at t = 1.
  const left = (beta: number): Tensor => {
    const y = mul(step, Math.log(beta));
    return neg(mul(add(exp(y), 1), tanh(mul(y, 0.5))));
  };
  const root = mul(sqrt(left(beta2)), 1 / Math.sqrt(secondMomentScale(beta1, beta2)));
  return { rate: div(root, left(beta1)), epsilon: mul(root, epsilon) };
}

/**
 * The state keeps the second moment divided by this. Then one scaled gradient serves both moments, which saves passes
 * over all parameters at every step; the corrections put the scale back.
 */
export function secondMomentScale(beta1: number = defaults.beta1, beta2: number = defaults.beta2): number {
  return (1 - beta2) / (1 - beta1) ** 2;
}

export interface AdamState {
  params: Tensor;
  /** First moment, the running mean of gradients. */
  m: Tensor;
  /** Second moment, the running mean of their squares, divided by {@link secondMomentScale}. */
  v: Tensor;
}

export interface AdamStep {
  gradient: Tensor;
  /** A scalar factor on the gradient; see {@link clipScale}. */
  gradientScale?: Operand;
  /** A scalar, or one value for each parameter; see {@link ratesByGroup}. */
  learningRate: Operand;
  corrections: AdamCorrections;
  /** A bool scalar: where it is false the step changes nothing, to the bit, provided that the gradient is finite. */
  apply?: Tensor;
}

/** One step, on tensors of any shape. */
export function adam({ params, m, v }: AdamState, step: AdamStep, options: AdamOptions = {}): AdamState {
  const { beta1, beta2, weightDecay = 0 } = { ...defaults, ...options };
  const { gradient, gradientScale = 1, learningRate, corrections, apply } = step;
  // Not applying is a matter of scalars: keep all of the moments, take nothing of the gradient, go no step.
  const applied: Operand = apply ? cast(apply, 'float32') : 1;
  const keep = (beta: number): Operand => (apply ? sub(1, mul(applied, 1 - beta)) : beta);
  const scaled = mul(gradient, times(times(applied, 1 - beta1), gradientScale));
  const nextM = add(mul(m, keep(beta1)), scaled);
  const nextV = add(mul(v, keep(beta2)), mul(scaled, scaled));
  const direction = div(nextM, add(sqrt(nextV), corrections.epsilon));
  const rate = times(applied, learningRate);
  const decayed = weightDecay === 0 ? params : sub(params, mul(params, times(rate, weightDecay)));
  return { params: sub(decayed, mul(direction, mul(corrections.rate, rate))), m: nextM, v: nextV };
}

/** The factor that brings a gradient down to a global norm of at most `limit`, and the norm it has now. */
export function clipScale(
  gradients: Tensor | readonly Tensor[],
  limit: Operand,
): { scale: Tensor; norm: Tensor } {
  const parts = Array.isArray(gradients) ? (gradients as readonly Tensor[]) : [gradients as Tensor];
  const norms = parts.map(g => l2Norm(g));
  const norm =
    norms.length === 1
      ? norms[0]
      : l2Norm(
          concat(
            norms.map(n => reshape(n, [1])),
            0,
          ),
        );
  return { scale: div(limit, max(norm, limit)), norm };
}

/** A learning rate for each value of a flat parameter vector, from one scalar a group. */
export function ratesByGroup(layout: Parameters, rates: Readonly<Record<string, Tensor>>): Tensor {
  for (const name of Object.keys(rates)) {
    if (!layout.groups.some(group => group.name === name)) {
      throw new RangeError(
        `ratesByGroup: there is no group '${name}': there are ${layout.groups.map(g => g.name).join(', ')}`,
      );
    }
  }
  return concat(
    layout.groups.map(({ name, size }) => {
      if (!rates[name]) throw new RangeError(`ratesByGroup: group '${name}' has no learning rate: give one`);
      return expand(rates[name], [size]);
    }),
    0,
  );
}

function times(a: Operand, b: Operand): Operand {
  return typeof a === 'number' && typeof b === 'number' ? a * b : mul(a, b);
}
