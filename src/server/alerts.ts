/** Tells the outside when a verdict changes: a web address, a command, or both. What goes wrong there is only noted. */
import { spawn } from 'node:child_process';
import type { Diagnosis, RootCause, Verdict } from '../doctor/findings.ts';

export interface VerdictChange {
  readonly run: string;
  readonly path: string;
  readonly before: Verdict | null;
  readonly verdict: Verdict;
  readonly rootCause: RootCause | null;
  readonly step: number;
  readonly summary: string;
  readonly fix: readonly string[];
}

export interface AlertOptions {
  /** http or https; gets a POST with the change as JSON. */
  readonly webhook?: string | undefined;
  /** A program and its arguments, split at spaces; started without a shell. */
  readonly command?: string | undefined;
  /** Told when an alert could not be delivered. */
  readonly onProblem?: (sentence: string) => void;
}

export interface Alerts {
  tell(change: VerdictChange): void;
  close(): void;
}

const webhookMs = 10_000;
const commandMs = 60_000;
/** Alerts under way at once; a run that flaps must not start a hundred programs. */
const mostAtOnce = 4;

export function changeOf(
  name: string,
  path: string,
  before: Verdict | null,
  diagnosis: Diagnosis,
): VerdictChange {
  const { verdict, rootCause, steps, summary, findings } = diagnosis;
  return { run: name, path, before, verdict, rootCause, step: steps, summary, fix: findings[0]?.fix ?? [] };
}

/** Refuses an address that is not one to send to. */
export function checkWebhook(address: string): string {
  let url: URL;
  try {
    url = new URL(address);
  } catch {
    throw new TypeError(`webhook ${address} is not an address: write one such as https://example.org/hook`);
  }
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    throw new TypeError(`webhook ${address} begins with ${url.protocol}: only http: and https: are sent to`);
  return url.href;
}

/** `notify "high KL"` → its words; quotes keep spaces together, and nothing else is special. */
export function wordsOf(command: string): string[] {
  const words = [...command.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(([, a, b, c]) => a ?? b ?? c ?? '');
  if (words.length === 0 || words[0] === '')
    throw new TypeError('the command on a verdict is empty: write a program and its arguments');
  return words;
}

export function createAlerts({ webhook, command, onProblem = () => {} }: AlertOptions): Alerts {
  const address = webhook === undefined ? undefined : checkWebhook(webhook);
  const words = command === undefined ? undefined : wordsOf(command);
  const stop = new AbortController();
  let underWay = 0;
  const waiting: (() => Promise<void>)[] = [];

  function start(work: () => Promise<void>): void {
    if (underWay >= mostAtOnce) {
      // The newest counts: what is older than a hundred changes is no news.
      waiting.push(work);
      if (waiting.length > 100) waiting.shift();
      return;
    }
    underWay++;
    work()
      .catch(error => onProblem((error as Error).message))
      .finally(() => {
        underWay--;
        const next = waiting.shift();
        if (next !== undefined && !stop.signal.aborted) start(next);
      });
  }

  async function post(change: VerdictChange): Promise<void> {
    try {
      const response = await fetch(address!, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(change),
        redirect: 'error',
        signal: AbortSignal.any([stop.signal, AbortSignal.timeout(webhookMs)]),
      });
      await response.body?.cancel();
      if (!response.ok) onProblem(`the webhook answered ${response.status} to the verdict of ${change.run}`);
    } catch (error) {
      if (stop.signal.aborted) return;
      const cause = (error as { cause?: { message?: string } }).cause?.message;
      onProblem(`the webhook could not be reached: ${cause ?? (error as Error).message}`);
    }
  }

  function run(change: VerdictChange): Promise<void> {
    const [program = '', ...args] = words!;
    return new Promise(resolve => {
      let failed = false;
      const child = spawn(program, args, {
        shell: false,
        stdio: ['pipe', 'ignore', 'ignore'],
        timeout: commandMs,
        signal: stop.signal,
        env: {
          ...process.env,
          KEEL_RUN: change.run,
          KEEL_RUN_PATH: change.path,
          KEEL_VERDICT: change.verdict,
          KEEL_VERDICT_BEFORE: change.before ?? '',
          KEEL_ROOT_CAUSE: change.rootCause ?? '',
          KEEL_STEP: String(change.step),
          KEEL_SUMMARY: change.summary.replaceAll('\0', ''),
        },
      });
      child.on('error', error => {
        if (!stop.signal.aborted) onProblem(`${program} could not be started: ${error.message}`);
        failed = true;
        resolve();
      });
      child.on('close', code => {
        if (!failed && code !== 0 && code !== null) onProblem(`${program} ended with exit code ${code}`);
        resolve();
      });
      child.stdin?.on('error', () => {});
      child.stdin?.end(`${JSON.stringify(change)}\n`);
    });
  }

  return {
    tell(change) {
      if (stop.signal.aborted) return;
      if (address !== undefined) start(() => post(change));
      if (words !== undefined) start(() => run(change));
    },
    close: () => stop.abort(),
  };
}
