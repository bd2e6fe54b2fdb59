/** What an environment in Python shows of itself: in replays while it is trained, which the page plays, and in films. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import type { TrainEvent } from '../../../src/algos/events.ts';
import { train } from '../../../src/algos/runs.ts';
import { listReplays, loadReplay, replayPath } from '../../../src/runs/index.ts';
import { decodePng } from '../../../src/view/images/png.ts';
import { pictureAt } from '../../../src/view/pictures.ts';
import { keel } from '../../cli/support/keel.ts';
import { decodeGif } from '../../view/support/decode.ts';
import { python, pythonFile } from './support/files.ts';

const root = mkdtempSync(join(tmpdir(), 'keel-pictures-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

async function trained(name: string, args = '{}'): Promise<{ dir: string; events: TrainEvent[] }> {
  const events: TrainEvent[] = [];
  const { dir } = await train({
    env: `${pythonFile('walker.py')}:${name}`,
    envOptions: { python, args },
    config: { envs: 2, stepsPerRollout: 64, minibatchSize: 64, epochs: 1, steps: 128, hidden: [8] },
    preset: {},
    root,
    onEvent: event => events.push(event),
  });
  return { dir, events };
}

/** The column that is red. */
function columnOf(pixels: Uint8Array, width: number): number {
  for (let x = 0; x < width; x++) if (pixels[3 * x] > 200) return x;
  return -1;
}

test('a training records them: each picture is of its frame, and a film is of the same', async () => {
  const { dir } = await trained('Walker', '{"size": 12}');
  const [found] = listReplays(dir);
  expect(found).toMatchObject({
    drawn: true,
    frames: 13,
    frameSeconds: 0.1,
    environment: 'py:walker.Walker-v0',
  });
  const { pictures, actions, rewards } = loadReplay(replayPath(dir, found.name));
  expect(pictures).toMatchObject({ width: 32, height: 24, every: 1 });
  expect(actions.length).toBe(13);
  const columns = Array.from({ length: 13 }, (_, frame) =>
    columnOf(decodePng(pictureAt(pictures!, frame), 32, 24, 'it'), 32),
  );
  // The reward is 1 - |x|, the red column at int(16 + x).
  for (let frame = 1; frame < 13; frame++) {
    const x = 1 - rewards[frame];
    expect([Math.trunc(16 + x), Math.trunc(16 - x)]).toContain(columns[frame]);
  }

  const out = join(root, 'walk.gif');
  const { code, stderr } = await keel(['render', dir, '--out', out, '--fps', '10']);
  expect([code, stderr]).toEqual([0, expect.not.stringContaining('recorded')]);
  const film = decodeGif(readFileSync(out)).pictures;
  expect(film.map(({ width, height }) => [width, height])).toEqual(Array(13).fill([32, 24]));
  expect(film.map(({ pixels }) => columnOf(pixels, 32))).toEqual(columns);

  const refused = await keel(['render', dir, '--out', out, '--size', '80x60']);
  expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining('draws itself')]);
}, 60_000);

test('one that has no pictures is trained as ever, and says why it cannot be drawn', async () => {
  const { dir, events } = await trained('Blind');
  expect(listReplays(dir)).toEqual([]);
  expect(events.filter(({ type }) => type === 'note')).toEqual([]);
  const { code, stderr } = await keel(['render', dir]);
  expect([code, stderr]).toEqual([1, expect.stringContaining('its render_modes have no rgb_array')]);
}, 60_000);

test('pictures that fail cost no more than themselves', async () => {
  const { dir, events } = await trained('Torn');
  expect(listReplays(dir)).toEqual([]);
  expect(JSON.stringify(events)).toContain('recording stopped');
}, 60_000);
