/**
 * A UCI engine that the user has installed, driven as a process of its own. Nothing it does can harm the run: every wait
 * has an end, what it writes is bounded and checked, and after a failure the next question starts it again.
 */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { programPath } from '../../base/programs.ts';
import { show } from '../../envs/errors.ts';
import { TaskError } from '../errors.ts';
import { parseFen } from './fen.ts';
import { legalMoveNamed } from './moves.ts';
import { Position, WHITE } from './position.ts';
import { MATE_PAWNS } from './search.ts';
import type { Candidate } from './text.ts';

export interface UciOptions {
  /** A program's name or path. */
  readonly command: string;
  readonly args?: readonly string[];
  readonly depth: number;
  /** Moves to name. */
  readonly moves: number;
  /** For one position. */
  readonly timeoutMs: number;
  /** For starting. */
  readonly startTimeoutMs?: number;
}

const START_TIMEOUT_MS = 10_000;
/** What an engine may write for one question: Stockfish stays below 100 kB. */
const MAX_BYTES = 4 * 2 ** 20;
const MAX_LINE = 2 ** 16;

const position = new Position();

export class UciEngine {
  readonly #options: UciOptions;
  #process: ChildProcessWithoutNullStreams | undefined;
  #name: string;
  /** What is waiting for lines; only ever one question is open. */
  #open: { line: (text: string) => void; failed: (error: Error) => void } | undefined;
  #partial = '';
  #bytes = 0;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(options: UciOptions) {
    this.#options = options;
    this.#name = options.command;
  }

  /** As it calls itself, once started. */
  get name(): string {
    return this.#name;
  }

  /** Starts the engine, if it does not run. */
  async start(): Promise<void> {
    await this.#inTurn(() => this.#started());
  }

  /** The best moves of a position that is not over, best first. Fails after the timeout, and when the engine dies or errs. */
  analyse(fen: string): Promise<Candidate[]> {
    return this.#inTurn(async () => {
      await this.#started();
      const found = new Map<number, Candidate>();
      // Without what it remembers of other positions an answer depends on the position alone.
      this.#send(`ucinewgame\nposition fen ${fen}\ngo depth ${this.#options.depth}`);
      parseFen(fen, position);
      await this.#until(this.#options.timeoutMs, `depth ${this.#options.depth} of ${fen}`, line => {
        if (line.startsWith('bestmove')) return true;
        const info = readInfo(line, position.side);
        if (info !== undefined && info.index <= this.#options.moves) found.set(info.index, info.candidate);
        return false;
      });
      const labels = [...found.keys()].sort((a, b) => a - b).map(index => found.get(index)!);
      parseFen(fen, position);
      const wrong = labels.find(({ move }) => legalMoveNamed(position, move) === 0);
      if (labels.length === 0 || wrong !== undefined) {
        this.#kill();
        const what = wrong === undefined ? 'named no move' : `named ${show(wrong.move)}, which is illegal,`;
        throw new TaskError('engine-failed', `${this.#name} ${what} in ${fen}`);
      }
      return labels;
    });
  }

  /** Ends the engine. It starts again if asked again. */
  async close(): Promise<void> {
    await this.#inTurn(async () => this.#kill());
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const next = this.#turn.then(work);
    this.#turn = next.catch(() => {});
    return next;
  }

  async #started(): Promise<void> {
    if (this.#process !== undefined) return;
    const { command, args = [], moves, startTimeoutMs = START_TIMEOUT_MS } = this.#options;
    const child = spawn(command, args, { stdio: 'pipe', env: { ...process.env, PATH: programPath() } });
    this.#process = child;
    this.#partial = '';
    const ended = (error: Error): void => {
      if (this.#process !== child) return;
      this.#kill();
      this.#open?.failed(error);
    };
    child.on('error', (error: NodeJS.ErrnoException) => {
      const why =
        error.code === 'ENOENT' ? 'there is no such program: install it, or give its path' : error.message;
      ended(new TaskError('engine-failed', `engine ${command} cannot be started: ${why}`));
    });
    child.on('exit', (code, signal) => {
      ended(
        new TaskError('engine-failed', `${this.#name} ended by itself (${signal ?? `exit code ${code}`})`),
      );
    });
    // Writing to a process that has just died is told by its end.
    child.stdin.on('error', () => {});
    child.stdout.setEncoding('utf8');
    child.stdout.on('data', (text: string) => {
      if (this.#process === child) this.#read(text);
    });
    child.stderr.resume();
    this.#send('uci');
    await this.#until(startTimeoutMs, 'uciok', line => {
      if (line.startsWith('id name ')) this.#name = line.slice(8, 68).trim();
      return line === 'uciok';
    });
    this.#send(`setoption name Threads value 1\nsetoption name MultiPV value ${moves}\nisready`);
    await this.#until(startTimeoutMs, 'readyok', line => line === 'readyok');
  }

  #send(text: string): void {
    this.#process?.stdin.write(`${text}\n`);
  }

  /** Waits until a line is the last of an answer. Whatever goes wrong ends the engine. */
  #until(timeoutMs: number, what: string, isLast: (line: string) => boolean): Promise<void> {
    this.#bytes = 0;
    return new Promise<void>((resolve, reject) => {
      const done = (): void => {
        clearTimeout(timer);
        this.#open = undefined;
      };
      const failed = (error: Error): void => {
        done();
        this.#kill();
        reject(error);
      };
      const timer = setTimeout(
        () =>
          failed(
            new TaskError('engine-failed', `${this.#name} did not answer within ${timeoutMs} ms (${what})`),
          ),
        timeoutMs,
      );
      this.#open = {
        failed,
        line: text => {
          if (!isLast(text)) return;
          done();
          resolve();
        },
      };
    });
  }

  #read(text: string): void {
    this.#bytes += text.length;
    const lines = (this.#partial + text).split('\n');
    this.#partial = lines.pop()!;
    if (this.#bytes > MAX_BYTES || this.#partial.length > MAX_LINE) {
      const error = new TaskError('engine-failed', `${this.#name} wrote more than any engine should: ended`);
      if (this.#open) this.#open.failed(error);
      else this.#kill();
      return;
    }
    for (const line of lines) this.#open?.line(line.trim());
  }

  #kill(): void {
    const child = this.#process;
    this.#process = undefined;
    if (child === undefined) return;
    child.kill('SIGKILL');
    // A program that the engine started may hold the other ends: it must not be listened to for ever.
    child.stdin.destroy();
    child.stdout.destroy();
    child.stderr.destroy();
  }
}

/** What an `info` line says of one of the best moves. Bounds are passed over: an exact value follows them. */
function readInfo(line: string, side: number): { index: number; candidate: Candidate } | undefined {
  if (!line.startsWith('info ') || line.length > 4000 || / (upper|lower)bound /.test(line)) return undefined;
  const score = / score (cp|mate) (-?\d{1,6})\b/.exec(line);
  const move = / pv ([a-h][1-8][a-h][1-8][nbrq]?)\b/.exec(line)?.[1];
  if (score === null || move === undefined) return undefined;
  const index = Number(/ multipv (\d{1,3})\b/.exec(line)?.[1] ?? 1);
  const value = Number(score[2]);
  const own = score[1] === 'mate' ? (value > 0 ? MATE_PAWNS : -MATE_PAWNS) : Math.round(value / 10) / 10;
  return { index, candidate: { move, pawns: (side === WHITE ? own : -own) || 0 } };
}
