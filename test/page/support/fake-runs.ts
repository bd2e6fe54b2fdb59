/**
 * Runs for the tests of the page, made from formulas: any point of any series can be had without the others, so that a
 * series of a million points costs nothing.
 */
import type { Diagnosis, Finding } from '../../../src/doctor/findings.ts';
import { type Fix, fixOf } from '../../../src/doctor/fixes.ts';
import type { KnownSetting } from '../../../src/doctor/known-settings.ts';
import { findMetric, type KlContract, klBand } from '../../../src/metrics/registry.ts';
import type {
  CheckpointSummary,
  CompletionGroup,
  DiagnosisAnswer,
  Envelope,
  MetricInfo,
  PageEvent,
  Remedy,
  RunDetail,
  RunSummary,
  XAxis,
} from '../../../src/server/api.ts';

/** Between 0 and 1, from two whole numbers; the same ones always give the same. */
export function noise(i: number, salt: number): number {
  let h = Math.imul(i | 0, 0x9e3779b1) ^ Math.imul(salt | 0, 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 15), 0x2c1b3c6d);
  h = Math.imul(h ^ (h >>> 12), 0x297a2d39);
  return ((h ^ (h >>> 15)) >>> 0) / 4294967296;
}

export type Health = 'healthy' | 'watch' | 'sick';
type Formula = (share: number, i: number, seed: number) => number | null;

export const stepsPerRow = 2048;
const rowMs = 3000;

/** How each metric goes over a run, from its first (0) to its planned last row (1). */
const formulas: Readonly<Record<Health, Readonly<Record<string, Formula>>>> = {
  healthy: common(
    (p, i, s) => 0.0085 * (1 - 0.55 * p) * (0.55 + 0.9 * noise(i, s)) + (noise(i, s + 1) > 0.992 ? 0.011 : 0),
    p => 1 - Math.exp(-4 * p),
  ),
  watch: common(
    (p, i, s) => 0.013 * (0.6 + 0.9 * noise(i, s)) + (noise(i, s + 1) > 0.93 ? 0.009 * (1 + p) : 0),
    p => 0.8 * (1 - Math.exp(-3 * p)),
  ),
  sick: common(
    (p, i, s) =>
      (p < 0.35 ? 0.01 : 0.012 + 0.03 * (p - 0.35)) * (0.5 + noise(i, s)) +
      (p > 0.35 && noise(i, s + 1) > 0.8 ? 0.035 + 0.13 * (p - 0.35) * noise(i, s + 2) : 0),
    p => (p < 0.4 ? 1 - Math.exp(-5 * p) : 0.86 - 1.1 * (p - 0.4)),
  ),
};

function common(kl: Formula, level: (p: number) => number): Record<string, Formula> {
  return {
    'train/step': (_p, i) => (i + 1) * stepsPerRow,
    'train/iteration': (_p, i) => i + 1,
    'kl/step': kl,
    'kl/step_raw': (p, i, s) => (kl(p, i, s) ?? 0) * (noise(i, s + 9) > 0.97 ? 2.2 : 1),
    'kl/step_k1': (p, i, s) => (kl(p, i, s) ?? 0) + 0.004 * (noise(i, s + 10) - 0.5),
    'kl/step_k3': (p, i, s) => (kl(p, i, s) ?? 0) * (0.9 + 0.2 * noise(i, s + 11)),
    'episode/return': (p, i, s) => 20 + 460 * level(p) + 60 * (noise(i, s + 3) - 0.5),
    'episode/length': (p, i, s) => 20 + 460 * level(p) + 50 * (noise(i, s + 4) - 0.5),
    'episode/count': (p, i, s) => Math.round(40 - 35 * level(p) + 4 * noise(i, s + 5)),
    'value/explained_variance': (p, i, s) =>
      Math.min(0.97, 0.92 * level(p) ** 0.7 + 0.12 * (noise(i, s + 6) - 0.6)),
    'value/mean': (p, i, s) => 8 * level(p) + noise(i, s + 12),
    'loss/policy': (_p, i, s) => -0.012 + 0.012 * (noise(i, s + 13) - 0.5),
    'loss/value': (p, i, s) => 0.04 + 0.9 * Math.exp(-5 * level(p)) * (0.6 + 0.8 * noise(i, s + 7)),
    'loss/total': (p, i, s) => 0.03 + 0.5 * Math.exp(-5 * level(p)) * (0.6 + 0.8 * noise(i, s + 14)),
    'policy/entropy': (p, i, s) => 0.69 - 0.45 * p + 0.03 * (noise(i, s + 8) - 0.5),
    'policy/clip_fraction': (p, i, s) => 0.12 * (1 - 0.6 * p) * (0.5 + noise(i, s + 15)),
    'policy/ratio_mean': (_p, i, s) => 1 + 0.002 * (noise(i, s + 16) - 0.5),
    'adv/std': (_p, i, s) => 0.8 + 0.3 * noise(i, s + 17),
    'grad/norm': (p, i, s) => 0.3 + 0.3 * noise(i, s + 18) + 0.2 * (1 - p),
    'train/lr': p => 3e-4 * (1 - 0.9 * p),
    'train/epochs_run': (_p, i, s) => (noise(i, s + 19) > 0.9 ? 7 : 10),
    'guard/backtracks': (_p, i, s) => (noise(i, s + 9) > 0.97 ? 1 + Math.round(2 * noise(i, s + 20)) : 0),
    'time/unix_s': (_p, i) => (startTime + i * rowMs) / 1000,
    'time/steps_per_second': (_p, i, s) => 21_000 + 3000 * noise(i, s + 21),
  };
}

