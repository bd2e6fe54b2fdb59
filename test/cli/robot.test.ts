/** Seeing a robot from the command line: record, render, play. */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { listReplays } from '../../src/runs/index.ts';
import { until } from '../server/support/client.ts';
import { decodeGif, decodePng } from '../view/support/decode.ts';
import { keel, scratch, startKeel, tiny } from './support/keel.ts';

const runs = scratch();
const here = scratch();
let run: string;
let runDir: string;

beforeAll(async () => {
  const { code, stderr } = await keel([
    'train',
    'arachne',
    '--no-dash',
    ...tiny(runs, '--set', 'record=false'),
  ]);
  expect([code, stderr]).toEqual([0, '']);
  run = readdirSync(runs)[0];
  runDir = join(runs, run);
  expect(existsSync(join(runDir, 'replays'))).toBe(false);
});

const inHere = (...args: string[]) => keel([...args, '--run-dir', runs], { cwd: here });

test('record plays episodes with a checkpoint, and says where they are', async () => {
  const { code, stdout } = await inHere('record', 'Arachne-v0', '-n', '2', '--checkpoint', 'last', '--json');
  expect(code).toBe(0);
  const { replays } = JSON.parse(stdout) as { replays: { name: string; return: number }[] };
  expect(replays.map(({ name }) => name)).toEqual(['128', '128-1']);
  expect(listReplays(runDir).map(({ name }) => name)).toEqual(['128', '128-1']);
  expect(listReplays(runDir)[0].episodeReturn).toBeCloseTo(replays[0].return, 6);
});

test('render writes a GIF, a picture and pictures', async () => {
  const size = ['--size', '64x48'];
  const gif = await inHere('render', 'last', '-o', 'walk.gif', '--fps', '10', '--speed', '4', ...size);
  expect([gif.code, gif.stderr]).toEqual([0, '']);
  const { pictures, delays } = decodeGif(readFileSync(join(here, 'walk.gif')));
  expect(pictures[0]).toMatchObject({ width: 64, height: 48 });
  expect(new Set(delays)).toEqual(new Set([10]));
  const png = await inHere(
    'render',
    join(runDir, 'replays', '128.replay'),
    '-o',
    'one.png',
    '--at',
    '0',
    ...size,
  );
  expect(png.code).toBe(0);
  const { pixels } = decodePng(readFileSync(join(here, 'one.png')));
  // A robot, a floor and a sky: not one colour.
  expect(new Set(pixels).size).toBeGreaterThan(40);
  // The environment names its newest run.
  const many = await inHere('render', 'Arachne-v0', '-o', 'frames/', '--fps', '2', ...size);
  expect(many.code).toBe(0);
  expect(readdirSync(join(here, 'frames')).every(name => /^\d{5}\.png$/.test(name))).toBe(true);
});

test('what cannot be rendered is said in a line', async () => {
  const cases: [string[], RegExp][] = [
    [['render', 'last', '-o', 'walk.avi'], /--out walk\.avi: end it with \.gif/],
    [['render', 'last', '-o', 'walk.gif', '--at', '1'], /--at is for a single picture/],
    [['render', 'last', '--size', '1x1'], /1x1 is not a size/],
    [['render', 'last', '--fps', '0'], /0 is not a number in 1\.\.60/],
    [['render', 'no-such-run'], /no-such-run/],
    [['record', 'last', '-n', '0'], /--episodes 0 is not in 1\.\.50/],
  ];
  writeFileSync(join(here, 'bad.replay'), 'x');
  for (const [args, message] of cases) {
    const { code, stderr } = await inHere(...args);
    expect([code, stderr.trim().split('\n').length], args.join(' ')).toEqual([2, 1]);
    expect(stderr).toMatch(message);
  }
  const bad = await inHere('render', 'bad.replay');
  expect(bad).toMatchObject({ code: 1 });
  expect(bad.stderr).toMatch(/bad\.replay is damaged/);
  const video = await keel(['render', 'last', '-o', 'walk.mp4', '--run-dir', runs], {
    cwd: here,
    env: { PATH: here },
  });
  expect(video.code).toBe(2);
  expect(video.stderr).toMatch(/needs ffmpeg, which is not installed: install it, or write a \.gif/);
});

test('play records the checkpoint that is named, and opens the page at the robot', async () => {
  const { child, done, output } = startKeel(
    ['play', run, '--checkpoint', 'last', '--run-dir', runs, '--port', '0'],
    { env: { DISPLAY: '', WAYLAND_DISPLAY: '' } },
  );
  await until(() => /#\/runs\/[\w-]+\/robot/.test(output.stdout), 'the address of the robot');
  expect(output.stderr).toMatch(/recorded an episode of checkpoint 128/);
  child.kill('SIGINT');
  expect((await done).code).toBe(0);
});

test('an environment without a body says so', async () => {
  const poles = scratch();
  expect((await keel(['train', 'cartpole', '--no-dash', ...tiny(poles)])).code).toBe(0);
  expect(existsSync(join(poles, readdirSync(poles)[0], 'replays'))).toBe(false);
  const { code, stderr } = await keel(['record', 'last', '--run-dir', poles]);
  expect(code).toBe(1);
  expect(stderr).toMatch(/CartPole-v1 cannot be drawn/);
});
