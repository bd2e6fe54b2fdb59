/** What a run shows while it goes: a live line in a terminal, plain lines elsewhere, JSON lines on request. */
import type { TrainHooks, TrainProgress } from '../algos/train.ts';
import { klBand } from '../metrics/index.ts';
import type { Context } from './context.ts';
import { duration, fit, grouped, number, short, toJson, toneColours } from './terminal.ts';

type TrainEvent = Parameters<NonNullable<TrainHooks['onEvent']>>[0];
type Row = Readonly<Record<string, number>>;

export interface Reporter {
  start(progress: TrainProgress): void;
  row(row: Row, progress: TrainProgress): void;
  event(event: TrainEvent): void;
  /** The last state is on the screen and nothing more is drawn. */
  close(): void;
}

/** Between two plain lines. */
const PLAIN_MS = 5000;
/** Between two drawings of the live line. */
const LIVE_MS = 100;
/** Between two lines about events of one kind: a guard that acts at every update would fill the screen. */
const EVENT_MS = 3000;

export function reporterFor(context: Context, json: boolean): Reporter {
  if (json) return jsonReporter(context);
  return context.isTerminal && process.env.TERM !== 'dumb' ? liveReporter(context) : plainReporter(context);
}

function jsonReporter({ print }: Context): Reporter {
  return {
    start: ({ id, dir, step, totalSteps, config }) =>
      print(toJson({ kind: 'start', id, dir, step, totalSteps, config })),
    row: row => print(toJson({ kind: 'row', ...row })),
    event: event => print(toJson({ kind: 'event', ...event })),
    close() {},
  };
}

function plainReporter(context: Context): Reporter {
  const meter = speedometer();
  const events = calmly(line => context.print(line));
  let shownAt = Number.NEGATIVE_INFINITY;
  let pending: string | undefined;
  return {
    start: progress => meter.start(progress.step),
    row(row, progress) {
      meter.row(row, progress.step);
      pending = summary(row, progress, meter, context);
      const now = performance.now();
      if (now - shownAt < PLAIN_MS) return;
      shownAt = now;
      context.print(pending);
      pending = undefined;
    },
    event: event => events.show(event.type, eventLine(event, context)),
    close() {
      events.close();
      if (pending !== undefined) context.print(pending);
      pending = undefined;
    },
  };
}

function liveReporter(context: Context): Reporter {
  const { stdout } = process;
  const meter = speedometer();
  let line = '';
  let drawnAt = Number.NEGATIVE_INFINITY;
  const draw = (): void => {
    stdout.write(`\r\u001b[K${fit(line, (stdout.columns || 80) - 1)}`);
  };
  const above = (text: string): void => {
    stdout.write(`\r\u001b[K${fit(text, (stdout.columns || 80) - 1)}\n`);
    if (line !== '') draw();
  };
  const events = calmly(above);
  return {
    start: progress => meter.start(progress.step),
    row(row, progress) {
      meter.row(row, progress.step);
      line = summary(row, progress, meter, context);
      const now = performance.now();
      if (now - drawnAt < LIVE_MS) return;
      drawnAt = now;
      draw();
    },
    event: event => events.show(event.type, eventLine(event, context)),
    close() {
      events.close();
      if (line === '') return;
      draw();
      stdout.write('\n');
      line = '';
    },
  };
}

/** Lets the first line of a kind through, then one in a while with the count of those it stands for. */
function calmly(show: (line: string) => void) {
  const kinds = new Map<string, { at: number; held: number; line: string }>();
  return {
    show(kind: string, line: string): void {
      const now = performance.now();
      const before = kinds.get(kind);
      if (before !== undefined && now - before.at < EVENT_MS) {
        kinds.set(kind, { ...before, held: before.held + 1, line });
        return;
      }
      show(before?.held ? `${line} (and ${before.held} before it)` : line);
      kinds.set(kind, { at: now, held: 0, line });
    },
    close(): void {
      for (const { held, line } of kinds.values()) {
        if (held > 0) show(held > 1 ? `${line} (and ${held - 1} before it)` : line);
      }
      kinds.clear();
    },
  };
}

/**
 * Steps a second as they feel: over some twenty updates, what happens between them (logging, checkpoints) included. Rows
 * without an episode keep the return before.
 */
function speedometer() {
  const KEEP = 0.95;
  let [at, step] = [performance.now(), 0];
  let [seconds, steps] = [0, 0];
  let episodeReturn: number | undefined;
  return {
    start(from: number): void {
      [at, step] = [performance.now(), from];
    },
    row(row: Row, now: number): void {
      const time = performance.now();
      seconds = KEEP * seconds + (time - at) / 1000;
      steps = KEEP * steps + now - step;
      [at, step] = [time, now];
      episodeReturn = row['episode/return'] ?? episodeReturn;
    },
    get rate() {
      return steps / Math.max(1e-6, seconds);
    },
    get episodeReturn() {
      return episodeReturn;
    },
  };
}

/** One line of at most 79 columns. */
export function summary(
  row: Row,
  { step, totalSteps }: Pick<TrainProgress, 'step' | 'totalSteps'>,
  { rate, episodeReturn }: { rate: number; episodeReturn: number | undefined },
  { paint }: Pick<Context, 'paint'>,
): string {
  const percent = `${Math.min(100, Math.floor((100 * step) / totalSteps))}%`.padStart(4);
  const kl = row['kl/step'] ?? Number.NaN;
  const band = klBand(kl);
  const left = step >= totalSteps ? 'done' : `${duration((totalSteps - step) / rate)} left`;
  const label = (text: string): string => paint(text, 'dim');
  return [
    `${percent} ${short(step).padStart(5)}`,
    `${label('return')} ${number(episodeReturn).padEnd(7)}`,
    `${label('kl')} ${paint(`${number(Number(kl.toPrecision(2))).padEnd(7)} ${band.name.padEnd(8)}`, toneColours[band.tone])}`,
    `${label('ev')} ${shownVariance(row['value/explained_variance']).padStart(5)}`,
    `${short(rate).padStart(5)}/s`,
    left,
  ].join('  ');
}

function shownVariance(value: number | undefined): string {
  if (value === undefined || Number.isNaN(value)) return '-';
  return value > -9.99 ? value.toFixed(2) : value > -1000 ? value.toFixed(0) : '<-999';
}

function eventLine(event: TrainEvent, { paint }: Context): string {
  const colour = ({ guard: 'yellow', 'early-stop': 'cyan', skipped: 'red', restored: 'red' } as const)[
    event.type
  ];
  const name = event.type.replaceAll('-', ' ');
  return `  ${paint(grouped(event.step).padStart(9), 'dim')}  ${colour ? paint(name, colour) : name}: ${event.message}`;
}
