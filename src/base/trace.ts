/** Where in a program an error was thrown. */
import { basename, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Keel's own folder: `src`, or `dist` of the package. */
const own = fileURLToPath(new URL('../', import.meta.url));

/** A line of a stack: the file as an address or a path, then line and column. */
const frame = /(?<file>(?:file:\/\/)?(?:[A-Za-z]:)?[/\\][^()]*?):(?<line>\d+):\d+\)?$/;

/** An error and what caused it, the first cause first. */
function causes(error: unknown): unknown[] {
  const all: unknown[] = [];
  for (let one = error; one !== undefined && one !== null && !all.includes(one); ) {
    all.unshift(one);
    one = one instanceof Error ? one.cause : undefined;
  }
  return all;
}

/**
 * The innermost line of somebody's own code that was being run, `game.ts:12`: neither Keel's, nor Node's, nor a package's.
 * Undefined where there is none on the stack.
 */
export function placeInOwnCode(error: unknown): string | undefined {
  const [first] = causes(error);
  for (const line of (first instanceof Error ? (first.stack ?? '') : '').split('\n')) {
    if (!/^\s+at /.test(line)) continue;
    const { file, line: at } = frame.exec(line)?.groups ?? {};
    // tsx names what it loads with a query.
    const path = file?.startsWith('file:') ? fileURLToPath(file.replace(/\?.*/, '')) : file;
    if (path === undefined || path.startsWith(own) || path.includes(`${sep}node_modules${sep}`)) continue;
    return `${basename(path)}:${at}`;
  }
  return undefined;
}

/** The stack of what was thrown first, which caused it all, and below it that of the error which it came up as. */
export function wholeTrace(error: unknown): string | undefined {
  const stacks = causes(error).flatMap(one =>
    one instanceof Error && one.stack !== undefined ? [one.stack] : [],
  );
  return stacks.length === 0
    ? undefined
    : [...new Set([stacks[0], stacks.at(-1)])].join('\n\nwhich came up as\n');
}
