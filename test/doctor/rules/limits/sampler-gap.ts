/** The limits of a sampler and a scorer that disagree, each from both sides. */
import type { CanonicalRun } from '../../../../src/doctor/canonical.ts';
import type { LimitTable } from '../../../../src/doctor/rules/limits.ts';
import type { AtLimits, Sides } from '../support/at-limits.ts';
import { rows, run } from '../support/build.ts';

/** A series for each number that is given. */
const apart = ({ n = 20, sequence = 0, grown = 1, zero = 1, ...at }: LimitTable): CanonicalRun => {
  const level = (id: string, value: number | undefined): Record<string, number[]> =>
    value === undefined ? {} : { [id]: rows(n, () => value) };
  return run(
    {
      'reward/mean': rows(n, () => 0.5),
      ...level('kl/sampler', at.kl),
      ...level('sampler/prob_diff', at.prob),
      ...level('sampler/logp_diff', at.logp),
      ...level('sampler/ratio_mean', at.log === undefined ? undefined : Math.exp(at.log)),
      ...level('policy/ratio_mean', at.ratio),
      ...level('policy/clip_fraction', at.clip),
      ...level('kl/step', at.step),
      ...(at.ref === undefined ? {} : { 'kl/ref': rows(n, i => (i === 0 ? at.ref : grown * at.ref)) }),
      ...(at.clip === undefined && at.step === undefined
        ? {}
        : { 'train/lr': rows(n, i => (i < zero * n ? 0 : 1e-6)) }),
    },
    { kind: 'language-model', kl: sequence ? { 'kl/ref': { per: 'sequence' } } : {} },
  );
};

const sides = (key: string, limit: number, loud?: 'critical'): Sides => {
  const both = [{ [key]: 1.02 * limit }, { [key]: 0.98 * limit }] as const;
  return loud === undefined ? both : [...both, loud];
};

export const samplerGap: readonly AtLimits[] = [
  {
    code: 'sampler-gap',
    make: apart,
    cases: {
      rows: [
        { n: 5, kl: 0.2 },
        { n: 4, kl: 0.2 },
      ],
      kl: sides('kl', 0.02),
      klFar: sides('kl', 0.1, 'critical'),
      prob: sides('prob', 0.04),
      probFar: sides('prob', 0.1, 'critical'),
      logp: sides('logp', 0.1),
      logpFar: sides('logp', 0.3, 'critical'),
      ratio: sides('log', 0.2),
      ratioFar: sides('log', 0.7, 'critical'),
      still: [
        { step: 0.01, zero: 0.9 },
        { step: 0.01, zero: 0.85 },
      ],
      clipped: sides('clip', 1e-3),
      moved: sides('step', 1e-4),
      grown: [
        { step: 0.01, ref: 0.01, grown: 4.9 },
        { step: 0.01, ref: 0.01, grown: 5.1 },
      ],
      startRatio: [{ ratio: 1.102 }, { ratio: 1.098 }],
      startToken: sides('ref', 4),
      startSequence: [
        { sequence: 1, ref: 12.1 },
        { sequence: 1, ref: 11.9 },
      ],
      startGrown: [
        { ref: 5, grown: 2.95 },
        { ref: 5, grown: 3.05 },
      ],
    },
  },
];
