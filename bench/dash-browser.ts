/** The page in a real browser: how fast a large run opens, how even its frames are while it is panned, what it holds. */
import type { Browser, Page } from 'playwright-core';
import { launch, openPage } from '../test/page/support/browser.ts';
import { builtPage } from '../test/page/support/built-page.ts';
import { median, report, round } from './measure.ts';

export { builtPage, launch };

const target = { openMs: 1500, frameMs: 50, listMs: 1500, sortMs: 100 };

interface LongFrame {
  readonly ms: number;
  /** Of scripts, and of style, layout and painting, in milliseconds. */
  readonly scriptMs: number;
  readonly renderMs: number;
}

interface Visit {
  readonly openMs: number;
  readonly frames: readonly number[];
  readonly long: readonly LongFrame[];
}

/** Opens a run with many long series and pans it, a few times. */
export async function openAndPan(url: string, run: string, times = 3): Promise<void> {
  const browser = await launch();
  const visits: Visit[] = [];
  try {
    const page = await openPage(browser, url, { bypassCSP: true });
    for (let i = 0; i < times; i++) visits.push(await visit(page, `${url}#/runs/${run}`));
  } finally {
    await browser.close();
  }
  const opened = visits.map(({ openMs }) => openMs);
  const longest = visits.map(({ frames }) => frames.at(-1)!);
  const share = (part: number): number =>
    median(visits.map(({ frames }) => frames[Math.floor(frames.length * part)]));
  const worst = visits.flatMap(({ long }) => long).sort((a, b) => b.ms - a.ms);
  report({
    name: 'the page of a run with 50 series of 1M points, in Chromium',
    open_ms: opened.map(ms => round(ms, 0)),
    open_median_ms: round(median(opened), 0),
    target_open_ms: target.openMs,
    pan_frames: visits.map(({ frames }) => frames.length),
    pan_median_ms: round(share(0.5), 1),
    pan_95_percent_ms: round(share(0.95), 1),
    pan_longest_ms: longest.map(ms => round(ms, 0)),
    target_frame_ms: target.frameMs,
    long_frames: worst.slice(0, 5).map(frame => ({
      ms: round(frame.ms, 0),
      script_ms: round(frame.scriptMs, 0),
      render_ms: round(frame.renderMs, 0),
    })),
  });
}

async function visit(page: Page, address: string): Promise<Visit> {
  await page.goto('about:blank');
  const start = performance.now();
  await page.goto(address);
  // All plots that are on the screen have their lines.
  await page.waitForFunction(`(() => {
    const seen = [...document.querySelectorAll('.plot-host')].filter(h => h.getBoundingClientRect().top < innerHeight);
    return seen.length >= 4 && seen.every(h => h.querySelector('canvas') !== null && /\\d values/.test(h.ariaLabel));
  })()`);
  const openMs = performance.now() - start;
  for (let i = 0; i < 4; i++) await page.keyboard.press('+');
  await page.waitForTimeout(1000);
  await page.evaluate(`(() => {
    window.frames_ = [];
    window.long_ = [];
    let last = performance.now();
    const next = now => { window.frames_.push(now - last); last = now; requestAnimationFrame(next); };
    requestAnimationFrame(next);
    window.observer_ = new PerformanceObserver(list => {
      for (const e of list.getEntries()) window.long_.push({
        ms: e.duration,
        scriptMs: e.scripts.reduce((sum, s) => sum + s.duration, 0),
        renderMs: e.startTime + e.duration - e.renderStart,
      });
    });
    window.observer_.observe({ type: 'long-animation-frame' });
  })()`);
  const box = (await page.locator('.plot-host').first().boundingBox())!;
  await page.keyboard.down('Shift');
  await page.mouse.move(box.x + box.width * 0.9, box.y + 60);
  await page.mouse.down();
  for (let i = 0; i < 120; i++) await page.mouse.move(box.x + box.width * (0.9 - i * 0.006), box.y + 60);
  await page.mouse.up();
  await page.keyboard.up('Shift');
  const frames = (await page.evaluate<number[]>('window.frames_')).slice(1).sort((a, b) => a - b);
  const long = await page.evaluate<LongFrame[]>('window.observer_.disconnect() ?? window.long_');
  return { openMs, frames, long };
}

