/** The page beside training: on in a terminal, and never in the way. */
import { dirname } from 'node:path';
import { type Command, Option } from 'commander';
import type { Context } from './context.ts';
import { portNumber } from './dash-options.ts';

export interface TrainDashFlags {
  readonly dash?: boolean | undefined;
  readonly port?: number | undefined;
  readonly open?: boolean | undefined;
}

export function trainDashOptions(command: Command): Command {
  return command
    .option('--dash', 'with the page, live in the browser (the default in a terminal)')
    .option('--no-dash', 'without it')
    .addOption(
      new Option('--port <n>', 'where the page listens; another one if it is taken').argParser(portNumber),
    )
    .option('--open', 'open the page in the browser');
}

/** Whether the page was asked for, or nobody said and someone may be looking. */
export function wantsDash(context: Context, { dash, open }: TrainDashFlags, json: boolean): boolean {
  return dash ?? (open === true || (context.isTerminal && !json));
}

/** Starts it for the directory of a run, at one of its tabs; says where it is, or why it is not there. */
export async function startDash(
  context: Context,
  runDir: string,
  flags: TrainDashFlags,
  tab?: string,
): Promise<void> {
  try {
    const [{ startPageThread }, { idOf, runAddress }] = await Promise.all([
      import('../server/page-thread.ts'),
      import('../server/runs/places.ts'),
    ]);
    const { url: page, note } = await startPageThread({
      roots: [dirname(runDir)],
      port: flags.port,
      foreign: false,
      onProblem: sentence => context.note(`keel: ${sentence}`),
    });
    const url = runAddress(page, idOf(runDir), tab);
    const address = `page: ${url}${note === undefined ? '' : ` (${note})`}`;
    context.note(context.isTerminal ? `\r\u001b[K${address}` : address);
    if (flags.open) {
      const { openBrowser } = await import('./open-browser.ts');
      openBrowser(url);
    }
  } catch (error) {
    context.note(
      `keel: the page could not be started: ${(error as Error).message}; training goes on without it`,
    );
  }
}
