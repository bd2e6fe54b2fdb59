/** What a run's process said: where in the program it failed, and what it printed. Bounded, and text alone. */
import { closeSync, fstatSync, statSync } from 'node:fs';
import { openRegular, readAt } from '../base/files.ts';
import { runPaths } from '../runs/layout.ts';
import type { OutputAnswer } from './api.ts';
import { type Root, staysInside } from './runs/places.ts';

/** Of each file the end is shown: that is where it says what went wrong. */
const mostBytes = 65_536;
const longestLine = 2000;

/** What there is of a run's output. A file that leads out of the watched directories is not read. */
export function outputOf(run: string, roots: readonly Root[]): OutputAnswer {
  const { failure, output } = runPaths(run);
  const files = [
    { title: 'Where it failed', path: failure },
    { title: 'What its process printed', path: output },
  ];
  return {
    parts: files.flatMap(({ title, path }) => {
      if (statSync(path, { throwIfNoEntry: false })?.isFile() !== true || !staysInside([path], roots))
        return [];
      const { text, cut } = endOf(path);
      return text.trim() === '' ? [] : [{ title, text, cut }];
    }),
  };
}

function endOf(path: string): { text: string; cut: boolean } {
  const file = openRegular(path);
  try {
    const { size } = fstatSync(file);
    const from = Math.max(0, size - mostBytes);
    const bytes = Buffer.alloc(Math.min(size, mostBytes));
    const text = plainText(bytes.toString('utf8', 0, readAt(file, bytes, bytes.length, from)));
    // A line that begins before what was read is left out.
    return { text: from === 0 ? text : text.slice(text.indexOf('\n') + 1), cut: from > 0 };
  } finally {
    closeSync(file);
  }
}

const [lead, bell] = [String.fromCharCode(27), String.fromCharCode(7)];
/** Colours and movements, titles of windows, and what else begins with an escape. */
const escapes = new RegExp(
  `${lead}(?:\\[[0-?]*[ -/]*[@-~]|\\][^${bell}${lead}]*(?:${bell}|${lead}\\\\)?|[@-Z\\\\-_])`,
  'g',
);
/** Marks of direction too: with them a text can look like another. */
const controls = /(?!\t)[\p{Cc}\p{Cf}]/gu;

/** What a terminal would show in the end: without colours and controls, of a line that was written over its last state. */
export function plainText(text: string): string {
  return text
    .replaceAll('\r\n', '\n')
    .replace(escapes, '')
    .split('\n')
    .map(line => {
      const last = line.replace(/\r+$/, '');
      return last
        .slice(last.lastIndexOf('\r') + 1)
        .replace(controls, '')
        .slice(0, longestLine);
    })
    .join('\n');
}
