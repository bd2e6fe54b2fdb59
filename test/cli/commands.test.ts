/** Each command as a user runs it. One run is trained first; the rest look at it. */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { InferenceSession, Tensor } from 'onnxruntime-node';
import { beforeAll, describe, expect, test } from 'vitest';
import { preflightParts } from '../../src/algos/ppo/preflight.ts';
import { settingTables } from '../../src/algos/settings.ts';
import {
  checkpointProblem,
  listCheckpoints,
  openRun,
  readEvents,
  readRows,
  readTrajectory,
} from '../../src/runs/index.ts';
import { until } from '../support/until.ts';
import { fixture, keel, type Outcome, scratch, startKeel, tiny } from './support/keel.ts';

const runs = scratch();
let trained: Outcome;
const idOf = (dir: string): string => readdirSync(dir)[0];

beforeAll(async () => {
  trained = await keel(['train', 'cartpole', ...tiny(runs)]);
});

const jsonLines = (text: string) =>
  text
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line));

describe('train', () => {
  test('writes a run, shows plain lines without colours and says what to do next', () => {
    expect(trained).toMatchObject({ code: 0, stderr: '' });
    const dir = join(runs, idOf(runs));
    expect(openRun(dir)).toMatchObject({
      status: 'finished',
      manifest: { step: 128, environment: { id: 'CartPole-v1' } },
    });
    expect(readRows(dir).items).toHaveLength(2);
    for (const name of ['policy.onnx', 'metrics.csv']) expect(existsSync(join(dir, name)), name).toBe(true);
    expect(trained.stdout).toMatch(/^CartPole-v1, 128 steps, seed 0:\s/);
    expect(trained.stdout).toMatch(/100%\s+128 {2}return .* kl .* ev .*\/s {2}done/);
    expect(trained.stdout).toMatch(new RegExp(`^ +evaluate +keel eval ${dir}$`, 'm'));
    expect(trained.stdout).toMatch(/best {5}checkpoint \d+, mean return [\d.]+/);
    // The row of an iteration comes before what happened in it.
    const steps = [...trained.stdout.matchAll(/^(?: *\d+% +(\d+) | +(\d+) {2}saved)/gm)].map(
      ([, row, event]) => (row === undefined ? `saved ${event}` : row),
    );
    expect(steps).toEqual(['64', 'saved 64', '128', 'saved 128']);
    expect(trained.stdout).not.toContain('\u001b');
    for (const line of trained.stdout.split('\n').filter(text => /^ *\d+%/.test(text)))
      expect(line.length).toBeLessThan(80);
  });

  test("--json prints JSON lines of rows and events and nothing else; a user's file works", async () => {
    const cwd = scratch();
    const config = join(cwd, 'c.yaml');
    writeFileSync(config, `env: ${fixture('walk-env.ts')}\nenvOptions:\n  goal: 2\n  maxEpisodeSteps: 9\n`);
    const { code, stdout, stderr } = await keel(
      ['train', '-c', config, ...tiny('mine', '--json', '--seed', '3')],
      { cwd },
    );
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const lines = jsonLines(stdout);
    expect(lines.map(({ kind }) => kind)).toEqual(['start', 'row', 'event', 'row', 'event', 'end']);
    expect(lines[1]).toMatchObject({ 'train/iteration': 1, 'train/step': 64 });
    expect(lines[2]).toMatchObject({ type: 'checkpoint', step: 64 });
    expect(lines[5]).toMatchObject({ status: 'finished', step: 128 });
    const { manifest } = openRun(lines[5].dir);
    expect(manifest).toMatchObject({
      seed: 3,
      environment: { id: 'Walk-v0', options: { goal: 2, maxEpisodeSteps: 9 } },
    });
    // From elsewhere: the file is found again, and so is the time limit.
    const again = await keel(['eval', lines[5].dir, '--episodes', '3', '--json']);
    expect(again).toMatchObject({ code: 0, stderr: '' });
    expect(Math.max(...JSON.parse(again.stdout).lengths)).toBeLessThanOrEqual(9);
  });

  test('the preset is below the settings, and --no-preset leaves it out', async () => {
    const [preset, none] = await Promise.all([
      keel(['config', 'cartpole', '--json', '--set', 'epochs=3']),
      keel(['config', 'cartpole', '--json', '--no-preset']),
    ]);
    expect(JSON.parse(preset.stdout)).toMatchObject({
      env: 'cartpole',
      learningRateSchedule: 'linear',
      epochs: 3,
    });
    expect(JSON.parse(none.stdout)).toMatchObject({ learningRateSchedule: 'constant', epochs: 10 });
  });

  test.each(['SIGINT', 'SIGTERM'] as const)(
    '%s saves, says how to resume, and a resume ends as if nothing had been',
    async signal => {
      const [dir, calm] = [scratch(), scratch()];
      const rare = ['--set', 'checkpointEvery=100000'];
      const flags = ['--set', 'steps=64000', ...rare, '--json'];
      const { child, done, output } = startKeel(['train', 'pendulum', ...tiny(dir, ...flags)]);
      await until(() => output.stdout.split('\n').length >= 5, 'rows', 5);
      child.kill(signal);
      const { code, stderr, stdout } = await done;
      expect(code).toBe(signal === 'SIGINT' ? 130 : 143);
      expect(stderr).toMatch(/^stopping after this update.*again to quit at once\n$/);
      const end = jsonLines(stdout).at(-1);
      expect(end).toMatchObject({ kind: 'end', status: 'stopped' });
      const run = openRun(end.dir);
      expect(run).toMatchObject({ status: 'stopped', manifest: { step: end.step } });
      // A few more updates, the same as in a run that was never stopped.
      const steps = String(end.step + 128);
      const resumed = await keel(['resume', 'last', '--steps', steps, '--run-dir', dir]);
      expect(resumed).toMatchObject({ code: 0, stderr: '' });
      expect(resumed.stdout).toContain(`from step ${end.step.toLocaleString('en')} of`);
      await keel(['train', 'pendulum', ...tiny(calm, ...rare, '--steps', steps)]);
      expect(readTrajectory(end.dir).rows).toEqual(readTrajectory(join(calm, idOf(calm))).rows);
      // What makes a checkpoint the best looks back over the stop.
      const [score, calmScore] = [end.dir, join(calm, idOf(calm))].map(
        run => listCheckpoints(run).at(-1)?.index?.score,
      );
      expect(score).toBe(calmScore);
    },
  );

  test.each([0, 1])('a second Ctrl-C quits at once, with %i workers', async workers => {
    const dir = scratch();
    const mark = join(scratch(), 'slow');
    const { child, done, output } = startKeel(
      [
        'train',
        fixture('slowing-env.ts'),
        ...tiny(dir, '--set', 'steps=1e6', '--set', `workers=${workers}`, '--json'),
      ],
      { env: { SLOWING_MARK: mark } },
    );
    // Two updates in an instant, with checkpoints; the third would take minutes, and has begun.
    await until(() => existsSync(mark), 'the third update');
    child.kill('SIGINT');
    await until(() => output.stderr.includes('again to quit at once'), 'it says what a second one does');
    child.kill('SIGINT');
    const { code, signal } = await done;
    // In the middle of an update, after which it would end with a code; a shell calls this 130.
    expect({ code, signal }).toEqual({ code: null, signal: 'SIGINT' });
    const run = openRun(join(dir, idOf(dir)));
    expect(run.status).toBe('killed');
    expect(listCheckpoints(run.dir).map(({ step, problem }) => [step, problem])).toEqual([
      [64, undefined],
      [128, undefined],
    ]);
    expect(checkpointProblem(run.dir, 128)).toBeUndefined();
    const evaluated = await keel(['eval', run.dir, '--checkpoint', 'last', '-n', '1']);
    expect(evaluated).toMatchObject({ code: 0, stderr: '' });
  });
});

