/** Studies, trials and outcomes to test with. */
import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import type { RunOutcome, Space, Study, Trial } from '../../../src/studies/schema.ts';

export const space: Space = [
  { key: 'learningRate', domain: { kind: 'float', low: 1e-5, high: 1e-2, log: true } },
  { key: 'clipRange', domain: { kind: 'float', low: 0.1, high: 0.4, log: false, step: 0.1 } },
  { key: 'epochs', domain: { kind: 'int', low: 3, high: 20, log: false, step: 1 } },
  {
    key: 'hidden',
    domain: { kind: 'choice', values: [[64, 64], [32], '[32]', null, true, 1, 0.5, 'tanh'] },
  },
  { key: 'adaptiveRate', domain: { kind: 'choice', values: [false, true] } },
  {
    key: 'adaptiveRateTarget',
    domain: { kind: 'float', low: 0.001, high: 0.1, log: true },
    when: { key: 'adaptiveRate', in: [true] },
  },
];

export const study = (changes: Partial<Study> = {}): Study => ({
  kind: 'keel-study',
  schema: 1,
  name: 'tune',
  version: '0.1.0',
  createdAt: '2026-01-01T00:00:00.000Z',
  subject: { kind: 'env', reference: 'cartpole', sha256: null, options: {} },
  config: { steps: 10_000 },
  preset: {},
  space,
  method: 'tpe',
  halving: null,
  trials: 50,
  budgetSteps: null,
  seeds: [0, 1],
  searchSeed: 0,
  objective: { metric: 'score', direction: 'maximize', of: 'last', over: 'iqm' },
  constraints: { healthy: true, klMax: null },
  ...changes,
});

export const outcome = (changes: Partial<RunOutcome> = {}): RunOutcome => ({
  run: 't0000-seed0',
  seed: 0,
  status: 'done',
  step: 10_000,
  finished: true,
  value: 412.5,
  verdict: 'healthy',
  rootCause: null,
  klMedian: 0.01,
  klLargest: 0.03,
  seconds: 12.5,
  weights: 'a'.repeat(64),
  worker: 'host 1234',
  problem: null,
  ...changes,
});

export const trial = (changes: Partial<Trial> = {}): Trial => ({
  number: 0,
  state: 'complete',
  params: {},
  purpose: 'search',
  seeds: [0],
  value: 0,
  rungs: [],
  outcomes: [],
  violations: [],
  startedAt: null,
  endedAt: null,
  ...changes,
});

/** A new directory in a temporary root. */
export const newDirectory = (root: string): string => mkdtempSync(join(root, 'study-'));
