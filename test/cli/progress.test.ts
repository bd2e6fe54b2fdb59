/** The plain log: each line's step is not below the one before it, whatever order things are reported in. */
import { expect, test } from 'vitest';
import type { TrainProgress } from '../../src/algos/hooks.ts';
import { ppoSettings } from '../../src/algos/ppo/settings.ts';
import type { Context } from '../../src/cli/context.ts';
import { reporterFor } from '../../src/cli/progress.ts';

const guarded = {
  type: 'guard',
  klBefore: 1,
  klAfter: 0.01,
  bound: 0.01,
  backtracks: 1,
  scale: 0.5,
} as const;
const savedAt = (step: number) =>
  ({ type: 'checkpoint', checkpoint: step, best: false, keep: false }) as const;

function logOf(
  report: (tell: { row(step: number): void; guard(step: number): void; saved(step: number): void }) => void,
  options: { startAt?: number } = {},
) {
  const lines: string[] = [];
  const context: Context = {
    paint: text => text,
    colour: false,
    isTerminal: false,
    columns: 80,
    print: (line = '') => void lines.push(line),
    raw: line => void lines.push(line),
    json() {},
    note() {},
  };
  const reporter = reporterFor(context, false);
  const progress = (step: number): TrainProgress => ({
    id: 'x',
    dir: 'x',
    subject: 'x',
    unit: 'steps',
    config: { ...ppoSettings.defaults },
    step,
    totalSteps: 6400,
    recorded: undefined,
  });
  const started = options.startAt ?? 0;
  if (started > 0)
    reporter.event({ ...savedAt(started), step: started, message: `saved checkpoint ${started}` });
  reporter.start(progress(started));
  report({
    row: step => reporter.row({ 'kl/step': 0.01, 'episode/return': step }, progress(step)),
    guard: step => reporter.event({ ...guarded, step, message: 'KL taken back' }),
    saved: step => reporter.event({ ...savedAt(step), step, message: `saved checkpoint ${step}` }),
  });
  reporter.close();
  return lines.map(line => line.replace(/^ *\d+% +(\d+) .*$/, 'row $1').trim());
}

test('what happened in an iteration follows its row', () => {
  const log = logOf(({ row, guard, saved }) => {
    guard(64); // told before the row, because it came before its end
    row(64);
    saved(64);
  });
  expect(log).toEqual(['row 64', '64  guard: KL taken back', '64  saved checkpoint 64']);
});

test('what follows a row is told at once, and does not wait for the next', () => {
  const log = logOf(({ row, saved, guard }) => {
    row(64);
    saved(64);
    guard(128);
    row(128);
  });
  expect(log.slice(0, 2)).toEqual(['row 64', '64  saved checkpoint 64']);
});

test('a row without an episode keeps the return of the one before', () => {
  const lines: string[] = [];
  const context = { paint: (text: string) => text, print: (line = '') => void lines.push(line) };
  const reporter = reporterFor({ ...context, isTerminal: false, columns: 80 } as unknown as Context, false);
  const progress = (step: number) =>
    ({ step, totalSteps: 100, config: ppoSettings.defaults }) as unknown as TrainProgress;
  reporter.start(progress(0));
  reporter.row({ 'kl/step': 0.01, 'episode/return': 21 }, progress(10));
  reporter.row({ 'kl/step': 0.01 }, progress(20));
  reporter.close();
  expect(lines.map(line => /return (\S+)/.exec(line)?.[1])).toEqual(['21.00', '21.00']);
});

test('what was saved before the start of a fork comes before its first row', () => {
  const log = logOf(({ row }) => row(128), { startAt: 64 });
  expect(log).toEqual(['64  saved checkpoint 64', 'row 128']);
});

test('many of a kind become one line, in its place', () => {
  const log = logOf(({ row, guard }) => {
    for (let step = 64; step <= 384; step += 64) {
      guard(step);
      row(step);
    }
  });
  expect(log).toEqual([
    'row 64',
    '64  guard: KL taken back',
    'row 384',
    '384  guard: KL taken back (4 more since step 128)',
  ]);
  const later = logOf(({ row, guard }) => {
    for (let step = 64; step <= 192; step += 64) {
      if (step < 192) guard(step);
      row(step);
    }
  });
  expect(later).toEqual(['row 64', '64  guard: KL taken back', '128  guard: KL taken back', 'row 192']);
});

test('what was held back comes before a later line of another kind', () => {
  const log = logOf(({ row, guard, saved }) => {
    for (let step = 64; step <= 192; step += 64) {
      guard(step);
      row(step);
    }
    for (let step = 256; step <= 960; step += 64) row(step);
    saved(960);
  });
  expect(log).toEqual([
    'row 64',
    '64  guard: KL taken back',
    '192  guard: KL taken back (1 more since step 128)',
    'row 960',
    '960  saved checkpoint 960',
  ]);
});

test('what happened in an iteration that failed is said, too', () => {
  const log = logOf(({ row, guard }) => {
    row(64);
    guard(128);
  });
  expect(log).toEqual(['row 64', '128  guard: KL taken back']);
});

test('in a terminal a long event is broken into lines, and nothing of it is lost', () => {
  const message =
    'learning rate 0.0003 to 0.00015: the update left the bound of the guard, so it is done again from where it began';
  const written: string[] = [];
  const { write, columns } = process.stdout;
  const term = process.env.TERM;
  process.env.TERM = 'xterm';
  process.stdout.columns = 80;
  process.stdout.write = ((text: string) => written.push(text) > 0) as typeof write;
  try {
    const context: Context = {
      paint: text => text,
      colour: false,
      isTerminal: true,
      columns: 80,
      print() {},
      raw() {},
      json() {},
      note() {},
    };
    const reporter = reporterFor(context, false);
    reporter.event({ type: 'rate-change', step: 0, message } as Parameters<typeof reporter.event>[0]);
    reporter.close();
  } finally {
    process.stdout.write = write;
    process.stdout.columns = columns;
    process.env.TERM = term;
  }
  const lines = written.join('').replaceAll('\r\u001b[K', '').trimEnd().split('\n');
  expect(lines.length).toBeGreaterThan(1);
  for (const line of lines) expect(line.length).toBeLessThanOrEqual(79);
  expect(lines.map(line => line.trim()).join(' ')).toContain(message);
});
