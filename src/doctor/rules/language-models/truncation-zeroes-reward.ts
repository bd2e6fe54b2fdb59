import { cite, citeSetting, say } from '../../judge/facts.ts';
import { limitsOf } from '../limits.ts';
import type { Rule } from '../rule.ts';
import type { Track } from '../track.ts';
import { change, finding, mark, name, percent, soon } from '../words.ts';
import {
  allOfOneLength,
  citeEarly,
  early,
  firstAndLast,
  gainsNothing,
  goesSaid,
  late,
  long,
} from './levels.ts';

const l = limitsOf('truncation-zeroes-reward', {
  rows: 8,
  /** The share of the first completions that are cut off. */
  cut: 0.25,
  /** The share that is cut off from the first tenth to the end. */
  lasting: 0.1,
  /** The mean length, as a share of the longest that is allowed. */
  near: 0.6,
});

/** Many at the start, or fewer for good: what learns to end in time has done so by the last fifth. */
const isCut = (cut: Track): boolean =>
  early(cut) >= l.cut || (early(cut) >= l.lasting && late(cut) >= l.lasting);

export const truncationZeroesReward: Rule = {
  code: 'truncation-zeroes-reward',
  title: 'The length limit cuts off answers',
  looksAt: ['completion/truncated', 'completion/length', 'completion/length_max', 'reward/mean'],
  causes: ['truncation-zeroes-reward'],
  text: {
    means:
      'The limit on new tokens is where answers usually end, so that many are cut off before they do and earn nothing, whatever they say. What is then learnt is to be short, not to be right.',
    seen: `${percent(l.cut)} or more of the completions cut off in the first tenth of the rows, or ${percent(l.lasting)} there and in the last fifth, with a mean length of ${percent(l.near)} or more of the longest. Critical where the reward does not improve.`,
    todo: 'Raise the limit until few completions reach it, or leave those that are cut off out of the loss.',
    silent:
      'Where few are cut off at the start: completions that grow into the limit later have another cause. Where all are of one length in every row, which is the mask.',
    references: [
      'huggingface/trl: mask_truncated_completions',
      'Yu et al. 2025, arXiv:2503.14476: overlong filtering',
    ],
  },
  check(run, signals) {
    if (run.kind !== 'language-model') return [];
    const cut = long(signals.get('completion/truncated'), l.rows);
    const length = long(signals.get('completion/length'), l.rows);
    const longest = long(signals.get('completion/length_max'), l.rows);
    const { progress } = signals;
    if (cut === undefined || length === undefined || !isCut(cut)) return [];
    const improved = progress?.improved ?? false;
    // A mask that counts padding makes all completions look as long as allowed; a model that never stops learns nothing.
    if (allOfOneLength(signals.get('completion/length_min'), longest) && (improved || late(cut) < l.cut))
      return [];
    const limit = run.config.maxCompletionLength ?? longest?.q(1);
    if (limit === undefined || early(length) < l.near * limit) return [];
    const allowed =
      run.config.maxCompletionLength === undefined
        ? cite(longest!, 'most')
        : citeSetting('maxCompletionLength', limit);
    return [
      finding('truncation-zeroes-reward', {
        severity: gainsNothing(progress) ? 'critical' : 'warning',
        title: say`${citeEarly(cut, percent)} of the first completions are cut off at ${allowed} tokens`,
        cause: 'truncation-zeroes-reward',
        confidence: 0.85,
        evidence: [
          firstAndLast(cut),
          say`${name(length)} is ${citeEarly(length)} at first, of at most ${allowed}`,
          progress === undefined ? undefined : goesSaid(progress),
        ],
        fix: [
          change(run, { maxCompletionLength: Math.ceil(2 * limit) }, `allow ${Math.ceil(2 * limit)} tokens`),
          run.trainer === 'trl-grpo'
            ? 'or leave what is cut off out of the loss: mask_truncated_completions=True'
            : 'or leave what is cut off out of the loss',
        ],
        watch: `${soon(run, signals.to - signals.from)} ${name(cut)} should be below 0.05`,
        marks: [mark(cut, signals.from, signals.to), mark(length, signals.from, signals.to)],
      }),
    ];
  },
};
