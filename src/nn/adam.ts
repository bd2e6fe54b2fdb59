/**
 * Adam and AdamW as graph expressions (Kingma & Ba 2014, arXiv 1412.6980; Loshchilov & Hutter 2017, arXiv 1711.05101).
 *
 * The bias corrections depend on the step's number only. They are a function of their own, so that a loop over many
 * steps computes them for all of its steps at once, outside, and picks a row at each step.
 */

import type { Operand, Tensor } from '../engine/graph.ts';
import {
  add,
  cast,
  div,
  exp,
  expand,
  max,
  mul,
  neg,
  sqrt,
  sub,
  tanh,
  where,
} from '../engine/ops/elementwise.ts';
import { gather } from '../engine/ops/gather.ts';
import { l2Norm } from '../engine/ops/reduce.ts';
import { concat, reshape } from '../engine/ops/shape.ts';
import type { Parameters } from './parameters.ts';

/** Adam's constants. */
export interface AdamOptions {
  beta1?: number;
  beta2?: number;
  /** Added to the root of the second moment. PPO's 1e-5 keeps early steps small; PyTorch's default is 1e-8. */
  epsilon?: number;
}

/** What Adam needs to know of a step: bias correction as a factor on the learning rate and an epsilon, and its decays. */
export interface AdamCorrections {
  readonly rate: Tensor;
  readonly epsilon: Tensor;
  readonly beta1: number;
  readonly beta2: number;
}

/** The corrections of a step, or of many at once; steps count from 1. */
export function adamCorrections(step: Tensor, options: AdamOptions = {}): AdamCorrections {
  const { beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8 } = options;
  for (const [name, value] of Object.entries({ beta1, beta2 })) {
    if (!(value >= 0 && value < 1))
      throw new RangeError(`adam: ${name} is ${value}: use a number from 0 up to, not including, 1`);
  }
  if (!(epsilon > 0))
    throw new RangeError(`adam: epsilon is ${epsilon}: use a small number above 0, such as 1e-8`);
  // 1 - β^t as -(e^y + 1)·tanh(y/2) with y = t·log β: subtracting from 1 would lose half of float32's digits at t = 1.
  const left = (beta: number): Tensor => {
    if (beta === 0) return add(mul(step, 0), 1);
    const y = mul(step, Math.log(beta));
    return neg(mul(add(exp(y), 1), tanh(mul(y, 0.5))));
  };
  const root = mul(sqrt(left(beta2)), 1 / Math.sqrt(secondMomentScale(beta1, beta2)));
  return { rate: div(root, left(beta1)), epsilon: mul(root, epsilon), beta1, beta2 };
}

/** The corrections of one of many steps. */
export function correctionsAt(corrections: AdamCorrections, index: Tensor): AdamCorrections {
  return {
    ...corrections,
    rate: gather(corrections.rate, index),
    epsilon: gather(corrections.epsilon, index),
  };
}

/**
 * The state keeps the second moment divided by this. Then one scaled gradient serves both moments, which saves passes
 * over all parameters at every step; the corrections put the scale back.
 */
export function secondMomentScale(beta1 = 0.9, beta2 = 0.999): number {
  return (1 - beta2) / (1 - beta1) ** 2;
}

/** Weights and their moments, each of one vector. */
export interface AdamState {
  weights: Tensor;
  /** First moment, the running mean of gradients. */
  m: Tensor;
  /** Second moment, the running mean of their squares, divided by {@link secondMomentScale}. */
  v: Tensor;
}

/** What one step of Adam takes besides its state. */
export interface AdamStep {
  gradient: Tensor;
  /** A scalar factor on the gradient; see {@link clipScale}. */
  gradientScale?: Operand;
  /** A scalar, or one value for each parameter; see {@link ratesByGroup}. */
  learningRate: Operand;
  corrections: AdamCorrections;
  /** AdamW's decay: the step takes learningRate · weightDecay of a parameter away. */
  weightDecay?: Operand;
  /** A bool scalar: where it is false the step changes nothing, whatever the gradient is. */
  apply?: Tensor;
}

/** One step, on tensors of any shape. */
export function adam({ weights, m, v }: AdamState, step: AdamStep): AdamState {
  const { gradient, gradientScale = 1, learningRate, corrections, weightDecay = 0, apply } = step;
  const { beta1, beta2 } = corrections;
  const scaled = mul(gradient, times(gradientScale, 1 - beta1));
  // Not applying: take nothing of the gradient, keep all of the moments, go no step. All but the first are scalars.
  const taken = apply ? where(apply, scaled, 0) : scaled;
  const applied: Operand = apply ? cast(apply, 'float32') : 1;
  const keep = (beta: number): Operand => (apply ? sub(1, mul(applied, 1 - beta)) : beta);
  const nextM = add(mul(m, keep(beta1)), taken);
  const nextV = add(mul(v, keep(beta2)), mul(taken, taken));
  const direction = div(nextM, add(sqrt(nextV), corrections.epsilon));
  // `applied` is 0 or 1, so that it may go with the scalar: the rate may be a vector.
  const rate = mul(times(applied, corrections.rate), learningRate);
  const decayed =
    weightDecay === 0
      ? weights
      : sub(weights, mul(weights, times(times(applied, learningRate), weightDecay)));
  return { weights: sub(decayed, mul(direction, rate)), m: nextM, v: nextV };
}

/**
 * The factor that brings a gradient down to a global norm of at most `limit`, and the norm it has now. A norm whose
 * square float32 cannot hold (1.8e19) counts as infinite, and its factor is 0.
 */
export function clipScale(
  gradients: Tensor | readonly Tensor[],
  limit: Operand,
): { scale: Tensor; norm: Tensor } {
  const parts = Array.isArray(gradients) ? (gradients as readonly Tensor[]) : [gradients as Tensor];
  if (parts.length === 0) throw new RangeError('clipScale: there are no gradients: give at least one');
  if (typeof limit === 'number' && !(limit > 0))
    throw new RangeError(`clipScale: the limit is ${limit}: use a number above 0`);
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
