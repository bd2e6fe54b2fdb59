/** Which runs the overview shows, and in which order. */
import { verdictRank } from '../../src/doctor/findings.ts';
import type { RunState, RunSummary } from '../../src/server/api.ts';
import type { OverviewView, SortKey } from './view-state.ts';

const stateOrder: readonly RunState[] = [
  'running',
  'failed',
  'killed',
  'unreadable',
  'stopped',
  'quiet',
  'finished',
];

const keys: Readonly<Record<SortKey, (run: RunSummary) => string | number | null>> = {
  name: run => run.name,
  state: run => stateOrder.indexOf(run.state),
  environment: run => run.environment,
  step: run => run.step,
  return: run => run.lastReturn,
  kl: run => run.lastKl,
  verdict: run => (run.verdict === null ? null : verdictRank[run.verdict]),
  // All that run are as new as can be: were they ordered by their last row, they would change places all day.
  updated: run => (run.state === 'running' ? Number.POSITIVE_INFINITY : run.updatedAt),
};

/** Orders runs by one column; those without a value come last either way, and equals stay in order of name. */
function compareRuns(sort: SortKey, down: boolean): (a: RunSummary, b: RunSummary) => number {
  const key = keys[sort];
  return (a, b) => {
    const x = key(a);
    const y = key(b);
    if (x === null || y === null) {
      if (x !== y) return x === null ? 1 : -1;
    } else {
      const order = typeof x === 'string' ? natural.compare(x, String(y)) : x === y ? 0 : x - (y as number);
      if (order !== 0) return down ? -order : order;
    }
    return natural.compare(a.name, b.name) || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0);
  };
}

const natural = new Intl.Collator('en', { numeric: true, sensitivity: 'base' });

/** Whether a run has all words of a search in its name, environment, algorithm, trainer, tags, note, state or verdict. */
export function matches(run: RunSummary, query: string): boolean {
  const terms = query.toLowerCase().split(/\s+/).filter(Boolean);
  if (terms.length === 0) return true;
  const text = [
    run.name,
    run.environment,
    run.algorithm,
    run.trainer,
    run.state,
    run.verdict,
    run.rootCause,
    run.seed === null ? '' : `seed=${run.seed}`,
    ...run.notes.tags,
    run.notes.note,
  ]
    .join(' ')
    .toLowerCase();
  return terms.every(term => text.includes(term));
}

/** The runs to show. */
export function selectRuns(runs: readonly RunSummary[], view: OverviewView): RunSummary[] {
  return runs
    .filter(
      run =>
        run.notes.archived === view.archived &&
        (view.states.length === 0 || view.states.includes(run.state)) &&
        (view.tag === null || run.notes.tags.includes(view.tag)) &&
        matches(run, view.query),
    )
    .sort(compareRuns(view.sort, view.down));
}

/** All tags with how many runs have them, most used first. */
export function countTags(runs: readonly RunSummary[]): { tag: string; count: number }[] {
  const counts = new Map<string, number>();
  for (const run of runs) for (const tag of run.notes.tags) counts.set(tag, (counts.get(tag) ?? 0) + 1);
  return [...counts]
    .map(([tag, count]) => ({ tag, count }))
    .sort((a, b) => b.count - a.count || natural.compare(a.tag, b.tag));
}

/** Tags as typed: parted by commas or blanks, each once, at most 40 characters. */
export function parseTags(text: string): string[] {
  const tags = text.split(/[\s,]+/).map(tag => tag.replace(/^#/, '').slice(0, 40));
  return [...new Set(tags.filter(tag => tag !== ''))].slice(0, 20);
}
