import { cite, citeSetting, say, settledOf, usual } from '../../judge/facts.ts';
import { share, spread } from '../../statistics/order.ts';
import { courseSaid } from '../course.ts';
import { limitsOf } from '../limits.ts';
import type { Rule } from '../rule.ts';
import { change, finding, mark, name, num, percent, soon } from '../words.ts';
import { stalledLimits, stalledOf } from './stalled.ts';
import { HEALTHY_KL, SMALL_KL } from './streak.ts';

const l = limitsOf('target-kl-tight', {
  rows: 8,
  /** A target below this, with a median KL that is so many times it at most and below the other. */
  target: 0.003,
  around: 10,
  small: 1e-3,
  /** A target below this that is passed: a KL above so many times it in this share of the rows, with a median below the other. */
  absurd: 1e-3,
  beyond: 3,
  passed: 0.9,
  smallPassed: 5e-3,
  /** Rows of the epochs that ran or of early stops, and the share of them that ended at once. */
  ranRows: 5,
  often: 0.8,
  /** With these the target is below this, or not known, and the median KL below the other. */
  stopping: 0.005,
  smallStopped: 2e-3,
  /** Of so many epochs that were set and more, this share runs. */
  epochs: 3,
  cut: 0.25,
  /** One epoch in every update: at a learning rate of this or more; a policy that moves less does not move at all. */
  rate: 5e-5,
  still: 1e-7,
  /** Where nothing tells the epochs: rows, a learning rate, a median KL, and how far its logarithm scatters. */
  uniformRows: 15,
  uniformRate: 1e-4,
  uniformKl: 1e-4,
  uniformSpread: 0.6,
  /** And a critic that neither explains the returns nor is far off. */
  explained: 0.3,
  farOff: 1e4,
  /** An error so many times all returns, of a value loss above the other, says that rewards are out of scale. */
  unscaled: 3,
  unscaledLoss: 1e3,
});

/** Trainers that end an update at a target KL and do not log how many epochs ran. */
const stopsEarly = ['stable-baselines3', 'cleanrl', 'pufferlib', 'tianshou', 'unknown'];

