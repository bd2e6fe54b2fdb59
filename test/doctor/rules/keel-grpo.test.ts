/** Keel's own GRPO runs on chess: what the doctor makes of good settings and of bad ones. */
import { describe, expect, it } from 'vitest';
import { diagnose } from '../../../src/doctor/diagnose.ts';
import type { Diagnosis } from '../../../src/doctor/findings.ts';
import { rows, run } from './support/build.ts';

/** A wave in place of noise: the same in every run of the tests. */
const wave = (i: number, size: number): number => size * Math.sin(i * 2.399963);
const N = 60;

/** A run as Keel logs it: learning, its KL in the bound, its form right. */
const learning = {
  'kl/step': rows(N, i => 0.004 + wave(i, 0.002)),
  'kl/ref': rows(N, (i, t) => 0.02 * t + Math.abs(wave(i, 0.001))),
  'kl/sampler': rows(N, () => 1e-13),
  'reward/mean': rows(N, (i, t) => 0.3 + 0.4 * t + wave(i, 0.05)),
  'reward/std': rows(N, i => 0.5 + wave(i, 0.05)),
  'reward/group_std': rows(N, i => 0.3 + wave(i, 0.05)),
  'reward/zero_std_groups': rows(N, i => 0.05 + Math.abs(wave(i, 0.05))),
  'reward/part/parse': rows(N, i => 0.08 + wave(i, 0.01)),
  'adv/std': rows(N, () => 0.95),
  'completion/parse_rate': rows(N, i => 0.8 + wave(i, 0.1)),
  'completion/truncated': rows(N, () => 0.01),
  'completion/length': rows(N, i => 48 + wave(i, 3)),
  'policy/entropy': rows(N, (i, t) => 0.9 - 0.3 * t + wave(i, 0.02)),
  'grad/norm': rows(N, i => 0.8 + wave(i, 0.1)),
  'train/lr': rows(N, () => 3e-5),
};

/** All completions graded -1, which is what a cliff does to a model that is seldom right. */
const cliff = {
  ...learning,
  'kl/step': rows(N, () => 0),
  'reward/mean': rows(N, () => -1),
  'reward/std': rows(N, () => 0),
  'reward/group_std': rows(N, () => 0),
  'reward/zero_std_groups': rows(N, () => 1),
  'reward/part/parse': rows(N, () => 0),
  'reward/part/malformed': rows(N, () => -1),
  'adv/std': rows(N, () => 0),
  'policy/entropy': rows(N, i => 0.9 + wave(i, 0.02)),
  'grad/norm': rows(N, () => 0),
  'train/lr': rows(N, () => 1e-3),
};

function found(series: Parameters<typeof run>[0]): Diagnosis {
  return diagnose(
    run(series, { trainer: 'keel', kind: 'language-model', kl: { 'kl/step': { estimator: 'exact' } } }),
  );
}
const codes = ({ findings }: Diagnosis): string[] =>
  findings.filter(({ severity }) => severity !== 'info').map(({ code }) => code);

describe('GRPO on chess', () => {
  it('that learns inside its bound is healthy', () => {
    const { verdict, ...rest } = found(learning);
    expect(codes({ verdict, ...rest })).toEqual([]);
    expect(verdict).toBe('healthy');
  });

  it('a cliff over a model that writes the form: the reward says nothing, the form is not to blame', () => {
    const diagnosis = found(cliff);
    expect(diagnosis.verdict).toBe('sick');
    expect(['no-reward-signal', 'degenerate-groups']).toContain(diagnosis.rootCause);
    expect(codes(diagnosis)).toEqual(expect.arrayContaining(['no-reward', 'degenerate-groups']));
    expect(codes(diagnosis)).not.toContain('malformed-outputs');
  });

  it('a cliff of which a completion is right now and then: groups without spread', () => {
    const diagnosis = found({
      ...cliff,
      'kl/step': rows(N, i => (i % 3 === 0 ? 0.01 : 0)),
      'reward/mean': rows(N, i => (i % 3 === 0 ? -0.95 : -1)),
      'reward/std': rows(N, i => (i % 3 === 0 ? 0.3 : 0)),
      'reward/zero_std_groups': rows(N, i => (i % 3 === 0 ? 0.875 : 1)),
      'grad/norm': rows(N, i => (i % 3 === 0 ? 1 : 0)),
      'adv/std': rows(N, i => (i % 3 === 0 ? 0.3 : 0)),
    });
    expect([diagnosis.verdict, diagnosis.rootCause]).toEqual(['sick', 'degenerate-groups']);
  });

  it('random weights: the form', () => {
    const random = { ...cliff, 'completion/parse_rate': rows(N, () => 0) };
    expect(found(random)).toMatchObject({ verdict: 'sick', rootCause: 'malformed-outputs' });
  });

  it('a rate of 1e-3 without a guard: the rate', () => {
    const diagnosis = found({
      ...learning,
      'kl/step': rows(N, i => 0.6 + wave(i, 0.3)),
      'reward/mean': rows(N, (i, t) => Math.max(-0.3, 0.3 - 3 * t) + Math.abs(wave(i, 0.01))),
      'completion/parse_rate': rows(N, (_, t) => Math.max(0, 0.8 - 3 * t)),
      'train/lr': rows(N, () => 1e-3),
    });
    expect([diagnosis.verdict, diagnosis.rootCause]).toEqual(['sick', 'learning-rate-too-high']);
  });
});
