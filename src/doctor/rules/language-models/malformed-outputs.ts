import type { CanonicalRun } from '../../canonical.ts';
import type { Finding } from '../../findings.ts';
import { cite, citeCourse, rowsOf, say } from '../../judge/facts.ts';
import { median, share } from '../../statistics/order.ts';
import { trend } from '../../statistics/trend.ts';
import { courseSaid } from '../course.ts';
import { limitsOf } from '../limits.ts';
import type { Rule } from '../rule.ts';
import type { Signals } from '../signals.ts';
import { part, type Track } from '../track.ts';
import { change, finding, mark, name, num, percent, soon } from '../words.ts';
import { bestSaid } from './levels.ts';

const l = limitsOf('malformed-outputs', {
  /** Of the reward and of how many are cut off; of a term of the reward; of the length. */
  rows: 8,
  formRows: 10,
  lengthRows: 20,
  /** The share that is cut off in the second half, and still in the last fifth. */
  cut: 0.7,
  still: 0.5,
  /** Beside a reward at its floor fewer are enough. */
  some: 0.3,
  /** So many of the rewards lie within this share of their range of the lowest. */
  floor: 0.8,
  lowest: 0.1,
  /** More that can be read have the form; a term that never leaves one value varies by less than this. */
  read: 0.5,
  varies: 1e-9,
  /** The length at the end, as a share of what it was, and the standard score of its trend. */
  shrunk: 0.1,
  score: -2,
});

/** A term of the reward for the right form that never leaves one value, at the bottom. */
function formAtFloor(signals: Signals): Track | undefined {
  // Most can be read: the form is known, and what is at the floor is a reward that gives nothing for it.
  const read = signals.get('completion/parse_rate');
  if (read !== undefined && read.n > 0 && read.median > l.read) return undefined;
  for (const track of signals.tracks.values()) {
    if (
      !track.id.startsWith('reward/part/') ||
      !/\bform|format|struct|parse|valid|xml|tag|syntax/i.test(track.id)
    )
      continue;
    if (track.n >= l.formRows && track.q(0.98) - track.q(0.02) < l.varies && track.median <= 0) return track;
  }
  return undefined;
}

/** The length of completions where they fall to a tenth of what they were. */
function shrunkTo(signals: Signals): Track | undefined {
  const length = signals.get('completion/length');
  if (length === undefined || length.n < l.lengthRows) return undefined;
  const over = trend(length.v);
  const began = median(length.v.subarray(0, Math.max(3, Math.floor(length.n / 50))));
  return over.end < l.shrunk * began && over.z < l.score ? length : undefined;
}

function collapsedLength(run: CanonicalRun, signals: Signals, length: Track): Finding {
  const progress = signals.progress!;
  const { track } = progress;
  return finding('malformed-outputs', {
    severity: 'critical',
    title: say`Completions shrink from ${cite(length, 'first')} to ${cite(rowsOf(length, 0.8), 'median')} tokens and ${name(track)} falls to ${citeCourse(progress, 'end')}`,
    cause: 'malformed-outputs',
    confidence: 0.65,
    evidence: [
      say`${name(length)}: ${cite(length, 'first')} at first, a median of ${cite(rowsOf(length, 0.8), 'median')} in the last fifth`,
      bestSaid(progress),
    ],
    fix: [
      'read ten outputs: does the model stop at once, or repeat one word?',
      'restart from a checkpoint before the fall, with a lower learning rate or a stronger pull to the reference',
    ],
    watch: `${soon(run, signals.to - signals.from)} ${name(length)} should stay near ${num(length.first)}`,
    marks: [mark(length, signals.from, signals.to), mark(track, signals.from, signals.to)],
  });
}

