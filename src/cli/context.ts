/** What every command needs to speak: streams and colours. */
import { relative } from 'node:path';
import type { Command } from 'commander';
import { escapeControls } from '../base/controls.ts';
import { toJson } from '../base/json.ts';
import { type Paint, painter, shownText, wantsColour, wrap } from '../base/terminal.ts';

export interface Context {
  readonly paint: Paint;
  readonly colour: boolean;
  readonly isTerminal: boolean;
  /** How wide lines may be: the terminal's, and 80 where there is none. */
  readonly columns: number;
  /** A line to stdout for people: a longer one is broken at spaces, and goes on after `hang` of them. */
  print(line?: string, hang?: number): void;
  /** Text to stdout for programs, as it is but for what would drive a terminal. */
  raw(text: string): void;
  /** A value to stdout as JSON, for programs: what would drive a terminal is escaped, not left out. */
  json(value: unknown, indent?: number): void;
  /** A line to stderr. */
  note(line: string): void;
}

/** `command` is any command of the program: `--no-color` belongs to all. */
function contextOf(command: Command): Context {
  const { color } = command.optsWithGlobals<{ color: boolean }>();
  const colour = wantsColour(process.stdout, color !== false);
  const columns = process.stdout.isTTY ? Math.max(40, process.stdout.columns || 80) : 80;
  const write = (text: string): void => {
    process.stdout.write(`${text}\n`);
  };
  // Where a line is drawn again and again, what is said in between takes its place.
  const isLive = [process.stdout, process.stderr].every(({ isTTY }) => isTTY) && process.env.TERM !== 'dumb';
  return {
    paint: painter(colour),
    colour,
    isTerminal: process.stdout.isTTY === true,
    columns,
    print: (line = '', hang) => {
      const shown = shownText(line, colour);
      for (const part of wrap(shown, columns, hang ?? 2 + /^ */.exec(shown)![0].length)) write(part);
    },
    raw: text => write(shownText(text, colour)),
    json: (value, indent) => write(escapeControls(toJson(value, indent))),
    note: line => {
      process.stderr.write(`${isLive ? '\r\u001b[K' : ''}${shownText(line, colour)}\n`);
    },
  };
}

/** What a command does: commander gives its arguments, then its flags. */
export type Action = (context: Context, ...given: never[]) => void | Promise<void>;

/** Lets a command do this when it is asked for. */
export function act(command: Command, action: Action): void {
  command.action((...given) => action(contextOf(command), ...(given as never[])));
}

/** A run's directory as people read it. */
export function shownDir(dir: string): string {
  const near = relative(process.cwd(), dir);
  return near.startsWith('..') || near === '' ? dir : near;
}
