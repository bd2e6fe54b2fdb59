/** The page in a real browser, with a run that goes on: rows, events, a lost connection, plots under the pointer, a fix. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { formatValue } from '../../web/lib/format.ts';
import {
  accessibilityFaults,
  type Browser,
  closePage,
  hasColor,
  keepPicture,
  launch,
  type OpenPage,
  openPage,
  waitForPlots,
} from './support/browser.ts';
import { builtPage } from './support/built-page.ts';
import { eventually } from './support/eventually.ts';
import { seriesValue, stepsPerRow } from './support/fake-runs.ts';
import { type FakeServer, startFakeServer } from './support/fake-server.ts';
import { gallery, largeRun } from './support/gallery.ts';

let browser: Browser;
let server: FakeServer;
let site: string;
let page: OpenPage;

beforeAll(async () => {
  site = await builtPage();
  browser = await launch();
});
afterAll(() => browser?.close());
beforeEach(async () => {
  server = await startFakeServer(site, gallery());
});
afterEach(async () => {
  await closePage(page);
  await server.close();
});

const text = (selector: string) => page.locator(selector).first().textContent();
const seriesRequests = () => server.requests.filter(request => request.includes('/series')).length;
/** The text of a value as the page writes it. */
const shown = (value: number) => formatValue(value);

/** The middle of the drawing area of a plot. */
async function boxOf(plot: number) {
  return (await page.locator('.plot-host .u-over').nth(plot).boundingBox())!;
}

