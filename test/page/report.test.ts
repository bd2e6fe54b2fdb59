/** The page of `keel report`, from a file and without a server, in a real browser. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { renderReport } from '../../src/report/page.ts';
import { seedRun } from '../report/made.ts';
import {
  accessibilityFaults,
  type Browser,
  closePage,
  keepPicture,
  launch,
  openPage,
  zoomFaults,
} from './support/browser.ts';

let browser: Browser;
let folder: string;
beforeAll(async () => {
  [browser, folder] = await Promise.all([launch(), mkdtemp(join(tmpdir(), 'keel-report-'))]);
});
afterAll(async () => {
  await browser?.close();
  await rm(folder, { recursive: true, force: true });
});

async function opened(page: string, options: Parameters<typeof openPage>[2] = {}) {
  const file = join(folder, 'report.html');
  await writeFile(file, page);
  return openPage(browser, pathToFileURL(file).href, options);
}

const attack = '</script><script>document.title="taken"</script><img src=x onerror="document.title=1">';

test('seeds are one line, each can be shown alone, and a drag zooms into all plots', async () => {
  const page = await opened(renderReport([seedRun(0), seedRun(1), seedRun(2, { rate: '0.01' })]));
  const kl = page.locator('figure[data-metric="kl/step"]');
  await kl.locator('.series').first().waitFor({ state: 'attached' });
  expect(await kl.locator('.series').count()).toBe(2);
  // What one seed did in one row of 4,000 is drawn up to, at full strength.
  expect((await kl.locator('.peaks').last().boundingBox())!.height).toBeGreaterThan(50);
  await page.getByLabel(/seeds as one line/).uncheck();
  expect(await kl.locator('.series').count()).toBe(3);
  await page.locator('#legend input').first().uncheck();
  expect(await kl.locator('.series').count()).toBe(2);

  const picture = kl.locator('svg');
  const before = await picture.locator('.axis').textContent();
  const { x, y, width, height } = (await picture.boundingBox())!;
  await page.mouse.move(x + width * 0.4, y + height / 2);
  expect(await kl.locator('.readout').textContent()).toMatch(/runs\/|seed-\d at [\d,]+: /);
  await page.mouse.down();
  await page.mouse.move(x + width * 0.6, y + height / 2, { steps: 4 });
  await page.mouse.up();
  expect(await picture.locator('.axis').textContent()).not.toBe(before);
  await page.locator('#reset').click();
  expect(await picture.locator('.axis').textContent()).toBe(before);
  await keepPicture(page, 'report');
  await closePage(page);
});

test('an axis is switched between linear and log, and a finding zooms to where it was seen', async () => {
  const page = await opened(renderReport([seedRun(0)]));
  const kl = page.locator('figure[data-metric="kl/step"]');
  await kl.locator('.series').first().waitFor({ state: 'attached' });
  const axis = () => kl.locator('.axis').textContent();
  const before = await axis();
  await kl.getByRole('button').click();
  expect(await axis()).not.toBe(before);
  const whole = await axis();
  await page.locator('#findings button').first().click();
  expect(await axis()).not.toBe(whole);
  expect(await page.locator('#reset').isVisible()).toBe(true);
  await closePage(page);
});

test('with the room of a window the controls stay in sight, and at 200 % they cover nothing', async () => {
  const page = await opened(renderReport([seedRun(0), seedRun(1), seedRun(2, { rate: '0.01' })]), {
    height: 800,
    bypassCSP: true,
  });
  const controls = page.locator('#controls');
  await page.locator('.series').first().waitFor({ state: 'attached' });
  const scrollTo = (place: string) =>
    page.evaluate(`document.querySelector('${place}').scrollIntoView({ block: 'start' })`);
  await scrollTo('#plots');
  expect((await controls.boundingBox())!.y).toBe(0);
  // Back with the keyboard: what has the focus is below the controls, not under them.
  await page.evaluate("[...document.querySelectorAll('#plots button')].at(-1).focus()");
  await scrollTo('#plots + *, article');
  await page.keyboard.press('Shift+Tab');
  const { y, height } = (await controls.boundingBox())!;
  const focused = await page.evaluate<number>('document.activeElement.getBoundingClientRect().top');
  expect(focused).toBeGreaterThanOrEqual(y + height);
  expect(await zoomFaults(page)).toEqual([]);
  await page.setViewportSize({ width: 640, height: 400 });
  await scrollTo('#plots figure:last-child');
  expect((await controls.boundingBox())!.y).toBeLessThan(0);
  await closePage(page);
});

test('names of a log run nothing, in the dark too, and everyone can use the page', async () => {
  const page = await opened(renderReport([seedRun(0, { text: attack }), seedRun(1, { text: attack })]), {
    colorScheme: 'dark',
    width: 420,
    bypassCSP: true,
  });
  await page.locator('.series').first().waitFor({ state: 'attached' });
  expect(await page.title()).toBe('Keel report: 2 runs');
  expect(await page.locator('img').count()).toBe(0);
  expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true);
  expect(await accessibilityFaults(page)).toEqual([]);
  expect(await zoomFaults(page)).toEqual([]);
  await closePage(page);
});
