/**
 * Is the doctor's advice right: every sick run of the classic matrix is trained again with the first fix as it stands, from
 * the start and from the newest checkpoint before anything went wrong.
 *
 * `npm run bench -- cures [part of a name] [--report] [--spelling keel]` trains what is not in `bench/doctor/cures.jsonl`
 * yet, which may be ended at any time; `cures lm [part of a name]` does so with the language models (`lm-cures.jsonl`).
 * `--report` trains nothing; `--write` puts the figures of both into docs/results.md and src/doctor/cure-figures.ts. `--try '{"epochs":5}'` has other settings in place of the
 * fix, and keeps no record.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { PpoSettings } from '../src/algos/ppo/settings.ts';
import { type Diagnosis, firstHarm } from '../src/doctor/index.ts';
import { type CachedRun, readCached } from './doctor/cache.ts';
import { addRecord, type CureRecord, keyOf, readLines } from './doctor/cure-records.ts';
import { type CureCase, curesByRule, markdownOf, tableOf } from './doctor/cure-table.ts';
import { diagnoseFile } from './doctor/diagnose-file.ts';
import { healthySpans, isWell, wellOfHealthy } from './doctor/healthy.ts';
import { lmCureCases } from './doctor/lm/cures.ts';
import { jobs } from './doctor/plan.ts';
import { type From, type Remedy, remedyOf } from './doctor/remedy.ts';
import { spell, spellingsOf } from './doctor/spellings.ts';
import { preset, trainJob } from './doctor/train-job.ts';
import { withMarked } from './marked.ts';
import { machine, report, round } from './measure.ts';

/** As `keel train` has it unless told. */
const checkpointEvery = 10;

const cached = readCached();
const planned = new Map(jobs(preset).map(job => [job.name, job]));

/** The iteration of the newest checkpoint from before the first critical finding; of a run to watch, before its first. */
function healthyIteration({ log: { rows } }: CachedRun, diagnosis: Diagnosis): number {
  const critical = firstHarm(diagnosis);
  const harm = Number.isFinite(critical) ? critical : diagnosis.findings[0].firstSeen;
  const before = rows.filter(row => row['train/step'] < harm).length;
  return before - (before % checkpointEvery);
}

async function trained(run: string, from: From, iteration: number, remedy: Remedy): Promise<CureRecord> {
  const { job, written, undone } = remedy;
  const parent = planned.get(run)!;
  const { label } = await trainJob(job, iteration === 0 ? undefined : { parent, iteration, written });
  const { lastReturn, error } = label;
  return { run, from, iteration, written: { ...written }, undone, lastReturn, error };
}

export async function run(): Promise<void> {
  const { values, positionals } = parseArgs({
    args: process.argv.slice(3),
    allowPositionals: true,
    options: {
      report: { type: 'boolean', default: false },
      spelling: { type: 'string' },
      try: { type: 'string' },
      write: { type: 'boolean', default: false },
    },
  });
  report({ bench: 'cures', ...machine() });
  const isLm = positionals[0] === 'lm';
  const [filter = ''] = isLm ? positionals.slice(1) : positionals;
  if (isLm) for (const line of tableOf(await lmCureCases(filter, !values.report))) report(line);
  else await classic(filter, values);
  if (!values.write) return;
  const [agents, models] = [await classicCases('', { report: true }), await lmCureCases('', false)];
  const results = new URL('../docs/results.md', import.meta.url);
  const text = withMarked(readFileSync(results, 'utf8'), 'cures', markdownOf(agents.lines));
  writeFileSync(
    results,
    withMarked(text, 'lm-cures', markdownOf(models, 'seeds and tasks that nothing was tuned on')),
  );
  const figures = new URL('../src/doctor/cure-figures.ts', import.meta.url);
  writeFileSync(figures, figuresFile(curesByRule([...agents.lines, ...models])));
}

interface How {
  readonly report?: boolean | undefined;
  readonly spelling?: string | undefined;
  readonly try?: string | undefined;
}

async function classic(filter: string, how: How): Promise<void> {
  const { lines, spanOf } = await classicCases(filter, how);
  for (const line of [...wellOfHealthy([...planned.values()], spanOf), ...tableOf(lines)]) report(line);
}

/** Every sick log of an agent, and what following its first advice came to. */
async function classicCases(filter: string, values: How) {
  const instead = values.try === undefined ? undefined : (JSON.parse(values.try) as PpoSettings);
  const records = new Map(readLines<CureRecord>('cures').map(record => [keyOf(record), record]));
  const spanOf = await healthySpans([...planned.values()], !values.report);
  const root = mkdtempSync(join(tmpdir(), 'keel-cures-'));
  const lines: CureCase[] = [];
  try {
    for (const one of cached.filter(({ label }) => label.fault !== null && label.name.includes(filter))) {
      const { name } = one.label;
      for (const spelling of spellingsOf(one)) {
        if (values.spelling !== undefined && spelling !== values.spelling) continue;
        const { path, traceless } = spell(one, spelling, root);
        if (traceless) continue;
        const diagnosis = await diagnoseFile(path);
        if (diagnosis.verdict !== 'sick' && diagnosis.verdict !== 'watch') continue;
        const cures: Partial<Record<From, boolean | null>> = {};
        for (const from of ['start', 'checkpoint'] as const) {
          const iteration = from === 'start' ? 0 : healthyIteration(one, diagnosis);
          // Before the first checkpoint there is only the start.
          if (from === 'checkpoint' && iteration === 0) continue;
          const remedy = remedyOf(planned.get(name)!, diagnosis, { spelling, instead });
          if (remedy === undefined) {
            cures[from] = null;
            continue;
          }
          const key = keyOf({ run: name, from, iteration, ...remedy, written: { ...remedy.written } });
          let record = records.get(key);
          if (record === undefined && !values.report) {
            const began = performance.now();
            record = await trained(name, from, iteration, remedy);
            records.set(key, record);
            if (instead === undefined) addRecord('cures', record);
            const seconds = round((performance.now() - began) / 1000, 1);
            report({ ...record, cured: isWell(record.lastReturn, spanOf(planned.get(name)!)), seconds });
          }
          if (record !== undefined)
            cures[from] = record.error === null && isWell(record.lastReturn, spanOf(planned.get(name)!));
        }
        lines.push({
          label: one.label,
          wellBefore: isWell(one.label.lastReturn, spanOf(planned.get(name)!)),
          spelling,
          diagnosis,
          cures,
        });
      }
    }
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
  return { lines, spanOf };
}

/** What the doctor reads of it. */
function figuresFile(byRule: ReturnType<typeof curesByRule>): string {
  const entries = Object.entries(byRule).map(
    ([code, { runs, cured }]) => `  '${code}': { runs: ${runs}, cured: ${cured} },\n`,
  );
  return `/** How often the first fix of a rule has cured a run of known fault. Made by \`npm run bench -- cures --write\`. */
export interface CureFigure {
  /** Sick logs of seeds that nothing was tuned on. */
  readonly runs: number;
  /** Those whose run got well with the fix, trained again from the start. */
  readonly cured: number;
}

/** By the rule's code. */
export const cureFigures: Readonly<Record<string, CureFigure>> = {
${entries.join('')}};
`;
}
