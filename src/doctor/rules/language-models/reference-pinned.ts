import { cite, citeSetting, rowsOf, say } from '../../judge/facts.ts';
import { median } from '../../statistics/order.ts';
import { courseSaid } from '../course.ts';
import { limitsOf } from '../limits.ts';
import type { Rule } from '../rule.ts';
import { part } from '../track.ts';
import { change, finding, mark, name, num, round, soon } from '../words.ts';

const l = limitsOf('reference-pinned', {
  rows: 30,
  /** The KL to the reference, per token and per sequence. */
  token: 1e-3,
  sequence: 0.05,
  /** A weight that is strong, and a rate that is too small for anything to move. */
  weight: 0.1,
  rate: 1e-7,
});

export const referencePinned: Rule = {
  code: 'reference-pinned',
  title: 'The reference holds the policy fast',
  looksAt: ['kl/ref', 'kl/ref_coef', 'reward/mean', 'grad/norm'],
  causes: ['reference-too-strong', 'learning-rate-too-low'],
  text: {
    means:
      'The KL to the reference stays near 0 and the reward does not rise: the penalty outweighs the reward, or the rate is too small for anything to move.',
    seen: `A reference KL below ${l.token} a token (${l.sequence} a sequence) for ${l.rows} rows or more, a reward that does not improve, and a weight of ${l.weight} or more. With a small weight and a rate below ${num(l.rate)} it is the rate.`,
    todo: 'Lower the weight of the KL tenfold, or raise the learning rate.',
    silent: 'When the weight is small or unknown, groups have no spread, or the reward improves.',
    references: ['huggingface/trl: beta, the weight of the KL'],
  },
  check(run, signals) {
    const ref = signals.get('kl/ref');
    const { progress, settings } = signals;
    if (ref === undefined || ref.n < l.rows || progress === undefined || progress.track.n < l.rows) return [];
    if (progress.improved || progress.saturated || progress.collapsed) return [];
    const late = Math.abs(median(part(ref, 0.3)));
    const limit = ref.kl?.per === 'sequence' ? l.sequence : l.token;
    if (!(late < limit)) return [];
    const coef = run.config.refCoef;
    const strong = coef !== undefined && coef >= l.weight;
    const rate = settings.lr;
    const slow = rate !== undefined && rate > 0 && rate < l.rate && run.kind === 'language-model';
    if (!strong && !slow) return [];
    return [
      finding('reference-pinned', {
        severity: strong ? 'critical' : 'warning',
        title: say`${name(ref)} stays at ${cite(rowsOf(ref, 0.3), 'median')} and ${name(progress.track)} does not rise`,
        cause: strong ? 'reference-too-strong' : 'learning-rate-too-low',
        confidence: strong ? 0.8 : 0.6,
        evidence: [
          coef === undefined ? undefined : say`the weight of the KL is ${citeSetting('refCoef', coef)}`,
          courseSaid(progress),
          rate === undefined ? undefined : say`the learning rate is ${citeSetting('learningRate', rate)}`,
        ],
        fix: [
          strong
            ? change(run, { refCoef: round(coef / 10) }, 'divide the weight of the KL by 10')
            : change(run, { learningRate: 1e-6 }, 'raise the learning rate to 1e-6'),
        ],
        watch: `${soon(run, signals.to - signals.from)} ${name(ref)} should leave 0 and ${name(progress.track)} should begin to rise`,
        marks: [mark(ref, signals.from, signals.to)],
      }),
    ];
  },
};
