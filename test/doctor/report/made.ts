/** Runs and diagnoses made by hand, for the renderers. */
import type { CanonicalRun, CanonicalSeries } from '../../../src/doctor/canonical.ts';
import type { Diagnosis, Finding } from '../../../src/doctor/findings.ts';
import { fixOf } from '../../../src/doctor/fixes.ts';
import { runReport } from '../../../src/doctor/report/report-of-run.ts';
import type { RunReport } from '../../../src/doctor/report/run-report.ts';
import type { Series } from '../../../src/doctor/series.ts';

/** A series as a reader makes it: each value its own point. */
export function seriesOf(values: readonly number[], x = values.map((_, i) => (i + 1) * 2048)): Series {
  return {
    length: values.length,
    count: values.length,
    x: Float64Array.from(x),
    values: Float64Array.from(values),
    min: Float64Array.from(values),
    max: Float64Array.from(values),
    broken: Uint32Array.from(values, value => (Number.isFinite(value) ? 0 : 1)),
    wallTime: Float64Array.from(values, () => Number.NaN),
  };
}

export function runOf(
  series: Readonly<Record<string, readonly number[]>>,
  names: Readonly<Record<string, string>> = {},
  more: Partial<CanonicalRun> = {},
): CanonicalRun {
  return {
    path: 'logs/ppo_1',
    trainer: 'stable-baselines3',
    kind: 'classic',
    unit: 'steps',
    series: new Map(
      Object.entries(series).map(([id, values]): [string, CanonicalSeries] => [
        id,
        { id, theirs: names[id] ?? id, series: seriesOf(values) },
      ]),
    ),
    config: {},
    wording: { setting: () => undefined, nameOf: () => undefined },
    actions: 'discrete',
    restarts: [],
    notes: [],
    unknown: [],
    unfinished: false,
    ...more,
  };
}

const usualFixes = [
  fixOf({ code: 'PPO(..., learning_rate=1e-4)' }, [
    { setting: 'learningRate', name: 'learning_rate', from: null, value: 1e-4 },
  ]),
  fixOf('Start from the checkpoint before step 61,440.'),
];

/** Its sentences are those of its fixes. */
export function findingOf({ fixes = usualFixes, ...more }: Partial<Omit<Finding, 'fix'>> = {}): Finding {
  return {
    code: 'kl-spikes',
    severity: 'critical',
    title: 'KL spikes up to 4.2 from step 61,440 on',
    from: 61_440,
    to: 122_880,
    firstSeen: 61_440,
    cites: [{ evidence: 0, metric: 'kl/step', theirs: 'train/approx_kl', from: 61_440, to: 122_880 }],
    facts: [],
    evidence: [
      'train/approx_kl is above 0.05 in 28 of 30 rows from step 61,440 to 122,880; its median there is 0.42.',
      'The largest, 4.2 at step 63,488, is 350 times the median before.',
    ],
    cause: 'learning-rate-too-high',
    confidence: 0.9,
    watch: 'train/approx_kl should stay below 0.02.',
    marks: [{ metric: 'kl/step', theirs: 'train/approx_kl', from: 61_440, to: 122_880 }],
    ...more,
    fix: fixes.map(({ text }) => text),
    fixes,
  };
}

export function diagnosisOf(more: Partial<Diagnosis> = {}): Diagnosis {
  return {
    path: 'logs/ppo_1',
    trainer: 'stable-baselines3',
    steps: 122_880,
    verdict: 'sick',
    rootCause: 'learning-rate-too-high',
    confidence: 0.9,
    summary:
      'The learning rate of 0.01 makes updates too large: from step 61,440 on KL spikes up to 4.2, and the return falls from 480 to 22.',
    findings: [
      findingOf(),
      findingOf({
        code: 'return-collapse',
        title: 'The return fell from 480 to 22',
        evidence: ['rollout/ep_rew_mean was 480 at step 59,392 and is 22 at the end.'],
        confidence: 0.6,
        fixes: [],
        marks: [{ metric: 'episode/return', theirs: 'rollout/ep_rew_mean', from: 65_536, to: 122_880 }],
      }),
      findingOf({
        code: 'value-loss-large',
        severity: 'warning',
        title: 'The value loss is 120 at the end',
        evidence: [],
        fixes: [],
        marks: [],
      }),
    ],
    understood: {
      columns: [
        { metric: 'kl/step', theirs: 'train/approx_kl' },
        { metric: 'episode/return', theirs: 'rollout/ep_rew_mean' },
      ],
      settings: [{ setting: 'learningRate', name: 'learning_rate', value: 0.01 }],
      rows: 60,
      from: 2048,
      to: 122_880,
      notUnderstood: [],
      absent: [],
    },
    basis: [],
    checked: [{ code: 'kl-spikes', state: 'found' }],
    notes: ['2 lines of progress.csv were cut short and left out.'],
    ...more,
  };
}

const wave = (i: number): number => Math.sin(i * 1.7) + Math.sin(i * 0.37);

/** Sixty rows: well until row 30, then KL spikes and the return falls. */
function sickRun(): CanonicalRun {
  const rows = Array.from({ length: 60 }, (_, i) => i);
  return runOf(
    {
      'kl/step': rows.map(i => (i < 30 ? 0.008 + 0.003 * wave(i) : i % 4 === 0 ? 4.2 : 0.3 + 0.1 * wave(i))),
      'episode/return': rows.map(i =>
        i < 30 ? 22 + 16 * i + 5 * wave(i) : Math.max(20, 480 - 30 * (i - 30)),
      ),
      'value/explained_variance': rows.map(i => (i < 30 ? i / 32 : -0.4 + 0.2 * wave(i))),
    },
    { 'kl/step': 'train/approx_kl', 'episode/return': 'rollout/ep_rew_mean' },
  );
}

export const sickReport = (more: Partial<Diagnosis> = {}): RunReport =>
  runReport(diagnosisOf(more), sickRun());

export function healthyReport(path = 'logs/ppo_2'): RunReport {
  const rows = Array.from({ length: 50 }, (_, i) => i);
  const run = runOf(
    {
      'kl/step': rows.map(i => 0.006 + 0.002 * wave(i)),
      'episode/return': rows.map(i => 500 - 480 * Math.exp(-i / 12) + 4 * wave(i)),
    },
    { 'kl/step': 'train/approx_kl', 'episode/return': 'rollout/ep_rew_mean' },
    { path },
  );
  return runReport(
    diagnosisOf({
      path,
      verdict: 'healthy',
      rootCause: null,
      confidence: 0.9,
      steps: 102_400,
      summary: 'The return rose from 20 to 496, and KL stayed between 0.002 and 0.01.',
      findings: [],
      notes: [],
    }),
    run,
  );
}
