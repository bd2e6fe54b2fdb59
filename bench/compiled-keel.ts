/** The compiled command line in processes of its own, with the most memory that each held. */
import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

/**
 * Writes the largest resident size when the process ends, to its fourth stream. Linux's `VmHWM` goes first: `ru_maxrss` is never
 * below what the parent held when it forked.
 */
const probe = `
import { readFileSync, writeSync } from 'node:fs';
import { isMainThread } from 'node:worker_threads';
if (isMainThread) process.on('exit', () => {
  let kilobytes = process.resourceUsage().maxRSS;
  try { kilobytes = Number(/VmHWM:\\s+(\\d+) kB/.exec(readFileSync('/proc/self/status', 'utf8'))[1]); } catch {}
  writeSync(3, String(kilobytes));
});`;

export interface Ended {
  readonly code: number | null;
  readonly peakMegabytes: number;
  /** From its start to its end. */
  readonly seconds: number;
}

export interface RunningKeel {
  readonly child: ChildProcess;
  /** When it ends, with an error if it ended otherwise than by one of these codes. */
  ended(...codes: readonly number[]): Promise<Ended>;
}

/** Starts the command line of a package that `buildPackage` made; each line that it prints goes to `onLine`. */
export function startKeel(
  built: string,
  args: readonly string[],
  onLine: (line: string, child: ChildProcess) => void = () => {},
): RunningKeel {
  const startedAt = performance.now();
  const child = spawn(
    process.execPath,
    ['--import', `data:text/javascript,${encodeURIComponent(probe)}`, join(built, 'bin/keel.js'), ...args],
    { stdio: ['ignore', 'pipe', 'pipe', 'pipe'] },
  );
  const said = { 2: '', 3: '' };
  for (const stream of [2, 3] as const)
    (child.stdio[stream] as NodeJS.ReadableStream).setEncoding('utf8').on('data', (text: string) => {
      said[stream] += text;
    });
  createInterface({ input: child.stdout! }).on('line', line => onLine(line, child));
  const closed = new Promise<Ended>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', code =>
      resolve({
        code,
        peakMegabytes: Number(said[3]) / 1024,
        seconds: (performance.now() - startedAt) / 1000,
      }),
    );
  });
  return {
    child,
    async ended(...codes) {
      const end = await closed;
      if (end.code === null || !codes.includes(end.code) || said[3] === '')
        throw new Error(`keel ${args.join(' ')} ended with ${end.code}: ${said[2]}`);
      return end;
    },
  };
}