const startTime = Date.UTC(2026, 0, 5, 8, 0, 0);

export interface FakeRun {
  id: string;
  name: string;
  trainer: string;
  health: Health;
  state: RunSummary['state'];
  environment: string | null;
  seed: number;
  rows: number;
  plannedRows: number;
  config: RunDetail['config'];
  tags: string[];
  note: string;
  archived: boolean;
  parent: string | null;
  group: string | null;
  problem: string | null;
  updatedAt: number;
  events: PageEvent[];
  logNotes: string[];
  extra: readonly string[];
  generation: number;
  /** What was set by hand. */
  adjusted: Record<string, number>;
  /** Newest first. */
  groups: readonly CompletionGroup[];
  /** Its step KL, row by row, where it is not that of its health. */
  kl?: (i: number) => number;
}

export function fakeRun(options: Partial<FakeRun> & { id: string }): FakeRun {
  const seed = options.seed ?? 1;
  const rows = options.rows ?? 240;
  return {
    name: options.id,
    trainer: 'keel',
    health: 'healthy',
    state: 'finished',
    environment: 'CartPole-v1',
    seed,
    rows,
    plannedRows: Math.max(rows, 1),
    config: {
      'env.name': options.environment ?? 'CartPole-v1',
      seed,
      learningRate: 3e-4,
      epochs: 10,
      'guard.bound': 0.05,
      targetKl: 0.015,
      minibatchSize: 64,
      anneal: true,
      note: null,
    },
    tags: [],
    note: '',
    archived: false,
    parent: null,
    group: null,
    problem: null,
    updatedAt: Date.now() - 3_600_000,
    events: [],
    logNotes: [],
    extra: [],
    generation: 1,
    adjusted: {},
    groups: [],
    ...options,
  };
}

/** The value of a metric in a row. Extra metrics (of the large run) are waves with one spike. */
export function seriesValue(run: FakeRun, metric: string, i: number): number | null {
  if (metric === 'kl/step' && run.kl !== undefined) return run.kl(i);
  const formula = formulas[run.health][metric];
  if (formula !== undefined) return formula(i / run.plannedRows, i, run.seed * 100);
  const k = run.extra.indexOf(metric);
  if (k < 0) return null;
  return i === Math.floor(run.rows * 0.618) ? 12 : Math.sin(i / (run.rows / (6 + k))) + 0.8 * noise(i, k);
}

function metricsOf(run: FakeRun): string[] {
  return run.rows === 0 ? [] : [...Object.keys(formulas[run.health]), ...run.extra];
}

export function rowOf(run: FakeRun, i: number): Record<string, number | null> {
  return Object.fromEntries(metricsOf(run).map(metric => [metric, seriesValue(run, metric, i)]));
}

const xOf = (x: XAxis, i: number) =>
  x === 'step' ? (i + 1) * stepsPerRow : x === 'iteration' ? i + 1 : startTime + i * rowMs;
const rowAt = (x: XAxis, at: number) =>
  x === 'step' ? at / stepsPerRow - 1 : x === 'iteration' ? at - 1 : (at - startTime) / rowMs;

const resume = (setting: KnownSetting, value: number, how = ''): Fix =>
  fixOf({ code: `keel resume ${how}--set ${setting}=${value}` }, [
    { setting, name: setting, from: null, value },
  ]);

const fixed = (...fixes: readonly Fix[]): Pick<Finding, 'fix' | 'fixes'> => ({
  fix: fixes.map(({ text }) => text),
  fixes,
});