describe('a live run', () => {
  test('from its first row to a verdict: rows are on the page as they come, and nothing is fetched again', async () => {
    page = await openPage(browser, `${server.url}#/runs/new`);
    await page.waitForSelector('text=No values yet');
    server.grow('new', 3);
    await waitForPlots(page, 4);
    await page.waitForTimeout(1200);
    const before = seriesRequests();
    for (let i = 0; i < 12; i++) {
      server.grow('new', 1);
      const run = server.runs.get('new')!;
      const expected = shown(seriesValue(run, 'episode/return', run.rows - 1)!);
      await eventually(() => text('.plot:has-text("Episode return") b')).toBe(expected);
    }
    expect(seriesRequests()).toBe(before);
    expect(await page.title()).not.toContain('healthy ·');
    server.grow('new', 10);
    await page.waitForSelector('.verdict >> text=Healthy');
    expect(await page.getAttribute('#favicon', 'href')).toBe('./favicon-healthy.svg');
    expect(await text('.head dd')).toContain('51');
  });

  test('a verdict that turns bad changes title, icon and what is read aloud', async () => {
    page = await openPage(browser, server.url);
    await page.waitForSelector('[data-run=live]');
    await eventually(() => page.title()).toBe('■ sick · Keel');
    await page.goto(`${server.url}#/runs/live`);
    await eventually(() => page.title()).toBe('cartpole-2026-01-05 · Keel');
    server.runs.get('live')!.health = 'sick';
    server.send({ type: 'diagnosis', run: 'live', verdict: 'sick', rootCause: 'learning-rate-too-high' });
    await eventually(() => page.title()).toBe('■ sick · cartpole-2026-01-05 · Keel');
    expect(await page.getAttribute('#favicon', 'href')).toBe('./favicon-sick.svg');
    await eventually(() => text('[aria-live=polite]')).toBe(
      'cartpole-2026-01-05 is now sick: learning rate too high',
    );
    await page.waitForSelector('.verdict >> text=KL spikes');
  });

  test('a page whose server has gone says since when and how it comes back, and does so by itself', async () => {
    const before = Date.now();
    page = await openPage(browser, `${server.url}#/`, {
      permissions: ['clipboard-read', 'clipboard-write'],
    });
    expect(await text('[data-run=live] .state')).toBe('running');
    await page.goto(`${server.url}#/runs/live`);
    await waitForPlots(page, 4);
    await page.waitForSelector('header >> text=Live');
    const state = page.locator('.facts span').first();
    expect(await state.getAttribute('class')).toContain('tone-good');
    expect(await page.locator('.banner').count()).toBe(0);
    server.down();
    await page.waitForSelector('.banner');
    const since = /No answer since (\d\d):(\d\d):(\d\d), \d+ s ago/.exec((await text('.banner'))!)!;
    const [hours, minutes, seconds] = since.slice(1).map(Number);
    const said = new Date(before).setHours(hours, minutes, seconds, 999);
    expect(said).toBeGreaterThanOrEqual(before);
    expect(said).toBeLessThanOrEqual(Date.now() + 1000);
    // Nothing claims to be so now: no colour, no state of then as one of now, no time left.
    expect(await state.textContent()).toBe('was running');
    expect(await state.getAttribute('class')).toContain('tone-muted');
    expect(await text('.head dl')).not.toContain('left');
    expect(await page.evaluate("getComputedStyle(document.querySelector('main')).filter")).toBe(
      'grayscale(1)',
    );
    expect(await page.evaluate("getComputedStyle(document.querySelector('.plot-host canvas')).opacity")).toBe(
      '0.45',
    );
    expect(await page.title()).toBe('no answer · cartpole-2026-01-05 · Keel');
    expect(await page.getAttribute('#favicon', 'href')).toBe('./favicon.svg');
    await eventually(() => text('.banner code')).toBe('npx keel dash --port 7007');
    await page.locator('.banner').getByRole('button', { name: 'Copy' }).click();
    await eventually(() => page.evaluate('navigator.clipboard.readText()')).toBe('npx keel dash --port 7007');
    expect(await accessibilityFaults(page)).toEqual([]);
    await keepPicture(page, 'lost');
    await page.goto(`${server.url}#/`);
    await eventually(() => text('[data-run=live] .state')).toBe('was running');
    await page.goto(`${server.url}#/runs/live`);
    server.grow('live', 5);
    server.back();
    await page.waitForSelector('header >> text=Live');
    await page.waitForSelector('.banner', { state: 'detached' });
    expect(await state.textContent()).toBe('running');
    const run = server.runs.get('live')!;
    await eventually(() => text('.plot:has-text("Episode return") b')).toBe(
      shown(seriesValue(run, 'episode/return', run.rows - 1)!),
    );
  });

  test('it can be tried at once, and a server with another token is told from none', async () => {
    page = await openPage(browser, `${server.url}#/runs/live`);
    await page.waitForSelector('header >> text=Live');
    server.broken.set('/api/stream', { status: 401, message: 'a token is needed' });
    server.down();
    await page.waitForSelector('.banner >> text=This brings it back');
    server.back();
    await page.getByRole('button', { name: /Retry|Reconnecting/ }).click();
    await page.waitForSelector('.banner >> text=another token');
    expect(await text('.banner')).not.toContain('This brings it back');
    server.broken.delete('/api/stream');
    await page.getByRole('button', { name: /Retry|Reconnecting/ }).click();
    await page.waitForSelector('header >> text=Live');
  });

  test('a banner has room on a phone', async () => {
    page = await openPage(browser, `${server.url}#/runs/live`, { width: 360, colorScheme: 'dark' });
    await page.waitForSelector('header >> text=Live');
    server.down();
    await page.waitForSelector('.banner');
    expect(
      await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth'),
    ).toBe(0);
    expect(await accessibilityFaults(page)).toEqual([]);
    await keepPicture(page, 'lost-phone');
  });

  test('a part that comes too late for the server leaves the rest whole', async () => {
    page = await openPage(browser, `${server.url}#/`);
    await page.waitForSelector('text=live');
    await page.route(/plot-menu/, route => route.abort());
    const refused = page.waitForEvent('requestfailed', request => request.url().includes('plot-menu'));
    await page.goto(`${server.url}#/runs/live`);
    await refused;
    await waitForPlots(page, 4);
  });

  test('a run that failed says why', async () => {
    page = await openPage(browser, `${server.url}#/runs/live`);
    await page.waitForSelector('header >> text=Live');
    server.runs.get('live')!.state = 'failed';
    server.grow('live', 1);
    await page.waitForSelector('text=It failed: the environment gave NaN at step');
  });

  test('many rows at once, and a log that was rewound, are asked for again', async () => {
    page = await openPage(browser, `${server.url}#/runs/live`);
    await waitForPlots(page, 4);
    const before = seriesRequests();
    server.grow('live', 150);
    await eventually(seriesRequests).toBeGreaterThan(before);
    const run = server.runs.get('live')!;
    await eventually(() => text('.plot:has-text("Episode return") b')).toBe(
      shown(seriesValue(run, 'episode/return', run.rows - 1)!),
    );
    // Resumed from an earlier checkpoint: rows after it are no longer.
    run.rows = 120;
    run.generation = 2;
    server.grow('live', 1);
    await eventually(() => text('.plot:has-text("Episode return") b')).toBe(
      shown(seriesValue(run, 'episode/return', 120)!),
    );
    await eventually(() => page.getAttribute('.plot-host', 'aria-label')).toContain('121 values');
  });
});

