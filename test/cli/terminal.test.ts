/** In a terminal: questions, and a live line. A pseudo-terminal comes from util-linux's `script`. */
import { spawn, spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openRun } from '../../src/runs/index.ts';
import { mainFile, scratch, tiny } from './support/keel.ts';

const hasScript = process.platform === 'linux' && spawnSync('script', ['--version']).status === 0;

/** Runs keel in a terminal of 80 columns; each answer is typed when its question is on the screen. */
function inTerminal(cwd: string, args: readonly string[], answers: readonly [string, string][]) {
  const command = `stty cols 80 rows 24; exec '${process.execPath}' '${mainFile()}' ${args.map(arg => `'${arg}'`).join(' ')}`;
  const env = { ...process.env, TERM: 'xterm-256color', NO_COLOR: '', CI: '', SHELL: '/bin/sh' };
  const child = spawn('script', ['-qfec', command, '/dev/null'], {
    cwd,
    env,
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  let screen = '';
  let next = 0;
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    screen += text;
    if (next < answers.length && screen.includes(answers[next]![0])) {
      const [, keys] = answers[next++]!;
      // The question is drawn before it listens.
      setTimeout(() => child.stdin.write(keys), 200);
    }
  });
  return new Promise<{ code: number | null; screen: string }>(resolve => {
    child.on('close', code => resolve({ code, screen }));
  });
}

test.skipIf(!hasScript)(
  'a bare train asks for the environment, then for a new run or one to go on with',
  async () => {
    const cwd = scratch();
    const flags = tiny('runs');
    const DOWN = '\u001b[B';
    const first = await inTerminal(cwd, ['train', ...flags], [['Which environment?', `${DOWN}\r`]]);
    expect(first.code, first.screen).toBe(0);
    // No runs of it yet, so nothing else was asked.
    expect(first.screen).not.toContain('go on with one?');
    expect(first.screen).toContain('\r\u001b[K100%   128');
    const [id] = readdirSync(join(cwd, 'runs'));
    expect(first.screen).toContain(`keel eval ${id}`);
    const run = () => openRun(join(cwd, 'runs', id!));
    expect(run()).toMatchObject({
      status: 'finished',
      manifest: { environment: { id: 'Pendulum-v1' }, step: 128 },
    });

    const second = await inTerminal(
      cwd,
      ['train'],
      [
        ['Which environment?', `${DOWN}\r`],
        ['go on with one?', `${DOWN}\r`],
        ['How many in all?', '\r'],
      ],
    );
    expect(second.code, second.screen).toBe(0);
    expect(run()).toMatchObject({ status: 'finished', manifest: { step: 256, resumes: 1 } });

    const cancelled = await inTerminal(cwd, ['train'], [['Which environment?', '\u0003']]);
    expect(cancelled.code).toBe(130);
    expect(readdirSync(join(cwd, 'runs'))).toHaveLength(1);
  },
);
