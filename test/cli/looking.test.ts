/** A run that stops at a return, and what the command line says of it. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { keel } from './support/keel.ts';

const runs = mkdtempSync(join(tmpdir(), 'keel-looking-'));
afterAll(() => rmSync(runs, { recursive: true, force: true }));

const small = ['envs=2', 'stepsPerRollout=64', 'minibatchSize=64', 'epochs=1', 'hidden=[4]'];
const sets = (...pairs: string[]): string[] => pairs.flatMap(pair => ['--set', pair]);

test('it says where it stopped and why, and how to go on; a resume does so, too', async () => {
  const trained = await keel([
    ...['train', 'ProbeConstant-v0', '--no-preset', '--steps', '640', '--run-dir', runs],
    ...sets(...small, 'evaluateEvery=2', 'evaluateEpisodes=5', 'stopAt=1'),
  ]);
  expect(trained).toMatchObject({ code: 0, stderr: '' });
  expect(trained.stdout).toMatch(
    /^ +256 {2}mean return 1 in an evaluation over 5 episodes\s+reached\s+stopAt\s+1$/m,
  );
  expect(trained.stdout).toMatch(/^Finished: 256 steps/m);
  expect(trained.stdout).toMatch(/^ {2}best +checkpoint 256, mean return 1.00 in its evaluation$/m);
  expect(trained.stdout).toMatch(/^ {2}go on +\S.* resume \S+ --set stopAt=null$/m);
  expect(trained.stdout).toMatch(/ eval 1\.00 /);

  const shown = await keel(['runs', 'show', 'last', '--run-dir', runs]);
  expect(shown.stdout).toMatch(
    /reason +mean return 1 in an evaluation over 5 episodes\s+reached\s+stopAt\s+1$/m,
  );

  // More steps alone are none that it would do.
  for (const more of [[], ['--steps', '1280'], ['--set', 'stopAt=0.5']]) {
    const again = await keel(['resume', 'last', '--run-dir', runs, ...more]);
    expect(again.code).toBe(2);
    expect(again.stderr).toMatch(
      /has finished, mean return 1 in an evaluation over 5 episodes reached stopAt [\d.]+: keel resume .* --set stopAt=null goes on, as does a higher one\n$/,
    );
  }
  const further = await keel(['resume', 'last', '--run-dir', runs, '--set', 'stopAt=2']);
  expect(further).toMatchObject({ code: 0, stderr: '' });
  expect(further.stdout).toMatch(/^Finished: 640 steps/m);

  const evaluated = await keel(['eval', 'last', '--run-dir', runs, '-n', '3']);
  expect(evaluated.stdout).toMatch(/checkpoint 256 \(the best\), mean return\s+1\.00\s+in its evaluation$/m);
  expect(evaluated.stdout).toContain('    return 1.00 ± 0 (standard error) over 3 episodes');
  expect(evaluated.stdout).toContain('  actions drawn as in training agree: 1.00 ± 0');
});

test('what cannot be is refused by name', async () => {
  const refused = async (command: string, ...pairs: string[]) =>
    (await keel([...command.split(' '), '--run-dir', runs, ...sets(...pairs)])).stderr.trimEnd().split('\n');
  expect(await refused('train cartpole', 'evaluateEpisodes=5')).toEqual([
    'keel: --set evaluateEpisodes has no effect without evaluateEvery of at least 1: add that, or remove evaluateEpisodes',
  ]);
  expect(await refused('train cartpole', 'evaluateEvery=-1', 'evaluateEpisodes=0', 'stopAt=high')).toEqual([
    'keel: --set evaluateEvery is -1, below its least value 0: the default is 0',
    'keel: --set evaluateEpisodes is 0, below its least value 1: the default is 20',
    'keel: --set stopAt is "high", not a number or null: the default is null',
  ]);
  // Training has returns of its own, cloning has not.
  expect(await refused('clone arithmetic', 'stopAt=1')).toEqual([
    'keel: --set stopAt has no effect without evaluateEvery of at least 1: add that, or remove stopAt',
  ]);
});
