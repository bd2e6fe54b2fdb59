import type { Fix } from '../../fixes.ts';
import { cite, citeSetting, citeStep, limit, rowsOf, say } from '../../judge/facts.ts';
import { median, quantile, share } from '../../statistics/order.ts';
import { courseSaid } from '../course.ts';
import { limitsOf } from '../limits.ts';
import type { Rule } from '../rule.ts';
import type { Signals } from '../signals.ts';
import { suspectLimits, suspectOf } from '../steps/unstable.ts';
import type { Track } from '../track.ts';
import { change, finding, mark, name, percent, type Said, soon, unitOf } from '../words.ts';

/** An index from which on a track is below a level but for strays, and the first row that is; undefined if it is not. */
interface Fall {
  readonly at: number;
  readonly seen: number;
}

function below(values: Float64Array, level: number): Fall | undefined {
  if (!(median(values.subarray(Math.floor(values.length * 0.6))) < level)) return undefined;
  let i = values.length;
  // Let one row in ten be above: the entropy of one minibatch scatters.
  let strays = 0;
  while (i > 0 && (values[i - 1] < level || ++strays <= 0.1 * (values.length - i + 1))) i--;
  const seen = values.findIndex((v, at) => at >= i && v < level);
  return { at: i, seen: seen < 0 ? values.length - 1 : seen };
}

const l = limitsOf('entropy-collapse', {
  rows: 8,
  /** Of the maximum, where that is known; and of one that died at once, in no more than one row in twenty above the other. */
  relative: 0.05,
  creeps: 0.2,
  /** Nats, where it is not. */
  absolute: 0.01,
  /** A std, and its share of the first. */
  std: 0.05,
  /** Nats of a Gaussian from the first row on. */
  gaussian: -1.5,
  /** A fall after this share of the rows is a warning. */
  early: 0.6,
  /** Of a return that rises all the same: a fall within so much of the run was no end of learning. */
  atOnce: 0.1,
  /** Huge updates came first: a KL above this. */
  burst: 0.1,
});

interface Collapse extends Fall {
  readonly track: Track;
  readonly what: Said;
  readonly certain: boolean;
}

/** A policy that is told to begin so: nothing else has made it narrow. */
const startsNarrow = (logStd: number | undefined): boolean =>
  logStd !== undefined && logStd < Math.log(l.std);

function collapseOf(signals: Signals): Collapse | undefined {
  const { run, relativeEntropy } = signals;
  const entropy = signals.get('policy/entropy');
  const std = signals.get('policy/std');
  if (std !== undefined && std.n >= 10) {
    const bound = Math.min(l.std * std.first, l.std);
    const fall = below(std.v, bound);
    if (fall !== undefined) return { ...fall, track: std, what: say`below ${limit(bound)}`, certain: false };
    // Next to no noise from the first row on: a log-std that starts far too low.
    if (std.q(0.95) < l.std)
      return {
        ...{ track: std, at: 0, seen: 0 },
        what: say`below ${limit(l.std)}`,
        certain: startsNarrow(run.config.logStdInitial),
      };
  }
  // The same where no std is logged. One dimension of std 0.05 has -1.6 nats, more dimensions have less still.
  if (
    std === undefined &&
    entropy !== undefined &&
    entropy.n >= 10 &&
    run.actions === 'continuous' &&
    entropy.q(0.95) < l.gaussian
  )
    return {
      ...{ track: entropy, at: 0, seen: 0, what: say`below ${limit(l.gaussian)} nats` },
      certain: startsNarrow(run.config.logStdInitial),
    };
  if (entropy === undefined || entropy.n < l.rows || run.actions === 'continuous') return undefined;
  if (relativeEntropy !== undefined) {
    const track = signals.get('policy/entropy_relative') ?? entropy;
    const fall = below(relativeEntropy, l.relative);
    if (fall !== undefined)
      return { ...fall, track, what: say`below ${limit(l.relative, percent)} of its maximum`, certain: true };
    // It died at once and creeps back: low in most rows, never more than a fifth after the first tenth.
    const settled = relativeEntropy.subarray(Math.ceil(relativeEntropy.length / 10));
    if (settled.length >= 20 && median(settled) < l.relative && quantile(settled, 0.95) < l.creeps) {
      const at = Math.max(
        0,
        relativeEntropy.findIndex(v => v < l.relative),
      );
      const what = say`below ${limit(l.relative, percent)} of its maximum`;
      return { track, at, seen: at, what, certain: true };
    }
    return undefined;
  }
  // Differential entropy may be near 0 or below; only one that never is negative and ends at nothing tells.
  if (share(entropy.v, v => v < -1e-6) > 0) return undefined;
  const fall = below(entropy.v, l.absolute);
  return fall === undefined
    ? undefined
    : { ...fall, track: entropy, what: say`below ${limit(l.absolute)}`, certain: true };
}

