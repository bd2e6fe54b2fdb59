/**
 * Trains the runs of the matrix and keeps their logs: `npx tsx bench/doctor/make-runs.ts [--again] [part of a name]`. What
 * is there is trained again only with --again.
 */
import { report, round } from '../measure.ts';
import { readCached, writeCached } from './cache.ts';
import { harmless } from './harm.ts';
import { jobs } from './plan.ts';
import { preset, trainJob } from './train-job.ts';

const args = process.argv.slice(2);
const again = args.includes('--again');
const wanted = args.find(arg => arg !== '--again') ?? '';
const runs = new Map(readCached().map(run => [run.label.name, run]));
const todo = jobs(preset).filter(({ name }) => name.includes(wanted) && (again || !runs.has(name)));
for (const [i, job] of todo.entries()) {
  const start = performance.now();
  const run = await trainJob(job);
  runs.set(job.name, run);
  writeCached([...runs.values()]);
  report({
    run: job.name,
    left: todo.length - i - 1,
    rows: run.log.rows.length,
    lastReturn: run.label.lastReturn,
    error: run.label.error,
    seconds: round((performance.now() - start) / 1000, 1),
  });
}
// What is harmless is known once the healthy runs are there.
const all = readCached();
writeCached(all.map(run => ({ ...run, label: { ...run.label, harmless: harmless(run, all) } })));
