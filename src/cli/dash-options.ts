/** The page's options, the same for every command that opens it. */
import { type Command, InvalidArgumentError, Option } from 'commander';
import { UsageError } from './errors.ts';

export interface DashFlags {
  readonly port?: number;
  readonly host?: string;
  readonly token?: string;
  readonly webhook?: string;
  readonly onVerdict?: string;
  readonly readOnly?: boolean;
  readonly open?: boolean;
}

export function portNumber(text: string): number {
  const port = Number(text);
  if (!/^\d{1,5}$/.test(text) || port > 65_535)
    throw new InvalidArgumentError(`${text} is not a port: use 0 (any) to 65535.`);
  return port;
}

export function dashOptions(command: Command): Command {
  return command
    .addOption(
      new Option('--port <n>', 'where it listens; another one if it is taken')
        .argParser(portNumber)
        .default(7007),
    )
    .addOption(
      new Option('--host <address>', 'other than this machine alone; then a token is needed').default(
        '127.0.0.1',
      ),
    )
    .option('--token <text>', 'ask for this token (random with --host unless given)')
    .option('--webhook <url>', 'POST each change of a verdict there, as JSON')
    .option('--on-verdict <command>', 'run this on each change of a verdict, without a shell')
    .option('--read-only', 'the page changes nothing: no notes, no actions')
    .option('--open', 'open it in the browser');
}

/** What is wrong with them, said before anything is started. */
export function checkDashFlags({ token, host, webhook }: DashFlags): void {
  if (token !== undefined && (token.length < 8 || /\s/.test(token)))
    throw new UsageError('--token needs at least 8 characters without spaces');
  if (host !== undefined && !/^[A-Za-z0-9.:-]{1,255}$/.test(host))
    throw new UsageError(`--host ${host} is not an address: use 127.0.0.1, 0.0.0.0 or a name`);
  if (webhook !== undefined && !/^https?:\/\//i.test(webhook))
    throw new UsageError(`--webhook ${webhook} is not an http or https address`);
}
