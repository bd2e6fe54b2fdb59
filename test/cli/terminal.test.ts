/** In a terminal: questions, and a live line. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { openRun } from '../../src/runs/index.ts';
import { hostileRuns } from '../support/hostile-run.ts';
import { cleanEnv, keel, scratch, tiny } from './support/keel.ts';
import { hasScript, inTerminal } from './support/terminal.ts';

const DOWN = '\u001b[B';
const UP = '\u001b[A';
const PAGE = 'Open the page in the browser?';

test.skipIf(!hasScript)(
  'a bare train offers text tasks, and the models that were cloned to begin from',
  async () => {
    const cwd = scratch();
    const model = ['layers=1', 'width=16', 'heads=2'].flatMap(value => ['--set', value]);
    const cloned = await keel(['clone', 'arithmetic', '--steps', '64', '--no-dash', ...model], { cwd });
    expect([cloned.code, cloned.stderr]).toEqual([0, '']);
    const [parent] = readdirSync(join(cwd, 'runs'));
    const asked = await inTerminal(
      cwd,
      ['train', '--steps', '64', '--no-dash'],
      [
        // Above the first is the last, a file of one's own; above that the tasks, from the end.
        ['Which environment or text task?', `${UP}${UP}${UP}\r`],
        ['Begin from which model?', '\r'],
      ],
    );
    expect(asked.code, asked.screen).toBe(0);
    const trained = readdirSync(join(cwd, 'runs')).find(name => name !== parent)!;
    expect(openRun(join(cwd, 'runs', trained)).manifest).toMatchObject({
      algorithm: 'grpo',
      environment: { id: 'arithmetic' },
      parent: { id: parent },
    });
  },
);

test.skipIf(!hasScript)(
  'a bare train asks for the environment, for a new run or one to go on with, and whether to open the page',
  async () => {
    const cwd = scratch();
    const flags = tiny('runs', '--exit');
    const first = await inTerminal(
      cwd,
      ['train', ...flags],
      [
        ['Which environment or text task?', `${DOWN}\r`],
        [PAGE, 'n'],
      ],
    );
    expect(first.code, first.screen).toBe(0);
    // No runs of it yet, so nothing else was asked.
    expect(first.screen).not.toContain('go on with one?');
    expect(first.screen).toContain('\r\u001b[K100%   128');
    const [id] = readdirSync(join(cwd, 'runs'));
    expect(first.screen).toContain(`keel eval ${id}`);
    const run = () => openRun(join(cwd, 'runs', id));
    expect(run()).toMatchObject({
      status: 'finished',
      manifest: { environment: { id: 'Pendulum-v1' }, step: 128 },
    });

    const second = await inTerminal(
      cwd,
      ['train', '--exit'],
      [
        ['Which environment or text task?', `${DOWN}\r`],
        ['go on with one?', `${DOWN}\r`],
        ['How many in all?', '\r'],
        [PAGE, 'n'],
      ],
    );
    expect(second.code, second.screen).toBe(0);
    expect(run()).toMatchObject({ status: 'finished', manifest: { step: 256, resumes: 1 } });

    // What the command line sets holds for a run that goes on, too; and who said something of the page is not asked.
    const third = await inTerminal(
      cwd,
      ['train', '--steps', '320', '--set', 'epochs=2', '--no-dash'],
      [
        ['Which environment or text task?', `${DOWN}\r`],
        ['go on with one?', `${DOWN}\r`],
        ['How many in all?', '\r'],
      ],
    );
    expect(third.code, third.screen).toBe(0);
    expect(third.screen).not.toContain(PAGE);
    expect(third.screen).not.toContain('page: http');
    expect(run()).toMatchObject({ manifest: { step: 320, resumes: 2, config: { epochs: 2 } } });

    const wrong = await inTerminal(cwd, ['train', '--set', 'gama=1'], []);
    expect(wrong.code).toBe(2);
    expect(wrong.screen).toMatch(/^keel: --set gama is not a config key: did you mean gamma\?\r?\n$/);

    const cancelled = await inTerminal(cwd, ['train'], [['Which environment or text task?', '\u0003']]);
    expect(cancelled.code).toBe(130);
    expect(readdirSync(join(cwd, 'runs'))).toHaveLength(1);
  },
);

test.skipIf(!hasScript)('the page is opened for who says yes', async () => {
  const cwd = scratch();
  // A browser that only says where it was sent.
  writeFileSync(join(cwd, 'xdg-open'), `#!/bin/sh\necho "$1" > '${join(cwd, 'opened')}'\n`, { mode: 0o755 });
  const PATH = `${cwd}:${cleanEnv().PATH}`;
  const asked: [string, string][] = [
    ['Which environment or text task?', `${DOWN}\r`],
    [PAGE, 'y'],
  ];
  const { code, screen } = await inTerminal(cwd, ['train', ...tiny('runs', '--exit')], asked, {
    PATH,
  });
  expect(code, screen).toBe(0);
  const [, address] = /page: (http:\S+)/.exec(screen) ?? [];
  // With a file that leads there: the address itself, with its token, would be in the list of processes.
  const { port, searchParams } = new URL(address);
  expect(searchParams.get('token')).toMatch(/^[\w-]{32}$/);
  const opened = new RegExp(`^file:.*/open-${port}\\.html\n$`);
  await vi.waitFor(() => expect(readFileSync(join(cwd, 'opened'), 'utf8')).toMatch(opened), 10_000);
});

test.skipIf(!hasScript)('code that a run names is asked about, and a yes is remembered', async () => {
  const cwd = scratch();
  const { envFile, make, ran } = hostileRuns(cwd);
  const { dir, code } = make('given', envFile('asked.mjs'));
  const args = ['export', dir];
  const lines = (screen: string): string => screen.replaceAll(/[\s│]/g, '');
  const no = await inTerminal(cwd, args, [['Yes', 'n']]);
  expect(no.code, no.screen).toBe(2);
  expect(lines(no.screen)).toContain(lines(`${code} would run, because ${dir} names it (config.env)`));
  expect(ran()).toBe(false);
  const cancelled = await inTerminal(cwd, args, [['Yes', '\u0003']]);
  expect(cancelled.code).toBe(130);
  // A program that reads JSON cannot answer.
  const json = await inTerminal(cwd, ['eval', dir, '--json'], []);
  expect(json.code).toBe(2);
  expect(json.screen).toMatch(/^keel: /);
  expect(ran()).toBe(false);
  const yes = await inTerminal(cwd, args, [['Yes', 'y']]);
  expect(yes.code, yes.screen).toBe(0);
  expect(ran()).toBe(true);
  const again = await inTerminal(cwd, args, []);
  expect(again.code, again.screen).toBe(0);
  expect(again.screen).not.toContain('would run');
});