/**
 * Opens the list of many runs, each as a row of its own and seeds together, and sorts it by each of its columns. Besides
 * the longest frame it takes the page's processor time, which other work on the machine adds little to.
 */
export async function listAndSort(url: string, runs: number, when: string): Promise<void> {
  const browser = await launch();
  try {
    for (const [name, hash, least] of [
      ['each run a row', '#/?flat=1', runs],
      ['seeds as one row', '#/', runs / 5],
    ] as const) {
      const opened: number[] = [];
      const page = await openPage(browser, 'about:blank', { bypassCSP: true });
      for (let i = 0; i < 3; i++) {
        await page.goto('about:blank');
        const start = performance.now();
        await page.goto(url + hash);
        await page.waitForFunction(
          `Number(document.querySelector('table')?.getAttribute('aria-rowcount')) > ${least}`,
        );
        opened.push(performance.now() - start);
      }
      await page.waitForTimeout(2500); // what is loaded ahead is there
      await page.evaluate(watchFrames);
      const sorted: number[] = [];
      const worked: number[] = [];
      const processorMs = await pageProcessorMs(page);
      for (const column of ['Return', 'Verdict', 'Run', 'Updated']) {
        const heads = page.getByRole('button', { name: column, exact: true });
        const head = await heads.elementHandle();
        await page.evaluate('window.frames_.length = 0');
        const before = await processorMs();
        await head.click();
        await page.waitForTimeout(400);
        worked.push((await processorMs()) - before);
        sorted.push(Math.max(...(await page.evaluate<number[]>('window.frames_'))));
      }
      report({
        name: `the list of ${runs} runs in Chromium, ${name}, ${when}`,
        first_rows_ms: opened.map(ms => round(ms, 0)),
        first_rows_median_ms: round(median(opened), 0),
        target_first_rows_ms: target.listMs,
        sort_frame_ms: sorted.map(ms => round(ms, 0)),
        sort_worst_frame_ms: round(Math.max(...sorted), 0),
        target_sort_frame_ms: target.sortMs,
        sort_processor_ms: worked.map(ms => round(ms, 0)),
        rows_drawn: await page.locator('tbody .row').count(),
      });
      await page.context().close();
    }
  } finally {
    await browser.close();
  }
}

const watchFrames = `(() => {
  window.frames_ = [];
  let last = performance.now();
  const next = now => { window.frames_.push(now - last); last = now; requestAnimationFrame(next); };
  requestAnimationFrame(next);
})()`;

/** Tells the processor time that the page's main thread has taken so far. */
async function pageProcessorMs(page: Page): Promise<() => Promise<number>> {
  const session = await page.context().newCDPSession(page);
  await session.send('Performance.enable', { timeDomain: 'threadTicks' });
  return async () => {
    const { metrics } = await session.send('Performance.getMetrics');
    return 1000 * metrics.find(({ name }) => name === 'TaskDuration')!.value;
  };
}

/** What the page's scripts hold, in megabytes, after a collection. */
export async function heapOf(page: Page): Promise<number> {
  const session = await page.context().newCDPSession(page);
  await session.send('HeapProfiler.collectGarbage');
  const { usedSize } = await session.send('Runtime.getHeapUsage');
  await session.detach();
  return usedSize / 2 ** 20;
}

/** The page open on a run, or on the newest of the overview. */
export async function lookAt(browser: Browser, url: string, hash = ''): Promise<Page> {
  const page = await openPage(browser, `${url}${hash}`);
  await page.waitForSelector(hash === '' ? '[data-run]' : '.plot-host canvas');
  return page;
}
