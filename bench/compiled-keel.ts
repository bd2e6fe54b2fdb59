/** The compiled command line in processes of its own, with the most memory that each held. */
import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

/** Code for `--import`. */
const dataUrl = (code: string): string => `data:text/javascript,${encodeURIComponent(code)}`;

/**
 * Writes what was noted in `globalThis.keelProbe` to the fourth stream when the process ends, with the largest resident size.
 * Linux's `VmHWM` goes first: `ru_maxrss` is never below what the parent held when it forked.
 */
const probe = `
import { readFileSync, writeSync } from 'node:fs';
import { isMainThread } from 'node:worker_threads';
const probe = (globalThis.keelProbe = {});
if (isMainThread) process.on('exit', () => {
  let peakKilobytes = process.resourceUsage().maxRSS;
  try { peakKilobytes = Number(/VmHWM:\\s+(\\d+) kB/.exec(readFileSync('/proc/self/status', 'utf8'))[1]); } catch {}
  writeSync(3, JSON.stringify({ ...probe, peakKilobytes }));
});`;

export interface Ended {
  readonly code: number | null;
  readonly peakMegabytes: number;
  /** What more was noted in it, by name. */
  readonly noted: Readonly<Record<string, number>>;
  /** From its start to its end. */
  readonly seconds: number;
}

export interface RunningKeel {
  readonly child: ChildProcess;
  /** When it ends, with an error if it ended otherwise than by one of these codes. */
  ended(...codes: readonly number[]): Promise<Ended>;
}

/** How it is started. */
export interface StartOptions {
  /** Each line that it prints. */
  readonly onLine?: (line: string, child: ChildProcess) => void;
  /** Code that runs first, and may note numbers in `globalThis.keelProbe`. */
  readonly before?: string;
}

/** Starts the command line of a package that `buildPackage` made. */
export function startKeel(
  built: string,
  args: readonly string[],
  { onLine = () => {}, before = '' }: StartOptions = {},
): RunningKeel {
  const startedAt = performance.now();
  const imports = [probe, before].filter(code => code !== '').flatMap(code => ['--import', dataUrl(code)]);
  const child = spawn(process.execPath, [...imports, join(built, 'bin/keel.js'), ...args], {
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
  });
  const said = { 2: '', 3: '' };
  for (const stream of [2, 3] as const)
    (child.stdio[stream] as NodeJS.ReadableStream).setEncoding('utf8').on('data', (text: string) => {
      said[stream] += text;
    });
  createInterface({ input: child.stdout! }).on('line', line => onLine(line, child));
  const closed = new Promise<Ended>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', code => {
      const seconds = (performance.now() - startedAt) / 1000;
      const { peakKilobytes, ...noted } = JSON.parse(said[3] || '{}') as Record<string, number>;
      resolve({ code, peakMegabytes: peakKilobytes / 1024, noted, seconds });
    });
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
