/**
 * Trains the runs of the language-model matrix and keeps their logs:
 * `npx tsx bench/doctor/lm/make-runs.ts [--again] [patterns of names, 'format-.*-0$' 'sort-']`, those of the first pattern first.
 * What is there is trained again only with --again; a stopped generation goes on with the run that it was in.
 */
import { report, round } from '../../measure.ts';
import { readLmRuns, writeLmRuns } from './cache.ts';
import { markHarmless } from './harm.ts';
import { lmJobs } from './plan.ts';
import { trainLmJob } from './train.ts';

const args = process.argv.slice(2);
const again = args.includes('--again');
const patterns = args.filter(arg => arg !== '--again').map(pattern => new RegExp(pattern));
/** The place of the first pattern that a name fits; behind all of them where none does. */
const turnOf = (name: string): number => {
  const turn = patterns.findIndex(pattern => pattern.test(name));
  return turn < 0 ? patterns.length : turn;
};
const runs = new Map(readLmRuns().map(run => [run.label.name, run]));
const todo = lmJobs()
  .filter(({ name }) => patterns.length === 0 || turnOf(name) < patterns.length)
  .filter(({ name }) => again || !runs.has(name))
  .sort((a, b) => turnOf(a.name) - turnOf(b.name));
for (const [i, job] of todo.entries()) {
  const start = performance.now();
  const run = await trainLmJob(job);
  runs.set(job.name, run);
  writeLmRuns(markHarmless([...runs.values()]));
  report({
    run: job.name,
    left: todo.length - i - 1,
    rows: run.rows.length,
    lastScore: run.label.lastScore,
    error: run.label.error,
    seconds: round((performance.now() - start) / 1000, 1),
  });
}
