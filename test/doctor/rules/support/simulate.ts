/**
 * Logs that look like Stable-Baselines3's, with noise like theirs: a healthy run, and the same with one fault put in. They
 * are no copies of real runs: levels, lengths and noise vary with the seed.
 */
import type { CanonicalRun } from '../../../../src/doctor/canonical.ts';
import type { RootCause } from '../../../../src/doctor/findings.ts';
import type { KnownConfig } from '../../../../src/doctor/known-settings.ts';
import { Rng } from '../../../../src/random/index.ts';
import { run } from './build.ts';

export interface Task {
  readonly rows: number;
  readonly seed: number;
  readonly actions: 'discrete' | 'continuous';
  /** Return of a random policy and of a good one. */
  readonly from: number;
  readonly to: number;
}

export type Fault =
  | 'healthy'
  | Extract<
      RootCause,
      | 'learning-rate-too-high'
      | 'learning-rate-too-low'
      | 'too-many-epochs'
      | 'clip-range-too-large'
      | 'target-kl-too-tight'
      | 'reward-scale-too-large'
      | 'reward-scale-changed'
      | 'no-reward-signal'
      | 'critic-not-learning'
      | 'entropy-bonus-too-large'
      | 'entropy-collapse'
      | 'non-finite'
    >;

export const faults: readonly Fault[] = [
  'healthy',
  'learning-rate-too-high',
  'learning-rate-too-low',
  'too-many-epochs',
  'clip-range-too-large',
  'target-kl-too-tight',
  'reward-scale-too-large',
  'reward-scale-changed',
  'no-reward-signal',
  'critic-not-learning',
  'entropy-bonus-too-large',
  'entropy-collapse',
  'non-finite',
];

interface Row {
  ret: number;
  length: number;
  kl: number;
  clip: number;
  entropy: number;
  std: number;
  ev: number;
  vl: number;
  pg: number;
  total: number;
}

