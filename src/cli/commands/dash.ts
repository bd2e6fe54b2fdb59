import { existsSync } from 'node:fs';
import type { Command } from 'commander';
import { defaultRoot, resolveRun } from '../../runs/index.ts';
import { type Context, contextOf } from '../context.ts';
import { checkDashFlags, type DashFlags, dashOptions } from '../dash-options.ts';
import { UsageError } from '../errors.ts';

export function addDash(program: Command): void {
  dashOptions(program.command('dash'))
    .description('the page: all runs live, what is wrong with them, and comparing them')
    .argument('[roots...]', 'directories of runs or logs, or runs (default: runs)')
    .addHelpText(
      'after',
      `
It runs until Ctrl-C. It can be seen from this machine alone, unless --host says
otherwise; then the address that is printed has a token in it.

Examples:
  $ keel dash
  $ keel dash runs ~/experiments --port 8080
  $ keel dash --host 0.0.0.0            also from other machines, with a token
  $ keel dash --on-verdict 'notify-send Keel' --webhook https://example.org/hook`,
    )
    .action(async (roots: string[], flags: DashFlags, command: Command) => {
      const places = roots.length === 0 ? [defaultRoot] : roots.map(placeOf);
      await servePage(contextOf(command), places, flags);
    });
}

/** A path as it is, or the directory of a run by its name. A directory that is not there yet may come. */
function placeOf(text: string): string {
  if (existsSync(text) || /[\\/]/.test(text)) return text;
  try {
    return resolveRun(text).dir;
  } catch {
    throw new UsageError(`${text} is neither a directory nor a run: keel runs lists those of ${defaultRoot}`);
  }
}

/** Serves until a signal. */
export async function servePage(context: Context, roots: readonly string[], flags: DashFlags): Promise<void> {
  checkDashFlags(flags);
  const { serve } = await import('../../server/serve.ts');
  const { port, host, token, webhook, onVerdict, readOnly } = flags;
  const server = await serve({
    roots,
    port,
    host,
    token,
    webhook,
    onVerdict,
    readOnly,
    onProblem: sentence => context.note(`keel: ${sentence}`),
  });
  if (server.note !== undefined) context.note(`keel: ${server.note}`);
  context.raw(`${context.paint('Keel', 'bold')} is at ${server.url}`);
  const count = server.index.list().runs.length;
  context.print(
    context.paint(
      `watching ${roots.join(', ')}: ${count === 0 ? 'no run yet' : count === 1 ? '1 run' : `${count} runs`}; Ctrl-C ends`,
      'dim',
    ),
  );
  if (flags.open) {
    const { openBrowser } = await import('../open-browser.ts');
    openBrowser(server.url);
  }
  const waiting = setInterval(() => {}, 2 ** 30); // a server's own handles may all be closed for a moment
  await new Promise<void>(done => {
    for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => done());
  });
  clearInterval(waiting);
  await server.close();
}
