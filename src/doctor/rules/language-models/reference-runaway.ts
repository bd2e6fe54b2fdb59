import type { CanonicalRun } from '../../canonical.ts';
import type { Finding } from '../../findings.ts';
import { cite, citeCourse, citeSetting, limit, rowsOf, say, workOut } from '../../judge/facts.ts';
import { blockMedians } from '../../statistics/blocks.ts';
import { median } from '../../statistics/order.ts';
import { trend } from '../../statistics/trend.ts';
import { courseSaid } from '../course.ts';
import type { Rule } from '../rule.ts';
import type { Signals } from '../signals.ts';
import { lowerRate } from '../steps/unstable.ts';
import { part, split, type Track } from '../track.ts';
import { change, finding, mark, name, num, round, soon, stepAt } from '../words.ts';
import { bestSaid } from './levels.ts';

/** No language model is tuned at such a rate, not even an adapter. */
const absurdRate = 1e-3;

/** A rate that nobody uses, and a policy in ruins: everything else that is wrong with the run follows from it. */
function blownUp(run: CanonicalRun, signals: Signals, ref: Track): Finding | undefined {
  const { progress, settings } = signals;
  const rate = settings.lr;
  if (rate === undefined || rate < absurdRate || progress === undefined || progress.improved)
    return undefined;
  const most = ref.q(1);
  if (!(most > (ref.kl?.per === 'sequence' ? 500 : 5)) && ref.broken.infinite === 0) return undefined;
  const gradient = signals.get('grad/norm');
  const rated = citeSetting('learningRate', rate);
  const lower = lowerRate(run, rate);
  return finding('reference-runaway', {
    severity: 'critical',
    title: say`At a learning rate of ${rated} ${name(ref)} reaches ${cite(ref, 'most')}`,
    cause: 'learning-rate-too-high',
    confidence: 0.9,
    evidence: [
      say`the learning rate of ${rated} is ${workOut('times', rated, limit(2e-5))} times the largest that is usual for a language model`,
      say`${name(ref)}: ${cite(ref, 'first')} at first, at most ${cite(ref, 'most')}`,
      gradient === undefined ? undefined : say`${name(gradient)} reaches ${cite(gradient, 'most')}`,
      courseSaid(progress),
    ],
    fix: [
      change(run, { learningRate: lower }, `set the learning rate to ${num(lower)}`),
      'models of a billion parameters take 1e-6, GPT-2 1e-6 to 1e-5, an adapter (LoRA) 1e-5 to 1e-4',
    ],
    watch: `${soon(run, signals.to - signals.from)} ${name(ref)} should stay below 0.1`,
    marks: [mark(ref, signals.from, signals.to)],
    from: signals.from,
  });
}