describe('plots', () => {
  test('hovering one shows the place and the value in all', async () => {
    page = await openPage(browser, `${server.url}#/runs/a1`);
    await waitForPlots(page, 4);
    const box = await boxOf(0);
    await page.mouse.move(box.x + box.width / 2, box.y + 60);
    await page.waitForSelector('.at >> text=step');
    const places = await page.locator('.headline .at').allTextContents();
    expect(places.map(p => p.trim())).toHaveLength(4);
    expect(new Set(places).size).toBe(1);
    const step = Number(places[0].replace(/\D/g, ''));
    const row = step / stepsPerRow - 1;
    expect(Number.isInteger(row)).toBe(true);
    expect(await text('.plot:has-text("Episode return") b')).toBe(
      shown(seriesValue(server.runs.get('a1')!, 'episode/return', row)!),
    );
    expect(await page.locator('.u-cursor-x').count()).toBeGreaterThanOrEqual(4);
  });

  test('a drag zooms all of them, shift-drag pans, the link holds it, 0 and a double click reset', async () => {
    page = await openPage(browser, `${server.url}#/runs/a1?smooth=0.9&x=iteration`);
    await waitForPlots(page, 4);
    const box = await boxOf(1);
    const at = (share: number) => [box.x + box.width * share, box.y + 50] as const;
    await page.mouse.move(...at(0.25));
    await page.mouse.down();
    await page.mouse.move(...at(0.5), { steps: 4 });
    await page.mouse.up();
    await eventually(() => page.url()).toContain('from=');
    const range = () =>
      ['from', 'to'].map(key => Number(new URLSearchParams(page.url().split('?')[1]).get(key)));
    const [from, to] = range() as [number, number];
    expect(from).toBeGreaterThan(55);
    expect(from).toBeLessThan(66);
    expect(to).toBeGreaterThan(115);
    expect(to).toBeLessThan(126);
    await page.keyboard.down('Shift');
    await page.mouse.move(...at(0.5));
    await page.mouse.down();
    await page.mouse.move(...at(0.75), { steps: 4 });
    await page.mouse.up();
    await page.keyboard.up('Shift');
    await eventually(() => range()[0]).toBeLessThan(from - 10);
    const link = page.url();
    await page.goto('about:blank');
    await page.goto(link);
    await waitForPlots(page, 4);
    expect(page.url()).toBe(link);
    expect(await page.getByRole('button', { name: 'Whole run' }).isEnabled()).toBe(true);
    expect(await text('output')).toBe('0.900');
    await page.keyboard.press('0');
    await eventually(() => page.url()).not.toContain('from=');
    await page.keyboard.press('+');
    await eventually(() => page.url()).toContain('from=');
    await page
      .locator('.plot-host .u-over')
      .first()
      .dblclick({ position: { x: 100, y: 40 } });
    await eventually(() => page.url()).not.toContain('from=');
  });

  test('with keys: the cursor moves by points, events are told, values go logarithmic', async () => {
    page = await openPage(browser, `${server.url}#/runs/sick`);
    await waitForPlots(page, 4);
    // A key that comes before the points moves nothing.
    await eventually(() => page.getAttribute('.plot-host', 'aria-label')).toContain('from ');
    await page.locator('.plot-host').first().focus();
    const { rows } = server.runs.get('sick')!;
    for (const row of [rows, rows - 1]) {
      await page.keyboard.press('ArrowLeft');
      await eventually(() => text('[aria-live=polite]')).toContain(
        `${row * stepsPerRow}`.replace(/\B(?=(\d{3})+$)/g, ','),
      );
    }
    await page.keyboard.press('[');
    await eventually(() => text('[aria-live=polite]')).toMatch(
      /^(Early stop|Guard|Checkpoint|Evaluation|Finding) at step/,
    );
    await page.keyboard.press('l');
    await eventually(() => page.url()).toContain('log=1');
    await page.keyboard.press('x');
    await eventually(() => page.url()).toContain('x=iteration');
    await page.keyboard.press('x');
    await eventually(() => page.url()).toContain('x=time');
    await eventually(() => page.getAttribute('.plot-host', 'aria-label')).toContain('from 0 s');
  });

  test('bands are tinted, pins lie on the axis and hovering them tells', async () => {
    page = await openPage(browser, `${server.url}#/runs/sick`);
    await waitForPlots(page, 4);
    await page.waitForSelector('.legend >> text=Early stop');
    await page.waitForTimeout(300);
    // Red above .05 at the top of the KL plot; a red pin for the finding in the strip at the bottom of the return.
    expect(
      await hasColor(page, 0, [205, 50, 50], { left: 0.2, top: 0.1, right: 0.4, bottom: 0.2 }, 12, 30),
    ).toBe(true);
    expect(
      await hasColor(page, 1, [179, 38, 30], { left: 0.3, top: 0.75, right: 0.6, bottom: 0.9 }, 30),
    ).toBe(true);
    const box = await boxOf(1);
    let told = '';
    for (let x = 0; x < box.width && !told.includes('Finding'); x += 4) {
      await page.mouse.move(box.x + x, box.y + box.height - 7);
      told = (await page.locator('[role=tooltip]').allTextContents()).join(' ');
    }
    expect(told).toContain('KL spikes above 0.05');
    await page.getByRole('button', { name: /^Finding/ }).click();
    await eventually(() =>
      hasColor(page, 1, [179, 38, 30], { left: 0.3, top: 0.75, right: 0.6, bottom: 0.9 }, 30),
    ).toBe(false);
  });

  test('a metric is explained on focus, and its numbers are there as a table and as files', async () => {
    page = await openPage(browser, `${server.url}#/runs/a1`);
    await waitForPlots(page, 4);
    await page.keyboard.press('Tab');
    await page.locator('.title').first().focus();
    await page.keyboard.press('Shift+Tab');
    await page.keyboard.press('Tab');
    await page.waitForSelector('[role=tooltip] >> text=How far the whole update moved the policy');
    const more = page.getByRole('button', { name: 'More for KL of the update', exact: true });
    await more.click();
    await page.getByRole('menuitem', { name: 'Show as table' }).click();
    // Its code comes with the first table that is asked for.
    await page.locator('[aria-label="Values of KL of the update"] tbody tr').first().waitFor();
    expect(await page.locator('[aria-label="Values of KL of the update"] tbody tr').count()).toBeGreaterThan(
      20,
    );
    for (const kind of ['CSV', 'SVG', 'PNG'] as const) {
      await more.click();
      const [download] = await Promise.all([
        page.waitForEvent('download'),
        page.getByRole('menuitem', { name: `Save as ${kind}` }).click(),
      ]);
      expect(download.suggestedFilename()).toBe(`cartpole-lr-3e-4-seed-1-kl-step.${kind.toLowerCase()}`);
      const body = await streamText(await download.createReadStream());
      if (kind === 'CSV') expect(body).toMatch(/^step,kl\/step min,kl\/step mean,kl\/step max,points\n2048,/);
      if (kind === 'SVG') expect(body).toMatch(/^<svg [\s\S]*<\/svg>\n$/);
      if (kind === 'PNG') expect(body.slice(1, 4)).toBe('PNG');
    }
  });
});

