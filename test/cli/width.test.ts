/** No line of any command is wider than 80 columns where the output is no terminal. */
import { mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { columnsOf } from '../../src/base/terminal.ts';
import { JournalWriter } from '../../src/studies/journal.ts';
import { createStudy, studyPaths } from '../../src/studies/store.ts';
import { outcome, study } from '../studies/support/studies.ts';
import { fixture, keel, scratch, tiny } from './support/keel.ts';

const cwd = scratch();
let ids: string[];

beforeAll(async () => {
  mkdirSync(join(cwd, 'none'));
  // Environments of long names, events of all kinds, and options that differ.
  await Promise.all([
    keel(['train', 'mountaincarcontinuous', ...tiny('runs', '--seed', '123456789', '--steps', '512')], {
      cwd,
    }),
    keel(
      ['train', 'pendulum', ...tiny('runs', '--set', 'envOptions.gravity=3.25', '--set', 'learningRate=0.1')],
      { cwd },
    ),
    keel(['train', fixture('walk-env.ts'), ...tiny('runs', '--set', 'hidden=[8,8,8,8,8,8,8,8,8,8,8,8]')], {
      cwd,
    }),
  ]);
  ids = readdirSync(join(cwd, 'runs'));
});

async function fits(args: readonly string[], { code: expected = 0 } = {}): Promise<void> {
  const { code, stdout, stderr } = await keel(args, { cwd });
  expect(code, stderr).toBe(expected);
  expect(stdout.length).toBeGreaterThan(0);
  const wide = stdout.split('\n').filter(line => columnsOf(line) > 80);
  expect(wide).toEqual([]);
}

const commands = [
  ...['train', 'resume', 'eval', 'export', 'runs', 'envs', 'check-env', 'preflight', 'config', 'doctor'],
  ...['clone', 'fork', 'record', 'render', 'sweep', 'worker'],
  ...['runs list', 'runs show', 'runs compare', 'runs delete'],
  ...['sweep run', 'sweep show', 'sweep compare', 'sweep export', 'sweep task'],
];

describe('80 columns', () => {
  test.each(['', ...commands])('keel %s --help', async command => {
    await fits([...command.split(' ').filter(Boolean), '--help']);
  });

  test.each([
    ['envs'],
    ['check-env', 'cartpole'],
    ['check-env', 'acrobot'],
    ['check-env', 'courier'],
    ['preflight', 'courier'],
    ['config'],
    ['config', 'mountaincarcontinuous', '--set', 'targetKl=0.02'],
    ['runs'],
    ['runs', '--run-dir', 'none'],
    ['train', 'courier', '--steps', '100', '--set', 'learningRate=0.1', '--run-dir', 'none'],
  ])('keel %s %s %s %s', async (...args) => {
    await fits(args.filter(arg => arg !== undefined));
  });

  test('a study', async () => {
    createStudy(study({ name: 'a-study-of-a-long-name-that-somebody-gave-to-it' }), join(cwd, 'studies'));
    const tune = study();
    const { dir } = createStudy(tune, join(cwd, 'studies'));
    const journal = new JournalWriter(studyPaths(dir).journal, tune);
    const params = { learningRate: 0.000123456789, clipRange: 0.3, epochs: 17, hidden: [64, 64] };
    for (let i = 0; i < 3; i++) {
      const whole = { ...params, adaptiveRate: true, adaptiveRateTarget: 0.0123456789 + i };
      const { number } = journal.createTrial({ params: whole, seeds: [0] });
      journal.setOutcome(number, outcome({ run: 'tune-3fa9c1-t0000-seed0' }));
      journal.endTrial(number, { state: 'complete', value: 412.5 + i, violations: [] });
    }
    journal.close();
    await fits(['sweep', 'show']);
    await fits(['sweep', 'show', 'tune']);
    await fits(['sweep', 'compare', 'tune', 'tune', 'tune']);
    await fits(['sweep', 'export', 'tune']);
  });

  test('check-env writes infinities as envs does', async () => {
    const [checked, listed] = await Promise.all([keel(['check-env', 'cartpole']), keel(['envs'])]);
    for (const { stdout } of [checked, listed]) {
      expect(stdout).toContain('-∞..∞');
      expect(stdout).not.toContain('Infinity');
    }
  });

  test('commands that take a run', async () => {
    for (const id of ids) {
      await fits(['runs', 'show', id]);
      await fits(['eval', id, '-n', '3']);
      await fits(['export', id]);
      await fits(['resume', id, '--steps', '1024']);
    }
    await fits(['runs', 'compare', ...ids]);
    await fits(['runs', 'compare', ...ids, ...ids]);
    await fits(['check-env', `${fixture('broken-env.ts')}#NanEnv-v0`], { code: 1 });
  });

  test('the long id of a run can still be used as it is listed', async () => {
    const { stdout } = await keel(['runs'], { cwd });
    expect(stdout).toContain('…');
    const listed = [...stdout.matchAll(/^(\S+?)…(\S+)/gm)];
    for (const [, begin, end] of listed) {
      expect(ids.filter(id => id.startsWith(begin) && id.endsWith(end))).toHaveLength(1);
      const shown = await keel(['runs', 'show', end.slice(-4)], { cwd });
      expect(shown.stdout.split(' ')[0]).toMatch(new RegExp(`^${begin}.*${end}$`));
    }
  });
});