export const referenceRunaway: Rule = {
  code: 'reference-runaway',
  title: 'The policy runs away from its reference',
  looksAt: ['kl/ref', 'kl/ref_coef', 'reward/mean', 'policy/entropy'],
  causes: ['reference-too-weak', 'learning-rate-too-high'],
  text: {
    means:
      'The KL to the reference races away and the reward breaks down: the policy has left the language that the reference knew, and what the reward still measures is gibberish.',
    seen: 'The reference KL at the end at least 10 times its median over the first half and large (above 0.5 a token, 20 a sequence), with a reward that collapsed after it began to rise; or a collapse of the reward without any KL term in the log. A warning: a KL of 1.5 nats a token and more over the second half, from below 0.1 at first, without a gain. A learning rate of 0.001 and more with a KL above 5 is the cause by itself.',
    todo: 'Raise the weight of the KL to the reference, lower the learning rate, and restart from before the fall.',
    silent: 'A KL that grows slowly while the reward rises is learning. One spike that comes back is noise.',
    references: ['ConvSearch-R1#6', 'volcengine/verl#4818', 'volcengine/verl#891'],
  },
  check(run, signals) {
    if (run.kind !== 'language-model') return [];
    const { progress, settings } = signals;
    if (progress === undefined || progress.track.n < 8) return [];
    const ref = signals.get('kl/ref');
    const coef = run.config.refCoef;
    const rate = settings.lr;
    const high = rate !== undefined && rate > 5e-5;
    if (ref === undefined || ref.n < 8) {
      if (progress.track.n < 16) return [];
      // Nothing in the log holds the policy; only a fall of most of the gain is worth a word.
      if (!progress.collapsed || (coef ?? 0) > 0) return [];
      const lost = (progress.best - progress.end) / Math.max(progress.best - progress.start, 1e-12);
      if (lost < 0.8) return [];
      return [
        finding('reference-runaway', {
          severity: 'warning',
          title: say`${name(progress.track)} fell from ${citeCourse(progress, 'best')} to ${citeCourse(progress, 'end')}, and no KL term holds the policy`,
          cause: high ? 'learning-rate-too-high' : 'reference-too-weak',
          confidence: 0.5,
          evidence: [
            say`the best stretch was at ${citeCourse(progress, 'bestX')}; the log has no KL to a reference`,
          ],
          fix: [
            change(run, { refCoef: 0.001 }, 'add a KL to the reference with a small weight'),
            change(
              run,
              rate === undefined ? {} : { learningRate: round(rate / 3) },
              'divide the learning rate by 3',
            ),
          ],
          watch: `${soon(run, signals.to - signals.from)} ${name(progress.track)} should stay near ${num(progress.best)}`,
          marks: [mark(progress.track, progress.bestX, signals.to)],
        }),
      ];
    }
    const blown = blownUp(run, signals, ref);
    if (blown !== undefined) return [blown];
    if (ref.n < 16 || progress.track.n < 16) return [];
    const blocks = blockMedians(ref.v, 20);
    const before = median(blocks.subarray(0, Math.max(1, Math.floor(blocks.length / 2))));
    const end = trend(blocks).end;
    const large = end > (ref.kl?.per === 'sequence' ? 20 : 0.5);
    const races = large && end > 10 * Math.max(before, 1e-6);
    const [, sinceBest] = split(ref, progress.bestX);
    const harmed = progress.collapsed && (races || (large && median(sinceBest) > 3 * Math.max(before, 1e-6)));
    const extreme = end > (ref.kl?.per === 'sequence' ? 200 : 5) && races && !progress.improved;
    const far =
      ref.kl?.per === 'token' &&
      !progress.improved &&
      !progress.saturated &&
      ref.first < 0.1 &&
      median(part(ref, 0.5)) > 1.5;
    if (!harmed && !extreme && !far) return [];
    const [half, last] = [cite(rowsOf(ref, 0, 0.5), 'median'), cite(rowsOf(ref, 0.8), 'median')];
    return [
      finding('reference-runaway', {
        severity: harmed || extreme ? 'critical' : 'warning',
        title: say`${name(ref)} goes from ${half} to ${last} and ${name(progress.track)} ${harmed ? say`falls from ${citeCourse(progress, 'best')} to ${citeCourse(progress, 'end')}` : 'does not improve'}`,
        cause: high ? 'learning-rate-too-high' : 'reference-too-weak',
        confidence: harmed && races ? 0.8 : harmed || extreme ? 0.65 : 0.5,
        evidence: [
          say`${name(ref)}: median ${half} in the first half, ${last} in the last fifth, at most ${cite(ref, 'most')}`,
          bestSaid(progress),
          coef === undefined ? undefined : say`the weight of the KL is ${citeSetting('refCoef', coef)}`,
          rate === undefined ? undefined : say`the learning rate is ${citeSetting('learningRate', rate)}`,
        ],
        fix: [
          change(
            run,
            { refCoef: round(Math.max(0.001, 10 * (coef ?? 0.001))) },
            'raise the weight of the KL to the reference tenfold',
          ),
          change(
            run,
            rate === undefined ? {} : { learningRate: round(rate / 3) },
            'divide the learning rate by 3',
          ),
          `restart from the checkpoint nearest to ${stepAt(run, progress.bestX)}`,
        ],
        watch: `${soon(run, signals.to - signals.from)} ${name(ref)} should stay below ${num(3 * Math.max(before, 1e-3))}`,
        marks: [
          mark(ref, ref.x[Math.floor(ref.n / 2)], signals.to),
          mark(progress.track, progress.bestX, signals.to),
        ],
      }),
    ];
  },
};