describe('resume', () => {
  test('more steps for a finished run; without them it says so', async () => {
    const dir = scratch();
    await keel(['train', 'cartpole', ...tiny(dir)]);
    const finished = await keel(['resume', '--run-dir', dir]);
    expect(finished.code).toBe(2);
    expect(finished.stderr).toMatch(
      /^keel: .* has done its 128 steps: keel resume .* --steps 256 goes on\n$/,
    );
    const more = await keel(['resume', 'last', '--steps', '192', '--set', 'epochs=2', '--run-dir', dir]);
    expect(more).toMatchObject({ code: 0, stderr: '' });
    const run = openRun(join(dir, idOf(dir)));
    expect(run).toMatchObject({
      status: 'finished',
      manifest: { step: 192, config: { epochs: 2 }, resumes: 1 },
    });
    expect(readRows(run.dir).items).toHaveLength(3);

    const back = await keel(['resume', '--from', '128', '--run-dir', dir, '--steps', '256']);
    expect(back.code).toBe(2);
    expect(back.stderr).toMatch(/would delete the later checkpoint 192 .*--discard-later/);
    const scale = await keel(['resume', '--steps', '256', '--set', 'rewardScale=0.1', '--run-dir', dir]);
    expect(scale.code).toBe(2);
    expect(scale.stderr).toMatch(/^keel: --set rewardScale was 1 and would be 0\.1: .*--rescale-critic.*\n$/);
    const rescaled = await keel([
      'resume',
      '--steps',
      '256',
      '--set',
      'rewardScale=0.1',
      '--rescale-critic',
      '--run-dir',
      dir,
    ]);
    expect(rescaled).toMatchObject({ code: 0, stderr: '' });
    expect(rescaled.stdout).toMatch(/^ +192 {2}critic rescaled by 0\.1: rewardScale 1 to 0\.1$/m);
    const again = await keel(['resume', '--steps', '320', '--rescale-critic', '--run-dir', dir]);
    expect(again.code).toBe(2);
    expect(again.stderr).toMatch(
      /^keel: rewardScale was 0\.1 and stays 0\.1, so there is nothing to rescale: .*--rescale-critic.*\n$/,
    );
    expect(readEvents(run.dir).items.filter(({ type }) => type === 'resumed')).toHaveLength(2);
  });
});