export const malformedOutputs: Rule = {
  code: 'malformed-outputs',
  title: 'Outputs are cut off or have the wrong form',
  looksAt: [
    'completion/truncated',
    'completion/length',
    'completion/parse_rate',
    'reward/part/format',
    'reward/mean',
  ],
  causes: ['malformed-outputs'],
  text: {
    means:
      'Completions run into the length limit or do not have the form that the reward looks for, so that nearly all get the lowest reward, whatever they say. A model that was never taught the form, or wrong weights, look like this.',
    seen: `${percent(l.cut)} of the completions truncated in the second half while the reward does not improve (a warning, where it is above 0 and above its first row); or a reward that stays at one lowest value together with a form reward that never leaves its floor; or completions that shrink to ${percent(l.shrunk)} of their length while the reward collapses.`,
    todo: 'Read some outputs. Load the right weights and chat template, warm up on examples of the form, raise the length limit, give partial credit.',
    silent:
      'When the reward improves: a form reward that never fires is then only unused. Truncation that falls is a model that learns to stop. Where most completions can be read, a form reward of 0 is no fault of the form.',
    references: ['modelscope/ms-swift#8123', 'huggingface/trl: completions/clipped_ratio'],
  },
  check(run, signals) {
    if (run.kind !== 'language-model') return [];
    const { progress } = signals;
    const truncated = signals.get('completion/truncated');
    const late = truncated === undefined || truncated.n < l.rows ? Number.NaN : median(part(truncated, 0.5));
    if (progress === undefined || progress.track.n < l.rows || progress.improved) return [];
    const { track } = progress;
    const cut = late >= l.cut && median(part(truncated!, 0.8)) >= l.still;
    // By its own range, whatever its zero: mostly the lowest of all values.
    const floor = share(track.v, v => v <= track.q(0) + l.lowest * (track.q(1) - track.q(0))) >= l.floor;
    // Where all of the reward is 0 in every row, nothing says that it is the form.
    const form = progress.constant && track.median === 0 ? undefined : formAtFloor(signals);
    const earns = progress.end > track.first && progress.end > 0;
    const shrunk = shrunkTo(signals);
    if (shrunk !== undefined && progress.collapsed && !cut) return [collapsedLength(run, signals, shrunk)];
    if (!cut && !(floor && (form !== undefined || (late >= l.some && track.median <= 0)))) return [];
    const seen = cut ? truncated! : (form ?? track);
    return [
      finding('malformed-outputs', {
        // Short answers may be meant to fill their limit: what is cut off and earns something is not lost.
        severity: floor || progress.collapsed || !earns ? 'critical' : 'warning',
        title: cut
          ? say`${cite(rowsOf(truncated!, 0.5), 'median', undefined, percent)} of the completions are cut off`
          : say`${name(track)} stays at its lowest, ${cite(track, 'median')}, and ${name(seen)} stays at ${cite(seen, 'median')}`,
        cause: 'malformed-outputs',
        confidence: cut && floor ? 0.9 : cut ? 0.75 : 0.7,
        evidence: [
          Number.isNaN(late)
            ? undefined
            : say`${name(truncated!)} has a median of ${cite(rowsOf(truncated!, 0.5), 'median')} in the second half`,
          courseSaid(progress),
          form === undefined
            ? undefined
            : say`${name(form)} is ${cite(form, 'median')} in nearly all of ${cite(form, 'rows')} rows`,
        ],
        fix: [
          'read ten outputs beside what the reward looks for: is it the weights, the chat template, the stop token or the parser that is wrong?',
          cut
            ? change(
                run,
                { maxCompletionLength: 2 * (run.config.maxCompletionLength ?? 512) },
                'double the length limit, or punish answers that reach it',
              )
            : 'give partial credit for an attempt at the form, and warm up on examples of it',
        ],
        watch: `${soon(run, signals.to - signals.from)} ${name(seen)} should ${cut ? 'fall below 0.3' : `rise above ${num(seen.median)}`}`,
        marks: [mark(seen, signals.from, signals.to)],
      }),
    ];
  },
};
