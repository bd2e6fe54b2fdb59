/**
 * What the autopilot is worth: runs with a fault from the start or from the middle on, with it and without, and healthy ones,
 * which it must leave alone. A run is well if it comes within a tenth of what the healthy runs without an autopilot come to, of
 * the way from runs that learn nothing (those with a rate of 1e-7 from the start).
 *
 * `npm run bench -- autopilot [part of a name] [--seeds 1100..1101] [--healthy 1100..1105] [--report]` trains what is not in
 * `bench/doctor/autopilot.jsonl` yet, which may be ended at any time. Seeds below 1000 are for tuning, and are not kept.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { resume, train } from '../src/autopilot/runs.ts';
import { openRun, readRows } from '../src/runs/index.ts';
import { addRecord, readLines } from './doctor/cure-records.ts';
import { isWell, type Span } from './doctor/healthy.ts';
import { jobs } from './doctor/plan.ts';
import { type Sabotage, sabotages } from './doctor/sabotage.ts';
import { preset } from './doctor/train-job.ts';
import { withMarked } from './marked.ts';
import { machine, report, round } from './measure.ts';

interface PilotRecord extends Pick<Sabotage, 'env' | 'fault' | 'when' | 'seed'> {
  readonly autopilot: boolean;
  /** Mean return of the last fifth of the run's steps. */
  readonly lastReturn: number | null;
  /** What was done, oldest first. */
  readonly steps: readonly { readonly action: string; readonly cause: string; readonly changed: object }[];
  readonly error: string | null;
}

const nameOf = ({ env, fault, when, seed }: Pick<Sabotage, 'env' | 'fault' | 'when' | 'seed'>): string =>
  `${env.split('-')[0].toLowerCase()}-${fault}-${when}-${seed}`;

/** As many as a run is worth: the log alone is read. */
const quiet = { csv: false, tensorboard: false, record: false, threads: 1, workers: 0 } as const;

