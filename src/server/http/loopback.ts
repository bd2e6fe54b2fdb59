/** Which addresses are this machine's alone. */
import { KeelError } from '../../base/errors.ts';

export const loopbackNames: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '::1']);

/** Whether what listens at this address can be asked from this machine alone. */
const isLoopback = (host: string): boolean => loopbackNames.has(host) || /^127\.\d+\.\d+\.\d+$/.test(host);

/** Without a token the page is for this machine alone. */
export function requireToken(host: string, token: string | false | undefined): void {
  if (token !== false || isLoopback(host)) return;
  throw new KeelError(
    `--no-token with --host ${host} would let anybody who reaches this machine stop and change runs: leave one of them out`,
    { code: 'usage' },
  );
}
