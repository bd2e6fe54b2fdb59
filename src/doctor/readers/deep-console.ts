/**
 * Printed output whose first row comes late. A trainer of language models may print thousands of lines of settings,
 * warnings and samples before its first step, so that the beginning of the file tells nothing.
 */
import { type Reading, startReading } from './bytes.ts';
import { type ConsoleKind, cleanLine, consoleWatch, pairsWatch } from './console-lines.ts';
import type { Detected } from './detect.ts';
import { forEachPiece, LineSplitter } from './text.ts';

/** How far into a file of a directory the search goes. A file that is named outright is searched to its end. */
export const deepest = 32 * 2 ** 20;

/** Names that people give to what a program printed. */
const printed =
  /(?:\.(?:log|txt|out|err|stdout|stderr|text|md|markdown)(?:\.\d+)?|^(?:nohup|stdout|stderr|slurm[\w.-]*))(?:\.gz)?$/i;

export function mayBePrinted(name: string): boolean {
  return printed.test(name);
}

class Found extends Error {}

/** What a text is that its beginning does not tell, by the first row in it; unchanged if there is none. */
export async function detectDeep(
  path: string,
  shallow: Detected,
  limit = Number.POSITIVE_INFINITY,
  reading: Reading = startReading(0),
): Promise<Detected> {
  if (shallow.kind !== undefined || !shallow.text) return shallow;
  const watch = consoleWatch();
  let kind: ConsoleKind | undefined;
  let length = 0;
  const isPairs = pairsWatch();
  let pairs = false;
  const splitter = new LineSplitter(line => {
    kind ??= watch(line);
    pairs ||= isPairs(cleanLine(line));
  }, true);
  try {
    await forEachPiece(path, reading, piece => {
      splitter.push(piece);
      length += piece.length;
      // The only way out of a file that goes on.
      if (kind !== undefined || length > limit) throw new Found();
    });
    splitter.end();
  } catch (error) {
    if (!(error instanceof Found)) throw error;
  }
  if (kind !== undefined) return { ...shallow, kind };
  return pairs ? { ...shallow, kind: 'console' } : shallow;
}
