/** The recording of a policy that routes requests, in a real browser over a real server. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { RunningServer } from '../../src/server/serve.ts';
import type { ClusterTimeline } from '../../src/view/cluster-timeline.ts';
import { serve } from '../server/support/client.ts';
import { makeRun, scratch } from '../server/support/make-run.ts';
import { patienceMs } from '../support/until.ts';
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

const moments = [0, 1, 2, 3];
const replicas = ['a100', 'a100', 'h100'];
const table = replicas.map((_, r) => moments.map(t => r + t));
const timeline: ClusterTimeline = {
  version: 1,
  router: 'policy',
  step: 1000,
  replicas,
  timeS: moments,
  waiting: table,
  running: table,
  memory: table.map(row => row.map(v => v / 10)),
  routed: table,
  latencyMeanS: [null, 1, 2, 3],
  latencyMaxS: [null, 2, 3, 4],
  decisions: Array.from({ length: 30 }, (_, i) => ({
    atS: i / 10,
    promptTokens: 100 * i,
    estimatedTokens: 50,
    replica: i % 3,
    latencyS: 1,
  })),
};

let browser: Browser;
let server: RunningServer;
beforeAll(async () => {
  const root = scratch();
  const { dir, writer } = makeRun(root, 'router', 4);
  writer.end('finished');
  writeFileSync(join(dir, 'cluster.json'), JSON.stringify(timeline));
  const site = await builtPage();
  [browser, server] = await Promise.all([
    launch(),
    serve({ roots: [root], port: 0, page: site, stateDirectory: scratch(), pollMs: 100 }),
  ]);
  await server.index.searched(patienceMs);
});
afterAll(async () => {
  await browser?.close();
  await server?.close();
});

test('replicas are called so, axe is silent in both themes, and a phone has room', async () => {
  const [{ id }] = server.index.list().runs;
  const page = await openPage(browser, `${server.url}#/runs/${id}/cluster`);
  await page.waitForSelector('text=replica 2 (a100): 33%');
  expect(await accessibilityFaults(page)).toEqual([]);
  expect(await zoomFaults(page)).toEqual([]);
  await keepPicture(page, 'cluster');
  await page.emulateMedia({ colorScheme: 'dark' });
  await eventually(() => page.evaluate('document.documentElement.dataset.theme')).toBe('dark');
  expect(await accessibilityFaults(page)).toEqual([]);
  await page.setViewportSize({ width: 360, height: 740 });
  expect(
    await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth'),
  ).toBe(0);
  await closePage(page);
});
