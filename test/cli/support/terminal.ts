/** keel in a terminal. A pseudo-terminal comes from util-linux's `script`. */
import { spawn, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import { until } from '../../support/until.ts';
import { cleanEnv, mainFile } from './keel.ts';

export const hasScript: boolean =
  process.platform === 'linux' && spawnSync('script', ['--version']).status === 0;

export const CTRL_C = '\u0003';

/** Starts keel in a terminal of 80 columns. */
export function openTerminal(
  cwd: string,
  args: readonly string[],
  more: Readonly<Record<string, string>> = {},
) {
  const quoted = args.map(arg => `'${arg}'`).join(' ');
  const pidFile = join(cwd, '.pid');
  const command = `stty cols 80 rows 24; echo $$ > '${pidFile}'; exec '${process.execPath}' '${mainFile}' ${quoted}`;
  const env = { ...cleanEnv(), TERM: 'xterm-256color', NO_COLOR: '', CI: '', SHELL: '/bin/sh', ...more };
  const child = spawn('script', ['-qfec', command, '/dev/null'], {
    cwd,
    env,
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  // What a test that timed out leaves behind must not go on.
  afterAll(() => void child.kill('SIGKILL'));
  const terminal = {
    screen: '',
    /** Keys that are pressed. */
    type: (keys: string): void => void child.stdin.write(keys),
    /** A signal to keel itself, from elsewhere. */
    kill: (signal: NodeJS.Signals): void => void process.kill(Number(readFileSync(pidFile, 'utf8')), signal),
    shows: (text: string): Promise<void> =>
      until(() => terminal.screen.includes(text), `the terminal shows ${text}`),
    /** When it has ended: with which exit code. */
    done: new Promise<number | null>(resolve => child.on('close', resolve)),
  };
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    terminal.screen += text;
  });
  return terminal;
}

/** Runs keel to its end; each answer is typed when its question is on the screen. */
export async function inTerminal(
  cwd: string,
  args: readonly string[],
  answers: readonly [question: string, keys: string][],
  more: Readonly<Record<string, string>> = {},
): Promise<{ code: number | null; screen: string }> {
  const terminal = openTerminal(cwd, args, more);
  const typing = (async () => {
    for (const [question, keys] of answers) {
      await Promise.race([terminal.shows(question), terminal.done]);
      // The question is drawn before it listens.
      await new Promise(resolve => setTimeout(resolve, 200));
      terminal.type(keys);
    }
  })();
  const code = await terminal.done;
  await typing;
  return { code, screen: terminal.screen };
}
