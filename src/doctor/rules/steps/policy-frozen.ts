import { FROZEN_KL } from '../../../metrics/kl-bands.ts';
import { cite, citeSetting, limit, say } from '../../judge/facts.ts';
import { courseSaid } from '../course.ts';
import { limitsOf } from '../limits.ts';
import type { Rule } from '../rule.ts';
import { part } from '../track.ts';
import { change, finding, mark, name, num, percent, round, soon } from '../words.ts';
import { stalledLimits, stalledOf } from './stalled.ts';
import { HEALTHY_KL, SMALL_KL } from './streak.ts';

const limits = limitsOf('policy-frozen', {
  /** A rate that lets nothing move; a tenth above what people type as 1e-5. */
  lowRate: 1.1e-5,
  /** Without such a rate: a KL below this in most rows. */
  still: 3e-5,
  /** An entropy that ends within this share of where it began does not move. */
  entropy: 0.01,
  /** Nothing moves at all for so many rows: as bad as a rate of 0, whatever it is said to be. */
  deadRows: 20,
});

/** Advised where the rate is known to be low. */
const RAISED_RATE = 1e-3;

export const policyFrozen: Rule = {
  code: 'policy-frozen',
  title: 'The policy does not move',
  looksAt: [
    'kl/step',
    'policy/clip_fraction',
    'policy/entropy',
    'policy/ratio_mean',
    'train/lr',
    'episode/return',
  ],
  causes: ['learning-rate-too-low'],
  text: {
    means:
      'Updates run but change nothing: ratio 1, clip fraction 0, a KL of 1e-7, entropy where it started. Advantages of any size are normalised to a spread of 1, so they look alive even when they are noise.',
    seen: `The step KL stays below ${num(stalledLimits.kl)} in ${percent(stalledLimits.most)} of the rows (below ${num(FROZEN_KL)} it is frozen) although the rate was not annealed, and the return does not improve. A learning rate of ${num(limits.lowRate)} or less is then the cause. Without one the KL has to stay below ${num(limits.still)} and the entropy within ${percent(limits.entropy)} of where it began, or the KL to be frozen; both, for ${limits.deadRows} rows or more, are critical.`,
    todo: `Raise the learning rate to ${num(RAISED_RATE)}, or look at what starves the gradient: rewards out of scale, a target KL that stops every update, no reward at all.`,
    silent:
      'When KL falls to 0 at the end because the learning rate is annealed; when the return improves all the same or the task is solved, unless the KL is frozen.',
    references: ['docs/ppo.md', 'ray-project/ray#8889'],
  },
  gauges: ({ kind }, { settings: { lr } }) => [
    kind !== 'classic' || lr === undefined
      ? undefined
      : { of: 'the learning rate', at: limits.lowRate, value: lr, speaks: 'below' },
  ],
  check(run, signals) {
    const stalled = stalledOf(signals);
    const { settings, progress } = signals;
    if (stalled === undefined || run.kind !== 'classic') return [];
    const rate = settings.lr;
    const low = rate !== undefined && rate <= limits.lowRate;
    // What a policy that does not move at all gains is chance; what it could before, it need not move for.
    const gains = progress?.improved || progress?.saturated;
    if (gains && (!stalled.frozen || (progress.constant && signals.practised))) return [];
    if (!low && !(stalled.most < limits.still)) return [];
    const entropy = signals.get('policy/entropy');
    const still =
      entropy !== undefined && entropy.n > 2
        ? Math.abs(part(entropy, 0.8).at(-1)! - entropy.first) <=
          limits.entropy * Math.max(0.1, Math.abs(entropy.first))
        : undefined;
    // Without a low rate and without a policy that is truly dead there is too little to accuse anything of.
    if (!low && !stalled.frozen && still !== true) return [];
    // Nothing at all moves, for long, and nothing is gained: whatever the rate says, it is as good as none.
    const dead =
      stalled.frozen && still === true && stalled.track.n >= limits.deadRows && progress !== undefined;
    // A return that rises under a policy that stands still is luck, or another's doing: to be watched all the same.
    const lucky = gains && !low;
    const raised = low ? RAISED_RATE : round((rate ?? 1e-4) * 5);
    const certain = low ? (stalled.frozen || still === true ? 0.9 : 0.7) : dead ? 0.6 : 0.4;
    return [
      finding('policy-frozen', {
        severity:
          !lucky && (dead || (low && (progress !== undefined || stalled.frozen))) ? 'critical' : 'warning',
        title: say`The policy does not move: ${name(stalled.track)} has a median of ${cite(stalled.rows, 'median size')}`,
        cause: 'learning-rate-too-low',
        confidence: certain,
        evidence: [
          say`${name(stalled.track)} is at most ${cite(stalled.rows, 'quantile of the sizes', stalledLimits.most)} in ${limit(stalledLimits.most, percent)} of the updates; ${limit(SMALL_KL)} to ${limit(HEALTHY_KL)} is what learning looks like`,
          !(stalled.unclipped > 0)
            ? undefined
            : say`the clip fraction is ${limit(0)} in ${cite(signals.get('policy/clip_fraction')!, 'share at', 0)} of the rows`,
          still === true
            ? say`${name(entropy!)} stays at ${cite(entropy!, 'first')} (spread ${cite(entropy!, 'spread')})`
            : undefined,
          rate === undefined ? undefined : say`the learning rate is ${citeSetting('learningRate', rate)}`,
          progress === undefined ? undefined : courseSaid(progress),
        ],
        fix: [change(run, { learningRate: raised }, `raise the learning rate to ${num(raised)}`)],
        watch: `${soon(run, signals.to - signals.from)} ${name(stalled.track)} should rise to ${SMALL_KL} - ${HEALTHY_KL}`,
        marks: [mark(stalled.track, signals.from, signals.to)],
      }),
    ];
  },
};
