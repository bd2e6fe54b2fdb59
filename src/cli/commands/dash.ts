import { existsSync } from 'node:fs';
import type { Command } from 'commander';
import { typed } from '../../base/typed.ts';
import { defaultRoot } from '../../runs/layout.ts';
import { resolveRun } from '../../runs/store.ts';
import { runAddress } from '../../server/runs/places.ts';
import { defaultRoots, serve } from '../../server/serve.ts';
import type { Context } from '../context.ts';
import { UsageError } from '../errors.ts';
import type { Examples } from '../examples.ts';
import { checkDashFlags, type DashFlags, dashOptions, openBrowser } from '../page.ts';

export function define(command: Command): void {
  dashOptions(command).argument(
    '[roots...]',
    'directories of runs, studies or logs, or one of them (default: runs and studies)',
  );
}

export const help = `It runs until Ctrl-C. It can be seen from this machine alone, unless --host says
otherwise, and by who has the token that is in the address that it prints.`;

export const examples: Examples = [
  ['dash'],
  ['dash runs ~/experiments --port 8080'],
  ['dash --host 0.0.0.0', 'also from other machines'],
  ["dash --on-verdict 'notify-send Keel' --webhook https://example.org/hook"],
];

export async function run(context: Context, roots: string[], flags: DashFlags): Promise<void> {
  const places = roots.length === 0 ? defaultRoots : roots.map(placeOf);
  await servePage(context, places, flags);
}

/** A path as it is, or the directory of a run by its name. A directory that is not there yet may come. */
function placeOf(text: string): string {
  if (existsSync(text) || /[\\/]/.test(text)) return text;
  try {
    return resolveRun(text).dir;
  } catch {
    throw new UsageError(
      `${text} is neither a directory nor a run: ${typed('runs')} lists those of ${defaultRoot}`,
    );
  }
}

/** How long the first search is waited for before something is said of what it found. */
const searchMs = 3000;

/** Serves until a signal. With `single`, the address is that of the only run, if there is no more than one; with `id`, of that one, at `tab`. */
export async function servePage(
  context: Context,
  roots: readonly string[],
  flags: DashFlags,
  { single = false, id, tab }: { single?: boolean; id?: string; tab?: string } = {},
): Promise<void> {
  checkDashFlags(flags);
  const { open, ...how } = flags;
  const onProblem = (sentence: string): void => context.note(`keel: ${sentence}`);
  const server = await serve({ roots, ...how, onProblem });
  if (server.note !== undefined) onProblem(server.note);
  // Before the address is said: who has read it may end it at once.
  const ended = new Promise<void>(done => {
    for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => done());
  });
  const say = (address: string): void => context.raw(`${context.paint('Keel', 'bold')} is at ${address}`);
  if (id !== undefined) say(runAddress(server.url, id, tab));
  else if (!single) say(server.url);
  const searched = await server.index.searched(searchMs);
  const { runs } = server.index.list();
  const [only] = runs;
  const shown = id ?? (single && searched && runs.length === 1 ? only?.id : undefined);
  const url = shown === undefined ? server.url : runAddress(server.url, shown, tab);
  if (single) say(url);
  const count = runs.length === 0 ? '' : runs.length === 1 ? '1 run' : `${runs.length} runs`;
  const state = searched ? count || 'no run yet' : [count, 'searching'].filter(Boolean).join(', ');
  context.print(context.paint(`watching ${roots.join(', ')}: ${state}; Ctrl-C ends`, 'dim'));
  if (open) openBrowser(url);
  const waiting = setInterval(() => {}, 2 ** 30); // a server's own handles may all be closed for a moment
  await ended;
  clearInterval(waiting);
  await server.close();
}