describe('doctor, checkpoints, compare', () => {
  test('a fix is applied after a second look, and its outcome is shown and pinned', async () => {
    page = await openPage(browser, `${server.url}#/runs/sick/doctor`);
    await page.getByRole('button', { name: 'Apply…: Lower the learning rate' }).click();
    await page.waitForSelector(
      'text=This sets learningRate from 0.0003 to 0.0001 from the next iteration on.',
    );
    expect(server.actions).toEqual([]);
    await page.getByRole('button', { name: 'Cancel' }).click();
    await page.getByRole('button', { name: 'Apply…: Lower the learning rate' }).click();
    const judged = () => server.requests.filter(r => r === 'GET /api/runs/sick/diagnosis').length;
    const before = judged();
    await page.getByRole('button', { name: 'Yes, apply' }).click();
    // What can be done now may be another thing.
    await eventually(judged).toBeGreaterThan(before);
    await page.waitForSelector('[role=status] >> text=learningRate is 0.0001 from the next iteration on.');
    expect(server.actions).toEqual([
      { run: 'sick', action: { type: 'set', key: 'learningRate', value: 1e-4 } },
    ]);
    await page.getByRole('link', { name: /^Plots/ }).click();
    await page.waitForSelector('.legend >> text=Changed by hand');
  });

  test('a restart leads to the new run, which names its parent', async () => {
    page = await openPage(browser, `${server.url}#/runs/sick/doctor`);
    await page.getByRole('button', { name: 'Apply…: Restart from' }).click();
    await page.getByRole('button', { name: 'Yes, apply' }).click();
    await page.getByRole('link', { name: 'Open the new run' }).click();
    await page.waitForSelector('h1:has-text("hopper-lr-1e-3-2")');
    expect(
      await page.getByRole('link', { name: 'hopper-lr-1e-3', exact: true }).first().getAttribute('href'),
    ).toBe('#/runs/sick');
  });

  // A fault that was here: the question was about a place in the list, and a new diagnosis put another act there.
  test('a new diagnosis changes nothing under the hand of who was asked', async () => {
    page = await openPage(browser, `${server.url}#/runs/sick/doctor`);
    await page.getByRole('button', { name: 'Apply…: Set the target KL' }).click();
    const judged = () => server.requests.filter(r => r === 'GET /api/runs/sick/diagnosis').length;
    const before = judged();
    server.runs.get('sick')!.adjusted.learningRate = 1e-4;
    server.send({ type: 'diagnosis', run: 'sick', verdict: 'sick', rootCause: 'learning-rate-too-high' });
    await eventually(judged).toBeGreaterThan(before);
    await page.waitForTimeout(200);
    await page.getByRole('button', { name: 'Yes, apply' }).click();
    await page.waitForSelector('[role=status].soft-good');
    expect(server.actions).toEqual([{ run: 'sick', action: { type: 'set', key: 'targetKl', value: 0.01 } }]);
    // Then the list is that of now.
    expect(await page.getByRole('button', { name: 'Apply…: Lower the learning rate' }).count()).toBe(0);
  });

  test('a refused fix says why', async () => {
    server.broken.set('/api/runs/sick/actions', { status: 409, message: 'The run has ended.' });
    page = await openPage(browser, `${server.url}#/runs/sick/doctor`);
    await page.getByRole('button', { name: 'Apply…: Set the target KL' }).click();
    await page.getByRole('button', { name: 'Yes, apply' }).click();
    await page.waitForSelector('.soft-bad >> text=The run has ended.');
  });

  test('evidence is marked on the series that a finding cites', async () => {
    page = await openPage(browser, `${server.url}#/runs/sick/doctor`, { height: 1400 });
    await waitForPlots(page, 3);
    await page.waitForTimeout(200);
    // The second finding cites the return from .42 on: the stripe above it is red there and not before.
    expect(await hasColor(page, 1, [179, 38, 30], { left: 0.7, top: 0.02, right: 0.9, bottom: 0.12 })).toBe(
      true,
    );
    expect(await hasColor(page, 1, [179, 38, 30], { left: 0.15, top: 0.02, right: 0.4, bottom: 0.12 })).toBe(
      false,
    );
  });

  test('a click on a sentence zooms the plots to what it speaks of, and back; with keys, too', async () => {
    page = await openPage(browser, `${server.url}#/runs/sick/doctor`, { height: 1400 });
    await waitForPlots(page, 3);
    const card = page.locator('article').first();
    // The return is drawn beside the KL, though only the KL is cited.
    expect(await card.locator('.plot-host').count()).toBe(2);
    const sentence = card.getByRole('button', { name: /passes 0\.05 first at step/ });
    await sentence.click();
    await eventually(() => sentence.getAttribute('aria-pressed')).toBe('true');
    await eventually(() => page.url()).toMatch(/from=\d+.*to=\d+/);
    const [from, to] = ['from', 'to'].map(key =>
      Number(new URLSearchParams(page.url().split('?')[1]).get(key)),
    );
    // From .36 of the 240 planned rows to the 200th, with room around.
    expect(from).toBeGreaterThan(60 * 2048);
    expect(from).toBeLessThan(86 * 2048);
    expect(to).toBeGreaterThanOrEqual(200 * 2048);
    await page.keyboard.press('Enter');
    await eventually(() => sentence.getAttribute('aria-pressed')).toBe('false');
    await eventually(() => page.url()).not.toContain('from=');
  });

  test('a healthy run lists what was checked, what is near its limit and what could not be seen', async () => {
    page = await openPage(browser, `${server.url}#/runs/sb3/doctor`);
    const list = page.getByRole('region', { name: 'What was looked at' });
    expect(await list.textContent()).toMatch(/5\s+of 7 rules could look/);
    expect(await list.textContent()).toMatch(/the median of kl\/step is 0\.0174, the limit is\s+0\.02/);
    expect(await list.textContent()).toMatch(/: without guard\/backtracks/);
    expect(await list.getByRole('listitem').filter({ hasText: '✓' }).count()).toBe(4);
  });

  test('all changes are one command; a checkpoint is forked with them or without', async () => {
    page = await openPage(browser, `${server.url}#/runs/b2/doctor`);
    const remedy = page.getByRole('region', { name: 'All changes at once' });
    await remedy.waitFor();
    expect(await remedy.locator('pre').allTextContents()).toEqual([
      'npx keel fork cartpole-lr-1e-3-seed-2 --checkpoint 163840 --set learningRate=0.0001 --set targetKl=0.01',
      expect.stringMatching(/--steps 491520 --seed 5 --set learningRate=0\.0001 --set targetKl=0\.01$/),
    ]);
    await page.getByRole('link', { name: /^Checkpoints/ }).click();
    await page.getByRole('button', { name: 'Fork from here: step 327680' }).click();
    const command = page.locator('tr.fork pre');
    await eventually(() => command.textContent()).toMatch(/--checkpoint 327680 --set learningRate=0\.0001/);
    await page.getByRole('checkbox', { name: /with what the doctor would change/ }).uncheck();
    expect(await command.textContent()).toMatch(/--checkpoint 327680$/);
    await page.getByRole('button', { name: 'Start it' }).click();
    await page.waitForSelector('text=goes on from step 327680');
    expect(server.actions.at(-1)).toEqual({
      run: 'b2',
      action: { type: 'restart', checkpoint: 327_680, set: {} },
    });
  });

  test('a checkpoint is evaluated', async () => {
    page = await openPage(browser, `${server.url}#/runs/a1/checkpoints`);
    await page.getByRole('button', { name: 'Evaluate step 163840' }).click();
    const row = page.locator('tr', { hasText: '163,840' });
    await eventually(() => row.textContent()).toMatch(
      /431\.3\s+± 2\.87\d*\s+\d+\s+episodes.*; drawn as in training 440\.5/s,
    );
    const link = page.getByRole('link', { name: 'policy.onnx' }).first();
    expect(await link.getAttribute('href')).toContain('/api/runs/a1/policy.onnx?checkpoint=');
  });

  test('runs are compared: one by one, by a setting with their spread, and in their settings', async () => {
    page = await openPage(browser, `${server.url}#/compare?runs=a1,a2,b1,gone`);
    await page.waitForSelector('text=not found: it was moved or deleted');
    await waitForPlots(page, 4);
    await page.getByLabel('Add a run').selectOption('b2');
    await eventually(() => page.url()).toContain('runs=a1,a2,b1,gone,b2');
    await page.getByRole('button', { name: 'Remove gone' }).click();
    await page.getByLabel('Group by').selectOption('learningRate');
    await page.waitForSelector('text=learningRate 0.0003');
    await page.waitForSelector('text=learningRate 0.001');
    expect(await page.locator('.legend li').count()).toBe(2);
    await eventually(() => page.getAttribute('.plot-host', 'aria-label')).toContain('learningRate 0.001');
    const row = page.locator('tr:has(th:text-is("learningRate")) td');
    expect(await row.allTextContents()).toEqual(['0.0003', '0.001']);
    expect(await page.locator('th:text-is("epochs")').count()).toBe(0);
    // A line that is left out is left out for who gets the link, too.
    await page.getByRole('button', { name: 'Show learningRate 0.001' }).click();
    await eventually(() => page.getAttribute('.plot-host', 'aria-label')).not.toContain('learningRate 0.001');
    expect(page.url()).toContain('hidden=learningRate%200.001');
    await page.getByLabel('also what is equal').check();
    expect(await page.locator('th:text-is("epochs")').count()).toBe(1);
    await page.goto(page.url());
    await waitForPlots(page, 4);
  });
});