describe('the first line after a resume', () => {
  test('has the return that was known before, until an episode ends', async () => {
    const dir = scratch();
    // 32 steps an update: episodes of 60 end in the second, and none in the third.
    const length = ['--set', 'envOptions.maxEpisodeSteps=60'];
    const trained = await keel(['train', 'pendulum', ...tiny(dir, ...length)]);
    const [, known] = /100% .* return (\S+) /.exec(trained.stdout)!;
    expect(Number(known)).toBeLessThan(0);
    const resumed = await keel(['resume', '--steps', '192', '--run-dir', dir]);
    expect(resumed).toMatchObject({ code: 0, stderr: '' });
    expect(readRows(join(dir, idOf(dir))).items[2]).not.toHaveProperty('episode/return');
    expect(/100% .* return (\S+) /.exec(resumed.stdout)![1]).toBe(known);
  });
});

describe('eval and export', () => {
  test('eval gives mean and std over the episodes, the same for the same seed', async () => {
    const [text, a, b, sampled] = await Promise.all([
      keel(['eval', 'last', '--episodes', '6', '--run-dir', runs]),
      keel(['eval', 'last', '--episodes', '6', '--json', '--run-dir', runs]),
      keel(['eval', 'last', '--episodes', '6', '--json', '--run-dir', runs]),
      keel([
        'eval',
        'last',
        '--episodes',
        '6',
        '--json',
        '--sampled',
        '--seed',
        '4',
        '--checkpoint',
        'last',
        '--run-dir',
        runs,
      ]),
    ]);
    expect(a).toMatchObject({ code: 0, stderr: '' });
    expect(a.stdout).toBe(b.stdout);
    const result = JSON.parse(a.stdout);
    const { returns, mean, std } = result as { returns: number[]; mean: number; std: number };
    expect(returns).toHaveLength(6);
    const [, , third, fourth] = [...returns].sort((x, y) => x - y);
    expect(result.median).toBeCloseTo((third + fourth) / 2, 9);
    expect(mean).toBeCloseTo(returns.reduce((x, y) => x + y) / 6, 9);
    expect(std).toBeCloseTo(Math.sqrt(returns.reduce((sum, x) => sum + (x - mean) ** 2, 0) / 6), 9);
    const error = Math.sqrt(returns.reduce((sum, x) => sum + (x - mean) ** 2, 0) / 5 / 6);
    expect(result.standardError).toBeCloseTo(error, 9);
    expect(text.stdout).toMatch(/^ {2}most likely actions, seed 10000$/m);
    expect(text.stdout).toMatch(/^ {4}return [\d.]+ ± [\d.]+ \(standard error\) over 6 episodes$/m);
    // The other way of acting is told where it differs, and that it agrees where it does not.
    expect(result.other).toMatchObject({ sampled: true, episodes: 6 });
    const combined = Math.hypot(result.standardError, result.other.standardError);
    expect(result.differ).toBe(Math.abs(mean - result.other.mean) > combined);
    expect(text.stdout).toMatch(/^ {2}actions drawn as in training(, seed 10000| agree: [\d.]+ ± [\d.]+)$/m);
    for (const line of text.stdout.split('\n')) expect(line.length).toBeLessThanOrEqual(80);
    expect(JSON.parse(sampled.stdout)).not.toHaveProperty('other');
    expect(JSON.parse(sampled.stdout)).toMatchObject({ sampled: true, seed: 4, checkpoint: 128 });
  });

  test('export writes a policy that plain ONNX Runtime runs', async () => {
    const file = join(scratch(), 'p.onnx');
    const { code, stdout } = await keel([
      'export',
      'last',
      '-o',
      file,
      '--checkpoint',
      'last',
      '--run-dir',
      runs,
    ]);
    expect(code).toBe(0);
    expect(stdout.replace(/\s+/g, ' ')).toMatch(
      /: checkpoint 128 \((the best, )?the last\), mean return [\d.]+ when it was saved \S*p\.onnx [\d,]+ bytes in observation \(rows, 4\) out action \(rows, 1\), distribution \(rows, 2\)/,
    );
    const session = await InferenceSession.create(file);
    const { action } = await session.run({ observation: new Tensor('float32', new Float32Array(4), [1, 4]) });
    expect([0, 1]).toContain(action.data[0]);
    const many = await session.run({ observation: new Tensor('float32', new Float32Array(12), [3, 4]) });
    expect([...(many.action.data as Float32Array)]).toEqual(Array(3).fill(action.data[0]));
    // The run's own is of the last checkpoint, too.
    expect(readFileSync(file).equals(readFileSync(join(runs, idOf(runs), 'policy.onnx')))).toBe(true);
  });
});

