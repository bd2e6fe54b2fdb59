/** What is beside the code in the package: its version, and presets. The same from `src` and from `dist`. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Both `src/cli` and `dist/cli` are two below it. */
export const packageRoot = fileURLToPath(new URL('../../', import.meta.url));

export function packageVersion(): string {
  const { version } = JSON.parse(readFileSync(join(packageRoot, 'package.json'), 'utf8')) as {
    version: string;
  };
  return version;
}
