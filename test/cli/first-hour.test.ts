/** What a new user meets first: a game of their own with a board, what there is to train in, and starts that fail. */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { doctorExitCodes, exitCodes } from '../../src/cli/exit-codes.ts';
import { listReplays } from '../../src/runs/index.ts';
import { loadReplay, replayPath } from '../../src/runs/replays.ts';
import { decodeGif, decodePng } from '../view/support/decode.ts';
import { keel, root, scratch, tiny } from './support/keel.ts';

const runs = scratch();
const here = scratch();
const inHere = (...args: string[]) => keel([...args, '--run-dir', runs], { cwd: here });

beforeAll(async () => {
  const snake = join(root, 'examples/snake.ts');
  const { code, stderr } = await keel(['train', snake, '--no-dash', ...tiny(runs)]);
  expect([code, stderr]).toEqual([0, '']);
});

test('a game that draws itself is recorded while it trains, and rendered without its code', async () => {
  const [id] = readdirSync(runs);
  const [first] = listReplays(join(runs, id));
  expect(first.drawn).toBe(true);
  const { drawings, frames } = loadReplay(replayPath(join(runs, id), first.name));
  expect(drawings).toHaveLength(frames);
  expect(drawings![0].shapes[1]).toMatchObject({ kind: 'text', text: 'length 3' });
  const png = await inHere('render', 'last', '--out', 'start.png', '--at', '0', '--size', '80x90');
  expect([png.code, png.stderr]).toEqual([0, '']);
  const { pixels } = decodePng(readFileSync(join(here, 'start.png')));
  const at = (column: number, row: number): number[] => {
    const pixel = 3 * ((row * 10 + 5) * 80 + column * 10 + 5);
    return [...pixels.subarray(pixel, pixel + 3)];
  };
  // The head is in cell 27 of 8 by 8, the body left of it, nothing above.
  expect([at(3, 3), at(2, 3), at(3, 2)]).toEqual([
    [47, 111, 219],
    [45, 164, 78],
    [238, 241, 244],
  ]);
  const gif = await inHere('render', 'last', '--out', 'game.gif', '--fps', '5', '--size', '80x90');
  expect(gif.code).toBe(0);
  expect(decodeGif(readFileSync(join(here, 'game.gif'))).pictures[0]).toMatchObject({
    width: 80,
    height: 90,
  });
});

test('envs shows one environment, a file or a text task with all that can be set and is logged', async () => {
  const hopper = await keel(['envs', 'arachne']);
  expect(hopper.code).toBe(0);
  for (const part of [
    /observations +Box/,
    /actions +Box/,
    /at most \d+ steps/,
    /reward\/part\/\w+/,
    /env\/\w+/,
    /options\n/,
    /targetSpeed +[\d.]+ .*: /,
    /--set envOptions\./,
  ])
    expect(hopper.stdout).toMatch(part);
  for (const line of hopper.stdout.split('\n')) expect(line.length).toBeLessThanOrEqual(80);
  const own = await keel(['envs', join(root, 'examples/snake.ts'), '--json']);
  expect(JSON.parse(own.stdout)).toMatchObject({
    id: 'Snake-v0',
    maxEpisodeSteps: 400,
    drawn: true,
    logs: expect.arrayContaining(['env/length']),
  });
  const task = await keel(['envs', 'arithmetic']);
  expect(task.stdout).toMatch(/digits +\d+ .*: [\s\S]*train arithmetic --from last/);
  expect(await keel(['envs', 'arachnee'])).toMatchObject({
    code: exitCodes.wrongUse,
    stderr: expect.stringContaining('did you mean Arachne?'),
  });
});

test('the robot of the documentation keeps the contract, and can be seen', async () => {
  const docs = readFileSync(join(root, 'docs/robots.md'), 'utf8');
  const [, source] = /## A robot of your own\n[^`]*```ts\n([\s\S]*?)```/.exec(
    docs.replaceAll('`keel/envs`', 'keel/envs').replaceAll('`toXml`', 'toXml'),
  )!;
  writeFileSync(join(here, 'spin.ts'), source);
  const checked = await keel(['check-env', './spin.ts', '--steps', '200'], { cwd: here });
  expect([checked.code, checked.stderr]).toEqual([0, '']);
  expect((await keel(['envs', './spin.ts'], { cwd: here })).stdout).toMatch(/seen with .*play last/);
});

test('probes are found by their names, and offered to nobody', async () => {
  expect((await keel(['envs'])).stdout).not.toContain('Probe');
  expect((await keel(['envs', '--all'])).stdout).toContain('ProbeAction-v0');
  const unknown = await keel(['train', 'qqqqqqqqqqq']);
  expect(unknown.stderr).toMatch(/there are CartPole-v1/);
  expect(unknown.stderr).not.toContain('Probe');
  expect((await keel(['check-env', 'probeaction'])).code).toBe(0);
});

test('a start that fails leaves no run', async () => {
  const source = `import { box, defineEnv, discrete, simulation } from 'keel';
export default defineEnv({ id: 'Bad-v0', description: 'Bad.', maxEpisodeSteps: 5, make: () => simulation({
  observationSpace: box({ shape: [1], low: -1, high: 1 }), actionSpace: discrete(2),
  start: () => ({ x: 0 }), observe: () => [0], step() { throw new Error('no step'); },
}) });
`;
  writeFileSync(join(here, 'bad.ts'), source);
  const empty = scratch();
  const { code, stderr } = await keel(['train', './bad.ts', '--no-dash', ...tiny(empty)], { cwd: here });
  expect([code, stderr.trim().split('\n').length]).toEqual([exitCodes.failed, 1]);
  expect(stderr).toContain('no step');
  expect(existsSync(empty) ? readdirSync(empty).filter(name => !name.startsWith('.')) : []).toEqual([]);
});

test('export, as render, writes to --out; its older spelling still does', async () => {
  for (const flag of ['--out', '-o', '--output']) {
    const name = `policy${flag}.onnx`;
    expect((await inHere('export', 'last', flag, name)).code).toBe(0);
    expect(existsSync(join(here, name))).toBe(true);
  }
  const help = (await keel(['export', '--help'])).stdout;
  expect(help).toContain('--out <file>');
  expect(help).not.toContain('--output');
});

test('docs/exit-codes.md has every code, and no other', () => {
  const sorted = (codes: object) => Object.values(codes as Record<string, number>).sort((a, b) => a - b);
  const documented = readFileSync(join(root, 'docs/exit-codes.md'), 'utf8').split('| code | `keel doctor` |');
  const codesIn = (text: string) => [...text.matchAll(/^\| (\d+) \|/gm)].map(([, code]) => Number(code));
  expect(codesIn(documented[0])).toEqual(sorted(exitCodes));
  expect(codesIn(documented[1])).toEqual(sorted(doctorExitCodes));
});
