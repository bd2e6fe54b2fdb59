/** Bad input: one line on stderr that says what and what to do, the right exit code, and nothing saved is lost. */
import {
  chmodSync,
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { listCheckpoints, openRun, readRows } from '../../src/runs/index.ts';
import { until } from '../support/until.ts';
import { fixture, keel, scratch, startKeel, tiny } from './support/keel.ts';

const theRun = (dir: string): string => join(dir, readdirSync(dir)[0]);

/** Nothing on stdout, these lines on stderr. */
async function refuses(args: readonly string[], code: number, ...lines: RegExp[]): Promise<void> {
  const outcome = await keel(args);
  const got = outcome.stderr.trimEnd().split('\n');
  expect(got, outcome.stderr).toHaveLength(lines.length);
  lines.forEach((line, i) => {
    expect(got[i]).toMatch(line);
  });
  expect(outcome).toMatchObject({ code, stdout: '' });
}

describe('the command line', () => {
  test.each<[string[], RegExp]>([
    [['trian'], /^keel: unknown command 'trian' \(Did you mean train\?\)$/],
    [['train'], /^keel: train needs an environment, such as keel train cartpole: keel envs lists them$/],
    [['train', 'cartpole', '--step', '5'], /^keel: unknown option '--step' \(Did you mean --steps\?\)$/],
    [
      ['train', 'cartpole', '--steps', 'many'],
      /^keel: option '--steps <n>' argument 'many' is invalid\. many is not a whole number/,
    ],
    [['train', 'cartpole', '--set', 'epochs'], /^keel: --set epochs has no value: write --set key=value$/],
    ...['train', 'preflight'].map((verb): [string[], RegExp] => [
      [verb, 'cartpole', '--engine', 'x'],
      /^keel: --engine is an option of text tasks such as chess, CartPole-v1 has no such option: remove it$/,
    ]),
    [
      ['eval', 'arithmetic', '--engine', 'x'],
      /^keel: --engine is .* arithmetic has no such option: remove it$/,
    ],
    [['eval'], /^keel: missing required argument 'run', as in keel eval last$/],
    [
      ['runs', 'compare', 'last'],
      /^keel: missing required argument 'others', as in keel runs compare k3f9 m2xw$/,
    ],
    [['sweep'], /^keel: missing required argument 'what', as in keel sweep cartpole --trials 20$/],
    [['help', 'trian'], /^keel: unknown command 'trian' \(Did you mean train\?\)$/],
    [['train', 'ches'], /^keel: environment "ches" is unknown: did you mean chess\?/],
    [['envs', 'nonsense'], /is unknown: there are CartPole-v1, .*, chess, arithmetic, format /],
    [
      ['clone', 'cartpole'],
      /CartPole-v1 has no demonstrators to clone: there are some for keel clone cluster /,
    ],
    [
      ['train', 'arachne', '--set', 'targetSpeed=1'],
      /^keel: --set targetSpeed is an option of Arachne-v0, not a setting: write envOptions\.targetSpeed$/,
    ],
    [['train', 'robot.urdf'], /^keel: .*robot\.urdf: a URDF model, .* physicsEnv \(.*docs\/robots\.md\)/],
    [
      ['check-env', 'examples/own-task.ts'],
      /^keel: .*own-task\.ts is a text task, which keel preflight .*own-task\.ts tries/,
    ],
    [
      ['runs', 'bogus'],
      /^keel: there is no command bogus: list, show, compare, verify, delete; keel runs show bogus/,
    ],
    [
      ['runs', 'bogus', '--json'],
      /^keel: there is no command bogus: list, show, compare, verify, delete; keel runs show bogus/,
    ],
    [['runs', 'list', 'bogus'], /^keel: list takes no bogus; keel runs show bogus/],
  ])('keel %j is wrong use', (args, message) => refuses(args, 2, message));
});

describe('settings', () => {
  const file = (text: string): string => {
    const path = join(scratch(), 'c.yaml');
    writeFileSync(path, text);
    return path;
  };
  test.each<[string, string[], RegExp[]]>([
    [
      'a wrong type',
      ['-c', file('learningRate: fast\n')],
      [/^keel: .*c\.yaml: learningRate is "fast", not a number: without this learningRate is 0\.001$/],
    ],
    [
      'two problems',
      ['--set', 'gama=1', '--set', 'epochs=no'],
      [
        /^keel: --set gama is not a config key: did you mean gamma\?$/,
        /^keel: --set epochs is "no", not a number: without this epochs is 20$/,
      ],
    ],
    [
      "another trainer's name",
      ['--set', 'lr=3'],
      [/^keel: --set lr is not a config key: did you mean learningRate\?$/],
    ],
    [
      'an inert key',
      ['--set', 'targetKlFactor=2'],
      [/^keel: --set targetKlFactor has no effect without targetKl: add that, or remove targetKlFactor$/],
    ],
    [
      'keys that do nothing for discrete actions',
      ['--set', 'noiseCorrelation=0.5', '-c', file('logStdMin: 0\nlogStdInitial: 1\nlogStdMax: 2\n')],
      [
        /^keel: .*c\.yaml: logStdInitial has no effect on the actions Discrete\(2\): only continuous actions have a std; remove logStdInitial$/,
        /^keel: .*c\.yaml: logStdMin has no effect on the actions Discrete\(2\)/,
        /^keel: --set noiseCorrelation has no effect on the actions Discrete\(2\): .*; remove noiseCorrelation$/,
      ],
    ],
    [
      'a bound that is lost in rounding',
      ['--set', 'guard=1e-8'],
      [
        /^keel: --set guard is 1e-8, below its least value 0\.000001 \(single precision .*\): without this guard is 0\.03$/,
      ],
    ],
    [
      'a wrong type in the file that a flag overrules',
      ['-c', file('steps: abc\n'), '--steps', '512'],
      [/^keel: .*c\.yaml: steps is "abc", not a number: the default is 100000$/],
    ],
    [
      'a wrong type in the file that --set overrules',
      ['-c', file('epochs: 0\n'), '--set', 'epochs=3'],
      [/^keel: .*c\.yaml: epochs is 0, below its least value 1: the default is 10$/],
    ],
    [
      'a minibatch that does not divide',
      ['--set', 'minibatchSize=96', '--set', 'stepsPerRollout=64'],
      [/minibatchSize 96 does not divide 512 .*: try 64 or 128$/],
    ],
    ['broken YAML', ['-c', file('a: [1\n')], [/^keel: .*c\.yaml:\d+:\d+ is not YAML: /]],
    [
      'a missing file',
      ['-c', '/nowhere/c.yaml'],
      [/^keel: \/nowhere\/c\.yaml cannot be read: there is no such file: check the path/],
    ],
    [
      'a device that does not exist',
      ['--device', 'gpu'],
      [/^keel: --device is "gpu", not one of cpu, webgpu, cuda: the default is "cpu"$/],
    ],
  ])('%s', async (_, flags, lines) => {
    const dir = join(scratch(), 'runs');
    await refuses(['train', 'cartpole', ...flags, '--run-dir', dir], 2, ...lines);
    expect(existsSync(dir)).toBe(false);
  });
});

test('preflight refuses settings as train does, before any part is tried', () =>
  refuses(
    ['preflight', 'cartpole', '--set', 'noiseCorrelation=0.5'],
    2,
    /^keel: --set noiseCorrelation has no effect on the actions Discrete\(2\): .*; remove noiseCorrelation$/,
  ));

describe('environments', () => {
  test('an unknown one, with the nearest', () =>
    refuses(['train', 'cartpoel'], 2, /^keel: environment "cartpoel" is unknown: did you mean CartPole/));

  test('an option that it does not have', () =>
    refuses(
      ['train', 'pendulum', '--set', 'envOptions.gravitas=9', ...tiny(scratch())],
      2,
      /^keel: .*gravitas.*gravity/,
    ));

  test.each([
    ['NaN', 'NanEnv-v0', /^keel: environment \d of 2 \(NanEnv-v0, seed \d+, step 21\).*NaN/],
    ['a wrong shape', 'ShapeEnv-v0', /^keel: environment \d of 2 \(ShapeEnv-v0, seed \d+, step 21\).*3/],
  ])('one that returns %s', async (_, id, message) => {
    const dir = scratch();
    const outcome = await keel(['train', `${fixture('broken-env.ts')}#${id}`, ...tiny(dir)]);
    expect(outcome.code).toBe(1);
    expect(outcome.stderr).toMatch(message);
    expect(outcome.stderr.trimEnd().split('\n')).toHaveLength(1);
    // It has not done its first iteration: there is nothing to keep.
    expect(readdirSync(dir).filter(name => !name.startsWith('.'))).toEqual([]);
  });

  test('a file that is not there', () =>
    refuses(['train', './nothing-here.ts'], 2, /^keel: .*nothing-here\.ts: there is no such file/));
});

describe('runs', () => {
  test.skipIf(process.platform === 'win32')('a directory that cannot be written', async () => {
    const dir = scratch();
    let place = join(dir, 'runs');
    // Root may write everywhere but here.
    if (process.getuid?.() === 0) place = '/sys/keel-runs';
    else chmodSync(dir, 0o555);
    await refuses(
      ['train', 'cartpole', ...tiny(place)],
      1,
      new RegExp(`^keel: .*${place}.*(EACCES|ENOENT|EROFS|EPERM|permission|writ|creat)`),
    );
  });

  // Node's own way to make directories never comes back from there.
  test.skipIf(!existsSync('/proc/self'))('a directory where there can be none', () =>
    refuses(
      ['train', 'cartpole', ...tiny('/proc/x')],
      1,
      /^keel: cannot create \/proc\/x: .*choose another run directory.* \(\w+\)$/,
    ),
  );

  test('no such checkpoint', async () => {
    const dir = scratch();
    await keel(['train', 'cartpole', ...tiny(dir)]);
    for (const command of ['eval', 'export'])
      await refuses(
        [command, 'last', '--checkpoint', '77', '--run-dir', dir],
        2,
        /^keel: there is no checkpoint 77 in .*: use one of 64, 128$/,
      );
  });

  test('checkpoints that are gone: nothing is lost, and what to do is said', async () => {
    const dir = scratch();
    await keel(['train', 'cartpole', ...tiny(dir)]);
    const run = theRun(dir);
    rmSync(join(run, 'checkpoints'), { recursive: true });
    await refuses(
      ['resume', 'last', '--steps', '256', '--run-dir', dir],
      2,
      /^keel: .* has done 128 steps, but its checkpoints are gone: .*train anew; .* \(discardLater, --discard-later\)$/,
    );
    expect(readRows(run).items).toHaveLength(2);
    expect(openRun(run).status).toBe('finished');
    const again = await keel(['resume', '--steps', '256', '--discard-later', '--run-dir', dir]);
    expect(again).toMatchObject({ code: 0, stderr: '' });
    expect(again.stdout).toMatch(/^CartPole-v1 again from the beginning, because there is no checkpoint/);
    expect(readRows(run).items).toHaveLength(4);
  });

  test('a damaged manifest', async () => {
    const dir = scratch();
    await keel(['train', 'cartpole', ...tiny(dir)]);
    const run = theRun(dir);
    writeFileSync(join(run, 'manifest.json'), '{"kind": "keel-run"');
    const named = /^keel: .*manifest\.json is damaged: .*; put a whole copy of it back, or delete/;
    for (const args of [
      ['resume', 'last'],
      ['runs', 'show', basename(run)],
      ['eval', 'cart'],
    ])
      await refuses([...args, '--run-dir', dir], 1, named);
    expect(readRows(run).items).toHaveLength(2);
  });

  test('a run of another version', async () => {
    const dir = scratch();
    await keel(['train', 'cartpole', ...tiny(dir)]);
    const path = join(theRun(dir), 'manifest.json');
    const manifest = JSON.parse(readFileSync(path, 'utf8'));
    manifest.config.turboMode = true;
    writeFileSync(path, JSON.stringify(manifest));
    await refuses(
      ['eval', 'last', '--run-dir', dir],
      1,
      /^keel: cartpole-.* was written by another version of Keel \(0\.1\.0\): turboMode is not a config key; use that version, or train again$/,
    );
  });

  test('a policy that cannot be written', async () => {
    const dir = scratch();
    await keel(['train', 'cartpole', ...tiny(dir)]);
    await refuses(
      ['export', 'last', '-o', '/nowhere/p.onnx', '--run-dir', dir],
      1,
      /^keel: cannot write \/nowhere\/p\.onnx: it does not exist: check the path \(ENOENT\)$/,
    );
  });

  test('no such run', () =>
    refuses(
      ['eval', 'nothing', '--run-dir', scratch()],
      2,
      /^keel: there is no run "nothing" in .*: `keel runs` lists/,
    ));

  test('a damaged checkpoint names its file and the whole one before it', async () => {
    const dir = scratch();
    await keel(['train', 'cartpole', ...tiny(dir)]);
    const run = theRun(dir);
    const weights = join(run, 'checkpoints/128/policy.safetensors');
    const before = readFileSync(weights);
    const flipped = Buffer.from(before);
    flipped[flipped.length - 1] ^= 1;
    writeFileSync(weights, flipped);
    const named =
      /^keel: .*checkpoints\/128\/policy\.safetensors .*the one before it is whole: use checkpoint 64$/;
    await refuses(['resume', '--steps', '256', '--run-dir', dir], 1, named);
    truncateSync(weights, 100);
    await refuses(['resume', '--steps', '256', '--run-dir', dir], 1, named);
    await refuses(['eval', 'last', '--checkpoint', 'last', '--run-dir', dir], 1, named);
    expect(readRows(run).items).toHaveLength(2);
    expect(listCheckpoints(run).map(({ step }) => step)).toEqual([64, 128]);
    // And its advice works.
    const evaluated = await keel(['eval', 'last', '--checkpoint', '64', '-n', '1', '--run-dir', dir]);
    expect(evaluated).toMatchObject({ code: 0, stderr: '' });
    const resumed = await keel(['resume', '--from', '64', '--steps', '192', '--run-dir', dir]);
    expect(resumed).toMatchObject({ code: 0, stderr: '' });
    expect(readRows(run).items).toHaveLength(3);
  });

  test('two processes for one run', async () => {
    const dir = scratch();
    const first = startKeel(['train', 'pendulum', ...tiny(dir, '--set', 'steps=1e6', '--json')]);
    await until(() => first.output.stdout.split('\n').length >= 4, 'rows');
    const status = JSON.parse((await keel(['runs', '--json', '--run-dir', dir])).stdout).runs[0].status;
    expect(status).toBe('running');
    await refuses(
      ['resume', '--run-dir', dir],
      1,
      new RegExp(
        `^keel: .* is being written by process ${first.child.pid} since .*: wait for it or stop it first$`,
      ),
    );
    await refuses(['runs', 'delete', 'last', '--yes', '--run-dir', dir], 1, /is being written by process/);
    first.child.kill('SIGINT');
    expect((await first.done).code).toBe(130);
    expect(openRun(theRun(dir)).status).toBe('stopped');
  });

  test('what cannot change on resuming', async () => {
    const dir = scratch();
    await keel(['train', 'cartpole', ...tiny(dir)]);
    await refuses(
      ['resume', '--steps', '256', '--set', 'hidden=[4]', '--run-dir', dir],
      2,
      /^keel: --set hidden is \[8\] in this run and cannot become \[4\] on resuming: start a new run$/,
    );
    await refuses(
      ['resume', '--steps', '256', '--set', 'lerningRate=1', '--run-dir', dir],
      2,
      /^keel: --set lerningRate is not a config key: did you mean learningRate\?$/,
    );
  });
});

test('KEEL_DEBUG=1 shows where it was thrown, and nothing else does', async () => {
  const { stderr } = await keel(['train', 'cartpoel'], { env: { KEEL_DEBUG: '1' } });
  expect(stderr).toMatch(/\n {4}at /);
});