describe('which checkpoint', () => {
  test('eval and export take the same one and say which', async () => {
    const [cwd, dir] = [scratch(), scratch()];
    await keel(['train', 'cartpole', ...tiny(dir, '--set', 'steps=320', '--set', 'keepEvery=1')]);
    const run = join(dir, idOf(dir));
    const checkpoints = listCheckpoints(run);
    const best = checkpoints.find(({ isBest }) => isBest)!;
    // Highest of all, and what was logged: one row is what this run looks back over.
    const returns = readRows(run).items.map(row => row['episode/return']);
    expect(best.index?.score).toBe(Math.max(...returns));
    const both = (...flags: string[]) =>
      Promise.all(
        [
          ['eval', run, '-n', '1'],
          ['export', run],
        ].map(async args => {
          const { code, stdout, stderr } = await keel([...args, ...flags], { cwd });
          expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
          return stdout
            .replace(/\s+/g, ' ')
            .match(/: checkpoint ([\d,]+) (?:\((.*?)\))?/)!
            .slice(1);
        }),
      );
    const named = (step: number, ...more: string[]) => {
      const { isBest, isLast } = checkpoints.find(info => info.step === step)!;
      const names = [...(isBest ? ['the best'] : []), ...(isLast ? ['the last'] : []), ...more];
      return [String(step), names.join(', ')];
    };
    for (const [flags, expected] of [
      [[], named(best.step)],
      [['--checkpoint', 'best'], named(best.step)],
      [['--checkpoint', 'last'], named(320)],
      [['--checkpoint', '128'], named(128, 'as asked')],
    ] as const)
      expect(await both(...flags)).toEqual([expected, expected]);
  });
});

