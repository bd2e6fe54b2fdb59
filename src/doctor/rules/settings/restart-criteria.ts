import { whole } from '../../../base/numbers.ts';
import { cite, citeCount, citeCourse, citeStep, limit, rowsBetween, rowsOf, say } from '../../judge/facts.ts';
import { courseSaid } from '../course.ts';
import { VAST_LOSS } from '../critic/reward-scale.ts';
import { limitsOf } from '../limits.ts';
import type { Rule } from '../rule.ts';
import type { Signals } from '../signals.ts';
import { lateSpikesOf } from '../steps/kl-spikes.ts';
import { inARow, PROBLEM_KL, rowWord, streakLimits, streaksOf, WARNING_KL } from '../steps/streak.ts';
import { finding, mark, name, num, type Said, soon, stepAt, unitOf } from '../words.ts';

const limits = limitsOf('restart-criteria', {
  rows: 20,
  /** So many of the five. */
  signs: 2,
  /** The median of the explained variance over the second half. */
  explained: -0.1,
  /** Unless the value loss is next to 0: returns that do not vary cannot be explained. */
  loss: 1e-3,
  /** A large step counts from so much of the run before the best return on. */
  before: 0.15,
});

/** Which of the five hold, each in a sentence, in their order. */
function signsOf(signals: Signals): Said[] {
  const { run, kl, progress, critic, from, to } = signals;
  const span = to - from;
  const signs: Said[] = [];
  if (kl !== undefined) {
    const { track } = kl;
    const late = streaksOf(kl).filter(streak => track.x[streak.to] >= from + span / 2);
    const longest = late.toSorted((a, b) => b.length - a.length)[0];
    if (longest !== undefined)
      signs.push(
        say`${inARow(cite(rowsBetween(track, longest.from, longest.to + 1), 'rows above', WARNING_KL), rowWord(run, track))} with ${name(track)} above ${limit(WARNING_KL)}`,
      );
    const spikes = lateSpikesOf(signals);
    if (spikes?.grow)
      signs.push(
        say`${citeCount('late spikes', spikes.late.length, whole, track)} spikes of ${name(track)}, the later half ${citeCount('growth of late spikes', spikes.growth, num)} times the earlier`,
      );
  }
  if (kl !== undefined && !kl.signed && progress?.collapsed) {
    const { track, bestX } = progress;
    const at = kl.track.v.findIndex(
      (v, i) => v > PROBLEM_KL && kl.track.x[i] >= bestX - limits.before * span,
    );
    if (at >= 0)
      signs.push(
        say`${name(track)} collapsed from ${citeCourse(progress, 'best')} to ${citeCourse(progress, 'end')}, with ${name(kl.track)} at ${cite(rowsBetween(kl.track, at, at + 1), 'first')} at ${unitOf(run)} ${citeStep(kl.track, at)}`,
      );
  }
  const { ev, evLate, loss, lossLate } = critic;
  if (ev !== undefined && evLate < limits.explained && !(lossLate < limits.loss))
    signs.push(say`${name(ev)} has a median of ${cite(rowsOf(ev, 0.5), 'median')} in the second half`);
  if (loss !== undefined && lossLate > VAST_LOSS)
    signs.push(say`${name(loss)} has a median of ${cite(rowsOf(loss, 0.5), 'median')} in the second half`);
  return signs;
}

export const restartCriteria: Rule = {
  code: 'restart-criteria',
  title: 'Signs that a run will not recover',
  looksAt: ['kl/step', 'episode/return', 'value/explained_variance', 'loss/value'],
  causes: [],
  text: {
    means: `Five signs, each of which alone may pass: a KL above ${WARNING_KL} for several updates in a row, spikes of the KL that grow, a return that collapses after a large step, an explained variance below 0, a value loss above ten million. Several together seldom recover.`,
    seen: `It counts which of the five hold: ${streakLimits.rows} updates in a row with a KL above ${WARNING_KL} that reach into the second half; late spikes that grow, as \`kl-spikes\` has them; a return that collapsed with a KL above ${PROBLEM_KL} around its best or since; a median of the explained variance below ${limits.explained} in the second half, with a value loss of ${limits.loss} or more; one of the value loss above ${num(VAST_LOSS)}. It speaks from ${limits.signs} on.`,
    todo: 'Mend the cause that the other findings name and restart, from a checkpoint before the first sign or anew. Where the return still rises, wait as long as it does.',
    silent: `With fewer signs or fewer than ${limits.rows} rows. It never changes the verdict.`,
    references: ['DLR-RM/stable-baselines3#324'],
  },
  check(run, signals) {
    const { progress } = signals;
    if (run.kind !== 'classic' || signals.rows < limits.rows || progress === undefined) return [];
    const signs = signsOf(signals);
    if (signs.length < limits.signs) return [];
    const { track, improving, collapsed, bestX } = progress;
    return [
      finding('restart-criteria', {
        severity: 'info',
        title: say`${citeCount('signs of five', signs.length)} of the five signs that a run will not recover${improving ? `, though ${name(track)} still rises` : ''}`,
        cause: null,
        confidence: improving ? 0.4 : 0.6,
        evidence: [...signs, improving ? courseSaid(progress) : undefined],
        fix: [
          improving
            ? `keep a checkpoint of now, and restart from it with the cause mended once ${name(track)} stalls`
            : `mend the cause and restart${collapsed ? ` from the checkpoint nearest to ${stepAt(run, bestX)}` : ' anew'}`,
        ],
        ...(improving
          ? {
              watch: `${soon(run, signals.to - signals.from)} ${name(track)} should rise further: as long as it does, none of the signs is a reason to stop`,
            }
          : {}),
        marks: [mark(track, signals.from + (signals.to - signals.from) / 2, signals.to)],
      }),
    ];
  },
};
