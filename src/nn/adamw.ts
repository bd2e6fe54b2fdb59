/**
 * AdamW on plain arrays, in place (Loshchilov & Hutter 2017, arXiv 1711.05101).
 *
 * For models whose gradient is put together outside of one graph: a step in a program would copy parameters and moments
 * out of it, which for 124M parameters is 1.5 GB. The graph's version is adam.ts.
 */
import { sizeOf } from '../engine/shape.ts';
import type { Parameters } from './parameters.ts';
import { adamWRange } from './vector-kernels.ts';

/** Weights and their moments, changed in place. */
export interface AdamWState {
  readonly weights: Float32Array;
  /** First moment, the running mean of gradients. */
  readonly m: Float32Array;
  /** Second moment, the running mean of their squares. */
  readonly v: Float32Array;
}

/** What one step of AdamW takes besides its state. */
export interface AdamWStep {
  readonly gradient: Float32Array;
  /** A factor on the gradient, as clipping gives. */
  readonly gradientScale?: number;
  readonly learningRate: number;
  /** Counts from 1. */
  readonly step: number;
  readonly beta1?: number;
  readonly beta2?: number;
  readonly epsilon?: number;
  /** Taken of matrices alone: biases and the scales of norms do not decay. */
  readonly weightDecay?: number;
}

/** One step. */
export function adamW(layout: Parameters, { weights, m, v }: AdamWState, options: AdamWStep): void {
  const { gradient, gradientScale = 1, learningRate, step } = options;
  const { beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weightDecay = 0 } = options;
  const rate = learningRate / (1 - beta1 ** step);
  const root = 1 / Math.sqrt(1 - beta2 ** step);
  for (const { offset, shape } of layout.specs) {
    adamWRange(weights, m, v, gradient, offset, offset + sizeOf(shape), {
      scale: gradientScale,
      beta1,
      beta2,
      rate,
      root,
      epsilon,
      decay: shape.length > 1 ? learningRate * weightDecay : 0,
    });
  }
}
