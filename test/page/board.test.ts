/** A replay that is drawn in two dimensions, in a real browser, over a real server. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { saveReplay } from '../../src/runs/index.ts';
import type { RunningServer } from '../../src/server/serve.ts';
import { serve } from '../server/support/client.ts';
import { makeRun, scratch } from '../server/support/make-run.ts';
import { patienceMs } from '../support/until.ts';
import { boardReplay } from '../view/support/board-replay.ts';
import { decodePng } from '../view/support/decode.ts';
import {
  accessibilityFaults,
  type Browser,
  closePage,
  keepPicture,
  launch,
  openPage,
  zoomFaults,
} from './support/browser.ts';
import { builtPage } from './support/built-page.ts';
import { eventually } from './support/eventually.ts';

let browser: Browser;
let server: RunningServer;
let address: string;

beforeAll(async () => {
  const root = scratch();
  const run = makeRun(root, 'board', 4);
  saveReplay(run.dir, boardReplay(100));
  server = await serve({
    roots: [root],
    port: 0,
    page: await builtPage(),
    stateDirectory: scratch(),
    pollMs: 100,
  });
  await server.index.searched(patienceMs);
  const found = server.index.list().runs.find(({ name }) => name === 'board')!;
  expect(found.drawn).toBe(true);
  address = `${server.url}#/runs/${found.id}/robot`;
  browser = await launch();
});
afterAll(async () => {
  await browser?.close();
  await server?.close();
});

test('each frame is drawn as it is, and what is of robots alone is not there', async () => {
  const page = await openPage(browser, address, { width: 900, height: 700 });
  await page.waitForSelector('canvas[aria-label^="What the environment draws"]');
  expect(await page.locator('nav[aria-label="Parts of the run"]').textContent()).toContain('Replay');
  expect(await page.getByRole('button', { name: 'Follow' }).count()).toBe(0);
  const readouts = await page.locator('aside[aria-label="Read-outs"]').textContent();
  expect(readouts).toContain('Return so far');
  expect(readouts).not.toContain('m/s');
  expect(readouts).not.toContain('NaN');
  const coloured = async () => {
    const { pixels } = decodePng(
      await page.locator('canvas[aria-label^="What the environment draws"]').screenshot(),
    );
    let [red, blue] = [0, 0];
    for (let i = 0; i < pixels.length; i += 3) {
      if (pixels[i] > 180 && pixels[i + 1] < 90 && pixels[i + 2] < 90) red++;
      if (pixels[i + 2] > 180 && pixels[i] < 90) blue++;
    }
    return { red, blue };
  };
  // First a red disc, then a blue square of the same width: 4 to pi. It waits to be played where less motion is asked for.
  await eventually(async () => (await coloured()).red > 1000).toBe(true);
  const { red } = await coloured();
  for (let i = 0; i < 2; i++) await page.keyboard.press('.');
  await eventually(async () => (await coloured()).red).toBe(0);
  const { blue } = await coloured();
  expect(blue / red).toBeGreaterThan(1.2);
  expect(blue / red).toBeLessThan(1.35);
  expect(await accessibilityFaults(page)).toEqual([]);
  expect(await zoomFaults(page)).toEqual([]);
  await keepPicture(page, 'board');
  await closePage(page);
});