/** Buckets of a series. Of large ones a few points each are looked at, and the spike, which no envelope may lose. */
export function envelopeOf(
  run: FakeRun,
  metric: string,
  x: XAxis,
  from: number | null,
  to: number | null,
  buckets: number,
): Envelope {
  const first = from === null ? 0 : Math.max(0, Math.ceil(rowAt(x, from) - 1e-9));
  const last = to === null ? run.rows - 1 : Math.min(run.rows - 1, Math.floor(rowAt(x, to) + 1e-9));
  const envelope = {
    metric,
    x: [] as number[],
    min: [] as (number | null)[],
    max: [] as (number | null)[],
    mean: [] as (number | null)[],
    count: [] as number[],
    broken: [] as [number, number][],
  };
  const n = last - first + 1;
  if (n <= 0) return envelope;
  const per = Math.max(1, n / buckets);
  const spike = Math.floor(run.rows * 0.618);
  for (let b = 0; b * per < n; b++) {
    const start = first + Math.floor(b * per);
    const end = Math.min(last, first + Math.floor((b + 1) * per) - 1);
    if (end < start) continue;
    const looked =
      end - start < 8
        ? Array.from({ length: end - start + 1 }, (_, k) => start + k)
        : [0, 1, 2, 3, 4, 5, 6].map(k => start + Math.floor(((end - start) * k) / 6));
    const sampled = looked.map(i => seriesValue(run, metric, i)).filter(v => v !== null);
    const found =
      spike >= start && spike <= end && !looked.includes(spike) ? [seriesValue(run, metric, spike)] : [];
    const values = [...sampled, ...found.filter(v => v !== null)];
    envelope.x.push(xOf(x, end));
    envelope.count.push(end - start + 1);
    envelope.min.push(values.length === 0 ? null : Math.min(...values));
    envelope.max.push(values.length === 0 ? null : Math.max(...values));
    // The spike counts once among all rows of its bucket, those looked at stand for the others.
    const usual = sampled.reduce((a, v) => a + v, 0) / sampled.length;
    const own = found.filter(v => v !== null).reduce((a, v) => a + (v - usual) / (end - start + 1), 0);
    envelope.mean.push(sampled.length === 0 ? null : usual + own);
  }
  return envelope;
}

/** Of its settings; only Keel has a guard. */
const contractOf = ({ config, trainer }: FakeRun): KlContract => ({
  target: typeof config.targetKl === 'number' ? config.targetKl : null,
  // A run that goes beyond .05 has its guard switched off, or it could not.
  ...(trainer === 'keel' ? { guard: config.guard === null ? null : 0.05 } : {}),
});

export function summaryOf(run: FakeRun): RunSummary {
  const last = run.rows - 1;
  const lastKl = run.rows === 0 ? null : seriesValue(run, 'kl/step', last);
  const verdict = run.rows < 20 ? null : run.health;
  const points = Math.min(60, run.rows);
  return {
    id: run.id,
    name: run.name,
    root: 'runs',
    trainer: run.trainer,
    state: run.state,
    reason:
      run.state === 'failed'
        ? `the environment gave NaN at step ${(run.rows * stepsPerRow).toLocaleString('en')}`
        : null,
    environment: run.environment,
    algorithm: run.trainer === 'unknown' ? null : 'PPO',
    seed: run.seed,
    step: run.rows * stepsPerRow,
    totalSteps: run.trainer === 'keel' && run.state !== 'unreadable' ? run.plannedRows * stepsPerRow : null,
    startedAt: run.updatedAt - run.rows * rowMs,
    updatedAt: run.updatedAt,
    stepsPerSecond: run.state === 'running' ? 21_400 : null,
    sparkline: Array.from({ length: points }, (_, k) =>
      seriesValue(run, 'episode/return', Math.floor((k * last) / Math.max(1, points - 1))),
    ),
    lastReturn: run.rows === 0 ? null : seriesValue(run, 'episode/return', last),
    lastKl,
    klBand: lastKl === null ? null : klBand(lastKl, contractOf(run)).name,
    klContract: contractOf(run),
    atRest: false,
    verdict,
    rootCause: verdict === 'sick' ? 'learning-rate-too-high' : verdict === 'watch' ? 'too-many-epochs' : null,
    parent: run.parent,
    parentId: run.parent,
    parentStep: run.parent === null ? null : 40 * stepsPerRow,
    group: run.group,
    notes: { tags: run.tags, note: run.note, archived: run.archived },
    problem: run.problem,
    generation: run.generation,
    loaded: true,
    replaysAt: null,
    completionsAt: run.groups.length > 0 ? startTime : null,
    clusterAt: null,
    drawn: false,
  };
}

