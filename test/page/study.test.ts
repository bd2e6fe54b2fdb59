/** A study on the page in a real browser: everything is drawn, linked, sorted and live, by pointer and by keys. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Trial } from '../../src/studies/schema.ts';
import { fakeTrial } from '../studies/support/fake-study.ts';
import {
  accessibilityFaults,
  type Browser,
  closePage,
  keepPicture,
  launch,
  type OpenPage,
  openPage,
  zoomFaults,
} from './support/browser.ts';
import { builtPage, initialJavaScript } from './support/built-page.ts';
import { eventually } from './support/eventually.ts';
import { fakeRun } from './support/fake-runs.ts';
import { type FakeServer, startFakeServer } from './support/fake-server.ts';
import { type FakeStudies, galleryStudy } from './support/fake-studies.ts';

let browser: Browser;
let server: FakeServer;
let site: string;
const kept: FakeStudies = new Map([['s1', galleryStudy()]]);
/** The runs of trial 0, and one of trial 39, which is under way. */
const runs = ['t0000-s0', 't0000-s1', 't0000-s2', 't0039-s0'].map(id =>
  fakeRun({ id, name: `hopper-rates/runs/${id}`, seed: Number(id.at(-1)) }),
);

beforeAll(async () => {
  site = await builtPage();
  [browser, server] = await Promise.all([launch(), startFakeServer(site, runs, kept)]);
});
afterAll(async () => {
  await browser?.close();
  await server?.close();
});

const open = async (
  hash = '#/studies/s1',
  options: Parameters<typeof openPage>[2] = {},
): Promise<OpenPage> => {
  const page = await openPage(browser, server.url + hash, options);
  await page.waitForSelector('[data-trial]');
  return page;
};
const numbers = (page: OpenPage) =>
  page.locator('[data-trial]').evaluateAll(rows => rows.map(row => Number(row.getAttribute('data-trial'))));
const panel = (page: OpenPage, title: string) =>
  page
    .locator('figure, section')
    .filter({ has: page.getByRole('heading', { name: new RegExp(`^${title}`) }) });

test('little JavaScript before a study is shown', async () => {
  const bytes = await initialJavaScript(site, 'views/study/study.svelte');
  console.info(`JavaScript before a study is shown: ${(bytes / 1000).toFixed(1)} kB gzipped`);
  expect(bytes).toBeGreaterThan(25_000);
  expect(bytes).toBeLessThanOrEqual(60_000);
});