/** Of a policy that was narrow from its first row: no bonus widens it as surely as beginning wide. */
function wider({ run, get }: Signals): Fix | undefined {
  const [std, entropy] = [get('policy/std'), get('policy/entropy')];
  const isNarrow =
    std === undefined
      ? run.actions === 'continuous' && (entropy?.first ?? 0) < l.gaussian
      : std.first < l.std;
  if (!isNarrow) return undefined;
  const { logStdMax } = run.config;
  return change(
    run,
    { logStdInitial: 0, ...(logStdMax !== undefined && logStdMax < 0 && { logStdMax: 2 }) },
    'start with a std of about 1',
  );
}

export const entropyCollapse: Rule = {
  code: 'entropy-collapse',
  title: 'The policy stopped exploring',
  looksAt: ['policy/entropy', 'policy/entropy_relative', 'policy/std', 'episode/return', 'kl/step'],
  causes: ['entropy-collapse', 'learning-rate-too-high', 'too-many-epochs', 'clip-range-too-large'],
  text: {
    means:
      'The entropy fell to its floor while the return was still bad: the policy always does the same, sees nothing new and cannot get out, because the gradient of a deterministic policy is 0.',
    seen: `Entropy below ${percent(l.relative)} of its maximum (below ${l.absolute} nats where that is not known; a std below ${percent(l.std)} of its start and ${l.std}, or below ${l.std} from the first row on; below ${l.gaussian} nats throughout for continuous actions without a std) for the rest of the run, or in most of its rows and hardly ever above ${percent(l.creeps)}, with a return that did not improve or collapsed. After the first ${percent(l.early)} of the rows it is a warning, and so it is within the first ${percent(l.atOnce)} of them where the return rises all the same and reaches no ceiling. If updates with a KL above ${l.burst} and an unusual setting came first, that setting is the cause.`,
    todo: 'Add an entropy bonus of about 0.01, lower the learning rate, and check for a negative entropy coefficient.',
    silent:
      'When the return is good: a solved task may well have a deterministic policy. Differential entropy may be negative without fault, and SB3 logs -H.',
    references: [
      'Stable-Baselines-Team/stable-baselines3-contrib#282 (healthy)',
      'Jorgitou98/Accelerating-RLlib-Models: a log with an entropy of 0 from the start',
    ],
  },
  check(run, signals) {
    const { progress } = signals;
    if (run.kind !== 'classic' || progress === undefined || progress.track.n < l.rows) return [];
    const found = collapseOf(signals);
    if (found === undefined) return [];
    const bad = progress.collapsed || (!progress.improved && !progress.saturated);
    const { track, at, seen } = found;
    // A policy that always does the same from its first updates on learns nothing: what its return gains is chance.
    const atOnce = found.certain && !progress.saturated && at <= l.atOnce * track.n;
    if (!bad && !atOnce) return [];
    const early = at < l.early * track.n;
    const kl = signals.kl;
    const suspect = suspectOf(signals);
    const burst =
      kl !== undefined &&
      share(kl.track.v.subarray(0, Math.max(3, Math.min(kl.track.n, at + 3))), v => v > l.burst) > 0;
    const pushed = suspect.excess >= suspectLimits.unusual && (burst || suspect.excess >= suspectLimits.far);
    const x = track.x[Math.min(at, track.n - 1)];
    const outcome = bad ? 'and the return is poor' : 'though the return rises';
    const step = say`${unitOf(run)} ${citeStep(track, Math.min(seen, track.n - 1))}`;
    return [
      finding('entropy-collapse', {
        severity: bad && early ? 'critical' : 'warning',
        title:
          seen === 0
            ? say`${name(track)} is ${found.what} from ${step} on, ${outcome}`
            : say`${name(track)} falls ${found.what} by ${step}, ${outcome}`,
        cause: pushed ? suspect.cause : 'entropy-collapse',
        confidence: pushed ? suspect.confidence - 0.05 : bad && found.certain ? 0.85 : 0.6,
        evidence: [
          say`${name(track)} starts at ${cite(track, 'first')} and has a median of ${cite(rowsOf(track, 0.7), 'median')} at the end`,
          courseSaid(progress),
          pushed ? suspect.why : undefined,
          run.config.entropyCoef !== undefined
            ? say`the entropy coefficient is ${citeSetting('entropyCoef', run.config.entropyCoef)}`
            : undefined,
        ],
        fix: pushed
          ? suspect.fix
          : [
              wider(signals),
              change(run, { entropyCoef: 0.01 }, 'add an entropy bonus of 0.01'),
              'start anew, or from a checkpoint before the collapse: a deterministic policy gets no gradient',
            ],
        watch: `${soon(run, signals.to - signals.from)} ${name(track)} should fall slowly and stay above a tenth of its start`,
        marks: [mark(track, x, signals.to)],
      }),
    ];
  },
};