export function detailOf(run: FakeRun): RunDetail {
  const metrics: MetricInfo[] = metricsOf(run).map(id => {
    const known = findMetric(id);
    return {
      id,
      theirs: run.trainer === 'keel' ? id : id.replace('kl/step', 'train/approx_kl'),
      group: known?.group ?? 'env',
      title: known?.title ?? id,
      unit: known?.unit ?? '1',
      doc: known?.doc ?? '',
      healthy: known?.healthy ?? null,
      points: run.rows,
      last: seriesValue(run, id, run.rows - 1),
    };
  });
  return {
    run: summaryOf(run),
    metrics,
    config: run.config,
    commands: {
      record: `npx keel record ${run.name}`,
      render: `npx keel render ${run.name}`,
      route: `npx keel simulate cluster --router ${run.name}`,
    },
    logNotes: run.logNotes,
    adjustable: run.state === 'running' ? { learningRate: 3e-4, targetKl: 0.015, ...run.adjusted } : {},
    unit: 'steps',
    hasTime: true,
  };
}

function checkedOf({ health, trainer }: FakeRun): Diagnosis['checked'] {
  return [
    { code: 'kl-spikes', state: health === 'healthy' ? 'clear' : 'found' },
    { code: 'kl-high', state: 'near', limit: { of: 'the median of `kl/step`', at: 0.02, value: 0.0174 } },
    { code: 'return-collapse', state: health === 'sick' ? 'found' : 'clear' },
    { code: 'non-finite', state: 'clear' },
    { code: 'critic-flat', state: 'clear' },
    ...(trainer === 'keel'
      ? []
      : [{ code: 'guard-busy', state: 'blind' as const, missing: ['guard/backtracks'] }]),
    { code: 'sampler-gap', state: 'blind', missing: ['sampler/gap'] },
  ];
}

