/** The page beside a command: its options, the thread that serves it while a run trains, and the browser. */
import { spawn } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { makeUserDirectory } from '../base/user-directory.ts';
import { requireToken } from '../server/http/loopback.ts';
import type { PageThread } from '../server/page-thread.ts';
import type { ServeOptions } from '../server/serve.ts';
import type { Context } from './context.ts';
import { UsageError } from './errors.ts';
import { runDirOption } from './options.ts';

/** What the options of the page say where a command serves it until it is ended. */
export interface DashFlags
  extends Pick<ServeOptions, 'port' | 'host' | 'token' | 'webhook' | 'onVerdict' | 'readOnly'> {
  readonly open?: boolean | undefined;
}

/** What the options of a command that trains say: the page is beside it. */
export interface TrainingFlags extends Pick<DashFlags, 'port' | 'token' | 'open'> {
  readonly dash?: boolean | undefined;
  readonly exit?: boolean | undefined;
  readonly json?: boolean;
}

function portNumber(text: string): number {
  const port = Number(text);
  if (!/^\d{1,5}$/.test(text) || port > 65_535)
    throw new InvalidArgumentError(`${text} is not a port: use 0 (any) to 65535.`);
  return port;
}

function tokenText(text: string): string {
  if (!/^[!-~]{8,}$/.test(text))
    throw new InvalidArgumentError('It needs at least 8 letters, digits or signs, without spaces.');
  return text;
}

const tokenOption = (): Option =>
  new Option(
    '--token <text>',
    "ask for this token (default: the user's own, made at the first start)",
  ).argParser(tokenText);
const noTokenOption = (): Option =>
  new Option('--no-token', 'ask for none: then other users of this machine can open the page, too');

export function dashOptions(command: Command): Command {
  return command
    .option('--port <n>', 'where it listens; another one if it is taken', portNumber, 7007)
    .option('--host <address>', 'other than this machine alone', '127.0.0.1')
    .addOption(tokenOption())
    .addOption(noTokenOption())
    .option('--webhook <url>', 'POST each change of a verdict there, as JSON')
    .option('--on-verdict <command>', 'run this on each change of a verdict, without a shell')
    .option('--read-only', 'the page changes nothing: no notes, no actions')
    .option('--open', 'open it in the browser')
    .option('--no-open', 'only print the address');
}

/** What is wrong with them, said before anything is started. */
export function checkDashFlags({ token, host = '127.0.0.1', webhook }: DashFlags): void {
  if (!/^[A-Za-z0-9.:-]{1,255}$/.test(host))
    throw new UsageError(`--host ${host} is not an address: use 127.0.0.1, 0.0.0.0 or a name`);
  requireToken(host, token);
  if (webhook !== undefined && !/^https?:\/\//i.test(webhook))
    throw new UsageError(`--webhook ${webhook} is not an http or https address`);
}

/** The page beside training, where the run is, and how it speaks. */
export function trainingOptions(command: Command): Command {
  return command
    .option('--dash', 'with the page, live in the browser (the default in a terminal)')
    .option('--no-dash', 'without it')
    .option('--port <n>', 'where the page listens; another one if it is taken', portNumber)
    .addOption(tokenOption())
    .addOption(noTokenOption())
    .option('--open', 'open the page in the browser')
    .option('--exit', 'end with the training; in a terminal the page stays until Ctrl-C')
    .addOption(runDirOption())
    .option('--json', 'rows and events as JSON lines on stdout, nothing else there');
}

/** The page of a run that is there, at its address. */
export interface ServedPage extends Pick<PageThread, 'ended' | 'close'> {
  readonly url: string;
}

/** Starts it for the directory of a run, at one of its tabs; says where it is, or why it is not there. */
export async function startDash(
  { note }: Context,
  runDir: string,
  flags: TrainingFlags,
  tab?: string,
): Promise<ServedPage | undefined> {
  try {
    // Only where it is shown: it is large, and training waits for nothing.
    const [{ startPageThread }, { idOf, runAddress }] = await Promise.all([
      import('../server/page-thread.ts'),
      import('../server/runs/places.ts'),
    ]);
    const page = await startPageThread({
      roots: [dirname(runDir)],
      port: flags.port,
      token: flags.token,
      foreign: false,
      onProblem: sentence => note(`keel: ${sentence}`),
    });
    const url = runAddress(page.url, idOf(runDir), tab);
    note(`page: ${url}${page.note === undefined ? '' : ` (${page.note})`}`);
    if (flags.open) openBrowser(url);
    const { ended, close } = page;
    return { url, ended, close };
  } catch (error) {
    note(`keel: the page could not be started: ${(error as Error).message}; training goes on without it`);
    return undefined;
  }
}

/** Opens an address in the browser of whoever sits here; where there is none, nothing happens. */
export function openBrowser(url: string): void {
  const openers: Partial<Record<NodeJS.Platform, readonly [string, ...string[]]>> = {
    darwin: ['open'],
    win32: ['rundll32', 'url.dll,FileProtocolHandler'],
  };
  const [program, ...args] = openers[process.platform] ?? ['xdg-open'];
  const child = spawn(program, [...args, withoutToken(url)], { stdio: 'ignore', detached: true });
  child.on('error', () => {}); // the address was printed
  child.unref();
}

/**
 * What a browser is started with, all users of the machine can see in the list of processes. So an address with a token is
 * in a file that its user alone can read, as Jupyter has it, and that file is opened. Without one, it opens without.
 */
function withoutToken(url: string): string {
  const bare = new URL(url);
  if (!bare.searchParams.has('token')) return url;
  bare.searchParams.delete('token');
  try {
    const file = join(makeUserDirectory(), `open-${bare.port}.html`);
    rmSync(file, { force: true }); // it may be of another mode
    const target = url.replaceAll('&', '&amp;').replaceAll('"', '&quot;');
    writeFileSync(file, `<!doctype html><meta http-equiv="refresh" content="0;url=${target}">\n`, {
      mode: 0o600,
      flag: 'wx',
    });
    process.once('exit', () => rmSync(file, { force: true }));
    return pathToFileURL(file).href;
  } catch {
    return bare.href;
  }
}

/** Whether there may be a browser to see: on Linux a machine without a display has none. */
export function hasScreen(): boolean {
  const { DISPLAY, WAYLAND_DISPLAY } = process.env;
  return process.platform !== 'linux' || Boolean(DISPLAY || WAYLAND_DISPLAY);
}
