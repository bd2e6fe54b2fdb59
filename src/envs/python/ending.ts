/** How a Python process ended, from what the minder (python/keel/_minder.py) wrote down of it. */
import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { jsonOf } from '../../base/json.ts';
import { number } from '../../base/numbers.ts';

/** What the minder wrote. */
interface Report {
  readonly exit: number | null;
  readonly signal: number | null;
  readonly hung: number | null;
  readonly phase: string;
  readonly tail: string;
}

const SIGNALS: Readonly<Record<number, string>> = {
  6: 'SIGABRT',
  9: 'SIGKILL',
  11: 'SIGSEGV',
  15: 'SIGTERM',
};

/** Of the process whose pipes are in this folder: a sentence without its subject's name. */
export function howItEnded(folder: string): string {
  let report: Report;
  try {
    report = jsonOf(readFileSync(join(folder, 'report.json'), 'utf8')) as Report;
  } catch {
    return 'it was killed';
  }
  const { exit, signal, hung, phase, tail } = report;
  const last = tail.trim().split('\n').at(-1)?.slice(0, 200);
  const said = last ? `; it last printed: ${last}` : '';
  if (hung !== null) return `it hung: a ${phase} took more than ${number(hung)} s${placeIn(tail)}`;
  if (signal !== null)
    return `it was ended by ${SIGNALS[signal] ?? `signal ${signal}`}${placeIn(tail) || said}`;
  return `it ended with exit code ${exit}${said}`;
}

/** Where Python's faulthandler found it, the innermost line first; empty where it did not look. */
function placeIn(tail: string): string {
  const [, file, line, name] =
    /\(most recent call first\):\n\s+File "([^"\n]+)", line (\d+) in (\S+)/.exec(tail) ?? [];
  return file === undefined ? '' : `, at ${basename(file)}:${line} in ${name}`;
}