export function diagnosisOf(run: FakeRun): DiagnosisAnswer {
  if (run.rows < 20)
    return { diagnosis: null, reason: 'The run is too short to be judged: 20 rows are needed.', actions: [] };
  const steps = run.rows * stepsPerRow;
  const at = (share: number) => Math.floor(share * run.plannedRows) * stepsPerRow;
  const mark = (metric: string, from: number, to: number) => ({ metric, theirs: metric, from, to });
  const base = {
    path: `runs/${run.name}`,
    trainer: run.trainer,
    steps,
    notes: run.logNotes,
    understood: {
      columns: ['kl/step', 'episode/return'].map(metric => ({ metric, theirs: metric })),
      settings: [{ setting: 'learningRate' as const, name: 'learningRate', value: 3e-4 }],
      rows: run.rows,
      from: stepsPerRow,
      to: steps,
      notUnderstood: [],
      absent: [],
    },
    basis: run.health === 'healthy' ? ['`episode/return` rises, and `kl/step` stays small.'] : [],
    checked: checkedOf(run),
  };
  if (run.health === 'healthy') {
    const diagnosis: Diagnosis = {
      ...base,
      verdict: 'healthy',
      rootCause: null,
      confidence: 0.9,
      summary: `Nothing is wrong in ${run.rows} iterations: KL stays small and the return rises.`,
      findings: [],
    };
    return { diagnosis, reason: null, actions: [] };
  }
  const sick = run.health === 'sick';
  const from = at(sick ? 0.36 : 0.1);
  const cause = sick ? ('learning-rate-too-high' as const) : ('too-many-epochs' as const);
  const findings: Diagnosis['findings'] = [
    {
      code: 'kl-spikes',
      severity: sick ? 'critical' : 'warning',
      title: sick
        ? 'KL spikes above 0.05 that grow: 21 of the last 150 updates'
        : 'KL touches 0.02 in 7% of the updates',
      from,
      to: steps,
      firstSeen: from,
      cites: [{ evidence: 0, ...mark('kl/step', from, steps) }],
      facts: [],
      evidence: [
        `\`kl/step\` passes 0.05 first at step ${from.toLocaleString('en')}; the largest is 0.118.`,
        'The median before was 0.009, after it 0.021.',
      ],
      cause,
      confidence: sick ? 0.92 : 0.6,
      ...fixed(...(sick ? [resume('learningRate', 1e-4), resume('targetKl', 0.01)] : [resume('epochs', 6)])),
      watch: 'kl/step should stay below 0.02 within 20 iterations.',
      marks: [mark('kl/step', from, steps)],
    },
    ...(sick
      ? [
          {
            code: 'return-collapse',
            severity: 'critical' as const,
            title: 'the return falls by 60% after the spikes',
            from: at(0.42),
            to: steps,
            firstSeen: at(0.42),
            cites: [{ evidence: 0, ...mark('episode/return', at(0.42), steps) }],
            facts: [],
            evidence: [
              'episode/return was 410 before, and is 166 now.',
              'It began 11 iterations after the first spike.',
            ],
            cause,
            confidence: 0.8,
            ...fixed(resume('learningRate', 1e-4, '--from best ')),
            marks: [
              mark('episode/return', at(0.42), steps),
              mark('value/explained_variance', at(0.42), steps),
            ],
          },
        ]
      : []),
  ];
  const diagnosis: Diagnosis = {
    ...base,
    verdict: run.health,
    rootCause: cause,
    confidence: sick ? 0.92 : 0.6,
    summary: sick
      ? 'The learning rate is too high: KL spikes from step 175,000 on, and the return falls after them.'
      : 'KL touches the warning band now and then.',
    findings,
  };
  const actions: DiagnosisAnswer['actions'] =
    run.state !== 'running'
      ? []
      : [
          {
            action: { type: 'set', key: 'learningRate', value: 1e-4 },
            label: 'Lower the learning rate to 0.0001',
            why: 'KL falls with it, in the next iteration.',
          },
          {
            action: { type: 'set', key: 'targetKl', value: 0.01 },
            label: 'Set the target KL to 0.01',
            why: 'Updates end before they go too far.',
          },
          {
            action: { type: 'restart', checkpoint: at(0.3), set: { learningRate: 1e-4 } },
            label: 'Restart from the last healthy checkpoint',
            why: 'What was unlearnt comes back.',
          },
        ];
  // What is set already is not offered.
  const open = actions.filter(
    ({ action }) => action.type !== 'set' || run.adjusted[action.key] !== action.value,
  );
  const set = sick ? { learningRate: 1e-4, targetKl: 0.01 } : { epochs: 6 };
  const sets = Object.entries(set)
    .map(([key, value]) => ` --set ${key}=${value}`)
    .join('');
  const checkpoint = checkpointsOf(run).findLast(({ healthy }) => healthy)?.step;
  const remedy: Remedy | null =
    run.trainer !== 'keel'
      ? null
      : {
          set,
          fork:
            sick && checkpoint !== undefined
              ? { checkpoint, command: `npx keel fork ${run.name} --checkpoint ${checkpoint}${sets}` }
              : null,
          anew: `npx keel train ${run.environment} --no-preset --steps ${run.plannedRows * stepsPerRow} --seed ${run.seed}${sets}`,
        };
  return { diagnosis, reason: null, actions: open, remedy };
}

export function checkpointsOf(run: FakeRun): CheckpointSummary[] {
  const all: CheckpointSummary[] = [];
  for (let i = 40; i <= run.rows; i += 40) {
    all.push({
      step: i * stepsPerRow,
      iteration: i,
      savedAt: run.updatedAt - (run.rows - i) * rowMs,
      score: seriesValue(run, 'episode/return', i - 1),
      isBest: i === 80,
      isLast: i + 40 > run.rows,
      healthy: run.health !== 'sick' || i < run.plannedRows * 0.36,
      bytes: 184_320,
    });
  }
  return all;
}

/** Events as such a run has them. */
export function eventsOf(run: FakeRun, from: number, to: number, sequence: number): PageEvent[] {
  const events: PageEvent[] = [];
  const add = (type: string, i: number, message: string) =>
    events.push({
      sequence: sequence + events.length,
      type,
      step: (i + 1) * stepsPerRow,
      iteration: i + 1,
      time: startTime + i * rowMs,
      message,
    });
  for (let i = from; i < to; i++) {
    if (i === 0) add('started', i, 'the run began');
    const kl = seriesValue(run, 'kl/step', i) ?? 0;
    if (kl > 0.015) add('early-stop', i, `KL ${kl.toFixed(4)} passed the target 0.015 in epoch 7`);
    if (run.config.guard !== null && (seriesValue(run, 'guard/backtracks', i) ?? 0) > 0)
      add('guard', i, `KL ${(kl * 2.2).toFixed(4)} was brought back to ${kl.toFixed(4)}`);
    if (i > 0 && (i + 1) % 40 === 0) add('checkpoint', i, `saved at step ${(i + 1) * stepsPerRow}`);
  }
  return events;
}
