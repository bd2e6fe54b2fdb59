/** What a run shows while it goes: a live line in a terminal, plain lines elsewhere, JSON lines on request. */
import type { TrainHooks, TrainProgress } from '../algos/hooks.ts';
import { duration, grouped, number, short } from '../base/numbers.ts';
import { fit, type Paint, shownText, type Tone, wrap } from '../base/terminal.ts';
import { bandOfRow, klBand } from '../metrics/registry.ts';
import { toneColours } from '../metrics/tones.ts';
import { readRows } from '../runs/log.ts';
import type { Context } from './context.ts';

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
/** Where what an event says begins. */
const EVENT_HANG = 13;

export function reporterFor(context: Context, json: boolean): Reporter {
  if (json) return jsonReporter(context);
  const live = context.isTerminal && process.env.TERM !== 'dumb';
  return textReporter(context, live ? liveScreen(context) : plainScreen(context));
}

function jsonReporter({ json }: Context): Reporter {
  return {
    start: ({ id, dir, step, totalSteps, config }) =>
      json({ kind: 'start', id, dir, step, totalSteps, config }),
    row: row => json({ kind: 'row', ...row }),
    event: event => json({ kind: 'event', ...event }),
    close() {},
  };
}

/** Where the text of rows and events goes. */
interface Screen {
  /** Between two rows that are shown. */
  readonly everyMs: number;
  row(line: string): void;
  event(line: string): void;
  close(): void;
}

function plainScreen({ print }: Context): Screen {
  return { everyMs: PLAIN_MS, row: line => print(line), event: line => print(line, EVENT_HANG), close() {} };
}

/** The newest row in one line that is drawn again and again, events above it. */
function liveScreen({ columns, colour }: Context): Screen {
  const { stdout } = process;
  let line = '';
  // As wide as the window is now, which may have changed.
  const room = (): number => (stdout.columns || columns) - 1;
  const put = (text: string, end = ''): void => {
    stdout.write(`\r\u001b[K${fit(text, room())}${end}`);
  };
  return {
    everyMs: LIVE_MS,
    row(text) {
      line = shownText(text, colour);
      put(line);
    },
    event(text) {
      for (const part of wrap(shownText(text, colour), room(), EVENT_HANG)) put(part, '\n');
      if (line !== '') put(line);
    },
    close() {
      if (line !== '') stdout.write('\n');
      line = '';
    },
  };
}

/** Rows now and then, and events after the row of their iteration, so that steps go up from line to line. */
function textReporter(context: Context, screen: Screen): Reporter {
  const meter = speedometer();
  const events = calmly(screen.event);
  let shownAt = Number.NEGATIVE_INFINITY;
  let pending: { step: number; line: string } | undefined;
  let lastStep = 0;
  /** Of the iteration whose row is still to come. */
  const early: TrainEvent[] = [];
  const showRow = (): void => {
    if (pending === undefined) return;
    screen.row(pending.line);
    pending = undefined;
    shownAt = performance.now();
  };
  const tell = (event: TrainEvent): void =>
    events.show(event.type, event.step, eventLine(event, context), pending?.step ?? lastStep, showRow);
  const tellEarly = (): void => {
    for (const event of early.splice(0)) tell(event);
  };
  return {
    start(progress) {
      lastStep = progress.step;
      meter.start(progress);
      // A run that begins where another was is saved before it starts.
      tellEarly();
    },
    row(row, progress) {
      meter.row(row, progress.step);
      lastStep = progress.step;
      pending = { step: progress.step, line: summary(row, progress, meter, context) };
      if (performance.now() - shownAt >= screen.everyMs) showRow();
      tellEarly();
    },
    event(event) {
      if (event.step > lastStep) early.push(event);
      else tell(event);
    },
    close() {
      // Without a row, if the run failed in their iteration.
      tellEarly();
      events.close(pending?.step ?? lastStep, showRow);
      screen.close();
    },
  };
}

/** Lets the first line of a kind through, then one in a while with the count of those it stands for. */
function calmly(show: (line: string) => void) {
  /** Of each kind: when it was last shown, and how many were held back since, from which step on, the last of them. */
  const kinds = new Map<string, { at: number; held: number; since: number; step: number; line: string }>();
  const withCount = (line: string, others: number, since: number): string =>
    others === 0 ? line : `${line} (${others} more since step ${grouped(since)})`;
  /** Those held back, in the order of their steps, with what `row` shows among them where it belongs. */
  const showHeld = (rowStep: number, row: () => void): void => {
    const held = [...kinds].filter(([, one]) => one.held > 0);
    for (const [kind, one] of held.sort(([, a], [, b]) => a.step - b.step)) {
      if (one.step >= rowStep) row();
      show(withCount(one.line, one.held - 1, one.since));
      kinds.set(kind, { ...one, at: performance.now(), held: 0 });
    }
  };
  return {
    /** Before a line is shown come those of other kinds that were held back before it, and `row`. */
    show(kind: string, step: number, line: string, rowStep: number, row: () => void): void {
      const now = performance.now();
      const { at, held, since } = kinds.get(kind) ?? { at: Number.NEGATIVE_INFINITY, held: 0, since: step };
      if (now - at < EVENT_MS) {
        kinds.set(kind, { at, held: held + 1, since: held === 0 ? step : since, step, line });
        return;
      }
      kinds.set(kind, { at: now, held: 0, since: step, step, line });
      showHeld(rowStep, row);
      row();
      show(withCount(line, held, since));
    },
    close(rowStep: number, row: () => void): void {
      showHeld(rowStep, row);
      row();
      kinds.clear();
    },
  };
}

