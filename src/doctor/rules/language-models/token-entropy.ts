import { cite, citeSetting, rowsBetween, say } from '../../judge/facts.ts';
import { median } from '../../statistics/order.ts';
import { trend } from '../../statistics/trend.ts';
import { limitsOf } from '../limits.ts';
import type { Rule } from '../rule.ts';
import { change, finding, mark, name, percent, soon } from '../words.ts';
import { bestSaid } from './levels.ts';

const l = limitsOf('token-entropy', {
  rows: 20,
  /** It climbs: to so many times its start, above so many nats, by a trend of this standard score. */
  times: 3,
  nats: 1,
  score: 3,
  /** It dies: to this share of what it began with, below so many nats, from above the other. */
  share: 0.02,
  dead: 0.01,
  alive: 0.05,
});

export const tokenEntropy: Rule = {
  code: 'token-entropy',
  title: 'The entropy of the tokens runs away or dies',
  looksAt: ['policy/entropy', 'reward/mean', 'train/entropy_coef'],
  causes: ['entropy-bonus-too-large', 'entropy-collapse'],
  text: {
    means:
      'A language model whose token entropy climbs without end speaks ever more at random, mostly because of an entropy bonus; one whose entropy dies while the reward is still poor says one thing for ever.',
    seen: `Entropy above ${l.times} times its start and above ${l.nats} nat, rising steadily, with a reward that collapsed or does not improve; or entropy below ${percent(l.share)} of its start and ${l.dead} nats with a reward that does not improve.`,
    todo: 'Set the entropy coefficient to 0 or 0.001; against collapse raise the temperature, or the upper clip bound.',
    silent: 'Entropy that falls while the reward rises is learning, and is usual.',
    references: ['volcengine/verl#781'],
  },
  check(run, signals) {
    const entropy = signals.get('policy/entropy');
    const { progress } = signals;
    if (
      run.kind !== 'language-model' ||
      entropy === undefined ||
      entropy.n < l.rows ||
      progress === undefined
    )
      return [];
    if (progress.track.n < l.rows || (progress.improved && !progress.collapsed) || progress.saturated)
      return [];
    const over = trend(entropy.v);
    const climbs = over.end > l.times * over.start && over.end > l.nats && over.z > l.score;
    // It may die within a few rows: the very beginning counts.
    const firstRows = Math.max(3, Math.floor(entropy.n / 50));
    const began = median(entropy.v.subarray(0, firstRows));
    const dies = over.end < l.share * began && over.end < l.dead && began > l.alive;
    if (!climbs && !dies) return [];
    if (climbs && run.config.entropyCoef === 0) return [];
    return [
      finding('token-entropy', {
        severity: climbs ? (progress.collapsed ? 'critical' : 'warning') : 'critical',
        title: say`${name(entropy)} goes from ${climbs ? cite(entropy, 'trend start') : cite(rowsBetween(entropy, 0, firstRows), 'median')} to ${cite(entropy, 'trend end')} and ${name(progress.track)} is poor`,
        cause: climbs ? 'entropy-bonus-too-large' : 'entropy-collapse',
        confidence: climbs ? ((run.config.entropyCoef ?? 0) > 0 ? 0.8 : 0.55) : 0.7,
        evidence: [
          say`${name(entropy)} ${climbs ? 'climbs' : 'falls'} with a trend of ${cite(entropy, 'trend score')} standard scores`,
          bestSaid(progress),
          run.config.entropyCoef === undefined
            ? undefined
            : say`the entropy coefficient is ${citeSetting('entropyCoef', run.config.entropyCoef)}`,
        ],
        fix: climbs
          ? [change(run, { entropyCoef: 0 }, 'set the entropy coefficient to 0')]
          : [
              change(run, { temperature: 1 }, 'sample at temperature 1'),
              change(run, { clipRangeHigh: 0.28 }, 'raise the upper clip bound to 0.28'),
              'restart from a checkpoint before the collapse',
            ],
        watch: `${soon(run, signals.to - signals.from)} ${name(entropy)} should find a level`,
        marks: [mark(entropy, signals.from, signals.to)],
      }),
    ];
  },
};