/** A run of one task with one fault, or with none. */
export function simulate(task: Task, fault: Fault): CanonicalRun {
  const rng = new Rng(task.seed * 7919 + faults.indexOf(fault));
  const n = task.rows;
  const gauss = (std: number): number => std * rng.normal();
  const lognormal = (middle: number, std: number): number => middle * Math.exp(gauss(std));
  const range = task.to - task.from;
  const actions = 2 + rng.integer(5);
  const dimensions = 1 + rng.integer(6);
  const most = task.actions === 'discrete' ? Math.log(actions) : 1.4189 * dimensions;
  const middle = 0.3 + 0.2 * rng.uniform();
  const width = 0.08 + 0.05 * rng.uniform();
  const scale = Math.max(Math.abs(task.from), Math.abs(task.to)) * (0.1 + 0.2 * rng.uniform());
  const baseKl = lognormal(0.006, 0.4);
  const config: Record<string, number> = { learningRate: 3e-4, clipRange: 0.2 };
  let epochs = 10;
  let wander = 0;
  const list: Row[] = [];
  const change = Math.floor(n * (0.35 + 0.3 * rng.uniform()));
  const learns = !['learning-rate-too-low', 'no-reward-signal', 'entropy-collapse'].includes(fault);
  for (let i = 0; i < n; i++) {
    const t = i / n;
    const progress = learns ? 1 / (1 + Math.exp(-(t - middle) / width)) : 0;
    wander = 0.8 * wander + gauss(0.02);
    const row: Row = {
      ret: task.from + range * (progress + wander * (0.3 + progress)),
      length: 200,
      kl: lognormal(baseKl, 0.5) * (1 - 0.4 * t),
      clip: 0,
      entropy: most,
      std: 1 - 0.5 * progress,
      ev: Math.min(0.999, 0.9 * (1 - Math.exp(-8 * t)) + gauss(0.08)),
      vl: 0,
      pg: -lognormal(0.006, 0.5),
      total: 0,
    };
    row.entropy =
      task.actions === 'discrete'
        ? most * (1 - 0.45 * progress + gauss(0.01))
        : most + dimensions * Math.log(row.std);
    row.vl = scale ** 2 * Math.max(0.01, 1 - row.ev) * lognormal(0.3, 0.5);
    row.clip = Math.min(0.9, 8 * row.kl * lognormal(1, 0.3));
    damage(row, fault);
    row.total =
      row.pg + valueWeight(fault) * row.vl * lognormal(0.6, 0.4) - entropyWeight(fault) * row.entropy;
    list.push(row);

    function damage(r: Row, what: Fault): void {
      switch (what) {
        case 'learning-rate-too-high':
          config.learningRate = 0.02;
          r.kl = lognormal(0.12, 1);
          r.clip = 0.25 + 0.2 * rng.uniform();
          // Up and down: it learns, loses it all, and learns again.
          r.ret = task.from + range * Math.abs(Math.sin(9 * t + task.seed)) * (0.8 + gauss(0.1));
          break;
        case 'too-many-epochs':
          epochs = 80;
          r.kl = lognormal(0.045, 0.4);
          r.clip = 0.35 + gauss(0.03);
          break;
        case 'clip-range-too-large':
          config.clipRange = 5;
          r.kl = lognormal(0.05, 0.6);
          r.clip = 0.001 * rng.uniform();
          break;
        case 'learning-rate-too-low':
          config.learningRate = 1e-6;
          r.kl = lognormal(1e-8, 0.5);
          r.clip = 0;
          r.entropy = most * (1 - 1e-5 * i);
          r.std = 1;
          r.ev = gauss(0.01);
          r.vl = scale ** 2 * lognormal(0.5, 0.05);
          break;
        case 'target-kl-too-tight':
          config.learningRate = 1e-3;
          epochs = 1;
          r.kl = lognormal(2e-5, 0.3);
          r.clip = 0;
          r.ret = task.from + 0.05 * range * (t + wander);
          r.entropy = most * (1 - 0.05 * t);
          r.std = 1 - 0.02 * t;
          r.ev = gauss(0.05);
          break;
        case 'reward-scale-too-large':
          r.kl = lognormal(5e-6, 1);
          r.clip = 0;
          r.ret = task.from + 0.1 * range * (t + wander);
          r.entropy = most * (1 - 0.04 * t);
          r.std = 1 - 0.02 * t;
          r.ev = gauss(1e-5);
          r.vl = (1000 * Math.max(1, scale)) ** 2 * lognormal(1, 0.05);
          r.pg = -lognormal(1e-4, 1);
          break;
        case 'reward-scale-changed':
          if (i >= change) {
            r.kl = lognormal(1e-5, 1);
            r.clip = 0;
            r.ev = Math.abs(gauss(0.01));
            r.vl *= 400 / Math.max(0.02, 1 - r.ev);
            r.ret = list[change - 1].ret + range * gauss(0.02);
          }
          break;
        case 'no-reward-signal':
          r.ret = Math.min(task.from, 0);
          r.vl = 1e-3 * Math.exp(-12 * t) * lognormal(1, 0.3);
          r.ev = -3 + gauss(2);
          r.entropy = most * (1 - 0.3 * t);
          break;
        case 'critic-not-learning':
          r.ev = 0.007 + gauss(0.002);
          r.vl = scale ** 2 * lognormal(1, 0.06);
          r.ret = task.from + 0.15 * range * (progress + wander);
          break;
        case 'entropy-bonus-too-large':
          if (task.actions === 'discrete') {
            r.entropy = most * (0.98 + gauss(0.003));
            r.kl = lognormal(0.002, 0.5);
            r.ret = task.from + 0.1 * range * (1 + wander);
            r.vl *= 0.01;
          } else {
            r.std = Math.exp(3 * t);
            r.entropy = most + dimensions * 3 * t;
            r.ret = task.from + 0.1 * range * (1 + wander);
          }
          break;
        case 'entropy-collapse': {
          const left = Math.exp(-40 * t);
          r.entropy = task.actions === 'discrete' ? most * left : most - 40 * t * dimensions;
          r.std = Math.max(1e-3, left);
          r.kl = baseKl * left + 1e-12;
          r.ret = task.from + 0.02 * range * rng.uniform();
          break;
        }
        case 'non-finite':
          if (i >= n - Math.max(2, Math.floor(n / 10))) r.kl = r.vl = r.pg = r.entropy = Number.NaN;
          break;
        case 'healthy':
          break;
        default:
          what satisfies never;
      }
    }
  }
  const pick = (key: keyof Row): number[] => list.map(r => r[key]);
  const known: KnownConfig = config;
  return run(
    {
      'episode/return': pick('ret'),
      'episode/length': pick('length'),
      'kl/step': pick('kl'),
      'policy/clip_fraction': pick('clip'),
      'policy/entropy': pick('entropy'),
      ...(task.actions === 'continuous' ? { 'policy/std': pick('std') } : {}),
      'value/explained_variance': pick('ev'),
      'loss/value': pick('vl'),
      'loss/policy': pick('pg'),
      'loss/total': pick('total'),
      'train/lr': list.map(() => config.learningRate),
      'train/clip_range': list.map(() => config.clipRange),
      'train/epochs_run': list.map(() => epochs),
    },
    {
      config: known,
      actions: task.actions,
      ...(task.actions === 'discrete' ? { maxEntropy: most } : {}),
    },
  );
}

const valueWeight = (fault: Fault): number => (fault === 'critic-not-learning' ? 0 : 0.5);
const entropyWeight = (fault: Fault): number => (fault === 'entropy-bonus-too-large' ? 1 : 0);
