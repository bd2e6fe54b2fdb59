/** A replay that is drawn in two dimensions, in a real browser, over a real server. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { saveReplay } from '../../src/runs/index.ts';
import type { RunningServer } from '../../src/server/serve.ts';
import { serve } from '../server/support/client.ts';
import { makeRun, scratch } from '../server/support/make-run.ts';
import { patienceMs } from '../support/until.ts';
import { boardReplay } from '../view/support/board-replay.ts';
import { decodePng } from '../view/support/decode.ts';
import { pictureReplay } from '../view/support/picture-replay.ts';
import {
  accessibilityFaults,
  type Browser,
  closePage,
  keepPicture,
  launch,
  openPage,
  type Page,
  zoomFaults,
} from './support/browser.ts';
import { builtPage } from './support/built-page.ts';
import { eventually } from './support/eventually.ts';

let browser: Browser;
let server: RunningServer;
const addresses: Record<string, string> = {};

beforeAll(async () => {
  const root = scratch();
  saveReplay(makeRun(root, 'board', 4).dir, boardReplay(100));
  saveReplay(makeRun(root, 'pictures', 4).dir, pictureReplay(100));
  server = await serve({
    roots: [root],
    port: 0,
    page: await builtPage(),
    stateDirectory: scratch(),
    pollMs: 100,
  });
  await server.index.searched(patienceMs);
  for (const { name, id, drawn } of server.index.list().runs) {
    expect(drawn).toBe(true);
    addresses[name] = `${server.url}#/runs/${id}/robot`;
  }
  browser = await launch();
});
afterAll(async () => {
  await browser?.close();
  await server?.close();
});

const shown = 'canvas[aria-label^="What the environment draws"]';

/** How many pixels of the picture are of each colour. */
async function coloured(page: Page): Promise<Record<'red' | 'green' | 'blue', number>> {
  const { pixels } = decodePng(await page.locator(shown).screenshot());
  const found = { red: 0, green: 0, blue: 0 };
  for (let i = 0; i < pixels.length; i += 3) {
    const [red, green, blue] = [0, 1, 2].map(k => pixels[i + k] > 180);
    const others = Math.min(pixels[i], pixels[i + 1], pixels[i + 2]) < 90;
    if (red && !green && !blue && others) found.red++;
    if (green && !red && !blue && others) found.green++;
    if (blue && !red && !green && others) found.blue++;
  }
  return found;
}

test('each frame is drawn as it is, and what is of robots alone is not there', async () => {
  const page = await openPage(browser, addresses.board, { width: 900, height: 700 });
  await page.waitForSelector(shown);
  expect(await page.locator('nav[aria-label="Parts of the run"]').textContent()).toContain('Replay');
  expect(await page.getByRole('button', { name: 'Follow' }).count()).toBe(0);
  const readouts = await page.locator('aside[aria-label="Read-outs"]').textContent();
  expect(readouts).toContain('Return so far');
  expect(readouts).not.toContain('m/s');
  expect(readouts).not.toContain('NaN');
  // First a red disc, then a blue square of the same width: 4 to pi. It waits to be played where less motion is asked for.
  await eventually(async () => (await coloured(page)).red > 1000).toBe(true);
  const { red } = await coloured(page);
  for (let i = 0; i < 2; i++) await page.keyboard.press('.');
  await eventually(async () => (await coloured(page)).red).toBe(0);
  const { blue } = await coloured(page);
  expect(blue / red).toBeGreaterThan(1.2);
  expect(blue / red).toBeLessThan(1.35);
  expect(await accessibilityFaults(page)).toEqual([]);
  expect(await zoomFaults(page)).toEqual([]);
  await keepPicture(page, 'board');
  await closePage(page);
});

test('pictures that the environment gave are shown, each for as many frames as it stands for', async () => {
  const page = await openPage(browser, addresses.pictures, { width: 900, height: 700 });
  await page.waitForSelector(shown);
  const most = async () => {
    const found = Object.entries(await coloured(page));
    const [name, count] = found.reduce((a, b) => (b[1] > a[1] ? b : a));
    return count > 1000 ? name : 'none';
  };
  await eventually(most).toBe('red');
  // 30 x 20 fits the height: two thirds of it wide.
  const box = (await page.locator(shown).boundingBox())!;
  const { red } = await coloured(page);
  expect(red / (box.height * box.height * 1.5)).toBeGreaterThan(0.95);
  expect(red / (box.height * box.height * 1.5)).toBeLessThan(1.05);
  for (const wanted of ['red', 'green', 'green', 'blue']) {
    await page.keyboard.press('.');
    await eventually(most).toBe(wanted);
  }
  expect(await page.locator('aside[aria-label="Read-outs"]').textContent()).not.toContain('m/s');
  await closePage(page);
});
