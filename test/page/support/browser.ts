/** A real browser for the tests of the page. */
import { existsSync, readFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { type Browser, chromium, type Page } from 'playwright-core';
import { patienceMs } from '../../support/until.ts';

export type { Browser, Page };

/** Where Chromium is; without one the tests cannot say anything, and fail. */
function chromiumPath(): string {
  const places = ['/usr/bin/chromium-headless-shell', '/usr/bin/chromium'];
  const found = [process.env.CHROMIUM, ...places].find(path => path !== undefined && existsSync(path));
  if (found === undefined) {
    throw new Error(
      `the tests of the page need Chromium at ${places.join(' or ')}, or at the path in CHROMIUM: run tools/install-test-packages.sh`,
    );
  }
  return found;
}

/** `software` draws 3D without a graphics card, which machines that run tests do not have; `none` refuses 3D. */
export function launch({ webgl }: { webgl?: 'software' | 'none' } = {}): Promise<Browser> {
  const graphics = {
    software: ['--use-angle=swiftshader', '--enable-unsafe-swiftshader', '--ignore-gpu-blocklist'],
    none: ['--disable-3d-apis'],
  };
  return chromium.launch({
    executablePath: chromiumPath(),
    args: ['--no-sandbox', '--disable-dev-shm-usage', ...(webgl === undefined ? [] : graphics[webgl])],
  });
}

export interface OpenPage extends Page {
  /** Errors of the page's own scripts, and what its content policy refused. */
  readonly faults: string[];
}

export async function openPage(
  browser: Browser,
  url: string,
  options: {
    width?: number;
    height?: number;
    colorScheme?: 'light' | 'dark';
    permissions?: string[];
    /** Waiting for a condition given as text evaluates it, which the page's own policy refuses. */
    bypassCSP?: boolean;
  } = {},
): Promise<OpenPage> {
  const context = await browser.newContext({
    viewport: { width: options.width ?? 1280, height: options.height ?? 900 },
    colorScheme: options.colorScheme ?? 'light',
    permissions: options.permissions ?? [],
    reducedMotion: 'reduce',
    bypassCSP: options.bypassCSP ?? false,
  });
  const page = await context.newPage();
  // Generous: on a busy machine a page is slow, and only a broken one never comes.
  page.setDefaultTimeout(patienceMs);
  const faults: string[] = [];
  page.on('pageerror', error => faults.push(error.stack ?? error.message));
  page.on('console', message => {
    if (message.type() === 'error' && !message.text().startsWith('Failed to load resource'))
      faults.push(message.text());
  });
  await page.goto(url);
  return Object.assign(page, { faults });
}

/** Closes a page; it is an error if its scripts failed. */
export async function closePage(page: OpenPage): Promise<void> {
  await page.context().close();
  if (page.faults.length > 0) throw new Error(`the page's scripts failed:\n${page.faults.join('\n')}`);
}

const axeSource = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** What an accessibility check complains about, as short lines; nothing if all is well. */
export async function accessibilityFaults(page: Page): Promise<string[]> {
  if (!(await page.evaluate('"axe" in window'))) await page.evaluate(axeSource);
  const rules =
    "{ resultTypes: ['violations'], runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] }";
  return page.evaluate<string[]>(
    `axe.run(document, ${rules}).then(r => r.violations.flatMap(v => v.nodes.map(n => v.id + ': ' + n.target.join(' ') + ' ' + (n.failureSummary || '').replace(/\\s+/g, ' ').slice(0, 200))))`,
  );
}

/**
 * What a person who looks at 200 %, and one who goes through with the keyboard, cannot reach: at that zoom a page has half
 * the window's pixels, each drawn as four. Nothing may be wider than the window but what scrolls by itself, and what has
 * the focus is neither beyond its edges nor below something else.
 */
export async function zoomFaults(page: Page): Promise<string[]> {
  const size = page.viewportSize()!;
  const session = await page.context().newCDPSession(page);
  const metrics = { width: 640, height: 450, deviceScaleFactor: 2, mobile: false };
  await session.send('Emulation.setDeviceMetricsOverride', metrics);
  const faults = await page.evaluate<string[]>(`(async () => {
    const frame = () => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
    await frame();
    const faults = [];
    const wide = document.documentElement.scrollWidth - innerWidth;
    if (wide > 0) faults.push('the page is ' + wide + ' pixels wider than the window');
    const named = e => e.tagName.toLowerCase() + ' "' + (e.getAttribute('aria-label') ?? e.textContent).trim().slice(0, 40) + '"';
    const all = document.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex="0"]');
    for (const e of [...all].filter(e => e.checkVisibility() && !e.disabled).slice(0, 150)) {
      e.focus();
      if (document.activeElement !== e) continue;
      const { left, right, top, bottom, width, height } = e.getBoundingClientRect();
      if (width < 2 || height < 2) continue;
      const x = (Math.max(0, left) + Math.min(innerWidth, right)) / 2;
      const y = (Math.max(0, top) + Math.min(innerHeight, bottom)) / 2;
      if (left > innerWidth - 2 || right < 2 || top > innerHeight - 2 || bottom < 2) {
        faults.push(named(e) + ' is not in the window');
        continue;
      }
      // A slider that leaves the pointer to what is below it is seen all the same.
      const pointer = e.style.pointerEvents;
      e.style.pointerEvents = 'auto';
      const there = document.elementFromPoint(x, y);
      e.style.pointerEvents = pointer;
      if (there === null || !(e.contains(there) || there.contains(e) || e.closest('label')?.contains(there)))
        faults.push(named(e) + ' is below ' + (there === null ? 'nothing' : named(there)));
    }
    document.activeElement?.blur();
    scrollTo(0, 0);
    return faults;
  })()`);
  await session.send('Emulation.clearDeviceMetricsOverride');
  await session.detach();
  await page.setViewportSize(size);
  return faults;
}

/** Keeps a picture as an artifact where one is asked for. */
export async function keepPicture(page: Page, name: string): Promise<void> {
  const folder = process.env.KEEL_PICTURES;
  if (folder === undefined) return;
  await mkdir(folder, { recursive: true });
  await page.screenshot({ path: join(folder, `${name}.png`) });
}

/** Waits until plots are drawn: that many canvases with something on them. */
export async function waitForPlots(page: Page, count: number): Promise<void> {
  await page
    .locator('.plot-host canvas')
    .nth(count - 1)
    .waitFor({ state: 'attached' });
}

/** Whether a canvas has a pixel near a colour (each part within `reach`) that is at least that opaque, somewhere in a box given in shares of it. */
export function hasColor(
  page: Page,
  plot: number,
  [r, g, b]: readonly [number, number, number],
  box: { left: number; top: number; right: number; bottom: number },
  reach = 40,
  opaque = 150,
): Promise<boolean> {
  return page.evaluate<boolean>(`(() => {
    const canvas = document.querySelectorAll('.plot-host canvas')[${plot}];
    const { width: w, height: h } = canvas;
    const x = Math.floor(w * ${box.left}), y = Math.floor(h * ${box.top});
    const data = canvas.getContext('2d').getImageData(x, y, Math.ceil(w * ${box.right - box.left}), Math.ceil(h * ${box.bottom - box.top})).data;
    for (let i = 0; i < data.length; i += 4) {
      if (data[i + 3] >= ${opaque} && Math.abs(data[i] - ${r}) < ${reach} && Math.abs(data[i + 1] - ${g}) < ${reach} && Math.abs(data[i + 2] - ${b}) < ${reach}) return true;
    }
    return false;
  })()`);
}
