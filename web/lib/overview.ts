/** Which runs the overview shows, in which order, and which of them are one row because only their seeds differ. */
import { type Verdict, verdictRank } from '../../src/doctor/findings.ts';
import { isWorse } from '../../src/metrics/registry.ts';
import type { AllSettings, RunState, RunSummary } from '../../src/server/api.ts';
import { interquartileMean } from '../../src/studies/interquartile-mean.ts';
import { bandOf } from './tone.ts';
import type { OverviewView, SortKey } from './view-state.ts';

/** From what a look is needed at, to what is over. */
const stateOrder: readonly RunState[] = [
  'running',
  'failed',
  'killed',
  'unreadable',
  'stopped',
  'quiet',
  'finished',
];

/** Runs that differ only in their seed. */
export interface SeedGroup {
  readonly key: string;
  readonly name: string;
  readonly runs: readonly RunSummary[];
  /** What is shown and sorted by of all of them together. */
  readonly all: RunSummary;
}

/** A row: a run, or a group of them; the runs of an unfolded group follow it. */
export type OverviewItem =
  | { readonly kind: 'run'; readonly key: string; readonly run: RunSummary; readonly inGroup: boolean }
  | { readonly kind: 'group'; readonly key: string; readonly group: SeedGroup };

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
  if (sort === 'name') return (a, b) => (down ? -1 : 1) * compareNames(a, b) || (a.id < b.id ? -1 : 1);
  return (a, b) => {
    const x = key(a);
    const y = key(b);
    if (x === null || y === null) {
      if (x !== y) return x === null ? 1 : -1;
    } else {
      const order = typeof x === 'string' ? natural.compare(x, String(y)) : x === y ? 0 : x - (y as number);
      if (order !== 0) return down ? -order : order;
    }
    return compareNames(a, b) || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0);
  };
}

const natural = new Intl.Collator('en', { numeric: true, sensitivity: 'base' });

/** Names are compared by every sort, as a last resort by all, and seldom change: what that costs is paid once. */
let ranks: ReadonlyMap<string, { readonly name: string; readonly rank: number }> = new Map();

function rankNames(runs: readonly RunSummary[]): void {
  if (runs.every(({ id, name }) => ranks.get(id)?.name === name)) return;
  const sorted = [...runs].sort((a, b) => natural.compare(a.name, b.name));
  let rank = 0;
  ranks = new Map(
    sorted.map(({ id, name }, i) => {
      if (i > 0 && natural.compare(sorted[i - 1].name, name) !== 0) rank = i;
      return [id, { name, rank }];
    }),
  );
}

function compareNames(a: RunSummary, b: RunSummary): number {
  const [x, y] = [ranks.get(a.id), ranks.get(b.id)];
  return x?.name === a.name && y?.name === b.name ? x.rank - y.rank : natural.compare(a.name, b.name);
}

const termsOf = (query: string): string[] => query.toLowerCase().split(/\s+/).filter(Boolean);

/** Says which runs have settings with a text in them; a setting reads `learningRate=0.001`. */
export function settingsWith(all: AllSettings | null, query: string): (id: string, term: string) => boolean {
  if (all === null) return () => false;
  const hits = new Map(
    termsOf(query).map(term => [term, all.settings.map(text => text.toLowerCase().includes(term))]),
  );
  return (id, term) => {
    const hit = hits.get(term);
    return hit !== undefined && Object.hasOwn(all.runs, id) && all.runs[id].some(place => hit[place]);
  };
}

/** Whether a run has all words of a search in its name, environment, algorithm, trainer, tags, note, state, verdict or settings. */
export function matches(
  run: RunSummary,
  query: string,
  hasSetting: (id: string, term: string) => boolean = () => false,
): boolean {
  const terms = termsOf(query);
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
  return terms.every(term => text.includes(term) || hasSetting(run.id, term));
}

