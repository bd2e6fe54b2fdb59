/** Seeds as one row and one line, lineage, pins, filters, failures: what the page says can be relied on, in a real browser. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  accessibilityFaults,
  type Browser,
  closePage,
  keepPicture,
  launch,
  openPage,
  waitForPlots,
} from './support/browser.ts';
import { builtPage } from './support/built-page.ts';
import { eventually } from './support/eventually.ts';
import { fakeRun } from './support/fake-runs.ts';
import { type FakeServer, startFakeServer } from './support/fake-server.ts';
import { gallery, seedGallery } from './support/gallery.ts';

let browser: Browser;
let server: FakeServer;
let site: string;
beforeAll(async () => {
  site = await builtPage();
  [browser, server] = await Promise.all([launch(), startFakeServer(site, seedGallery())]);
});
afterAll(async () => {
  await browser?.close();
  await server?.close();
});

describe('runs that differ only in their seed', () => {
  test('are one row, which unfolds, is selected as one and compared as one line', async () => {
    const page = await openPage(browser, server.url);
    const slow = page.locator('[data-group=slow]');
    await slow.waitFor();
    expect(await page.locator('[data-run=slow1]').count()).toBe(0);
    const text = (await slow.textContent())!.replace(/\s+/g, ' ');
    expect(text).toContain('hopper-lr-0.0003 5');
    expect(text).toContain('seeds 0, 1, 2, 3, 4');
    expect(text).toContain('watch 1 of 5');
    expect(text).toContain('1 failed');
    // The middle and how far apart they are; on demand what chance may have done.
    await slow.locator('.return').hover();
    await page.waitForSelector('[role=tooltip] >> text=/interquartile mean of 5 runs/');
    await slow.getByRole('button').click();
    await page.waitForSelector('[data-run=slow4]');
    expect(await accessibilityFaults(page)).toEqual([]);
    await keepPicture(page, 'seeds-overview');
    await page.getByLabel('Select the 5 runs of hopper-lr-0.0003').check();
    await page.getByLabel('Select the 3 runs of hopper-lr-0.001').check();
    await page.getByRole('button', { name: 'Compare 8' }).click();
    await waitForPlots(page, 4);
    await eventually(() => page.locator('.legend li').count()).toBe(2);
    const box = (await page.locator('.plot-host .u-over').first().boundingBox())!;
    const at = async (share: number) => {
      await page.mouse.move(box.x + box.width * share, box.y + box.height / 2);
      return page.locator('.plot table').first().textContent();
    };
    await eventually(() => at(0.3)).toMatch(/hopper-lr-0\.0003\s*[\d.]+\s*[\d.]+ to [\d.]+\s*n 5/);
    // After the end of one of them fewer are told.
    await eventually(() => at(0.9)).toMatch(/n 4 of 5/);
    // A spike of one run is not lost in an average of five: the log axis comes by itself, and the worst is named.
    await page.waitForSelector('.caption .log');
    await eventually(async () => {
      for (let share = 0.48; share < 0.53; share += 0.003) {
        await at(share);
        const said = await page.locator('.caption').first().textContent();
        if (/worst: critical 0\.9/.test(said ?? '')) return true;
      }
      return false;
    }).toBe(true);
    expect(await accessibilityFaults(page)).toEqual([]);
    await keepPicture(page, 'seeds-compare');
    await page.getByLabel('Group by').selectOption({ label: 'nothing: each run' });
    await eventually(() => page.locator('.legend li').count()).toBe(8);
    await closePage(page);
  });

  test('a run of another trainer beside them: its settings do not differ, and are said to be unknown', async () => {
    const page = await openPage(browser, `${server.url}#/compare?runs=slow0,slow1,fast0,fast1,sb3`);
    await page.waitForSelector('text=The log of PPO_7 does not tell any settings.');
    await eventually(() => page.locator('section tbody th').allTextContents()).toEqual(['learningRate']);
    await closePage(page);
  });
});

describe('the overview', () => {
  test('filters by verdict and settings, and a range is selected with Shift', async () => {
    const page = await openPage(browser, `${server.url}#/?flat=1&sort=name`);
    await page.waitForSelector('[data-run=slow1]');
    await page.getByLabel('Filter by verdict').selectOption('sick');
    await eventually(() => page.locator('[data-run]').count()).toBe(3);
    await page.getByLabel('Filter by verdict').selectOption('');
    await page.getByLabel('Search runs and settings').fill('learningRate=0.001');
    await eventually(() => page.locator('[data-run]').count()).toBe(3);
    await page.getByLabel('Search runs and settings').fill('');
    await page.getByLabel('Select hopper-lr-0.0003-seed-0', { exact: true }).click();
    await page.getByLabel('Select hopper-lr-0.0003-seed-3', { exact: true }).click({ modifiers: ['Shift'] });
    await page.getByRole('button', { name: 'Compare 4' }).waitFor();
    await closePage(page);
  });

  test('2,000 runs: only the rows near the window are drawn, and any can be reached', async () => {
    const many = await startFakeServer(
      site,
      Array.from({ length: 2000 }, (_, i) => fakeRun({ id: `r${i}`, name: `run-${i}`, seed: i, rows: 30 })),
    );
    const page = await openPage(browser, `${many.url}#/?sort=name`);
    await page.waitForSelector('[data-run=r0]');
    expect(await page.locator('[data-run]').count()).toBeLessThan(120);
    expect(await page.getAttribute('table', 'aria-rowcount')).toBe('2001');
    await page.evaluate('scrollTo(0, document.documentElement.scrollHeight)');
    await page.waitForSelector('[data-run=r1999]');
    expect(await page.getAttribute('[data-run=r1999]', 'aria-rowindex')).toBe('2001');
    await page.evaluate('scrollTo(0, 0)');
    await page.waitForSelector('[data-run=r0]');
    for (const key of ['j', 'j', 'j']) await page.keyboard.press(key);
    await eventually(() => page.evaluate('document.activeElement.closest("tr").dataset.run')).toBe('r2');
    await closePage(page);
    await many.close();
  });
});

describe('a run', () => {
  test('its child and its parent are links, and its seeds are compared at a click', async () => {
    const page = await openPage(browser, `${server.url}#/runs/fast0?smooth=0.5&x=iteration`);
    await page.getByRole('link', { name: 'hopper-lr-0.001-seed-0-fixed' }).first().click();
    await page.waitForSelector('h1:has-text("hopper-lr-0.001-seed-0-fixed")');
    // How plots are drawn goes along.
    expect(page.url()).toMatch(/child\?x=iteration&smooth=0\.5$/);
    await page.getByRole('link', { name: 'hopper-lr-0.001-seed-0' }).first().click();
    await page.getByRole('link', { name: '3 seeds' }).click();
    await page.waitForSelector('h1:has-text("Compare")');
    expect(page.url()).toContain('runs=fast0,fast1,fast2');
    await closePage(page);
  });

  test('that led to several with long names lets choose among them, within its strip', async () => {
    const name = 'cartpole-20260105-080000-with-a-name-that-is-much-longer-than-its-place';
    const family = [
      fakeRun({ id: 'origin', name, health: 'sick' }),
      ...[1, 2].map(i => fakeRun({ id: `child${i}`, name: `${name}-${i}`, parent: 'origin', seed: i })),
    ];
    const many = await startFakeServer(site, family);
    for (const width of [1280, 390]) {
      const page = await openPage(browser, `${many.url}#/runs/origin`, { width, colorScheme: 'dark' });
      const picker = page.getByLabel('Child that is shown');
      const edges = [picker, page.locator('.lineage .child'), page.locator('.lineage')].map(part =>
        part.first().boundingBox(),
      );
      const [select, child, strip] = (await Promise.all(edges)).map(box => box!.x + box!.width);
      expect(Math.max(select, child)).toBeLessThanOrEqual(strip);
      expect(await accessibilityFaults(page)).toEqual([]);
      await picker.selectOption({ index: 1 });
      await eventually(() => page.locator('.lineage .child a').first().textContent()).toBe(`${name}-2`);
      await closePage(page);
    }
    await many.close();
  });

  test('its plots are found by name and pinned to the top, and stay there', async () => {
    const page = await openPage(browser, `${server.url}#/runs/slow0`);
    await waitForPlots(page, 4);
    await page.keyboard.press('/');
    await page.keyboard.type('policy/entropy');
    await page.waitForSelector('h2 >> text=Found');
    await eventually(() => page.locator('.plot .title').allTextContents()).toEqual(['Entropy']);
    await page.getByRole('button', { name: 'More for Entropy' }).click();
    await page.getByRole('menuitem', { name: 'Pin to the top' }).click();
    await page.getByLabel('Search plots').press('Escape');
    await page.waitForSelector('h2 >> text=Pinned');
    await page.reload();
    await waitForPlots(page, 4);
    expect(await page.locator('.plot .title').first().textContent()).toBe('Entropy');
    await closePage(page);
  });

  test('stands still while findings come and go', async () => {
    const own = await startFakeServer(site, [
      fakeRun({
        id: 'live',
        state: 'running',
        health: 'sick',
        rows: 15,
        plannedRows: 100,
        updatedAt: Date.now(),
      }),
    ]);
    const page = await openPage(browser, `${own.url}#/runs/live`);
    await waitForPlots(page, 4);
    const tops = () =>
      page.evaluate(
        "JSON.stringify(['nav.tabs', '.headline', 'section h2'].map(s => document.querySelector(s).getBoundingClientRect().top))",
      );
    const before = await tops();
    own.grow('live', 60);
    await page.waitForSelector('.verdict >> text=Sick');
    await page.waitForSelector('.verdict >> text=Copy fix');
    expect(await tops()).toBe(before);
    await closePage(page);
    await own.close();
  });

  test('that was stopped at once says so, and one that failed shows where', async () => {
    const page = await openPage(browser, `${server.url}#/runs/empty`);
    await page.waitForSelector('text=before its first iteration was done, so there is nothing to draw');
    await closePage(page);
    const own = await startFakeServer(site, gallery());
    const failed = await openPage(browser, `${own.url}#/runs/failed`);
    await failed.locator('summary', { hasText: 'Where it failed' }).click();
    await failed.waitForSelector('pre >> text=at step (env.ts:3:1)');
    expect(await accessibilityFaults(failed)).toEqual([]);
    await failed.getByRole('button', { name: 'Add a note or tags' }).click();
    await failed.locator('dialog').getByLabel('Note').fill('a NaN again');
    await failed.getByRole('button', { name: 'Save' }).click();
    await failed.waitForSelector('.note >> text=a NaN again');
    await closePage(failed);
    await own.close();
  });
});