describe('runs', () => {
  test('list, show, compare, delete', async () => {
    const dir = scratch();
    expect((await keel(['runs', '--run-dir', dir])).stdout).toMatch(
      /^no runs in \S+; this\s+starts\s+one:\n {2}keel train cartpole\n$/,
    );
    await Promise.all(
      [0, 1].map(seed =>
        keel(['train', 'cartpole', ...tiny(dir, '--seed', String(seed), '--set', `epochs=${seed + 1}`)]),
      ),
    );
    const ids = readdirSync(dir);
    const [list, json, show, compare, refused] = await Promise.all([
      keel(['runs', '--run-dir', dir]),
      keel(['runs', 'list', '--json', '--run-dir', dir]),
      keel(['runs', 'show', ids[0], '--run-dir', dir]),
      keel(['runs', 'compare', ...ids, '--run-dir', dir]),
      keel(['runs', 'delete', ids[0], '--run-dir', dir]),
    ]);
    for (const id of ids) expect(list.stdout).toContain(id);
    for (const line of list.stdout.split('\n')) expect(line.length).toBeLessThanOrEqual(80);
    expect(JSON.parse(json.stdout).runs).toHaveLength(2);
    expect(show.stdout).toMatch(
      /finished[\s\S]*environment +CartPole-v1[\s\S]*128 of 128[\s\S]*kl\/step[\s\S]*checkpoints[\s\S]*hidden +\[8\]/,
    );
    expect(compare.stdout).toMatch(/settings that differ +A +B\n/);
    expect(compare.stdout).toMatch(/\nepochs +[12] +[12]\n/);
    expect(compare.stdout).toMatch(/\nepisode\/return +[\d.]+ +[\d.]+\n/);
    expect(compare.stdout).not.toMatch(/\nhidden/);
    expect(refused).toMatchObject({ code: 2, stderr: `keel: deleting ${ids[0]} needs a yes: add --yes\n` });
    expect(await keel(['runs', 'delete', ids[0], '--yes', '--run-dir', dir])).toMatchObject({ code: 0 });
    expect(readdirSync(dir)).toEqual([ids[1]]);
  });

  test('verify says what is wrong, with exit code 1; what was never made whole is listed and deleted', async () => {
    const dir = scratch();
    await keel(['train', 'cartpole', ...tiny(dir)]);
    const run = join(dir, idOf(dir));
    const whole = await keel(['runs', 'verify', '--run-dir', dir]);
    expect(whole).toMatchObject({ code: 0, stderr: '' });
    expect(whole.stdout).toMatch(/^cartpole-\S+ {2}whole: 2 rows, \d+ events, 2 checkpoints\n$/);
    const csv = join(run, 'metrics.csv');
    writeFileSync(csv, readFileSync(csv, 'utf8').replace('\n1,64,', '\n1,63,'));
    const wrong = await keel(['runs', 'verify', 'last', '--run-dir', dir]);
    expect(wrong.code).toBe(1);
    expect(wrong.stdout).toMatch(/1 problem: 2 rows/);
    expect(wrong.stdout.replace(/\s+/g, ' ')).toContain(
      'metrics.csv, line 2, train/step: "63", expected "64"',
    );
    const half = 'cartpole-20260115-103000-seed1-k3f9';
    mkdirSync(join(dir, half));
    const json = await keel(['runs', 'verify', '--json', '--run-dir', dir]);
    expect(json.code).toBe(1);
    expect(JSON.parse(json.stdout)).toMatchObject({
      runs: [{ rows: 2, problems: [{ file: 'metrics.csv', place: 'line 2, train/step' }] }],
      broken: [{ dir: join(dir, half) }],
    });
    const list = await keel(['runs', '--run-dir', dir]);
    expect(list.stderr.replace(/\s+/g, ' ')).toContain(
      `is half made: its process ended before anything was trained`,
    );
    expect(await keel(['runs', 'rm', 'k3f9', '--yes', '--run-dir', dir])).toMatchObject({ code: 0 });
    expect(readdirSync(dir)).toEqual([basename(run)]);
  });
});

