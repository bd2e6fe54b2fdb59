import { say } from '../../judge/facts.ts';
import { courseOf, falls, rises } from '../../judge/trends.ts';
import { limitsOf } from '../limits.ts';
import type { Rule } from '../rule.ts';
import type { Signals } from '../signals.ts';
import type { Track } from '../track.ts';
import { change, finding, mark, name, percent, soon } from '../words.ts';
import { citeEarly, citeLate, early, firstAndLast, late } from './levels.ts';

const l = limitsOf('reward-hacking', {
  rows: 16,
  /** Of a score, which validations have fewer of. */
  scoreRows: 6,
  /** The share of its first level that a score has lost. */
  lost: 0.3,
  /** A score that has not grown by this share of its first level while the reward rose. */
  grown: 0.25,
  /** The share of the reward's gain that comes from parts other than the score. */
  fromOthers: 0.7,
});

/** Names of what tells whether an answer is right. */
const scoring = /exact|correct|accura|\bacc\b|solve|pass|success|answer|right/i;

/** Names of what is paid for the form of an answer. */
const forming = /\bform|format|struct|parse|valid|xml|tag|syntax/i;

/** What tells how well the task is done, apart from the reward that is learnt from. */
function scoresOf(signals: Signals): Track[] {
  return [...signals.tracks.values()].filter(
    ({ id, n }) =>
      n >= l.scoreRows &&
      (id === 'eval/return' ||
        ((id.startsWith('env/') || id.startsWith('reward/part/')) && scoring.test(id))),
  );
}

/** The part of the reward that has gained most. */
function gainedMost(signals: Signals, except: Track): Track | undefined {
  return (
    [...signals.tracks.values()]
      .filter(track => track.id.startsWith('reward/part/') && track.n >= l.rows && track !== except)
      // That the form comes before the sense is how most models learn.
      .filter(track => !scoring.test(track.id) && !forming.test(track.id))
      .sort((a, b) => late(b) - early(b) - (late(a) - early(a)))[0]
  );
}

export const rewardHacking: Rule = {
  code: 'reward-hacking',
  title: 'The reward rises and the task is done worse',
  looksAt: ['reward/mean', 'reward/part/exact', 'env/exact', 'eval/return'],
  causes: ['reward-hacking'],
  text: {
    means:
      'The policy has found something that pays and is not the task: one part of the reward rises, and what tells whether answers are right falls or stays where it was.',
    seen: `A reward that surely rises over ${l.rows} rows or more, while a score (a validation, or a part or metric named after right answers) surely falls by ${percent(l.lost)} of its first level, or grows by less than ${percent(l.grown)} of it though other parts than the score bring ${percent(l.fromOthers)} of the reward's gain.`,
    todo: 'Read ten of the best-paid completions. Cap the part that is exploited, pay it only where the answer is right, or take it out.',
    silent:
      'Where no score apart from the reward is logged, where the score rises as well, or while the form is learnt and the score is only late.',
    references: [
      'arXiv 2606.04923: injected reward hacking with known onset',
      'OpenAI 2016: faulty reward functions',
    ],
  },
  check(run, signals) {
    const { progress } = signals;
    if (run.kind !== 'language-model' || progress === undefined || progress.track.n < l.rows) return [];
    if (!progress.improved) return [];
    const gain = late(progress.track) - early(progress.track);
    for (const score of scoresOf(signals)) {
      const [before, after] = [early(score), late(score)];
      const course = courseOf(score.v);
      const fell = before > 0 && falls(course) && before - after >= l.lost * before;
      const paid = gainedMost(signals, score);
      const others = gain - (score.id.startsWith('reward/part/') ? after - before : 0);
      // What is paid beside the score, where the log has parts; a validation is apart from all of the reward.
      const beside = paid === undefined ? gain : late(paid) - early(paid);
      const stayed =
        before >= 0 &&
        !rises(course) &&
        // Of a few validations the first three are a third of the run: what it began with counts, too.
        after - Math.min(before, score.first) < l.grown * Math.max(before, Number.EPSILON) &&
        Math.min(others, beside) >= l.fromOthers * gain;
      if (!fell && !stayed) continue;
      return [
        finding('reward-hacking', {
          severity: fell ? 'critical' : 'warning',
          title: say`${name(progress.track)} rises from ${citeEarly(progress.track)} to ${citeLate(progress.track)} while ${name(score)} ${fell ? 'falls' : 'goes'} from ${citeEarly(score)} to ${citeLate(score)}`,
          cause: 'reward-hacking',
          confidence: fell ? 0.85 : 0.7,
          evidence: [
            paid === undefined
              ? undefined
              : say`${name(paid)} gains most: from ${citeEarly(paid)} to ${citeLate(paid)}`,
            firstAndLast(score),
          ],
          fix: [
            paid === undefined
              ? 'read ten of the best-paid completions: what do they have in common that is not the task?'
              : `pay ${name(paid)} only where the answer is right, or take it out`,
            run.config.refCoef === undefined
              ? undefined
              : change(
                  run,
                  { refCoef: Number((10 * Math.max(run.config.refCoef, 1e-3)).toPrecision(1)) },
                  'raise the weight of the KL to the reference tenfold until the reward is mended',
                ),
          ],
          watch: `${soon(run, signals.to - signals.from)} ${name(score)} should rise with ${name(progress.track)}`,
          marks: [
            mark(progress.track, signals.from, signals.to),
            mark(score, signals.from, signals.to),
            ...(paid === undefined ? [] : [mark(paid, signals.from, signals.to)]),
          ],
        }),
      ];
    }
    return [];
  },
};