/**
 * Steps a second as they feel: over some twenty updates, what happens between them (logging, checkpoints) included. Rows
 * without an episode keep the return before, those without an evaluation that of the one before.
 */
function speedometer() {
  const KEEP = 0.95;
  let [at, step] = [performance.now(), 0];
  let [seconds, steps] = [0, 0];
  const speed = {
    rate: 0,
    episodeReturn: undefined as number | undefined,
    evalReturn: undefined as number | undefined,
    start({ step: from, dir }: TrainProgress): void {
      [at, step] = [performance.now(), from];
      // A run that goes on has had returns already; until an episode ends, the last of them stands.
      if (from === 0) return;
      const { items } = readRows(dir);
      speed.episodeReturn = newest(items, 'episode/return');
      speed.evalReturn = newest(items, 'eval/return');
    },
    row(row: Row, now: number): void {
      const time = performance.now();
      seconds = KEEP * seconds + (time - at) / 1000;
      steps = KEEP * steps + now - step;
      [at, step] = [time, now];
      speed.rate = steps / Math.max(1e-6, seconds);
      speed.episodeReturn = row['episode/return'] ?? speed.episodeReturn;
      speed.evalReturn = row['eval/return'] ?? speed.evalReturn;
    },
  };
  return speed;
}

const newest = (rows: readonly Row[], id: string): number | undefined =>
  rows.findLast(row => row[id] !== undefined)?.[id];

/** What a line needs to know of how far a run is. */
type Progress = Pick<TrainProgress, 'step' | 'totalSteps'> & {
  readonly config: Readonly<Record<string, unknown>>;
};
type Speed = {
  readonly rate: number;
  readonly episodeReturn: number | undefined;
  /** Of the newest evaluation, where there was one. */
  readonly evalReturn?: number | undefined;
};

/** One line of at most 79 columns. */
export function summary(
  row: Row,
  progress: Progress,
  speed: Speed,
  { paint }: Pick<Context, 'paint'>,
): string {
  const { step, totalSteps } = progress;
  const { rate } = speed;
  const percent = `${Math.min(100, Math.floor((100 * step) / totalSteps))}%`.padStart(4);
  const left = step >= totalSteps ? 'done' : `${duration((totalSteps - step) / rate)} left`;
  // Cloning has a loss, and neither rewards nor a step that KL would measure.
  const isCloning = row['kl/step'] === undefined && row['loss/clone'] !== undefined;
  const rateColumn = `${short(rate).padStart(5)}/s`;
  const evaluated =
    speed.evalReturn === undefined ? [] : [`${paint('eval', 'dim')} ${number(speed.evalReturn).padEnd(7)}`];
  const columns = isCloning
    ? [...cloningColumns(row, paint), ...evaluated, rateColumn]
    : trainingColumns(
        row,
        progress,
        speed,
        paint,
        evaluated.length > 0 ? evaluated : [lastColumn(row, paint), rateColumn],
      );
  const head = `${percent} ${short(step).padStart(5)}`;
  return [head, ...columns, left].join('  ');
}

function cloningColumns(row: Row, paint: Paint): string[] {
  const loss = `${paint('loss', 'dim')} ${row['loss/clone'].toFixed(4)}`;
  const accuracy = row['policy/clone_accuracy'];
  if (accuracy === undefined) return [loss];
  // The share of the demonstrated actions that are the policy's own.
  return [loss, `${paint('agrees', 'dim')} ${(100 * accuracy).toFixed(1).padStart(5)}%`];
}

/** `others` are what there is room for besides: the newest evaluation takes that of what the page shows as well. */
function trainingColumns(
  row: Row,
  { config }: Progress,
  { episodeReturn }: Speed,
  paint: Paint,
  others: readonly string[],
): string[] {
  const kl = row['kl/step'] ?? Number.NaN;
  const { name, tone } = bandOfRow(row, config) ?? klBand(kl);
  const step = `${number(Number(kl.toPrecision(2))).padEnd(7)} ${name.padEnd(8)}`;
  return [
    `${paint('return', 'dim')} ${number(episodeReturn).padEnd(7)}`,
    `${paint('kl', 'dim')} ${paint(step, toneColours[tone])}`,
    ...others,
  ];
}

/**
 * How well the critic does; of language models, which have none, how many completions could be read: where none could be
 * graded nobody knows.
 */
function lastColumn(row: Row, paint: Paint): string {
  return row['completion/length'] === undefined
    ? `${paint('ev', 'dim')} ${shownVariance(row['value/explained_variance']).padStart(5)}`
    : `${paint('read', 'dim')} ${row['completion/parse_rate']?.toFixed(2) ?? '   -'}`;
}

function shownVariance(value: number | undefined): string {
  if (value === undefined || Number.isNaN(value)) return '-';
  return value > -9.99 ? value.toFixed(2) : value > -1000 ? value.toFixed(0) : '<-999';
}

const eventColours: Partial<Record<TrainEvent['type'], Tone>> = {
  guard: 'yellow',
  'early-stop': 'cyan',
  skipped: 'red',
  restored: 'red',
};

function eventLine({ type, step, message }: TrainEvent, { paint }: Context): string {
  const colour = eventColours[type];
  const name = type.replaceAll('-', ' ');
  // "saved checkpoint 2048" needs no name before it, nor does "critic rescaled".
  const namesItself = type === 'checkpoint' || type === 'rescaled' || type === 'reached';
  const what = namesItself ? '' : `${colour ? paint(name, colour) : name}: `;
  return `  ${paint(grouped(step).padStart(9), 'dim')}  ${what}${message}`;
}