describe('what is drawn', () => {
  test('the overview has the study above the runs, with its progress, and leads to it', async () => {
    const page = await openPage(browser, server.url);
    const row = page.locator('[data-study=s1]');
    await row.waitFor();
    expect(await row.textContent()).toMatch(
      /hopper-rates.*hopper\.ts · tpe · score.*running.*38\s*\/ 60 trials/s,
    );
    expect(await accessibilityFaults(page)).toEqual([]);
    await keepPicture(page, 'study-overview');
    await row.getByRole('link').click();
    await page.waitForSelector('[data-trial]');
    expect(page.url()).toMatch(/#\/studies\/s1$/);
    await eventually(() => page.title()).toBe('Study · Keel');
    await closePage(page);
  });

  test('progress, charts, importance, workers and all trials', async () => {
    const page = await open();
    const states = page.getByRole('img', { name: /complete, .* of 60 trials/ });
    expect(await states.getAttribute('aria-label')).toBe(
      '28 complete, 6 pruned, 4 failed, 2 running, 0 waiting, of 60 trials',
    );
    expect(await page.locator('.steps dd').textContent()).toMatch(/17\.3M\s*\/ 20M/);
    // A point for each of the 34 trials with a result, a line for each of the 40.
    for (const title of ['Best so far', 'Setting against result'])
      expect(await panel(page, title).locator('.point').count(), title).toBe(34);
    expect(await panel(page, 'Best so far').locator('path.steps').getAttribute('d')).toMatch(
      /^M[\d.]+ [\d.]+(H[\d.]+V[\d.]+)+H/,
    );
    const parallel = panel(page, 'All settings and the result');
    expect(await parallel.locator('.lines path').count()).toBe(40);
    expect(await parallel.locator('.lines path.running').count()).toBe(2);
    expect(
      await parallel
        .locator('.name')
        .allTextContents()
        .then(all => all.map(text => text.trim().split(/\s+/)[0])),
    ).toEqual(['learningRate', 'gamma', 'epochs', 'klControl', 'klTarget', 'score']);
    expect(await panel(page, 'Importance').locator('li').allTextContents()).toHaveLength(5);
    expect(await panel(page, 'Importance').locator('li').first().textContent()).toMatch(/learningRate\s*71%/);
    const workers = panel(page, 'Workers');
    expect(await workers.locator('dl').textContent()).toMatch(
      /waiting\s*7\s*active\s*3\s*to be tried again\s*1\s*failed\s*2/,
    );
    expect(await workers.textContent()).toMatch(/box-1\/4121\s*t0038-s0,\s*t0038-s1/);
    expect(await workers.textContent()).toContain('it needs more memory');
    expect(await page.locator('[data-trial]').count()).toBe(40);
    await closePage(page);
  });

  test('a row has KL and verdict beside the result, says why it may not win, and leads to its runs', async () => {
    const page = await open();
    const row = page.locator('[data-trial="3"]');
    expect(await row.textContent()).toMatch(/[\d,.]+\s*0\.0\d+\s*0\.0870\s*sick\s*complete\s*may not win/);
    await row.getByText('may not win').hover();
    await page.waitForSelector('text=KL 0.083 is above the bound of 0.05');
    await row.getByText('sick').hover();
    await page.waitForSelector('text=Learning rate too high');
    // Its runs are on another machine: named, but no links.
    expect(await row.getByRole('link').count()).toBe(0);
    expect(await page.locator('[data-trial="39"]').getByRole('link').allTextContents()).toEqual(['seed 0']);
    await page.getByRole('link', { name: 'Run of trial 0 with seed 1' }).click();
    await eventually(() => page.url()).toMatch(/#\/runs\/t0000-s1$/);
    await page.waitForSelector('h1 >> text=t0000-s1');
    await closePage(page);
  });

  test('too few trials, nobody at work, no trial at all: each is said', async () => {
    const none = galleryStudy();
    kept.set('empty', {
      ...none,
      study: { ...none.study, name: 'empty' },
      trials: [],
      workers: undefined,
      importance: { axes: [], trials: 0, needed: 10 },
    });
    const page = await openPage(browser, `${server.url}#/studies/empty`);
    await page.waitForSelector('text=Too few trials to say: 0 of the 10 that it takes have a result.');
    await page.waitForSelector('text=Nobody has said yet who works on this study.');
    await page.waitForSelector('text=No trial yet');
    expect(await page.locator('text=No trial has a result yet').count()).toBe(2);
    expect(await accessibilityFaults(page)).toEqual([]);
    kept.delete('empty');
    await page.waitForSelector("text=The study's directory is gone");
    await closePage(page);
    const stale = await openPage(browser, `${server.url}#/studies/nothing`);
    await stale.waitForSelector('text=There is no such study');
    await closePage(stale);
  });
});

describe('what one does', () => {
  test('the table is sorted by any column, and the link holds the order', async () => {
    const page = await open();
    const values = () =>
      page
        .locator('[data-trial] .value')
        .evaluateAll(cells =>
          cells.map(cell =>
            Number((cell.textContent ?? '').replace(/[^\d.−]/g, '').replace('−', '-') || 'NaN'),
          ),
        );
    const down = (await values()).filter(Number.isFinite);
    expect(down).toEqual([...down].sort((a, b) => b - a));
    expect((await values()).slice(34).every(Number.isNaN)).toBe(true);
    await page.getByRole('button', { name: 'Trial', exact: true }).click();
    expect((await numbers(page)).slice(0, 5)).toEqual([0, 1, 2, 3, 4]);
    expect(page.url()).toContain('order=number');
    await page.getByRole('button', { name: 'learningRate' }).click();
    const rates = await page.locator('[data-trial] td:nth-child(7)').allTextContents();
    expect(rates.map(Number)).toEqual(rates.map(Number).sort((a, b) => a - b));
    await page.getByRole('button', { name: 'learningRate' }).click();
    const order = await numbers(page);
    await page.reload();
    await page.waitForSelector('[data-trial]');
    expect(await numbers(page)).toEqual(order);
    expect(await page.locator('th[aria-sort=descending]').textContent()).toContain('learningRate');
    await closePage(page);
  });

  test('the setting of the scatter is chosen; a logarithmic domain has a logarithmic axis', async () => {
    const page = await open();
    const scatter = panel(page, 'Setting against result');
    const labels = () => scatter.locator('text.x').allTextContents();
    expect(await labels()).toEqual(['10⁻⁵', '10⁻⁴', '0.001', '0.01', 'learningRate (log)']);
    await scatter.getByRole('combobox').selectOption('klControl');
    expect(await labels()).toEqual(['none', 'stop', 'penalty', 'klControl']);
    await scatter.getByRole('combobox').selectOption('klTarget');
    // Those without it have no place there.
    await eventually(() => scatter.locator('.point').count()).toBeLessThan(34);
    expect(page.url()).toContain('axis=klTarget');
    await closePage(page);
  });

  test('a trial under the pointer, under the keys or in the table is lit in all charts', async () => {
    const page = await open();
    const lit = panel(page, 'All settings and the result').locator('path.lit');
    expect(await lit.count()).toBe(0);
    const best = panel(page, 'Best so far');
    await best.locator('.point').nth(10).hover({ force: true });
    await page.waitForSelector('tr.lit');
    expect([await lit.count(), await best.locator('.at').count()]).toEqual([1, 1]);
    await page.mouse.move(2, 2);
    await eventually(() => lit.count()).toBe(0);
    await page.locator('[data-trial="0"]').getByRole('link').first().focus();
    await eventually(() => page.locator('tr.lit').getAttribute('data-trial')).toBe('0');
    expect(await lit.count()).toBe(1);
    await best.getByRole('img').focus();
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('ArrowRight');
    await eventually(() => page.locator('tr.lit').getAttribute('data-trial')).toBe('1');
    await eventually(() => page.locator('.sr[aria-live]').textContent()).toMatch(/^Trial 1: [\d,.]+$/);
    // On a line of the parallel coordinates.
    const strip = (await page.locator('[data-axis=gamma]').boundingBox())!;
    const trial = (await page.locator('.lines path').last().getAttribute('d'))!;
    const [, y] = /L([\d.]+ [\d.]+)/.exec(trial)![1].split(' ').map(Number);
    await page.mouse.move(strip.x + strip.width / 2, strip.y + y - 30);
    await eventually(() => lit.count()).toBe(1);
    await closePage(page);
  });

  test('a part of an axis is marked by dragging or with the keys: other trials fade and leave the table', async () => {
    const page = await open();
    const strip = page.locator('[data-axis=learningRate]');
    await strip.scrollIntoViewIfNeeded();
    const box = (await strip.boundingBox())!;
    const x = box.x + box.width / 2;
    await page.mouse.move(x, box.y + 20);
    await page.mouse.down();
    await page.mouse.move(x, box.y + box.height * 0.3);
    await page.mouse.move(x, box.y + box.height * 0.4);
    await page.mouse.up();
    await page.waitForSelector('text=/of 40, marked on learningRate/');
    const some = await numbers(page);
    expect(some.length).toBeGreaterThan(0);
    expect(some.length).toBeLessThan(40);
    const parallel = panel(page, 'All settings and the result');
    expect(await parallel.locator('.lines path.out').count()).toBe(40 - some.length);
    await page.getByRole('button', { name: 'Show all trials' }).click();
    await eventually(() => page.locator('[data-trial]').count()).toBe(40);
    const slider = page.getByRole('slider', { name: 'score, lower end of the marked part' });
    await slider.focus();
    for (let i = 0; i < 12; i++) await page.keyboard.press('ArrowUp');
    await page.waitForSelector('text=/of 40, marked on score/');
    expect(await slider.getAttribute('aria-valuenow')).toBe('60');
    const marked = await numbers(page);
    const first = await page.locator('[data-trial] .value').last().textContent();
    // All that are left have at least what the slider says.
    const least = Number((await slider.getAttribute('aria-valuetext'))!);
    expect(Number(first!.replace(/[^\d.]/g, ''))).toBeGreaterThanOrEqual(least * 0.99);
    expect(marked.length).toBeLessThan(34);
    await page.keyboard.press('Escape');
    await eventually(() => page.locator('[data-trial]').count()).toBe(40);
    await closePage(page);
  });
});

test('what the winner is worth on fresh seeds stands above the charts, beside the default', async () => {
  const page = await open();
  expect(await page.getByRole('heading', { name: 'On fresh seeds' }).count()).toBe(0);
  const before = kept.get('s1')!;
  const again = (number: number, purpose: Trial['purpose']): Trial => ({
    ...fakeTrial(number, 'complete'),
    ...{ purpose, seeds: [1000, 1001, 1002], violations: [] },
  });
  kept.set('s1', {
    ...before,
    trials: [...before.trials, again(40, 'confirm-winner'), again(41, 'confirm-default')],
    updatedAt: before.updatedAt + 1,
  });
  await page.waitForSelector('text=On fresh seeds');
  expect(await panel(page, 'On fresh seeds').textContent()).toMatch(
    /the winner [\d,.]+\s+[\d,.]+\s+to [\d,.]+,\s+3\s+seeds.*the default [\d,.]+.*with probability [\d.]+.*:\s+too few seeds to tell/s,
  );
  expect(await page.locator('[data-trial="41"]').textContent()).toContain('the default on fresh seeds');
  expect(await accessibilityFaults(page)).toEqual([]);
  kept.set('s1', before);
  await closePage(page);
});

test('live: a new result, a new trial and the workers appear by themselves, and nothing else moves', async () => {
  const page = await open();
  const before = kept.get('s1')!;
  const places = () =>
    page.evaluate<number[]>(
      "[...document.querySelectorAll('main figure, main section, main .line')].map(e => Math.round(e.getBoundingClientRect().top + scrollY))",
    );
  const stood = await places();
  expect(stood.length).toBe(7);
  // What is drawn is left alone when only the workers have changed.
  await page.evaluate(
    "document.querySelectorAll('.lines path').forEach(p => { p.kept = true; p.dataset.d = p.getAttribute('d') })",
  );
  kept.set('s1', {
    ...before,
    workers: { ...before.workers!, queue: { waiting: 99, active: 2, delayed: 0, failed: 5 } },
    workersAt: before.workersAt! + 1,
  });
  await page.waitForSelector('section dl >> text=99');
  expect(
    server.requests.filter(path => path.startsWith('GET /api/studies/s1?version=')).length,
  ).toBeGreaterThan(0);
  // Trial 39 comes to the best result of all, trial 40 has reached its first rung.
  kept.set('s1', {
    ...kept.get('s1')!,
    trials: [
      ...before.trials.slice(0, 39),
      { ...fakeTrial(39, 'complete'), value: 4321 },
      { ...fakeTrial(40, 'running'), rungs: [{ steps: 22_000, value: 77 }] },
    ],
    updatedAt: before.updatedAt + 1,
  });
  await page.waitForSelector('[data-trial="40"]');
  expect(await page.locator('[data-trial="40"] .value').textContent()).toContain('77.00');
  expect(await page.locator('[data-trial="39"]').textContent()).toMatch(/4,321.*complete\s*best/s);
  expect((await numbers(page))[0]).toBe(39);
  expect(await page.locator('.lines path').count()).toBe(41);
  await eventually(() =>
    page.getByRole('img', { name: /of 60 trials/ }).getAttribute('aria-label'),
  ).toContain('29 complete');
  // The lines that were there are the same elements.
  expect(
    await page.evaluate("[...document.querySelectorAll('.lines path')].filter(p => p.kept).length"),
  ).toBe(40);
  expect(await places()).toEqual(stood);
  // The server goes: nothing is said to run any more.
  server.down();
  await page.waitForSelector('.facts >> text=was running');
  server.back();
  await page.waitForSelector('.facts >> text=/^running/');
  kept.set('s1', before);
  await page.waitForSelector('[data-trial="40"]', { state: 'detached' });
  await closePage(page);
});

// Colours do not depend on the width, nor widths on the colours.
test.each([
  ['light', 1280],
  ['dark', 360],
] as const)('%s, %i pixels: axe is silent and nothing overflows', async (colorScheme, width) => {
  const page = await open('#/studies/s1', { width, height: width < 500 ? 740 : 900, colorScheme });
  expect(
    await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth'),
  ).toBe(0);
  expect(await accessibilityFaults(page)).toEqual([]);
  if (width === 1280) expect(await zoomFaults(page)).toEqual([]);
  await keepPicture(page, `study-${colorScheme}-${width}`);
  await page.mouse.wheel(0, 700);
  await keepPicture(page, `study-${colorScheme}-${width}-below`);
  await closePage(page);
});
