import type { Fix } from '../fixes.ts';
import { median, quantile, share } from '../statistics/order.ts';
import { courseSaid } from './course.ts';
import type { Rule } from './rule.ts';
import type { Signals } from './signals.ts';
import { part, type Track } from './track.ts';
import { suspectOf } from './unstable.ts';
import { change, finding, mark, name, num, soon, stepAt } from './words.ts';

/** A std, and the nats of one dimension with it, that explore next to nothing. */
const NARROW_STD = 0.05;
const NARROW_NATS = -1.5;

/** Where a track falls below a level for good, as an index; undefined if it does not. */
function below(values: Float64Array, level: number): number | undefined {
  if (!(median(values.subarray(Math.floor(values.length * 0.6))) < level)) return undefined;
  let i = values.length;
  // Let one row in ten be above: the entropy of one minibatch scatters.
  let strays = 0;
  while (i > 0 && (values[i - 1] < level || ++strays <= 0.1 * (values.length - i + 1))) i--;
  return i;
}

interface Collapse {
  readonly track: Track;
  readonly at: number;
  readonly what: string;
  readonly certain: boolean;
}

function collapseOf(signals: Signals): Collapse | undefined {
  const { run, relativeEntropy } = signals;
  const entropy = signals.get('policy/entropy');
  const std = signals.get('policy/std');
  if (std !== undefined && std.n >= 10) {
    const limit = Math.min(0.05 * std.first, 0.05);
    const at = below(std.v, limit);
    if (at !== undefined) return { track: std, at, what: `below ${num(limit)}`, certain: false };
    // Next to no noise from the first row on: a log-std that starts far too low.
    if (std.q(0.95) < NARROW_STD) return { track: std, at: 0, what: 'below 0.05', certain: false };
  }
  // The same where no std is logged. One dimension of std 0.05 has -1.6 nats, more dimensions have less still.
  if (
    std === undefined &&
    entropy !== undefined &&
    entropy.n >= 10 &&
    run.actions === 'continuous' &&
    entropy.q(0.95) < NARROW_NATS
  )
    return { track: entropy, at: 0, what: 'below -1.5 nats', certain: false };
  if (entropy === undefined || entropy.n < 8 || run.actions === 'continuous') return undefined;
  if (relativeEntropy !== undefined) {
    const track = signals.get('policy/entropy_relative') ?? entropy;
    const at = below(relativeEntropy, 0.05);
    if (at !== undefined) return { track, at, what: 'below 5% of its maximum', certain: true };
    // It died at once and creeps back: low in most rows, never more than a fifth after the first tenth.
    const settled = relativeEntropy.subarray(Math.ceil(relativeEntropy.length / 10));
    if (settled.length >= 20 && median(settled) < 0.05 && quantile(settled, 0.95) < 0.2)
      return {
        track,
        at: Math.max(
          0,
          relativeEntropy.findIndex(v => v < 0.05),
        ),
        what: 'below 5% of its maximum',
        certain: true,
      };
    return undefined;
  }
  // Differential entropy may be near 0 or below; only one that never is negative and ends at nothing tells.
  if (share(entropy.v, v => v < -1e-6) > 0) return undefined;
  const at = below(entropy.v, 0.01);
  return at === undefined ? undefined : { track: entropy, at, what: 'below 0.01', certain: true };
}

/** Of a policy that was narrow from its first row: no bonus widens it as surely as beginning wide. */
function wider({ run, get }: Signals): Fix | undefined {
  const [std, entropy] = [get('policy/std'), get('policy/entropy')];
  const isNarrow =
    std === undefined
      ? run.actions === 'continuous' && (entropy?.first ?? 0) < NARROW_NATS
      : std.first < NARROW_STD;
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
    seen: 'Entropy below 5% of its maximum (or a std below 5% of its start and 0.05, or below 0.05 from the first row on) for the rest of the run, or in most of its rows and never above a fifth, with a return that did not improve or collapsed. If huge updates with an unusual setting came first, that setting is the cause.',
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
    if (run.kind !== 'classic' || progress === undefined || progress.track.n < 8) return [];
    const found = collapseOf(signals);
    if (found === undefined) return [];
    const bad = progress.collapsed || (!progress.improved && !progress.saturated);
    if (!bad) return [];
    const { track, at } = found;
    const early = at < 0.6 * track.n;
    const kl = signals.kl;
    const suspect = suspectOf(signals);
    const burst =
      kl !== undefined &&
      share(kl.track.v.subarray(0, Math.max(3, Math.min(kl.track.n, at + 3))), v => v > 0.1) > 0;
    const pushed = suspect.excess >= 0.9 && (burst || suspect.excess >= 2);
    const x = track.x[Math.min(at, track.n - 1)];
    return [
      finding('entropy-collapse', {
        severity: early ? 'critical' : 'warning',
        title: `${name(track)} falls ${found.what} by ${stepAt(run, x)}, and the return is poor`,
        cause: pushed ? suspect.cause : 'entropy-collapse',
        confidence: pushed ? suspect.confidence - 0.05 : found.certain ? 0.85 : 0.6,
        evidence: [
          `${name(track)} starts at ${num(track.first)} and has a median of ${num(median(part(track, 0.7)))} at the end`,
          courseSaid(progress),
          pushed ? suspect.why : undefined,
          run.config.entropyCoef !== undefined
            ? `the entropy coefficient is ${num(run.config.entropyCoef)}`
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