/** What a filter is about; all others hold while its choices are counted. */
export type Facet = 'states' | 'tag' | 'verdict' | 'environment' | 'trainer';

const passes: Readonly<Record<Facet, (run: RunSummary, view: OverviewView) => boolean>> = {
  states: (run, { states }) => states.length === 0 || states.includes(run.state),
  tag: (run, { tag }) => tag === null || run.notes.tags.includes(tag),
  verdict: (run, { verdict }) => verdict === null || run.verdict === verdict,
  environment: (run, { environment }) => environment === null || run.environment === environment,
  trainer: (run, { trainer }) => trainer === null || run.trainer === trainer,
};
const facets = Object.keys(passes) as Facet[];

/** The runs that pass all filters but those of one facet. */
export function filterRuns(
  runs: readonly RunSummary[],
  view: OverviewView,
  all: AllSettings | null = null,
  but: Facet | null = null,
): RunSummary[] {
  const hasSetting = settingsWith(all, view.query);
  return runs.filter(
    run =>
      run.notes.archived === view.archived &&
      facets.every(facet => facet === but || passes[facet](run, view)) &&
      matches(run, view.query, hasSetting),
  );
}

/** The runs to show, in order. */
export function selectRuns(
  runs: readonly RunSummary[],
  view: OverviewView,
  all: AllSettings | null = null,
): RunSummary[] {
  rankNames(runs);
  return filterRuns(runs, view, all).sort(compareRuns(view.sort, view.down));
}

/** The rows to show: runs of one group are one, which is where the group comes in the order. */
export function rowsOf(
  shown: readonly RunSummary[],
  view: Pick<OverviewView, 'sort' | 'down' | 'flat'>,
  unfolded: ReadonlySet<string>,
): OverviewItem[] {
  const single = (run: RunSummary, inGroup: boolean): OverviewItem => ({
    kind: 'run',
    key: run.id,
    run,
    inGroup,
  });
  if (view.flat) return shown.map(run => single(run, false));
  const members = new Map<string, RunSummary[]>();
  for (const run of shown) {
    const key = run.group ?? run.id;
    const some = members.get(key);
    if (some === undefined) members.set(key, [run]);
    else some.push(run);
  }
  if (members.size === shown.length) return shown.map(run => single(run, false));
  const rows = [...members].map(([key, runs]) =>
    runs.length === 1 ? { lead: runs[0], group: null } : toRow(groupOf(key, runs)),
  );
  const order = compareRuns(view.sort, view.down);
  return rows
    .sort((a, b) => order(a.lead, b.lead))
    .flatMap(({ lead, group }) =>
      group === null
        ? [single(lead, false)]
        : [
            { kind: 'group' as const, key: group.key, group },
            ...(unfolded.has(group.key) ? group.runs.map(run => single(run, true)) : []),
          ],
    );
}

const toRow = (group: SeedGroup): { lead: RunSummary; group: SeedGroup } => ({ lead: group.all, group });

/** The run with the worst verdict; none where no run has one. */
function worstRunOf(runs: readonly RunSummary[]): RunSummary | undefined {
  const rank = ({ verdict }: RunSummary): number => (verdict === null ? -1 : verdictRank[verdict]);
  const worst = runs.reduce<RunSummary | undefined>(
    (a, b) => (a === undefined || rank(b) > rank(a) ? b : a),
    undefined,
  );
  return worst?.verdict === null ? undefined : worst;
}

