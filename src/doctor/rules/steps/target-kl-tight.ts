import { cite, citeSetting, say, settledOf, usual } from '../../judge/facts.ts';
import { share, spread } from '../../statistics/order.ts';
import { courseSaid } from '../course.ts';
import type { Rule } from '../rule.ts';
import { change, finding, mark, name, soon } from '../words.ts';
import { stalledOf } from './stalled.ts';
import { HEALTHY_KL, SMALL_KL } from './streak.ts';

/** Trainers that end an update at a target KL and do not log how many epochs ran. */
const stopsEarly = ['stable-baselines3', 'cleanrl', 'pufferlib', 'tianshou', 'unknown'];

export const targetKlTight: Rule = {
  code: 'target-kl-tight',
  title: 'The target KL ends every update at once',
  looksAt: ['train/epochs_run', 'train/early_stop', 'kl/step', 'train/lr'],
  causes: ['target-kl-too-tight'],
  text: {
    means:
      'Nearly every update is stopped after its first minibatches because the KL passes a target that is too small. Most of each rollout is thrown away, for the critic too.',
    seen: 'A target KL below 0.003 with KLs just around it, or below 0.001 and passed in nearly every row; or one epoch in nearly every update while the KL stays below 3e-4 at an ordinary learning rate, or stops in nearly every update; or, where epochs are not logged, KLs of one tiny size from the first row on.',
    todo: 'Use a target KL of 0.01 to 0.03, or none and a lower learning rate.',
    silent:
      'When one epoch is what was configured, KL is of ordinary size, or the return reaches its ceiling all the same.',
    references: ['DLR-RM/stable-baselines3#417', 'Stable-Baselines3: k3 > 1.5 x target_kl ends the update'],
  },
  check(run, signals) {
    const { kl, settings, progress } = signals;
    if (run.kind !== 'classic' || kl === undefined || kl.track.n < 8) return [];
    const target = settings.targetKl;
    const ran = signals.get('train/epochs_run');
    const stops = signals.get('train/early_stop');
    const stalled = stalledOf(signals);
    const configured = run.config.epochs;
    const once = ran !== undefined && ran.n >= 5 && share(ran.v, v => v <= 1) >= 0.8;
    const cut =
      ran !== undefined &&
      ran.n >= 5 &&
      configured !== undefined &&
      configured > 2 &&
      ran.median <= configured / 4;
    const stopped = stops !== undefined && stops.n >= 5 && share(stops.v, v => v >= 0.5) >= 0.8;
    const rate = settings.lr ?? 3e-4;
    const tiny = target !== undefined && target < 0.003 && kl.median < 10 * target && kl.median < 1e-3;
    // A trainer that looks once an epoch is past such a target after its first one, whatever it does.
    const passed =
      target !== undefined &&
      target < 1e-3 &&
      kl.median < 5e-3 &&
      share(kl.settled, v => v > 3 * target) >= 0.9;
    // SB3 tells no target, but n_updates counts epochs: one each, with steps this small, is a stop and not a choice.
    const told = once && configured !== 1 && stalled !== undefined && stalled.level > 1e-7 && rate >= 5e-5;
    const early = (cut || stopped) && (target === undefined || target < 0.005) && kl.median < 2e-3;
    // Nothing tells the epochs: steps of one tiny size at an ordinary rate, from the first row on, with a critic that
    // does not learn either, are updates that end at once.
    const uniform =
      stopsEarly.includes(run.trainer) &&
      ran === undefined &&
      target === undefined &&
      stalled !== undefined &&
      kl.track.n >= 15 &&
      rate >= 1e-4 &&
      stalled.level < 1e-4 &&
      stalled.level > 1e-7 &&
      !(signals.critic.evLate > 0.3) &&
      signals.critic.lossLate < 1e4 &&
      spread(kl.track.v.map(v => Math.log(Math.max(v, 1e-12)))) < 0.6;
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
      Math.sqrt(signals.critic.lossLate) > 3 * largest &&
      signals.critic.lossLate > 1e3
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
        watch: `${soon(run, signals.to - signals.from)} ${name(kl.track)} should rise to ${SMALL_KL} - ${HEALTHY_KL}${ran === undefined ? '' : ` and ${name(ran)} by more than 1 a row`}`,
        marks: [
          mark(kl.track, signals.from, signals.to),
          ...(ran === undefined ? [] : [mark(ran, signals.from, signals.to)]),
        ],
      }),
    ];
  },
};
