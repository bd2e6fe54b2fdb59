/** One vocabulary on the page: chips, plots and lines of a KL, by the contract of the run, in a real browser. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { klBand } from '../../src/metrics/registry.ts';
import {
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
import { type FakeRun, fakeRun, noise } from './support/fake-runs.ts';
import { type FakeServer, startFakeServer } from './support/fake-server.ts';
import { spikeRun } from './support/gallery.ts';

const settings = (targetKl: number | null): FakeRun['config'] => ({ learningRate: 3e-4, targetKl, seed: 1 });
const large = (i: number): number => 0.031 + 0.017 * noise(i, 5);

const runs = (): FakeRun[] => [
  fakeRun({ id: 'large', name: 'arachne-large-steps', kl: large, config: settings(null) }),
  fakeRun({ id: 'target', name: 'arachne-target', kl: large, config: settings(0.03) }),
  fakeRun({ id: 'tiny', name: 'small-steps', kl: i => 2e-5 * (1 + noise(i, 3)), config: settings(null) }),
  spikeRun(),
];

let browser: Browser;
let server: FakeServer;
let page: OpenPage;
beforeAll(async () => {
  const site = await builtPage();
  [browser, server] = await Promise.all([launch(), startFakeServer(site, runs())]);
});
afterAll(async () => {
  await browser?.close();
  await server?.close();
});

const open = async (hash: string, options: Parameters<typeof openPage>[2] = {}): Promise<void> => {
  page = await openPage(browser, `${server.url}${hash}`, options);
};
const green = [0, 150, 120] as const;
const red = [205, 50, 50] as const;
/** The drawing of the first plot, left of the labels of its bands: its lowest and highest part. */
const [foot, top] = [
  { left: 0.12, top: 0.7, right: 0.3, bottom: 0.76 },
  { left: 0.12, top: 0.06, right: 0.3, bottom: 0.12 },
];

describe('the plot of a KL', () => {
  test('shows 0 and the healthy band below values that never reach them', async () => {
    await open('#/runs/large');
    await waitForPlots(page, 4);
    await eventually(() => hasColor(page, 0, green, foot, 25, 15)).toBe(true);
    expect(await hasColor(page, 0, red, top, 25, 25)).toBe(true);
    await keepPicture(page, 'bands-large');
    await closePage(page);
  });

  test('and above values that are far below', async () => {
    await open('#/runs/tiny');
    await waitForPlots(page, 4);
    await eventually(() => hasColor(page, 0, green, top, 25, 15)).toBe(true);
    await closePage(page);
  });

  test('has the bands of the target: the same values are ok, and nothing is red below the guard', async () => {
    await open('#/runs/target');
    await waitForPlots(page, 4);
    const box = { left: 0.12, top: 0.2, right: 0.3, bottom: 0.76 };
    await eventually(() => hasColor(page, 0, green, box, 25, 15)).toBe(true);
    expect(await hasColor(page, 0, red, box, 12, 25)).toBe(false);
    const chip = page.locator('.caption .chip').first();
    expect(klBand(large(239), { target: 0.03, guard: 0.05 }).name).toBe('ok');
    await eventually(() => chip.textContent()).toBe('ok');
    await keepPicture(page, 'bands-target');
    await closePage(page);
  });

  test('keeps one spike among a million rows, logarithmic as it is by itself, and linear', async () => {
    const line = [31, 95, 168] as const;
    // Between what the others reach and the top there is nothing but the spike: a line of full strength.
    const above = { left: 0.5, top: 0.03, right: 0.75, bottom: 0.2 };
    const beside = { left: 0.15, top: 0.03, right: 0.45, bottom: 0.2 };
    for (const [hash, isLog] of [
      ['#/runs/spike', true],
      ['#/runs/spike?linear=kl%2Fstep', false],
    ] as const) {
      await open(hash);
      await waitForPlots(page, 4);
      if (isLog) await page.waitForSelector('.caption .log');
      await eventually(() => hasColor(page, 0, line, above, 40, 200)).toBe(true);
      expect(await hasColor(page, 0, line, beside, 40, 200)).toBe(false);
      await keepPicture(page, `bands-spike-${isLog ? 'log' : 'linear'}`);
      await closePage(page);
    }
  });

  test('and so does the plot of anything else, whose band alone would be faint', async () => {
    for (const log of ['0', '1']) {
      await open(`#/runs/spike?focus=env%2Fsignal&log=${log}`);
      await page.waitForSelector('dialog .plot-host canvas');
      const plots = await page.locator('.plot-host canvas').count();
      const box = { left: 0.58, top: 0.03, right: 0.66, bottom: 0.25 };
      await eventually(() => hasColor(page, plots - 1, [31, 95, 168], box, 40, 200)).toBe(true);
      await closePage(page);
    }
  });
});

describe('chips', () => {
  test('are the band of the number beside them, and name the worst where it is in another', async () => {
    await open('#/runs/spike');
    await waitForPlots(page, 4);
    const host = page.locator('.plot-host .u-over').first();
    await eventually(() => page.locator('.caption').first().textContent()).toMatch(/healthy\s*0\.00/);
    const box = (await host.boundingBox())!;
    let told = '';
    for (let x = 0.61; x < 0.63 && !told.includes('worst'); x += 0.0005) {
      await page.mouse.move(box.x + x * box.width, box.y + box.height / 2);
      told = (await page.locator('.caption').first().textContent()) ?? '';
    }
    expect(told).toMatch(/worst: critical 1(\.0+)?\b/);
    await closePage(page);
  });

  test('of the overview say their word', async () => {
    for (const colorScheme of ['light', 'dark'] as const) {
      await open('#/', { colorScheme });
      await page.waitForSelector('[data-run=large]');
      const chip = (id: string) => page.locator(`[data-run=${id}] .kl .chip`).textContent();
      await eventually(() => chip('large')).toMatch(/^0\.0\d+ problem$/);
      expect(await chip('target')).toMatch(/^0\.0\d+ ok$/);
      expect(await chip('tiny')).toMatch(/small$/);
      await keepPicture(page, `bands-overview-${colorScheme}`);
      await closePage(page);
    }
  });
});
