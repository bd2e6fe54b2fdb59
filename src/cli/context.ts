/** What every command needs to speak: streams, colours, and how runs are named in advice. */
import { relative, resolve } from 'node:path';
import type { Command } from 'commander';
import { defaultRoot } from '../runs/index.ts';
import { type Paint, painter, wantsColour } from './terminal.ts';

export interface Context {
  readonly paint: Paint;
  readonly colour: boolean;
  readonly isTerminal: boolean;
  /** A line to stdout. */
  print(line?: string): void;
  /** A line to stderr. */
  note(line: string): void;
}

/** `command` is any command of the program: `--no-color` belongs to all. */
export function contextOf(command: Command): Context {
  const { color } = command.optsWithGlobals<{ color: boolean }>();
  const colour = wantsColour(process.stdout, color !== false);
  return {
    paint: painter(colour),
    colour,
    isTerminal: process.stdout.isTTY === true,
    print: (line = '') => {
      process.stdout.write(`${line}\n`);
    },
    note: line => {
      process.stderr.write(`${line}\n`);
    },
  };
}

/** How to name a run on the next command line, from here. */
export function referenceTo(run: { id: string; dir: string }): string {
  if (resolve(defaultRoot, run.id) === resolve(run.dir)) return run.id;
  const near = relative(process.cwd(), run.dir);
  const path = near.startsWith('..')
    ? run.dir
    : near.includes('/') || near.includes('\\')
      ? near
      : `./${near}`;
  return /\s/.test(path) ? `'${path}'` : path;
}

/** A run's directory as people read it. */
export function shownDir(dir: string): string {
  const near = relative(process.cwd(), dir);
  return near.startsWith('..') || near === '' ? dir : near;
}