async function trained(one: Sabotage, autopilot: boolean): Promise<PilotRecord> {
  const root = mkdtempSync(join(tmpdir(), 'keel-autopilot-'));
  const { env, fault, when, seed } = one;
  const steps: { action: string; cause: string; changed: object }[] = [];
  const config = { ...one.healthy, ...quiet, autopilot };
  const middle = one.healthy.steps! / 2;
  const first = new AbortController();
  const onEvent: NonNullable<Parameters<typeof resume>[1]>['onEvent'] = event => {
    if (event.type !== 'autopilot') return;
    const { action, cause, changes } = event;
    steps.push({ action, cause, changed: Object.fromEntries(changes.map(({ key, value }) => [key, value])) });
  };
  try {
    let dir: string;
    let error: string | null = null;
    try {
      const begun = await train({
        env,
        preset: {},
        root,
        id: 'run',
        config: when === 'start' ? { ...config, ...one.wrong } : config,
        onEvent,
        ...(when === 'middle' && {
          signal: first.signal,
          onRow: row => {
            if (row['train/step'] >= middle) first.abort();
          },
        }),
      });
      dir = begun.dir;
      if (when === 'middle') dir = (await resume(dir, { config: { ...one.wrong }, onEvent })).dir;
    } catch (thrown) {
      error = (thrown as Error).message;
      dir = join(root, 'run');
    }
    return { env, fault, when, seed, autopilot, lastReturn: lastReturnOf(dir), steps, error };
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

/** Of the last fifth of the run's steps, weighted by episodes. */
function lastReturnOf(dir: string): number | null {
  const total = Number(openRun(dir).manifest.config.steps);
  let [sum, count] = [0, 0];
  for (const row of readRows(dir).items) {
    const { 'train/step': step, 'episode/return': mean, 'episode/count': episodes = 1 } = row;
    if (step <= 0.8 * total || mean === undefined || !Number.isFinite(mean)) continue;
    sum += mean * episodes;
    count += episodes;
  }
  return count === 0 ? null : round(sum / count, 2);
}

export async function run(): Promise<void> {
  const { values, positionals } = parseArgs({
    args: process.argv.slice(3),
    allowPositionals: true,
    options: {
      report: { type: 'boolean', default: false },
      write: { type: 'boolean', default: false },
      seeds: { type: 'string', default: '1100..1101' },
      healthy: { type: 'string', default: '1100..1105' },
    },
  });
  report({ bench: 'autopilot', ...machine() });
  const planned = jobs(preset);
  const seeds = seedsOf(values.seeds);
  const wanted = [
    ...sabotages(planned, seedsOf(values.healthy)).filter(({ fault }) => fault === 'healthy'),
    ...sabotages(planned, seeds).filter(({ fault }) => fault !== 'healthy'),
  ].filter(one => nameOf(one).includes(positionals[0] ?? ''));
  const records = readLines<PilotRecord>('autopilot');
  for (const one of values.report ? [] : wanted) {
    for (const autopilot of [true, false]) {
      if (records.some(r => nameOf(r) === nameOf(one) && r.autopilot === autopilot)) continue;
      const began = performance.now();
      const record = await trained(one, autopilot);
      if (one.seed >= 1000) {
        records.push(record);
        addRecord('autopilot', record);
      }
      report({ ...record, seconds: round((performance.now() - began) / 1000, 1) });
    }
  }
  const spans = spansOf(records);
  for (const line of tableOf(records, spans)) report(line);
  if (!values.write) return;
  const results = new URL('../docs/results.md', import.meta.url);
  writeFileSync(results, withMarked(readFileSync(results, 'utf8'), 'autopilot', markdownOf(records, spans)));
}

/** Seeds as they are written: `1100..1105`. */
function seedsOf(text: string): number[] {
  const [from, to = from] = text.split('..').map(Number);
  return Array.from({ length: to - from + 1 }, (_, i) => from + i);
}

/** What runs of each environment come to when nothing is wrong, and when nothing is learnt. */
function spansOf(records: readonly PilotRecord[]): Map<string, Span> {
  const meanOf = (env: string, fault: string): number => {
    const of = records.filter(
      r => r.env === env && r.fault === fault && r.when === 'start' && !r.autopilot && r.lastReturn !== null,
    );
    return of.reduce((sum, { lastReturn }) => sum + lastReturn!, 0) / of.length;
  };
  return new Map(
    records.map(({ env }) => [env, { healthy: meanOf(env, 'healthy'), random: meanOf(env, 'lr-low') }]),
  );
}

/** The same for docs/results.md. */
function markdownOf(records: readonly PilotRecord[], spans: ReadonlyMap<string, Span>): string {
  const cell = (of: readonly PilotRecord[], autopilot: boolean): string => {
    const own = of.filter(r => r.autopilot === autopilot);
    return `${own.filter(r => isWell(r.lastReturn, spans.get(r.env)!)).length} of ${own.length}`;
  };
  const row = (name: string, of: readonly PilotRecord[]): string => {
    const steps = of.filter(r => r.autopilot && r.steps.length > 0).length;
    return `| ${[name, cell(of, true), cell(of, false), steps].join(' | ')} |`;
  };
  const sick = records.filter(r => r.fault !== 'healthy');
  const kinds = new Map(sick.map(r => [`${r.fault}, from the ${r.when}`, [r.fault, r.when] as const]));
  return [
    '| fault | well, with | well, without | runs in which it did something |',
    '|---|--:|--:|--:|',
    ...[...kinds].map(([name, [fault, when]]) =>
      row(
        name,
        sick.filter(r => r.fault === fault && r.when === when),
      ),
    ),
    row('**all**', sick),
    row(
      'none: healthy runs',
      records.filter(r => r.fault === 'healthy'),
    ),
  ].join('\n');
}

function tableOf(
  records: readonly PilotRecord[],
  spans: ReadonlyMap<string, Span>,
): Record<string, unknown>[] {
  const share = (of: readonly PilotRecord[]) => {
    const well = of.filter(r => isWell(r.lastReturn, spans.get(r.env)!)).length;
    return { runs: of.length, well, share: of.length === 0 ? null : round(well / of.length, 3) };
  };
  const lines: Record<string, unknown>[] = [];
  const line = (label: object, of: readonly PilotRecord[]): void => {
    lines.push({
      ...label,
      with: share(of.filter(r => r.autopilot)),
      without: share(of.filter(r => !r.autopilot)),
    });
  };
  const sick = records.filter(r => r.fault !== 'healthy');
  for (const record of sick)
    if (record.autopilot && !isWell(record.lastReturn, spans.get(record.env)!))
      lines.push({
        not_well: nameOf(record),
        lastReturn: record.lastReturn,
        steps: record.steps,
        error: record.error,
      });
  for (const fault of new Set(sick.map(r => r.fault)))
    for (const when of ['start', 'middle'] as const) {
      const of = sick.filter(r => r.fault === fault && r.when === when);
      if (of.length > 0) line({ fault, when }, of);
    }
  line({ fault: 'all' }, sick);
  const healthy = records.filter(r => r.fault === 'healthy');
  line({ fault: 'none' }, healthy);
  const touched = healthy.filter(r => r.steps.length > 0);
  lines.push({
    healthy_runs: healthy.filter(r => r.autopilot).length,
    interventions: touched.length,
    of: touched.map(r => [nameOf(r), r.steps]),
  });
  return lines;
}
