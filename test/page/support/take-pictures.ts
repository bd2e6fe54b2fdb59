/** Takes the pictures of docs/page.md: `npx tsx test/page/support/take-pictures.ts`. */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { launch, openPage } from './browser.ts';
import { builtPage } from './built-page.ts';
import type { FakeRun } from './fake-runs.ts';
import { startFakeServer } from './fake-server.ts';
import { galleryStudy } from './fake-studies.ts';
import { gallery, seedGallery, spikeRun } from './gallery.ts';

/** Where they go: another directory to look at them first. */
const folder = process.argv[2] ?? fileURLToPath(new URL('../../../docs/pictures', import.meta.url));

interface Picture {
  readonly name: string;
  readonly hash: string;
  readonly width: number;
  readonly height: number;
  readonly dark?: boolean;
  /** Where the pointer is, in shares of the first plot. */
  readonly pointer?: readonly [number, number];
  /** What is clicked first. */
  readonly open?: string;
  /** The part of the page that is kept. */
  readonly only?: string;
  /** What is searched among the plots. */
  readonly search?: string;
}

const pictures: readonly Picture[] = [
  { name: 'overview', hash: '#/', width: 1280, height: 560 },
  { name: 'run', hash: '#/runs/sick', width: 1080, height: 790, pointer: [0.66, 0.4] },
  { name: 'doctor', hash: '#/runs/sick/doctor', width: 1080, height: 1180 },
  { name: 'phone', hash: '#/runs/sick', width: 360, height: 740 },
  { name: 'phone-overview', hash: '#/', width: 360, height: 740 },
  { name: 'failed', hash: '#/runs/failed', width: 1080, height: 420, open: 'summary' },
  { name: 'search', hash: '#/runs/a1', width: 1080, height: 620, search: 'kl' },
  { name: 'config', hash: '#/runs/b1/config', width: 1080, height: 440 },
];
/** Of runs that differ only in their seed. */
const ofSeeds: readonly Picture[] = [
  { name: 'seeds', hash: '#/', width: 1280, height: 700, open: '[data-group=slow] button' },
  { name: 'damaged', hash: '#/?state=failed,killed,unreadable', width: 1280, height: 270 },
  {
    name: 'compare',
    hash: `#/compare?runs=${[0, 1, 2, 3, 4].map(i => `slow${i}`)},fast0,fast1,fast2,sb3`,
    width: 1280,
    height: 860,
    pointer: [0.5, 0.4],
  },
];
/** One value among a million rows. */
const ofSpike: readonly Picture[] = [
  { name: 'spike-log', hash: '#/runs/spike', width: 900, height: 900, only: '.headline .cell' },
  {
    name: 'spike-linear',
    hash: '#/runs/spike?linear=kl%2Fstep',
    width: 900,
    height: 900,
    only: '.headline .cell',
  },
];

async function take(
  list: readonly Picture[],
  runs: readonly FakeRun[],
  studies?: Parameters<typeof startFakeServer>[2],
): Promise<void> {
  const [browser, server] = await Promise.all([launch(), startFakeServer(await builtPage(), runs, studies)]);
  for (const { name, hash, width, height, dark, pointer, open, search, only } of list) {
    const page = await openPage(browser, server.url + hash, {
      width,
      height,
      colorScheme: dark ? 'dark' : 'light',
    });
    await page.waitForTimeout(1200);
    if (open !== undefined) await page.locator(open).first().click();
    if (search !== undefined) await page.getByLabel('Search plots').fill(search);
    if (open !== undefined || search !== undefined) {
      await page.mouse.move(0, 0);
      await page.waitForTimeout(700);
    }
    if (pointer !== undefined) {
      const box = (await page.locator('.plot-host .u-over').first().boundingBox())!;
      await page.mouse.move(box.x + box.width * pointer[0], box.y + box.height * pointer[1]);
      await page.waitForTimeout(200);
    }
    const path = join(folder, `${name}.png`);
    await (only === undefined ? page.screenshot({ path }) : page.locator(only).first().screenshot({ path }));
    await page.context().close();
  }
  await browser.close();
  await server.close();
}

async function main(): Promise<void> {
  await mkdir(folder, { recursive: true });
  await take(pictures, gallery(), new Map([['s1', galleryStudy()]]));
  await take(ofSeeds, seedGallery());
  await take(ofSpike, [spikeRun()]);
}

await main();
