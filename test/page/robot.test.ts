/** The robot on the page, in a real browser that draws 3D in software, over a real server. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { saveReplay } from '../../src/runs/index.ts';
import type { RunningServer } from '../../src/server/serve.ts';
import { serve } from '../server/support/client.ts';
import { makeRun, scratch } from '../server/support/make-run.ts';
import { patienceMs } from '../support/until.ts';
import { decodePng } from '../view/support/decode.ts';
import { ballReplay } from '../view/support/replay.ts';
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
let runDir: string;
let address: string;

beforeAll(async () => {
  const root = scratch();
  const run = makeRun(root, 'robot', 4);
  runDir = run.dir;
  saveReplay(runDir, ballReplay({ step: 100, episodeReturn: 5 }));
  saveReplay(runDir, ballReplay({ step: 200, episodeReturn: 8 }));
  makeRun(root, 'plain', 4);
  server = await serve({
    roots: [root],
    port: 0,
    page: await builtPage(),
    stateDirectory: scratch(),
    pollMs: 100,
  });
  await server.index.searched(patienceMs);
  const found = server.index.list().runs.find(({ name }) => name === 'robot')!;
  address = `${server.url}#/runs/${found.id}/robot`;
  browser = await launch({ webgl: 'software' });
});
afterAll(async () => {
  await browser?.close();
  await server?.close();
});

const chosen = "document.querySelector('select[aria-label=Replay]').value";

/** Drawing in software takes its time with the size. */
const small = { width: 700, height: 600 };

test('it is drawn: a red ball and a blue box, on both grounds', async () => {
  const page = await openPage(browser, address, small);
  await page.waitForSelector('.view canvas');
  const seen = async (): Promise<string> => {
    const { pixels } = decodePng(await page.locator('.view').screenshot());
    let [red, blue, sum] = [0, 0, 0];
    for (let i = 0; i < pixels.length; i += 3) {
      const [r, g, b] = [pixels[i], pixels[i + 1], pixels[i + 2]];
      if (r > 90 && r > 2 * g && r > 2 * b) red++;
      if (b > 90 && b > 2 * r && b > 1.5 * g) blue++;
      sum += g;
    }
    const ground = (3 * sum) / pixels.length > 128 ? 'light' : 'dark';
    return `${red > 800 ? 'ball' : 'nothing'}, ${blue > 100 ? 'box' : 'nothing'}, ${ground}`;
  };
  await eventually(seen).toBe('ball, box, light');
  expect(await accessibilityFaults(page)).toEqual([]);
  expect(await zoomFaults(page)).toEqual([]);
  await keepPicture(page, 'robot-light');
  await page.keyboard.press('t');
  await eventually(seen).toBe('ball, box, dark');
  await closePage(page);
});

test('read-outs, keys, the replay that is chosen, and a new one that comes live', async () => {
  const page = await openPage(browser, address, small);
  await page.waitForSelector('.view canvas');
  await eventually(() => page.evaluate(chosen)).toBe('200');
  const readouts = page.getByRole('complementary', { name: 'Read-outs' });
  expect(await readouts.textContent()).toMatch(/Speed\s*2\.00\s*m\/s/);
  // Reduced motion: it waits to be played. A frame is .05 s.
  for (let i = 0; i < 4; i++) await page.keyboard.press('.');
  await eventually(() => readouts.textContent()).toMatch(/Return so far\s*4\.000/);
  expect(await readouts.textContent()).toMatch(/forward\s*1\.500/);
  await page.keyboard.press(',');
  await eventually(() => readouts.textContent()).toMatch(/Distance\s*0\.30/);
  await page.keyboard.press('>');
  expect(await page.getByRole('button', { name: '2×' }).getAttribute('aria-pressed')).toBe('true');
  await page.keyboard.press('Space');
  await page.getByRole('button', { name: 'Pause' }).click();
  await page.keyboard.press('f');
  expect(await page.getByRole('button', { name: 'Follow' }).getAttribute('aria-pressed')).toBe('false');
  // Live: a new one is shown when it comes.
  saveReplay(runDir, ballReplay({ step: 300, episodeReturn: 9 }));
  await eventually(() => page.evaluate(chosen)).toBe('300');
  // One that is chosen stays.
  await page.keyboard.press('[');
  await eventually(() => page.evaluate(chosen)).toBe('200');
  expect(await page.getByRole('button', { name: 'Live', exact: true }).getAttribute('aria-pressed')).toBe(
    'false',
  );
  await closePage(page);
});

