/**
 * How strong the tests are: `npm run bench -- mutants` makes one line of the sources wrong at a time, in a copy of the
 * project, and runs the test files that should notice.
 *
 * `--folder src/kl` looks at the files below it, `--only src/kl/guard.ts:60` at one place, `--sample 20 --seed 7` at some
 * drawn by chance, `--jobs 2` at two at a time. A run that was killed goes on where it was: results are kept by the texts of
 * the mutant, of its file and of its tests, so what changed is tried again (`--fresh` tries all). `mutants properties`
 * draws fresh cases for the property tests instead.
 */
import { cpus } from 'node:os';
import { parseArgs } from 'node:util';
import { Rng } from '../src/random/rng.ts';
import { machine, report, round } from './measure.ts';
import { mutants } from './mutants/list.ts';
import { groupOf, type Mutant, mutated, nameOf } from './mutants/mutant.ts';
import { tryProperties } from './mutants/properties.ts';
import { type Outcome, openResults, type Result } from './mutants/results.ts';
import { copyProject, runTests, type Tree } from './mutants/tree.ts';

/** What the start of a test runner may take on a busy machine, beside the tests. */
const startMs = 30_000;

export async function run(): Promise<void> {
  const { values, positionals } = parseArgs({
    args: process.argv.slice(3),
    allowPositionals: true,
    options: {
      folder: { type: 'string' },
      only: { type: 'string' },
      jobs: { type: 'string', default: '1' },
      sample: { type: 'string' },
      seed: { type: 'string' },
      fresh: { type: 'boolean', default: false },
      seeds: { type: 'string', default: '3' },
    },
  });
  if (positionals[0] === 'properties') {
    const seed = values.seed === undefined ? undefined : whole('seed', values.seed);
    process.exitCode = await tryProperties(whole('seeds', values.seeds), seed);
    return;
  }
  const jobs = Math.max(1, Math.min(whole('jobs', values.jobs), cpus().length));
  const trees = Array.from({ length: jobs }, () => copyProject());
  // The copies go last: whoever works in one is ended before.
  process.once('exit', () => {
    for (const tree of trees) tree.remove();
  });
  process.once('SIGINT', () => process.exit(130)).once('SIGTERM', () => process.exit(143));
  const asked = mutants.filter(
    mutant =>
      (values.folder === undefined || mutant.file.startsWith(values.folder)) &&
      (values.only === undefined || nameOf(mutant, trees[0].read(mutant.file)).startsWith(values.only)),
  );
  const seed = whole('seed', values.seed ?? String(Date.now() % 2 ** 31));
  const chosen =
    values.sample === undefined ? asked : drawn(asked, whole('sample', values.sample), new Rng(seed));
  if (chosen.length === 0) throw new Error('no mutant is there: look at bench/mutants for files and folders');
  report({ bench: 'mutants', ...machine(), mutants: chosen.length, ...(values.sample && { seed }) });
  summarise(await tryAll(chosen, trees, values.fresh));
}

function whole(option: string, text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 0)
    throw new Error(`--${option} is '${text}': give a whole number from 0`);
  return value;
}

function drawn(all: readonly Mutant[], count: number, rng: Rng): Mutant[] {
  const rest = [...all];
  return Array.from(
    { length: Math.min(count, rest.length) },
    () => rest.splice(rng.integer(rest.length), 1)[0],
  );
}

/** Tries what is not known yet, each in a tree of its own, and reports as they come. */
async function tryAll(chosen: readonly Mutant[], trees: readonly Tree[], fresh: boolean): Promise<Result[]> {
  const known = openResults(fresh);
  const results: Result[] = [];
  const open: { mutant: Mutant; key: string }[] = [];
  const add = (result: Result): void => {
    results.push(result);
    report({ ...result });
  };
  for (const mutant of chosen) {
    const texts = [mutant.file, ...mutant.tests].map(trees[0].read);
    const key = known.keyOf(mutant, texts);
    const before = known.get(key);
    if (before === undefined) open.push({ mutant, key });
    else add({ ...before, mutant: nameOf(mutant, texts[0]) });
  }
  const tests = [...new Set(open.flatMap(({ mutant }) => mutant.tests))];
  const unmutated = await timesOf(trees[0], tests);
  const hasPassed = ({ mutant }: { mutant: Mutant }): boolean =>
    mutant.tests.every(test => unmutated.has(test));
  const untried = open.filter(entry => !hasPassed(entry)).length;
  if (untried > 0) {
    report({ untried, why: 'a test of theirs fails with nothing mutated: mend it first' });
    process.exitCode = 1;
  }
  const queue = open.filter(hasPassed);
  await Promise.all(
    trees.map(async tree => {
      for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
        const result = await tryOne(next.mutant, tree, unmutated);
        known.add(next.key, result);
        add(result);
      }
    }),
  );
  return results;
}

/** What each test file takes with nothing wrong. One that fails then would kill every mutant: it is left out. */
async function timesOf(tree: Tree, tests: readonly string[]): Promise<ReadonlyMap<string, number>> {
  if (tests.length === 0) return new Map();
  report({ unmutated: 'begins', test_files: tests.length });
  const { files, elapsedMs } = await runTests(tree, tests, { bail: 0, limitMs: 3_600_000 });
  const passed = tests.filter(test => files.get(test)?.passed === true);
  const failed = tests.filter(test => !passed.includes(test));
  report({ unmutated: 'ended', passed: passed.length, failed, seconds: round(elapsedMs / 1000, 1) });
  return new Map(passed.map(test => [test, files.get(test)!.elapsedMs]));
}

async function tryOne(mutant: Mutant, tree: Tree, unmutated: ReadonlyMap<string, number>): Promise<Result> {
  const text = tree.read(mutant.file);
  tree.write(mutant.file, mutated(mutant, text));
  try {
    // The unmutated run takes a third of this at most, so what takes longer hangs because of the mutant.
    const limitMs = 3 * mutant.tests.reduce((sum, test) => sum + unmutated.get(test)!, startMs);
    const { passed, timedOut, elapsedMs } = await runTests(tree, mutant.tests, { bail: 1, limitMs });
    const outcome: Outcome = timedOut ? 'timeout' : passed ? 'survived' : 'killed';
    return {
      mutant: nameOf(mutant, text),
      folder: groupOf(mutant),
      why: mutant.why,
      from: mutant.from,
      to: mutant.to,
      outcome,
      seconds: round(elapsedMs / 1000, 1),
    };
  } finally {
    tree.write(mutant.file, text);
  }
}

function summarise(results: readonly Result[]): void {
  const count = (some: readonly Result[]): Record<string, unknown> => {
    const survived = some.filter(({ outcome }) => outcome === 'survived').length;
    const killed = some.length - survived;
    const share = some.length === 0 ? null : round(killed / some.length, 3);
    return { mutants: some.length, killed, survived, share_killed: share };
  };
  for (const folder of [...new Set(results.map(({ folder }) => folder))].sort())
    report({ folder, ...count(results.filter(result => result.folder === folder)) });
  const isDoctor = ({ folder }: Result): boolean => folder.startsWith('src/doctor');
  report({ all: 'outside of the doctor', ...count(results.filter(result => !isDoctor(result))) });
  report({ all: 'everything', ...count(results) });
}
