import { cite, citeStep, limit, rowsBetween, say } from '../../judge/facts.ts';
import type { Rule } from '../rule.ts';
import { finding, mark, name, unitOf } from '../words.ts';
import { PROBLEM_KL } from './streak.ts';
import { unguarded } from './unstable.ts';

export const guardOff: Rule = {
  code: 'guard-off',
  title: 'Nothing bounds the KL of an update',
  looksAt: ['kl/step'],
  causes: [],
  text: {
    means:
      "Keel's guard was switched off, and single updates moved the policy further than it would have let them. That may have done no harm; it is a risk that costs nothing to take away.",
    seen: 'A run of Keel with `guard: null` and at least one update with a KL above 0.05. It is information alone: whether the run suffers is for other rules to say.',
    todo: 'Switch the guard on at 0.05: an update within the bound is left as it is.',
    silent: 'When the guard is on, when no update is above 0.05, and for trainers that have no guard.',
    references: ['docs/kl.md', 'docs/ppo.md'],
  },
  check(run, signals) {
    const { kl } = signals;
    const off = unguarded(run);
    if (off === undefined || kl === undefined || kl.signed) return [];
    const beyond = [...kl.track.v].flatMap((v, i) => (v > PROBLEM_KL ? [i] : []));
    if (beyond.length === 0) return [];
    const top = beyond.reduce((a, b) => (kl.track.v[b] > kl.track.v[a] ? b : a));
    return [
      finding('guard-off', {
        severity: 'info',
        title: say`the guard is off, and ${cite(kl.track, 'rows above', PROBLEM_KL)} ${beyond.length === 1 ? 'update' : 'updates'} had a ${name(kl.track)} above ${limit(PROBLEM_KL)}`,
        cause: null,
        confidence: 0.9,
        evidence: [
          say`the largest is ${cite(rowsBetween(kl.track, top, top + 1), 'most')} at ${unitOf(run)} ${citeStep(kl.track, top)}`,
          off.why,
        ],
        fix: [off.fix],
        watch: `no ${name(kl.track)} should exceed the bound any more`,
        marks: [mark(kl.track, kl.track.x[beyond[0]], kl.track.x[beyond.at(-1)!])],
      }),
    ];
  },
};