test('when training has ended, the trained robot plays; on other tabs it is a click away', async () => {
  const root = scratch();
  const { writer, dir } = makeRun(root, 'ending', 4);
  saveReplay(dir, ballReplay({ step: 100, episodeReturn: 5 }));
  const own = await serve({ roots: [root], port: 0, page: await builtPage(), pollMs: 100 });
  await own.index.searched(patienceMs);
  const [{ id }] = own.index.list().runs;
  const [watching, elsewhere] = [
    await openPage(browser, `${own.url}#/runs/${id}/robot`, small),
    await openPage(browser, `${own.url}#/runs/${id}`, small),
  ];
  await watching.waitForSelector('.hud >> text=live');
  await watching.getByRole('button', { name: 'Play', exact: true }).click();
  await elsewhere.waitForSelector('text=running');
  expect(await elsewhere.getByRole('link', { name: 'See the robot' }).count()).toBe(0);
  saveReplay(dir, ballReplay({ step: 200, episodeReturn: 8 }));
  writer.end('finished');
  // What is being played is played to its end, and then the last one, again and again.
  await watching.waitForSelector('.hud >> text=trained, 200 steps');
  expect(await watching.locator('.hud').textContent()).not.toContain('live');
  await watching.waitForSelector('.facts >> text=finished');
  const place = () =>
    watching.evaluate<number>(
      'document.querySelector(\'[aria-label="Place in the episode"]\').valueAsNumber',
    );
  const rises = async () => (await place()) > 0.2;
  await eventually(rises).toBe(true);
  await eventually(async () => (await place()) < 0.2).toBe(true);
  await eventually(rises).toBe(true);
  expect(await watching.evaluate(chosen)).toBe('200');
  // Nobody is taken away from what they look at.
  await elsewhere.getByRole('link', { name: 'See the robot' }).waitFor();
  expect(new URL(elsewhere.url()).hash).toBe(`#/runs/${id}`);
  await elsewhere.getByRole('link', { name: 'See the robot' }).click();
  await elsewhere.waitForSelector('.hud >> text=trained, 200 steps');
  for (const page of [watching, elsewhere]) await closePage(page);
  await own.close();
});

test('only runs with something to see have the tab; a phone has room for it', async () => {
  const page = await openPage(browser, address, { width: 360, height: 740, colorScheme: 'dark' });
  await page.waitForSelector('.view canvas');
  expect(
    await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth'),
  ).toBe(0);
  expect(await accessibilityFaults(page)).toEqual([]);
  await keepPicture(page, 'robot-phone');
  const plain = server.index.list().runs.find(({ name }) => name === 'plain')!;
  await page.goto(`${server.url}#/runs/${plain.id}`);
  await page.waitForSelector('nav[aria-label="Parts of the run"] >> text=Doctor');
  expect(await page.locator('nav[aria-label="Parts of the run"]').textContent()).not.toContain('Robot');
  await page.goto(`${server.url}#/runs/${plain.id}/robot`);
  await page.waitForSelector('text=No episode was recorded yet');
  await closePage(page);
});

describe('without WebGL', () => {
  test('it says so and what to do, and the figures are there', async () => {
    const poor = await launch({ webgl: 'none' });
    const page = await openPage(poor, address);
    await page.waitForSelector('text=This browser shows no 3D');
    expect(await page.locator('.problem code').textContent()).toContain(' render ');
    expect(await page.getByRole('complementary', { name: 'Read-outs' }).textContent()).toMatch(/Speed/);
    await page.context().close();
    await poor.close();
  });
});