describe('50 series of a million points', () => {
  // How long it takes is for `npm run bench -- dash`; here, that a plot never asks for more than it can show.
  test('open and are panned with as many points as there is room for', async () => {
    await server.close();
    server = await startFakeServer(site, [largeRun()]);
    page = await openPage(browser, `${server.url}#/runs/large`);
    await waitForPlots(page, 7);
    const range = () => new URLSearchParams(page.url().split('?')[1]).get('from');
    for (let i = 0; i < 4; i++) await page.keyboard.press('+');
    await eventually(range).not.toBeNull();
    const zoomed = range();
    const box = await boxOf(0);
    await page.keyboard.down('Shift');
    await page.mouse.move(box.x + box.width * 0.8, box.y + 60);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.2, box.y + 60, { steps: 20 });
    await page.mouse.up();
    await page.keyboard.up('Shift');
    await eventually(range).not.toBe(zoomed);
    const buckets = server.requests.flatMap(request => /[?&]buckets=(\d+)/.exec(request)?.[1] ?? []);
    expect(buckets.length).toBeGreaterThan(1);
    expect(Math.max(...buckets.map(Number))).toBeLessThan(4 * box.width);
  });

  test('the one spike among them is seen', async () => {
    await server.close();
    server = await startFakeServer(site, [largeRun()]);
    page = await openPage(browser, `${server.url}#/runs/large`);
    const plot = page.locator('.plot:has-text("signal_00")');
    await plot.scrollIntoViewIfNeeded();
    await plot.locator('canvas').waitFor();
    await eventually(() => plot.locator('.plot-host').getAttribute('aria-label')).toContain('largest 12.00');
  });
});

async function streamText(stream: NodeJS.ReadableStream): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of stream) parts.push(part as Buffer);
  return Buffer.concat(parts).toString('latin1');
}
