/** Keel's own command line as a child process: what takes long or needs the engine does not run in the server. */
import { type ChildProcess, spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { fileURLToPath, pathToFileURL } from 'node:url';
import * as z from 'zod/mini';
import { errorsAsJson } from '../base/errors.ts';
import { jsonOf } from '../base/json.ts';

const here = import.meta.url;
/** How the child says what was wrong, as it is asked to. */
const reportSchema = z.object({ problems: z.array(z.string()) });

/** The program and its first arguments: the same from `dist` and, through tsx, from the sources. */
export function keelCommand(): readonly [program: string, ...args: string[]] {
  if (!here.endsWith('.ts')) return [process.execPath, fileURLToPath(new URL('../cli/main.js', here))];
  const tsx = pathToFileURL(createRequire(here).resolve('tsx')).href;
  return [process.execPath, '--import', tsx, fileURLToPath(new URL('../cli/main.ts', here))];
}

/** Without what a test runner or a debugger of this process set. */
export function childEnv(): NodeJS.ProcessEnv {
  const { NODE_OPTIONS: _, NODE_CHANNEL_FD: __, ...env } = process.env;
  return { ...env, NO_COLOR: '1', [errorsAsJson]: '1' };
}

export interface Finished {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
  readonly timedOut: boolean;
}

const mostOutput = 16 * 2 ** 20;

/** Runs `keel <args>` to its end; one that takes too long is ended. */
export function runKeel(
  args: readonly string[],
  { timeoutMs, signal }: { readonly timeoutMs: number; readonly signal: AbortSignal },
): Promise<Finished> {
  const [program, ...first] = keelCommand();
  return new Promise((resolve, reject) => {
    const child: ChildProcess = spawn(program, [...first, ...args], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: childEnv(),
    });
    const output = { stdout: '', stderr: '' };
    let timedOut = false;
    const end = (): void => {
      child.kill('SIGKILL');
    };
    const timer = setTimeout(() => {
      timedOut = true;
      end();
    }, timeoutMs);
    signal.addEventListener('abort', end, { once: true });
    for (const name of ['stdout', 'stderr'] as const) {
      child[name]!.setEncoding('utf8').on('data', (text: string) => {
        if (output[name].length < mostOutput) output[name] += text;
      });
    }
    const done = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
    };
    child.on('error', error => {
      done();
      reject(error);
    });
    child.on('close', code => {
      done();
      resolve({ code, ...output, timedOut });
    });
  });
}

/** What the child said was wrong; one that ended otherwise, such as for want of memory, in its last line. */
export function complaint(said: string): string {
  const lines = said.split('\n').filter(line => line.trim() !== '');
  const told = lines.map(problemsIn).findLast(problems => problems !== undefined);
  return (told?.join('; ') ?? lines.at(-1) ?? 'it gave no reason').slice(0, 500);
}

function problemsIn(line: string): string[] | undefined {
  try {
    const parsed = z.safeParse(reportSchema, jsonOf(line));
    return parsed.success ? parsed.data.problems : undefined;
  } catch {
    return undefined;
  }
}
