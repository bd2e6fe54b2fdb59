/** Settings that hardly anybody uses, where they have done no harm so far: said, so that nobody is surprised later. */
import type { Finding, RootCause } from '../../findings.ts';
import { loud } from '../../findings.ts';
import { citeCount, citeSetting, limit, say, usual } from '../../judge/facts.ts';
import { entropyWeightOf } from '../../judge/loss-weights.ts';
import type { KnownSetting } from '../../known-settings.ts';
import { courseSaid } from '../course.ts';
import { limitsOf } from '../limits.ts';
import type { Rule } from '../rule.ts';
import { MIN_POINTS, type Signals } from '../signals.ts';
import { suspectLimits, suspectOf } from '../steps/unstable.ts';
import { change, finding, mark, num, type Said } from '../words.ts';

const limits = limitsOf('unusual-settings', {
  /** Of agents; language models mostly have none. */
  entropyCoef: 0.05,
  valueCoef: 1e-3,
  targetKl: 0.003,
});

interface Unusual {
  readonly cause: RootCause;
  readonly setting: KnownSetting;
  readonly text: Said;
  readonly usual: number;
}

function unusualOf(signals: Signals): Unusual[] {
  const { run, settings } = signals;
  const out: Unusual[] = [];
  const suspect = suspectOf(signals);
  for (const { cause, why } of suspect.excess >= suspectLimits.unusual ? [suspect, ...suspect.others] : []) {
    // A rate that a controller moves is nobody's setting.
    if (cause === 'learning-rate-too-high' && run.klProxy !== undefined) continue;
    const setting =
      cause === 'too-many-epochs'
        ? 'epochs'
        : cause === 'clip-range-too-large'
          ? 'clipRange'
          : 'learningRate';
    const common = { epochs: 10, clipRange: 0.2, learningRate: 3e-4 }[setting];
    out.push({ cause, setting, text: why, usual: common });
  }
  const told = run.config.entropyCoef;
  const coef = told ?? entropyWeightOf(signals);
  if (coef !== undefined && coef >= limits.entropyCoef)
    out.push({
      cause: 'entropy-bonus-too-large',
      setting: 'entropyCoef',
      text: say`${told === undefined ? 'the losses imply an entropy coefficient of' : 'the entropy coefficient is'} ${told === undefined ? citeCount('entropy coefficient that the losses imply', coef, num) : citeSetting('entropyCoef', coef)}; ${usual(0, 0.01)}`,
      usual: 0.01,
    });
  const { valueCoef } = run.config;
  if (valueCoef !== undefined && valueCoef < limits.valueCoef)
    out.push({
      cause: 'critic-not-learning',
      setting: 'valueCoef',
      text: say`the value loss has a weight of ${citeSetting('valueCoef', valueCoef)}; ${limit(0.5)} is usual`,
      usual: 0.5,
    });
  const { targetKl } = settings;
  if (targetKl !== undefined && targetKl < limits.targetKl)
    out.push({
      cause: 'target-kl-too-tight',
      setting: 'targetKl',
      text: say`the target KL is ${citeSetting('targetKl', targetKl)}; ${usual(0.01, 0.03)}`,
      usual: 0.02,
    });
  return out;
}

export const unusualSettings: Rule = {
  code: 'unusual-settings',
  title: 'A setting far from what is usual',
  looksAt: ['train/lr', 'train/epochs_run', 'train/clip_range', 'train/entropy_coef', 'loss/total'],
  causes: [
    'learning-rate-too-high',
    'too-many-epochs',
    'clip-range-too-large',
    'entropy-bonus-too-large',
    'critic-not-learning',
    'target-kl-too-tight',
  ],
  text: {
    means:
      'A setting is far from what people use. The run does not suffer from it as far as the log shows; the next one, or a longer one, may.',
    seen: `A learning rate, a number of epochs or a clip range ${num(2 ** suspectLimits.unusual)} times the largest that is usual; an entropy coefficient of ${limits.entropyCoef} or more, known or implied by the losses; a weight of the value loss below ${limits.valueCoef}; a target KL below ${limits.targetKl}. It is information alone.`,
    todo: 'Nothing has to change. Take the usual value if the return stalls.',
    silent: 'Where another rule accuses the same setting, and for language models.',
    references: ['docs/ppo.md'],
  },
  gauges: ({ kind, config }, { settings: { targetKl } }) =>
    kind !== 'classic'
      ? []
      : [
          config.entropyCoef === undefined
            ? undefined
            : {
                of: 'the entropy coefficient',
                at: limits.entropyCoef,
                value: config.entropyCoef,
                speaks: 'above',
              },
          targetKl === undefined
            ? undefined
            : { of: 'the target KL', at: limits.targetKl, value: targetKl, speaks: 'below' },
        ],
  check(run, signals, found) {
    const { progress } = signals;
    if (run.kind !== 'classic' || progress === undefined || progress.track.n < MIN_POINTS) return [];
    const accused = new Set(loud(found).map(({ cause }) => cause));
    return unusualOf(signals)
      .filter(({ cause }) => !accused.has(cause))
      .map(
        ({ cause, setting, text, usual: value }): Finding =>
          finding('unusual-settings', {
            severity: 'info',
            title: say`an unusual setting: ${text}`,
            cause,
            confidence: 0.5,
            evidence: [text, courseSaid(progress)],
            fix: [change(run, { [setting]: value }, `the usual value is ${num(value)}`)],
            marks: [mark(progress.track, signals.from, signals.to)],
          }),
      );
  },
};
