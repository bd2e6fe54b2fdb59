/** `npm run check:api`: docs/api is what typedoc makes of the sources today. `npm run docs:api` makes it anew. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../', import.meta.url));

/** Every page below a folder, by its path there. */
function pagesIn(folder: string): Map<string, string> {
  const names = existsSync(folder) ? readdirSync(folder, { recursive: true, encoding: 'utf8' }) : [];
  return new Map(
    names
      .filter(name => name.endsWith('.md'))
      .map(name => [name.replaceAll('\\', '/'), readFileSync(join(folder, name), 'utf8')]),
  );
}

/** The names of pages that are missing, left over or other than they should be. */
export function stalePages(
  written: ReadonlyMap<string, string>,
  made: ReadonlyMap<string, string>,
): string[] {
  return [...new Set([...written.keys(), ...made.keys()])]
    .filter(name => written.get(name) !== made.get(name))
    .sort();
}

function check(): string[] {
  const folder = mkdtempSync(join(tmpdir(), 'keel-api-'));
  try {
    const typedoc = join(root, 'node_modules/typedoc/bin/typedoc');
    const { status, stdout, stderr } = spawnSync(
      process.execPath,
      [typedoc, '--out', folder, '--logLevel', 'Error'],
      { cwd: root, encoding: 'utf8' },
    );
    if (status !== 0) return [`typedoc failed: ${(stderr || stdout).trim()}`];
    const made = pagesIn(folder);
    if (made.size === 0) return ['typedoc wrote no page'];
    return stalePages(pagesIn(join(root, 'docs/api')), made).map(
      name => `docs/api/${name} is not what the sources say: npm run docs:api makes it anew`,
    );
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const problems = check();
  for (const problem of problems) console.error(problem);
  process.exitCode = problems.length > 0 ? 1 : 0;
}
