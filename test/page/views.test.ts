/** The page in a real browser, over fake answers: each view, each state, both themes, a phone, an accessibility check. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  accessibilityFaults,
  type Browser,
  closePage,
  keepPicture,
  launch,
  openPage,
  waitForPlots,
  zoomFaults,
} from './support/browser.ts';
import { builtPage, initialJavaScript } from './support/built-page.ts';
import { eventually } from './support/eventually.ts';
import { fakeRun } from './support/fake-runs.ts';
import { type FakeServer, startFakeServer } from './support/fake-server.ts';
import { gallery } from './support/gallery.ts';

let browser: Browser;
let server: FakeServer;
let site: string;

beforeAll(async () => {
  site = await builtPage();
  [browser, server] = await Promise.all([launch(), startFakeServer(site, gallery())]);
});
afterAll(async () => {
  await browser?.close();
  await server?.close();
});

test('the page is small: little JavaScript before the overview or a run is shown', async () => {
  const limits = { 'overview/overview': 50_000, 'run/run': 80_000, 'compare/compare': 80_000 };
  for (const [view, limit] of Object.entries(limits)) {
    const bytes = await initialJavaScript(site, `views/${view}.svelte`);
    console.info(`JavaScript before ${view} is shown: ${(bytes / 1000).toFixed(1)} kB gzipped`);
    expect(bytes).toBeGreaterThan(25_000);
    expect(bytes).toBeLessThanOrEqual(limit);
  }
});

describe('accessibility and looks', () => {
  const views: [string, string, () => string][] = [
    ['overview', '#/', () => '[data-run=sick]'],
    ['run', '#/runs/sick', () => '.plot-host canvas'],
    ['doctor', '#/runs/sick/doctor', () => 'article'],
    ['doctor-healthy', '#/runs/sb3/doctor', () => 'text=Could not be seen'],
    ['lineage', '#/runs/fixed', () => '.lineage path'],
    ['completions', '#/runs/a2/completions', () => 'text=All rewards are equal'],
    ['checkpoints', '#/runs/sick/checkpoints', () => 'text=policy.onnx'],
    ['events', '#/runs/sick/events', () => 'td.message'],
    ['config', '#/runs/sb3/config', () => 'text=learningRate'],
    ['config-own', '#/runs/sick/config', () => 'text=learningRate'],
    ['compare', '#/compare?runs=a1,a2,b1,b2&by=learningRate', () => '.plot-host canvas'],
  ];
  const schemes = ['light', 'dark'] as const;
  for (const width of [1280, 360]) {
    test(`light and dark, ${width} pixels wide: axe is silent and nothing overflows`, async () => {
      const page = await openPage(browser, 'about:blank', { width, height: width < 500 ? 740 : 900 });
      for (const [place, [name, hash, ready]] of views.entries()) {
        // Each is opened in one theme and turned to the other, every second the other way round.
        for (const [turn, colorScheme] of (place % 2 ? schemes.toReversed() : schemes).entries()) {
          if (turn === 0) await page.goto('about:blank');
          await page.emulateMedia({ colorScheme });
          if (turn === 0) await page.goto(server.url + hash);
          await page.waitForSelector(ready());
          const theme = () => page.evaluate('document.documentElement.dataset.theme');
          if (turn === 0) expect(await theme()).toBe(colorScheme);
          else await eventually(theme).toBe(colorScheme);
          expect(
            await page.evaluate(
              'document.documentElement.scrollWidth - document.documentElement.clientWidth',
            ),
            name,
          ).toBe(0);
          // It takes a second a view: on a desktop one theme is enough, since a phone has both.
          if (width === 360 || colorScheme === 'light')
            expect(await accessibilityFaults(page), `${name} ${colorScheme} ${width}`).toEqual([]);
          await keepPicture(page, `${name}-${colorScheme}-${width}`);
        }
      }
      await closePage(page);
    });
  }

  test('at 200 % zoom nothing is cut off, and all that the keyboard reaches is seen', async () => {
    const page = await openPage(browser, 'about:blank');
    for (const [name, hash, ready] of views) {
      await page.goto('about:blank');
      await page.goto(server.url + hash);
      await page.waitForSelector(ready());
      expect(await zoomFaults(page), name).toEqual([]);
    }
    // The look itself can fail: something wide, and something over the upper half of the window.
    await page.evaluate(`(() => {
      const add = style => Object.assign(document.body.appendChild(document.createElement('div')).style, style);
      add({ width: '700px', height: '1px' });
      add({ position: 'fixed', inset: '0 0 50% 0', zIndex: 9 });
    })()`);
    const faults = (await zoomFaults(page)).join('\n');
    expect(faults).toContain('the page is ');
    expect(faults).toContain(' is below div');
    await closePage(page);
  });

  test('the theme can be chosen and is kept', async () => {
    const page = await openPage(browser, server.url);
    await page.getByRole('button', { name: 'Dark theme' }).click();
    await page.reload();
    expect(await page.evaluate('document.documentElement.dataset.theme')).toBe('dark');
    await page.keyboard.press('t');
    expect(await page.evaluate('document.documentElement.dataset.theme')).toBe('light');
    await closePage(page);
  });

  test('the sheet of keys opens with ? and closes with Escape', async () => {
    const page = await openPage(browser, server.url);
    await page.waitForSelector('[data-run=sick]');
    await page.keyboard.press('?');
    await page.waitForSelector('dialog[open] >> text=Pan');
    expect(await accessibilityFaults(page)).toEqual([]);
    await page.keyboard.press('Escape');
    await page.waitForSelector('dialog[open]', { state: 'detached' });
    await closePage(page);
  });
});

describe('completions', () => {
  test('a run that writes some has a tab for them, others do not', async () => {
    const page = await openPage(browser, `${server.url}#/runs/a1`);
    await page.waitForSelector('nav.tabs a');
    expect(await page.locator('nav.tabs a').allTextContents()).not.toContain('Completions');
    await page.goto('about:blank');
    await page.goto(`${server.url}#/runs/a2`);
    await page.getByRole('link', { name: 'Completions' }).click();
    await page.waitForSelector('text=Iteration 5');
    expect(await page.locator('section.panel .prompt').first().textContent()).toContain('P: r.bqkbnr/');
    expect(await page.locator('section.panel tbody tr').count()).toBe(16);
    await closePage(page);
  });

  test('tokens are coloured by what was asked for, and earlier iterations come on request', async () => {
    const page = await openPage(browser, `${server.url}#/runs/a2/completions`);
    const colours = `[...document.querySelectorAll('td.text p.mono')].slice(0, 1).flatMap(p =>
      [...p.querySelectorAll('span')].map(span => getComputedStyle(span).backgroundColor))`;
    await page.waitForSelector('text=Iteration 5');
    const byKl = (await page.evaluate(colours)) as string[];
    expect(new Set(byKl).size).toBeGreaterThan(3);
    await page.getByRole('button', { name: 'Advantage' }).click();
    const byAdvantage = (await page.evaluate(colours)) as string[];
    expect(new Set(byAdvantage).size).toBe(1);
    expect(await page.locator('td.text span[title]').first().getAttribute('title')).toMatch(
      /"M: "\nprobability 0\.\d+\nKL to the reference .* \(exact\)/,
    );
    expect(await page.locator('text=Iteration 1').count()).toBe(0);
    for (let i = 0; i < 2; i++) await page.getByRole('button', { name: 'Earlier iterations' }).click();
    await page.waitForSelector('text=Iteration 1');
    await page.getByRole('button', { name: 'Newest' }).click();
    await page.waitForSelector('text=Iteration 1', { state: 'detached' });
    await closePage(page);
  });
});

describe('overview', () => {
  const names = "[...document.querySelectorAll('[data-run] .name a')].map(a => a.textContent)";

  test('search, filter, sort and the address that keeps them', async () => {
    const page = await openPage(browser, server.url);
    await page.waitForSelector('[data-run=sick]');
    expect(await page.evaluate(`${names}.length`)).toBe(12);
    await page.keyboard.press('/');
    await page.keyboard.type('cartpole seed-1');
    await eventually(() => page.evaluate(names)).toEqual([
      'cartpole-lr-3e-4-seed-1',
      'cartpole-lr-1e-3-seed-1',
    ]);
    await page.keyboard.press('Escape');
    expect(await page.evaluate('document.activeElement === document.body')).toBe(true);
    expect(await page.inputValue('#search')).toBe('cartpole seed-1');
    await page.fill('#search', '');
    await page.getByRole('button', { name: /^#sweep-3/ }).click();
    await page.getByRole('button', { name: 'KL of the update' }).click();
    const sorted = ['hopper-lr-1e-3', 'pendulum-seed-3', 'cartpole-lr-3e-4-seed-1'];
    await eventually(() => page.evaluate(names)).toEqual(sorted);
    await eventually(() => page.url()).toMatch(/sort=-kl.*tag=sweep-3/);
    await page.reload();
    await page.waitForSelector('[data-run=sick]');
    expect(await page.evaluate(names)).toEqual(sorted);
    expect(await page.getAttribute('th:has-text("KL of the update")', 'aria-sort')).toBe('descending');
    await closePage(page);
  });

  test('tags, a note and the archive', async () => {
    const page = await openPage(browser, server.url);
    await page.getByRole('button', { name: 'Tags and note of lunar-nan' }).click();
    await page.locator('dialog').getByLabel('Tags').fill('broken, look-again');
    await page.locator('dialog').getByLabel('Note').fill('NaN at step 140k');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.waitForSelector('[data-run=failed] >> text=#look-again');
    expect(server.runs.get('failed')!.note).toBe('NaN at step 140k');
    await page.getByRole('button', { name: 'Tags and note of lunar-nan' }).click();
    await page.getByRole('button', { name: 'Archive', exact: true }).click();
    await page.waitForSelector('[data-run=failed]', { state: 'detached' });
    expect(server.runs.get('failed')!.archived).toBe(true);
    await page.getByRole('button', { name: /^Archived/ }).click();
    await page.waitForSelector('[data-run=failed]');
    await closePage(page);
  });

  test('a problem with saving is said and nothing is lost', async () => {
    server.broken.set('/api/runs/a2/notes', { status: 403, message: 'The server was started read-only.' });
    const page = await openPage(browser, server.url);
    await page.getByRole('button', { name: 'Tags and note of cartpole-lr-3e-4-seed-2' }).click();
    await page.locator('dialog').getByLabel('Note').fill('mine');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.waitForSelector('dialog >> text=The server was started read-only.');
    expect(await page.inputValue('dialog textarea')).toBe('mine');
    server.broken.clear();
    await closePage(page);
  });

  test('with keys alone: two runs are chosen and compared', async () => {
    const page = await openPage(browser, `${server.url}#/?q=lr-3e-4`);
    await page.waitForSelector('[data-run=a1]');
    for (const key of ['j', 'Space', 'j', 'Space', 'c']) await page.keyboard.press(key);
    await page.waitForSelector('h1:has-text("Compare")');
    expect(page.url()).toContain('runs=a1,a2');
    await closePage(page);
  });

  test('200 runs are there at once, and change without a stumble', async () => {
    const many = await startFakeServer(
      site,
      Array.from({ length: 200 }, (_, i) =>
        fakeRun({
          id: `r${i}`,
          name: `run-${i}`,
          seed: i,
          state: i < 20 ? 'running' : 'finished',
          rows: 60 + i,
          plannedRows: 400,
        }),
      ),
    );
    const page = await openPage(browser, many.url);
    await page.locator('[data-run]').nth(199).waitFor();
    await page.evaluate(watchFrames);
    for (let k = 0; k < 20; k++) {
      for (let i = 0; i < 20; i++) many.grow(`r${i}`, 1);
      await page.waitForTimeout(50);
    }
    // On a busy machine they are slower, but they come.
    await eventually(() => page.evaluate('window.frames_.length')).toBeGreaterThan(20);
    await closePage(page);
    await many.close();
  });
});

const watchFrames = `(() => {
  window.frames_ = [];
  let last = performance.now();
  const next = now => { window.frames_.push(now - last); last = now; requestAnimationFrame(next); };
  requestAnimationFrame(next);
})()`;

describe('states', () => {
  test('an empty server says what to do', async () => {
    const empty = await startFakeServer(site, []);
    const page = await openPage(browser, empty.url);
    await page.waitForSelector('text=No runs yet');
    expect(await accessibilityFaults(page)).toEqual([]);
    await closePage(page);
    await empty.close();
  });

  test('a stale link says so and goes on', async () => {
    const page = await openPage(browser, `${server.url}#/runs/never-was/nothing?x=moon&from=a`);
    await page.waitForSelector('text=There is no such run');
    await page.waitForSelector('text=The link asks for x “moon”');
    await page.waitForSelector('text=which is no number');
    await page.getByRole('link', { name: 'All runs', exact: true }).click();
    await page.waitForSelector('[data-run=sick]');
    await closePage(page);
  });

  test('a link to a metric that the run does not log shows the rest', async () => {
    const page = await openPage(browser, `${server.url}#/runs/live?focus=env/altitude`);
    await page.waitForSelector('text=which this run does not log');
    await waitForPlots(page, 4);
    await closePage(page);
  });

  test('a link that compares by a setting: a run that is gone and a setting that none has are named', async () => {
    const page = await openPage(browser, `${server.url}#/compare?runs=a1,b1,gone&by=learningRate`);
    await page.waitForSelector('text=“gone” is left out: not found');
    expect(await page.locator('.legend li').count()).toBe(2);
    await page.goto(`${server.url}#/compare?runs=a1,b1&by=colour`);
    await page.waitForSelector('text=None of these runs has a setting “colour” to group by.');
    await closePage(page);
  });

  test('a logarithmic axis: what is nowhere above 0 stays linear and says so', async () => {
    const page = await openPage(browser, `${server.url}#/runs/live?log=1&focus=loss/policy`);
    await waitForPlots(page, 4);
    await page.waitForSelector('text=linear: nothing above 0');
    await closePage(page);
  });

  test('a run that just began, a log that no one knows, a note on a broken line', async () => {
    const page = await openPage(browser, `${server.url}#/runs/new`);
    await page.waitForSelector('text=No values yet');
    await page.waitForSelector('text=too short to be judged');
    await page.goto(`${server.url}#/runs/bad`);
    await page.waitForSelector('text=No file here is a log that the doctor knows');
    await page.goto(`${server.url}#/runs/sb3/config`);
    await page.waitForSelector('text=Line 812 could not be read');
    await closePage(page);
  });

  test('a run that is deleted while open: the page says so, and keeps what it has', async () => {
    const own = await startFakeServer(site, gallery());
    const page = await openPage(browser, `${own.url}#/runs/a1`);
    await waitForPlots(page, 4);
    own.remove('a1');
    await page.waitForSelector("text=The run's directory is gone");
    // Links to files of it would lead nowhere.
    expect(await page.getByRole('link', { name: /^(Report|CSV)$/ }).count()).toBe(0);
    expect(
      await page.evaluate("document.querySelectorAll('.plot-host canvas').length"),
    ).toBeGreaterThanOrEqual(4);
    await closePage(page);
    await own.close();
  });

  test('series that the server cannot give are an error in their plot, not of the page', async () => {
    server.broken.set('/api/runs/watch/series', {
      status: 500,
      message: 'The log could not be read: disk error.',
    });
    const page = await openPage(browser, `${server.url}#/runs/watch`);
    await page.waitForSelector('.plot >> text=The log could not be read: disk error.');
    server.broken.clear();
    await closePage(page);
  });
});
