/**
 * AdamW on plain arrays, in place (Loshchilov & Hutter 2017, arXiv 1711.05101).
 *
 * For models whose gradient is put together outside of one graph: a step in a program would copy parameters and moments
 * out of it, which for 124M parameters is 1.5 GB. The graph's version is adam.ts.
 */
import { sizeOf } from '../engine/index.ts';
import type { Parameters } from './parameters.ts';

export interface AdamWState {
  readonly weights: Float32Array;
  /** First moment, the running mean of gradients. */
  readonly m: Float32Array;
  /** Second moment, the running mean of their squares. */
  readonly v: Float32Array;
}

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
  const [rest1, rest2] = [1 - beta1, 1 - beta2];
  for (const { offset, shape } of layout.specs) {
    const end = offset + sizeOf(shape);
    const keep = shape.length > 1 ? 1 - learningRate * weightDecay : 1;
    for (let i = offset; i < end; i++) {
      const g = gradient[i] * gradientScale;
      const mean = beta1 * m[i] + rest1 * g;
      const square = beta2 * v[i] + rest2 * g * g;
      m[i] = mean;
      v[i] = square;
      weights[i] = weights[i] * keep - (rate * mean) / (Math.sqrt(square) * root + epsilon);
    }
  }
}

/** The length of a vector, in float64. */
export function norm(values: Float32Array): number {
  let [a, b, c, d] = [0, 0, 0, 0];
  const whole = values.length & ~3;
  // Four sums, because one addition has to wait for the one before it.
  for (let i = 0; i < whole; i += 4) {
    a += values[i] * values[i];
    b += values[i + 1] * values[i + 1];
    c += values[i + 2] * values[i + 2];
    d += values[i + 3] * values[i + 3];
  }
  for (let i = whole; i < values.length; i++) a += values[i] * values[i];
  return Math.sqrt(a + b + (c + d));
}