/** Some runs as one: the worst verdict and KL, the mean step, the interquartile mean of the returns. */
export function groupOf(key: string, runs: readonly RunSummary[]): SeedGroup {
  const name = nameOfGroup(runs.map(run => run.name));
  const worst = worstRunOf(runs);
  const loudest = runs.reduce((a, b) => {
    const [of, than] = [bandOf(b), bandOf(a)];
    if (of !== null && than !== null && isWorse(of, than)) return b;
    return (b.lastKl ?? -1) > (a.lastKl ?? -1) && !(of !== null && than !== null && isWorse(than, of))
      ? b
      : a;
  });
  const returns = runs.map(run => run.lastReturn).filter(v => v !== null);
  const state = runs.reduce((a, b) =>
    stateOrder.indexOf(b.state) < stateOrder.indexOf(a.state) ? b : a,
  ).state;
  const totals = runs.map(run => run.totalSteps);
  return {
    key,
    name,
    runs,
    all: {
      ...runs[0],
      id: key,
      name,
      state,
      seed: null,
      step: Math.round(runs.reduce((sum, run) => sum + run.step, 0) / runs.length),
      totalSteps: totals.includes(null) ? null : Math.max(...totals.map(Number)),
      updatedAt: Math.max(...runs.map(run => run.updatedAt)),
      lastReturn: returns.length === 0 ? null : interquartileMean(returns),
      lastKl: loudest.lastKl,
      klBand: loudest.klBand,
      klContract: loudest.klContract,
      atRest: loudest.atRest,
      verdict: worst?.verdict ?? null,
      rootCause: worst?.rootCause ?? null,
      loaded: runs.every(run => run.loaded),
    },
  };
}

/** The groups whose name another group has, too. */
export function groupsAlike(items: readonly OverviewItem[]): SeedGroup[] {
  const groups = items.flatMap(item => (item.kind === 'group' ? [item.group] : []));
  const names = countBy(groups, ({ name }) => name);
  return groups.filter(({ name }) => (names.get(name) ?? 0) > 1);
}

/** What the names of some runs begin with, without what is left of their seeds and dates. */
export function nameOfGroup(names: readonly string[]): string {
  let [begin] = names;
  for (const name of names) while (!name.startsWith(begin)) begin = begin.slice(0, -1);
  const bare = begin
    .replace(/-\d{8}(-\d*)?(-seed.*)?$/, '')
    .replace(/[-_./ ]*(\bseed|_seed|\bs)?[-_ =]?\d*$/i, match => (/^\d*$/.test(match) ? match : ''))
    .replace(/[-_./ ]+$/, '');
  return bare === '' ? names[0] : bare;
}

/** The states of some runs with how many are in each, those first that need a look. */
export function countStates(runs: readonly RunSummary[]): { state: RunState; count: number }[] {
  return stateOrder
    .map(state => ({ state, count: runs.filter(run => run.state === state).length }))
    .filter(({ count }) => count > 0);
}

/** How many runs have each verdict, worst first. */
export function countVerdicts(runs: readonly RunSummary[]): { verdict: Verdict; count: number }[] {
  return (Object.keys(verdictRank) as Verdict[])
    .sort((a, b) => verdictRank[b] - verdictRank[a])
    .map(verdict => ({ verdict, count: runs.filter(run => run.verdict === verdict).length }))
    .filter(({ count }) => count > 0);
}

function countBy<T>(items: readonly T[], keyOf: (item: T) => string): Map<string, number> {
  const counts = new Map<string, number>();
  for (const item of items) counts.set(keyOf(item), (counts.get(keyOf(item)) ?? 0) + 1);
  return counts;
}

/** The values that some runs have of something, with how many have each, most first. */
export function countValues(
  runs: readonly RunSummary[],
  of: (run: RunSummary) => readonly (string | null)[],
): { value: string; count: number }[] {
  const counts = countBy(
    runs.flatMap(run => of(run).filter(value => value !== null)),
    value => value,
  );
  return [...counts]
    .map(([value, count]) => ({ value, count }))
    .sort((a, b) => b.count - a.count || natural.compare(a.value, b.value));
}

/** Tags as typed: parted by commas or blanks, each once, at most 40 characters. */
export function parseTags(text: string): string[] {
  const tags = text.split(/[\s,]+/).map(tag => tag.replace(/^#/, '').slice(0, 40));
  return [...new Set(tags.filter(tag => tag !== ''))].slice(0, 20);
}
