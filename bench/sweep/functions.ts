/**
 * Functions with known minima on which samplers are compared. bench/sweep/optuna.py has the same, written apart: the bench
 * evaluates here what Optuna found there, so one that is wrong on either side is noticed.
 *
 * Sphere and Rastrigin are moved off the centre of their ranges: where the minimum is in the middle, a sampler whose prior is
 * highest there looks better than it is.
 */
import type { Axis, Params, Space } from '../../src/studies/schema.ts';

export interface TestFunction {
  readonly name: string;
  readonly space: Space;
  readonly value: (params: Params) => number;
  /** The least value that there is. */
  readonly best: number;
}

const floats = (count: number, low: number, high: number): Axis[] =>
  Array.from({ length: count }, (_, i) => ({
    key: `x${i}`,
    domain: { kind: 'float', low, high, log: false },
  }));

const vector = (params: Params): number[] => Object.keys(params).map((_, i) => params[`x${i}`] as number);
const square = (x: number): number => x * x;

const SPHERE_AT = [1.3, -2.1, 0.7, 3.2, -0.4];
const RASTRIGIN_AT = [1.3, -2.1, 0.7, 3.2];

/** Hartmann's function of six variables: coefficients as in Dixon & Szegö (1978). */
const HARTMANN_C = [1, 1.2, 3, 3.2];
const HARTMANN_A = [
  [10, 3, 17, 3.5, 1.7, 8],
  [0.05, 10, 17, 0.1, 8, 14],
  [3, 3.5, 1.7, 10, 17, 8],
  [17, 8, 0.05, 10, 0.1, 14],
];
const HARTMANN_P = [
  [0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886],
  [0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991],
  [0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.665],
  [0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381],
];

const BATCH_COSTS: Readonly<Record<string, number>> = { 32: 0.3, 64: 0, 128: 0.1, 256: 0.5 };

export const testFunctions: readonly TestFunction[] = [
  {
    name: 'sphere',
    space: floats(5, -5, 5),
    value: params => vector(params).reduce((sum, x, i) => sum + square(x - SPHERE_AT[i]), 0),
    best: 0,
  },
  {
    name: 'branin',
    space: [
      { key: 'x0', domain: { kind: 'float', low: -5, high: 10, log: false } },
      { key: 'x1', domain: { kind: 'float', low: 0, high: 15, log: false } },
    ],
    value: params => {
      const [x, y] = vector(params);
      const bent = y - (5.1 / (4 * Math.PI ** 2)) * x * x + (5 / Math.PI) * x - 6;
      return bent * bent + 10 * (1 - 1 / (8 * Math.PI)) * Math.cos(x) + 10;
    },
    best: 0.39788735772973816,
  },
  {
    name: 'rosenbrock',
    space: floats(4, -2.048, 2.048),
    value: params => {
      const x = vector(params);
      let sum = 0;
      for (let i = 0; i + 1 < x.length; i++) sum += 100 * square(x[i + 1] - x[i] * x[i]) + square(1 - x[i]);
      return sum;
    },
    best: 0,
  },
  {
    name: 'hartmann6',
    space: floats(6, 0, 1),
    value: params => {
      const x = vector(params);
      return -HARTMANN_C.reduce((sum, c, i) => {
        const exponent = x.reduce((s, xj, j) => s + HARTMANN_A[i][j] * square(xj - HARTMANN_P[i][j]), 0);
        return sum + c * Math.exp(-exponent);
      }, 0);
    },
    best: -3.322368011415515,
  },
  {
    name: 'rastrigin',
    space: floats(4, -5.12, 5.12),
    value: params =>
      vector(params).reduce((sum, x, i) => {
        const d = x - RASTRIGIN_AT[i];
        return sum + d * d + 10 - 10 * Math.cos(2 * Math.PI * d);
      }, 0),
    best: 0,
  },
  {
    // A trainer's settings: a log range, integers, steps, choices, and two settings of which each has one optimiser only.
    name: 'conditions',
    space: [
      { key: 'optimizer', domain: { kind: 'choice', values: ['adam', 'sgd'] } },
      { key: 'rate', domain: { kind: 'float', low: 1e-5, high: 1e-1, log: true } },
      {
        key: 'epsilon',
        domain: { kind: 'float', low: 1e-10, high: 1e-3, log: true },
        when: { key: 'optimizer', in: ['adam'] },
      },
      {
        key: 'momentum',
        domain: { kind: 'float', low: 0, high: 0.99, log: false },
        when: { key: 'optimizer', in: ['sgd'] },
      },
      { key: 'layers', domain: { kind: 'int', low: 1, high: 6, log: false, step: 1 } },
      { key: 'width', domain: { kind: 'int', low: 8, high: 512, log: true, step: 1 } },
      { key: 'batch', domain: { kind: 'choice', values: [32, 64, 128, 256] } },
      { key: 'dropout', domain: { kind: 'float', low: 0, high: 0.5, log: false, step: 0.05 } },
    ],
    value: params => {
      const p = params as Readonly<Record<string, number>>;
      const own =
        params.optimizer === 'adam'
          ? square(Math.log10(p.rate) + 3) + square(Math.log10(p.epsilon) + 7) / 10
          : 0.3 + square(Math.log10(p.rate) + 1.5) + 4 * square(p.momentum - 0.9);
      const shape = square(p.layers - 3) / 4 + square(Math.log2(p.width) - 7) / 4;
      return own + shape + BATCH_COSTS[String(p.batch)] + 10 * square(p.dropout - 0.15);
    },
    best: 0,
  },
];
