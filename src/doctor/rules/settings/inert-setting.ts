/** Settings that the log has and the numbers do not: set, and without effect. */
import type { RootCause } from '../../findings.ts';
import { cite, citeCount, citeSetting, limit, say, settledOf } from '../../judge/facts.ts';
import { lossFit } from '../../judge/loss-weights.ts';
import { median, share } from '../../statistics/order.ts';
import { courseSaid } from '../course.ts';
import { long } from '../language-models/levels.ts';
import { limitsOf } from '../limits.ts';
import type { Rule } from '../rule.ts';
import type { Signals } from '../signals.ts';
import type { Track } from '../track.ts';
import { finding, mark, name, num, percent, type Said } from '../words.ts';

const limits = limitsOf('inert-setting', {
  rows: 20,
  /** The entropy coefficient that the losses imply, of the one that is set, and how sure that must be in standard errors. */
  implied: 0.25,
  errors: 5,
  /** How far off the sum of the losses may be, beside the part that the coefficient would have in it. */
  rest: 0.2,
  /** A KL over the target that would have stopped the update, and the share of the rows in which it did not. */
  beyond: 3,
  unstopped: 0.5,
  /** Fewer epochs end before anything can stop them. */
  epochs: 3,
  /** How much of the training must be over before a schedule that is set would show, and what it would have changed by then. */
  over: 0.3,
  changed: 0.05,
});

interface Inert {
  readonly what: Said;
  readonly evidence: Said;
  readonly track: Track;
}

/** An entropy coefficient that is not in the loss. */
function entropyCoef(signals: Signals): Inert | undefined {
  const told = signals.run.config.entropyCoef;
  const total = long(signals.get('loss/total'), limits.rows);
  const entropy = signals.get('policy/entropy');
  if (told === undefined || !(told > 0) || total === undefined || entropy === undefined) return undefined;
  const fit = lossFit(signals);
  if (fit === undefined || fit.rest > limits.rest * told * median(entropy.v.map(Math.abs))) return undefined;
  if (fit.entropy > limits.implied * told || told - fit.entropy < limits.errors * fit.entropyError)
    return undefined;
  return {
    what: say`the entropy coefficient of ${citeSetting('entropyCoef', told)}`,
    track: total,
    evidence: say`${name(total)} is the sum of its parts with an entropy coefficient of ${citeCount('entropy coefficient of the sum of the losses', Math.max(0, fit.entropy), num, total)}, not ${citeSetting('entropyCoef', told)}`,
  };
}

/** A target KL that stops no update. */
function targetKl(signals: Signals): Inert | undefined {
  const { settings, kl } = signals;
  const ran = long(signals.get('train/epochs_run'), limits.rows);
  const told = settings.targetKl;
  if (told === undefined || ran === undefined || kl === undefined || kl.signed || kl.noisy) return undefined;
  const epochs = ran.q(1);
  if (epochs < limits.epochs || ran.q(0) < epochs) return undefined;
  const often = share(kl.settled, v => v > limits.beyond * told);
  if (kl.settled.length < limits.rows || often < limits.unstopped) return undefined;
  return {
    what: say`the target KL of ${citeSetting('targetKl', told)}`,
    track: kl.track,
    evidence: say`${name(kl.track)} is above ${limit(limits.beyond * told)} in ${cite(settledOf(kl), 'share above', limits.beyond * told)} of the rows, and every update ran all ${cite(ran, 'most')} epochs`,
  };
}

/** A schedule that does not move the rate. */
function schedule(signals: Signals): Inert | undefined {
  const { config } = signals.run;
  const rate = long(signals.settings.lrTrack, limits.rows);
  const kind = config.learningRateSchedule;
  if (rate === undefined || (kind !== 'linear' && kind !== 'cosine')) return undefined;
  const total = config.totalSteps;
  const over = total === undefined ? 0 : (signals.to - signals.from) / total;
  if (!(over >= limits.over) || signals.run.unit !== 'steps') return undefined;
  if (rate.q(1) - rate.q(0) > limits.changed * rate.q(1)) return undefined;
  return {
    what: say`the ${kind} schedule of the learning rate`,
    track: rate,
    evidence: say`${name(rate)} goes from ${cite(rate, 'first')} to ${cite(rate, 'last')}, and ${citeCount('share of the training that is over', Math.min(1, over), percent)} of the training is over`,
  };
}

const CAUSE: RootCause = 'inert-setting';

export const inertSetting: Rule = {
  code: 'inert-setting',
  title: 'A setting has no effect',
  looksAt: [
    'loss/total',
    'loss/policy',
    'loss/value',
    'policy/entropy',
    'kl/step',
    'train/epochs_run',
    'train/lr',
  ],
  causes: [CAUSE],
  text: {
    means:
      'A setting is in the configuration, and the numbers say that nothing reads it: a misspelt key, an option of another algorithm, or a trainer that ignores it. Whoever tunes it tunes nothing.',
    seen: `Over ${limits.rows} rows or more: an entropy coefficient of which the losses have ${percent(limits.implied)} or less, by ${limits.errors} standard errors; a target KL that is passed ${limits.beyond} times in ${percent(limits.unstopped)} of the rows though every update runs all of ${limits.epochs} epochs or more; a linear or cosine schedule that has not moved the rate by ${percent(limits.changed)} when ${percent(limits.over)} of the training is over. It is a warning where the return does not improve, and else information.`,
    todo: 'Look how the trainer names the setting and whether this algorithm has it; print the configuration that it runs with.',
    silent: 'Where the log lacks a part of the loss, the epochs that ran, or the length of the training.',
    references: ['ray-project/ray#52286', 'huggingface/trl#3120', 'NVIDIA-NeMo/RL#3792'],
  },
  check(run, signals) {
    const { progress } = signals;
    if (run.kind !== 'classic') return [];
    const well = progress === undefined || progress.improved || progress.improving || progress.saturated;
    return [entropyCoef(signals), targetKl(signals), schedule(signals)]
      .filter(one => one !== undefined)
      .map(({ what, evidence, track }) =>
        finding('inert-setting', {
          severity: well ? 'info' : 'warning',
          title: say`${what} has no effect`,
          cause: CAUSE,
          confidence: 0.6,
          evidence: [evidence, progress === undefined ? undefined : courseSaid(progress)],
          fix: [
            `look how the trainer names it, and whether this algorithm reads it: as it is, ${what.text} does nothing`,
          ],
          marks: [mark(track, signals.from, signals.to)],
        }),
      );
  },
};
