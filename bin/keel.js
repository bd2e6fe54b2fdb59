#!/usr/bin/env node
/**
 * What `keel` and `npx keel` start: the build where there is one, the sources, through tsx, in a checkout without. Plain
 * JavaScript, because a checkout has no other before it is built; `--version` is answered here, because it needs nothing.
 */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import module from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));

if (process.argv.length === 3 && ['--version', '-V'].includes(process.argv[2])) {
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  process.stdout.write(`${version}\n`);
} else {
  // What has been compiled once is not compiled again (Node 22.1 and newer; NODE_DISABLE_COMPILE_CACHE=1 turns it off).
  module.enableCompileCache?.();
  if (isCurrent()) await import('../dist/cli/main.js');
  else {
    await import('tsx');
    await import('../src/cli/main.ts');
  }
}

/**
 * Whether the build is what the sources say. The package has no sources; in a checkout a build that is older than any of
 * them would run code that is not there any more, and is passed by. A folder is newer when something was removed from it.
 */
function isCurrent() {
  const folders = [join(root, 'src')];
  if (!existsSync(folders[0])) return true;
  const built = statSync(join(root, 'dist/cli/main.js'), { throwIfNoEntry: false });
  const isNewer = path => statSync(path).mtimeMs > (built?.mtimeMs ?? 0);
  for (const folder of folders) {
    if (isNewer(folder)) return false;
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) folders.push(path);
      else if (isNewer(path)) return false;
    }
  }
  return true;
}