describe('envs, check-env, preflight, config, help', () => {
  test('envs lists descriptions, spaces and limits', async () => {
    const { code, stdout } = await keel(['envs']);
    expect(code).toBe(0);
    expect(stdout).toMatch(
      /^CartPole-v1 {2}\w.*\n {2}observations Box\(4 .*\)\n {2}actions {6}Discrete\(2\)\n {2}episodes {5}at most 500 steps, solved at 475\n/,
    );
    for (const id of [
      'Pendulum-v1',
      'Acrobot-v1',
      'MountainCarContinuous-v0',
      'Courier-v0',
      'Ant-v5',
      'Humanoid-v5',
    ])
      expect(stdout).toContain(id);
  });

  test('check-env passes and fails', async () => {
    const [good, bad] = await Promise.all([
      keel(['check-env', 'cartpole']),
      keel(['check-env', `${fixture('broken-env.ts')}#NanEnv-v0`, '--json']),
    ]);
    expect(good.code).toBe(0);
    expect(good.stdout).toMatch(/^CartPole-v1: passed/);
    expect(bad.code).toBe(1);
    expect(JSON.parse(bad.stdout)).toMatchObject({ id: 'NanEnv-v0', passed: false });
  });

  test.each(['cartpole', 'pendulum', 'courier'])('preflight %s: every part works', async env => {
    const { code, stdout, stderr } = await keel(['preflight', env]);
    expect({ code, stderr }, stdout).toEqual({ code: 0, stderr: '' });
    const parts = [...stdout.matchAll(/^ {2}✓ (\w+) +\d+\.\d\d s/gm)].map(match => match[1]);
    expect(parts).toEqual([...preflightParts]);
    expect(stdout).toMatch(new RegExp(`^all parts work, [\\d.]+ s\n {2}train {2}keel train ${env}\n`, 'm'));
    // With what was measured.
    const text = stdout.replaceAll(/\s+/g, ' ');
    const measured = (pattern: RegExp): number[] => text.match(pattern)!.slice(1).map(Number);
    const [ratio, kl] = measured(/ratio is off 1 by ([\d.e+-]+) and the KL is ([\d.e+-]+)/);
    expect(ratio).toBeLessThan(1e-4);
    expect(Math.abs(kl)).toBeLessThan(1e-6);
    for (const value of measured(/loss of the policy (\S+), of the value (\S+); gradient norm (\S+) /))
      expect(value).not.toBeNaN();
    expect(text).toMatch(/checkpoint 192: [\d,]+ bytes in 3 files/);
    expect(text).toMatch(/policy\.safetensors [\d,]+ bytes, .*state\.json [\d,]+ bytes; checksums agree/);
  });

  test('preflight names the part that fails and the remedy', async () => {
    const { code, stdout, stderr } = await keel(['preflight', `${fixture('broken-env.ts')}#NanEnv-v0`]);
    expect(code).toBe(1);
    expect(stdout).toMatch(/✗ spaces/);
    expect(stdout).toMatch(/· export +not reached/);
    expect(stderr).toMatch(/^keel: NanEnv-v0: spaces failed: .*NaN.*\n$/);
  });

  test('config prints a file that train takes', async () => {
    const file = join(scratch(), 'c.yaml');
    const { stdout } = await keel(['config', 'cartpole', '--set', 'epochs=2']);
    expect(stdout).toMatch(/# Passes over each rollout\. Default 10\.\nepochs: 2\n/);
    writeFileSync(file, stdout);
    const again = await keel(['config', '-c', file]);
    expect(again).toMatchObject({ code: 0, stderr: '' });
    expect(again.stdout).toBe(stdout);
    const schema = JSON.parse((await keel(['config', '--schema'])).stdout);
    expect(schema.properties).toMatchObject({ learningRate: { type: 'number' }, env: { type: 'string' } });
  });

  test.each(settingTables.map(table => [table.name, table] as const))(
    'the command that errors name lists the keys of %s',
    async (_, { keys, listedBy }) => {
      const args = listedBy!.replace('<task>', 'arithmetic').split(' ');
      const { stdout } = await keel([...args, '--json']);
      const { task: __, taskOptions: ___, ...listed } = JSON.parse(stdout);
      expect(Object.keys(listed)).toEqual(Object.keys(keys));
    },
  );

  test('help and version', async () => {
    const [bare, help, version, ...commands] = await Promise.all([
      keel([]),
      keel(['--help']),
      keel(['--version']),
      ...['train', 'resume', 'eval', 'export', 'runs', 'envs', 'check-env', 'preflight', 'config'].map(name =>
        keel([name, '--help']),
      ),
    ]);
    expect(bare).toMatchObject({ code: 0, stdout: help.stdout });
    expect(version.stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
    for (const { code, stdout } of commands) {
      expect(code).toBe(0);
      expect(stdout).toMatch(/Examples:\n {2}\$ keel /);
    }
  });

  test('colours on request, and never with NO_COLOR or --no-color', async () => {
    const [forced, no, flag] = await Promise.all([
      keel(['envs'], { env: { FORCE_COLOR: '1' } }),
      keel(['envs'], { env: { FORCE_COLOR: '1', NO_COLOR: '1' } }),
      keel(['envs', '--no-color'], { env: { FORCE_COLOR: '1' } }),
    ]);
    expect(forced.stdout).toContain('\u001b[1m');
    expect(no.stdout + flag.stdout).not.toContain('\u001b');
  });
});
