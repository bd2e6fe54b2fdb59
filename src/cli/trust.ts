/** Consent to code that a run names: asked where somebody can answer, else `--trust`. */
import type { Trust } from '../algos/trust.ts';
import { withoutControls } from '../base/controls.ts';
import { type UntrustedCode, whatWouldRun } from '../runs/trust.ts';
import { ExitWith } from './errors.ts';
import { exitCodes } from './exit-codes.ts';

/** What the flags of a command say about it. */
export function trustOf({
  trust = false,
  json = false,
}: {
  trust?: boolean | undefined;
  json?: boolean;
}): Trust {
  const answers = process.stdin.isTTY && process.stderr.isTTY && !json;
  return trust || !answers ? trust : ask;
}

async function ask(untrusted: UntrustedCode): Promise<boolean> {
  const { confirm } = await import('@clack/prompts');
  const answer = await confirm({
    message: withoutControls(`${whatWouldRun(untrusted)}. Run it, now and from now on?`),
    initialValue: false,
    output: process.stderr,
  });
  if (typeof answer === 'symbol') throw new ExitWith(exitCodes.interrupted);
  return answer;
}
