import { share } from '../statistics/order.ts';
import type { Rule } from './rule.ts';
import { MIN_POINTS } from './signals.ts';
import { part } from './track.ts';
import { suspectOf } from './unstable.ts';
import { finding, mark, name, num, percent, soon } from './words.ts';

export const guardBusy: Rule = {
  code: 'guard-busy',
  title: 'The KL guard does the work of a lower learning rate',
  looksAt: ['guard/backtracks', 'guard/scale', 'kl/step_raw'],
  causes: ['learning-rate-too-high', 'too-many-epochs', 'clip-range-too-large'],
  text: {
    means:
      'In most updates the guard takes the policy back because the update left its bound. Training is safe, but most of each update is thrown away, and the raw KL shows what would have happened without it.',
    seen: 'Backtracks in half of the rows or more after the first tenth.',
    todo: 'Lower the learning rate or the epochs until the guard acts now and then.',
    silent: 'When the guard acts in less than half of the rows: that is what it is for.',
    references: ['docs/ppo.md'],
  },
  check(run, signals) {
    const backtracks = signals.get('guard/backtracks');
    if (backtracks === undefined || backtracks.n < Math.max(10, MIN_POINTS)) return [];
    const often = share(part(backtracks, 0.1), v => v > 0);
    if (often < 0.5) return [];
    const suspect = suspectOf(signals);
    const raw = signals.get('kl/step_raw');
    return [
      finding('guard-busy', {
        severity: 'warning',
        title: `The guard stepped back in ${percent(often)} of the updates (${name(backtracks)})`,
        cause: suspect.cause,
        confidence: Math.max(0.6, suspect.confidence),
        evidence: [
          raw === undefined || raw.n === 0
            ? undefined
            : `${name(raw)} before the guard: median ${num(raw.median)}, largest ${num(raw.q(1))}`,
          suspect.why,
        ],
        fix: suspect.fix,
        watch: `${soon(run, signals.to - signals.from)} ${name(backtracks)} should be 0 in most rows`,
        marks: [mark(backtracks, signals.from, signals.to)],
      }),
    ];
  },
};