export const targetKlTight: Rule = {
  code: 'target-kl-tight',
  title: 'The target KL ends every update at once',
  looksAt: ['train/epochs_run', 'train/early_stop', 'kl/step', 'train/lr', 'loss/value'],
  causes: ['target-kl-too-tight'],
  text: {
    means:
      'Nearly every update is stopped after its first minibatches because the KL passes a target that is too small. Most of each rollout is thrown away, for the critic too.',
    seen: `A target KL below ${l.target} with KLs just around it, or below ${num(l.absurd)} and passed in ${percent(l.passed)} of the rows; or one epoch in ${percent(l.often)} of the updates while the KL stays below ${num(stalledLimits.kl)} at a learning rate of ${num(l.rate)} or more, or stops in ${percent(l.often)} of the updates; or, where epochs are not logged, KLs of one tiny size from the first row on.`,
    todo: 'Use a target KL of 0.01 to 0.03, or none and a lower learning rate.',
    silent:
      'When one epoch is what was configured, KL is of ordinary size, or the return reaches its ceiling all the same.',
    references: ['DLR-RM/stable-baselines3#417', 'Stable-Baselines3: k3 > 1.5 x target_kl ends the update'],
  },
  check(run, signals) {
    const { kl, settings, progress } = signals;
    if (run.kind !== 'classic' || kl === undefined || kl.track.n < l.rows) return [];
    const target = settings.targetKl;
    const ran = signals.get('train/epochs_run');
    const stops = signals.get('train/early_stop');
    const stalled = stalledOf(signals);
    const configured = run.config.epochs;
    const once = ran !== undefined && ran.n >= l.ranRows && share(ran.v, v => v <= 1) >= l.often;
    const cut =
      ran !== undefined &&
      ran.n >= l.ranRows &&
      configured !== undefined &&
      configured >= l.epochs &&
      ran.median <= l.cut * configured;
    const stopped = stops !== undefined && stops.n >= l.ranRows && share(stops.v, v => v >= 0.5) >= l.often;
    const rate = settings.lr ?? 3e-4;
    const tiny =
      target !== undefined && target < l.target && kl.median < l.around * target && kl.median < l.small;
    // A trainer that looks once an epoch is past such a target after its first one, whatever it does.
    const passed =
      target !== undefined &&
      target < l.absurd &&
      kl.median < l.smallPassed &&
      share(kl.settled, v => v > l.beyond * target) >= l.passed;
    // SB3 tells no target, but n_updates counts epochs: one each, with steps this small, is a stop and not a choice.
    const told =
      once && configured !== 1 && stalled !== undefined && stalled.level > l.still && rate >= l.rate;
    const early =
      (cut || stopped) && (target === undefined || target < l.stopping) && kl.median < l.smallStopped;
    // Nothing tells the epochs: steps of one tiny size at an ordinary rate, from the first row on, with a critic that
    // does not learn either, are updates that end at once.
    const uniform =
      stopsEarly.includes(run.trainer) &&
      ran === undefined &&
      target === undefined &&
      stalled !== undefined &&
      kl.track.n >= l.uniformRows &&
      rate >= l.uniformRate &&
      stalled.level < l.uniformKl &&
      stalled.level > l.still &&
      !(signals.critic.evLate > l.explained) &&
      signals.critic.lossLate < l.farOff &&
      spread(kl.track.v.map(v => Math.log(Math.max(v, 1e-12)))) < l.uniformSpread;
    if (!tiny && !passed && !told && !early && !uniform) return [];
    // A target that is known to be passed at once is a mistake even where the task is easy; anything less is a guess.
    if (progress?.saturated && !passed) return [];
    // An error beyond all returns says that rewards are out of scale, which starves the policy by itself.
    const largest =
      progress === undefined
        ? Number.POSITIVE_INFINITY
        : Math.max(Math.abs(progress.track.q(0.02)), Math.abs(progress.track.q(0.98)));
    if (
      !tiny &&
      !passed &&
      !early &&
      Math.sqrt(signals.critic.lossLate) > l.unscaled * largest &&
      signals.critic.lossLate > l.unscaledLoss
    )
      return [];
    const learns = progress?.improving ?? false;
    return [
      finding('target-kl-tight', {
        // Without a return nobody knows what it costs.
        severity:
          progress === undefined || (stalled === undefined && learns) || progress.saturated
            ? 'warning'
            : 'critical',
        title:
          target === undefined
            ? say`Every update ends${ran === undefined ? '' : say` after ${cite(ran, 'median')} epoch`} at a KL of ${cite(settledOf(kl), 'median')}: a target KL stops it`
            : say`The target KL of ${citeSetting('targetKl', target)} stops the updates`,
        cause: 'target-kl-too-tight',
        confidence: tiny || passed ? 0.95 : told ? 0.8 : early ? 0.75 : 0.6,
        evidence: [
          target === undefined
            ? undefined
            : say`the target KL is ${citeSetting('targetKl', target)}; ${usual(0.01, 0.03)}`,
          ran === undefined
            ? undefined
            : say`${cite(ran, 'share up to', 1)} of the updates run no more than one epoch (${name(ran)})${configured === undefined ? '' : say` of ${citeSetting('epochs', configured)}`}`,
          stopped ? say`${cite(stops, 'share from', 0.5)} of the updates were stopped early` : undefined,
          settings.lr === undefined
            ? say`${name(kl.track)} has a median of ${cite(settledOf(kl), 'median')}: too little for an ordinary learning rate`
            : say`${name(kl.track)} has a median of ${cite(settledOf(kl), 'median')} at a learning rate of ${citeSetting('learningRate', rate)}: too little for so ordinary a rate`,
          progress === undefined ? undefined : courseSaid(progress),
        ],
        fix: [change(run, { targetKl: 0.02 }, 'set the target KL to 0.02, or switch it off')],
        watch: `${soon(run, signals.to - signals.from)} ${name(kl.track)} should rise to ${SMALL_KL} - ${HEALTHY_KL}${ran === undefined ? '' : `, and more than one epoch should run in an update (${name(ran)})`}`,
        marks: [
          mark(kl.track, signals.from, signals.to),
          ...(ran === undefined ? [] : [mark(ran, signals.from, signals.to)]),
        ],
      }),
    ];
  },
};
