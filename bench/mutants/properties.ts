/** Property tests with cases that nobody has seen: `npm run bench -- mutants properties --seeds 3`. */
import { readdirSync } from 'node:fs';
import { report, round } from '../measure.ts';
import { copyProject, runTests, type Tree } from './tree.ts';

/** Runs them with so many seeds, drawn from the clock or from `first` on; 1 if one fails, with the command that shows it. */
export async function tryProperties(count: number, first = Date.now() % 2 ** 31): Promise<number> {
  const tree = copyProject();
  process.once('exit', tree.remove);
  try {
    const files = propertyTests(tree);
    report({ bench: 'mutants properties', test_files: files.length, seeds: count, first_seed: first });
    let failed = 0;
    for (let seed = first; seed < first + count; seed++) failed += await trySeed(tree, files, seed);
    report({ properties: files.length, seeds: count, failed });
    return failed === 0 ? 0 : 1;
  } finally {
    tree.remove();
  }
}

/** How many files fail with a seed. */
async function trySeed(tree: Tree, tests: readonly string[], seed: number): Promise<number> {
  const env = { KEEL_PROPERTY_SEED: String(seed) };
  const { files, elapsedMs } = await runTests(tree, tests, { bail: 0, limitMs: 3_600_000, env });
  const failed = tests.filter(test => files.get(test)?.passed !== true);
  report({ seed, failed: failed.length, seconds: round(elapsedMs / 1000, 1) });
  for (const file of failed)
    report({ seed, file, again: `KEEL_PROPERTY_SEED=${seed} npx vitest run ${file}` });
  return failed.length;
}

/** Test files that draw cases, themselves or by what they share. */
function propertyTests(tree: Tree): string[] {
  return readdirSync(`${tree.dir}/test`, { recursive: true, encoding: 'utf8' })
    .map(name => `test/${name.replaceAll('\\', '/')}`)
    .filter(
      file =>
        file.endsWith('.test.ts') &&
        /from 'fast-check'|support\/(check|draw|contract)\.ts'/.test(tree.read(file)),
    )
    .sort();
}
