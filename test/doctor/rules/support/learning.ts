/** A classic run that learns, with noise of its own, as a dialect would hand it to the rules. */
import type { CanonicalRun } from '../../../../src/doctor/canonical.ts';
import type { Diagnosis } from '../../../../src/doctor/findings.ts';
import { Rng } from '../../../../src/random/index.ts';
import { type More, rows, run } from './build.ts';

/** Rows of the run. */
export const N = 80;

export function learning(seed: number) {
  const rng = new Rng(seed);
  const about = (level: number, share = 0.05): number => level * (1 + share * rng.normal());
  const base = {
    'episode/return': rows(N, (_, t) => about(20 + 300 * t)),
    'episode/length': rows(N, () => 200),
    'kl/step': rows(N, () => about(0.006, 0.3)),
    'policy/clip_fraction': rows(N, () => about(0.06, 0.3)),
    'policy/entropy': rows(N, (_, t) => 0.69 - 0.3 * t),
    'value/explained_variance': rows(N, (_, t) => Math.min(0.95, 0.1 + 2 * t)),
    'loss/value': rows(N, () => about(20, 0.3)),
    'loss/policy': rows(N, () => -about(0.006)),
    'train/lr': rows(N, () => 3e-4),
  };
  /** The run, with other series in place of some of its own. */
  const agent = (over: Record<string, number[]> = {}, more: More = {}): CanonicalRun =>
    run({ ...base, ...over }, more);
  return { rng, about, base, agent };
}

/** A wave in place of noise: the same in every run of the tests. */
export const wave = (i: number, size: number): number => size * Math.sin(i * 2.399963);

/** Codes of what is more than a remark. */
export const loud = (found: Diagnosis): string[] =>
  found.findings.filter(({ severity }) => severity !== 'info').map(({ code }) => code);
