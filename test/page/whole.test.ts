/** The page with the real server and real runs: training from start to end, a fix, another trainer's log that grows. */
import { appendFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { RunningServer } from '../../src/server/serve.ts';
import { startKeel } from '../cli/support/keel.ts';
import { serve } from '../server/support/client.ts';
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

const project = fileURLToPath(new URL('../..', import.meta.url));
let browser: Browser;
let server: RunningServer;
let root: string;
let file: string;

/** A log of Stable-Baselines3 in two halves. */
const fixture = join(project, 'test/doctor/fixtures/sb3/cartpole-lr-high/progress.csv');
const [head, ...lines] = readFileSync(fixture, 'utf8').trimEnd().split('\n');
const half = Math.floor(lines.length / 2);

beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), 'keel-page-'));
  mkdirSync(join(root, 'runs'));
  // Before the server starts: it looks for others' logs seldom.
  file = join(root, 'logs', 'PPO_1', 'progress.csv');
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, `${[head, ...lines.slice(0, half)].join('\n')}\n`);
  const site = await builtPage();
  [browser, server] = await Promise.all([
    launch(),
    serve({
      roots: [join(root, 'runs'), join(root, 'logs')],
      port: 0,
      page: site,
      stateDirectory: join(root, 'state'),
      pollMs: 150,
    }),
  ]);
});
afterAll(async () => {
  await browser?.close();
  await server?.close();
  rmSync(root, { recursive: true, force: true });
});

/** Starts `keel train` in a process of its own. */
const train = (...args: string[]) =>
  startKeel(['train', ...args, '--no-dash', '--run-dir', join(root, 'runs')]);

const stepOf = (text: string | null) => Number((text ?? '').split('/')[0].replace(/\D/g, ''));

const totalSteps = 20_000;

test('a run of Keel from its start to its end', async () => {
  const page = await openPage(browser, `${server.url}#/?q=cartpole`);
  await page.waitForSelector('text=No run fits');
  const training = train('cartpole', '--steps', String(totalSteps), '--seed', '1');
  // It is held after its first rows, so that it is not done before it is looked at, however fast the machine is.
  await eventually(() => training.output.stdout).toMatch(/% .* return /);
  training.child.kill('SIGSTOP');
  const row = page.locator('[data-run]').first();
  await row.waitFor();
  await row.getByRole('link').click();
  await waitForPlots(page, 4);
  const step = async () => stepOf(await page.locator('.head dd').first().textContent());
  const early = await step();
  expect(early).toBeLessThan(totalSteps);
  training.child.kill('SIGCONT');
  await eventually(step).toBeGreaterThan(early);
  const { code, stderr } = await training.done;
  expect(code, stderr).toBe(0);
  await page.waitForSelector('.facts >> text=finished');
  await eventually(step).toBeGreaterThanOrEqual(totalSteps);
  // The plots have every row, each once, though most came by the stream.
  const rows = stepOf(
    String(
      readFileSync(join(root, 'runs', (await page.locator('h1').textContent())!, 'metrics.jsonl'), 'utf8')
        .trim()
        .split('\n').length,
    ),
  );
  await eventually(() => page.locator('.plot-host').first().getAttribute('aria-label')).toContain(
    `: ${rows} values`,
  );
  // What happened is counted, though nobody looked while it did.
  const legend = page.getByRole('group', { name: 'Events on the plots' });
  const reopened = await openPage(browser, `${server.url}${new URL(page.url()).hash}`);
  await waitForPlots(reopened, 4);
  const again = reopened.getByRole('group', { name: 'Events on the plots' });
  await eventually(() => again.getByRole('button', { name: /^Checkpoint \d/ }).count()).toBe(1);
  await eventually(async () => (await legend.textContent()) === (await again.textContent())).toBe(true);
  await closePage(reopened);

  await page.getByRole('link', { name: /^Checkpoints/ }).click();
  await page.waitForSelector('text=policy.onnx');
  await page
    .getByRole('button', { name: /^Evaluate step/ })
    .first()
    .click();
  await page.waitForSelector('td >> text=/\\d+\\s+episodes/');
  expect(await page.locator('td.evaluation b').first().textContent()).toMatch(/^\d[\d. ]*$/);
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('link', { name: 'policy.onnx' }).first().click(),
  ]);
  expect(download.suggestedFilename()).toMatch(/^cartpole-.*\.\d+\.onnx$/);
  expect(readFileSync(await download.path()).length).toBeGreaterThan(1000);

  const [kept] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('link', { name: 'Report' }).click(),
  ]);
  expect(kept.suggestedFilename()).toMatch(/^cartpole-.*\.html$/);
  // A download has no ending; a browser would show its words.
  const place = join(root, 'report.html');
  await kept.saveAs(place);
  const report = await openPage(browser, pathToFileURL(place).href);
  await report.waitForSelector(`text=${await page.locator('h1').textContent()}`);
  await report.waitForSelector('#plots svg path', { state: 'attached' });
  expect(await report.locator('link[rel=stylesheet], [src]').count()).toBe(0);
  await closePage(report);
  await page.getByRole('link', { name: /^Config/ }).click();
  await page.waitForSelector('th:text-is("learningRate")');
  await page.getByRole('link', { name: /^Plots/ }).click();
  await waitForPlots(page, 4);
  expect(await accessibilityFaults(page)).toEqual([]);
  await keepPicture(page, 'real-run');
  await closePage(page);
});

test('the token goes from the address into a cookie, which outlives the server; without it the page says what is needed', async () => {
  const site = await builtPage();
  const serveOthers = (port: number): Promise<RunningServer> =>
    serve({ roots: [join(root, 'logs')], port, page: site, stateDirectory: join(root, 'state') });
  let guarded = await serveOthers(0);
  try {
    const token = new URL(guarded.url).searchParams.get('token');
    const here = `http://127.0.0.1:${guarded.port}/`;
    expect(guarded.url).toBe(`${here}?token=${token}`);
    const page = await openPage(browser, `${here}?token=${token}#/?q=PPO`);
    await page.locator('[data-run]').first().waitFor();
    expect(page.url()).toBe(`${here}#/?q=PPO`);
    expect(await page.evaluate('document.cookie')).toBe('');
    await page.waitForSelector('text=Live');
    await page.locator('[data-run]').first().getByRole('link').click();
    await waitForPlots(page, 3);
    const [report] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('link', { name: 'Report' }).click(),
    ]);
    expect(readFileSync(await report.path(), 'utf8')).toContain('<!doctype html>');
    await page.goto(here);
    await page.locator('[data-run]').first().waitFor();
    // The server is started again: the token is the same, so the open page goes on by itself.
    const { port } = guarded;
    await guarded.close();
    await page.waitForSelector(`text=--port ${port}`); // the command that brings it back
    guarded = await serveOthers(port);
    await page.waitForSelector('text=Live');
    await page.locator('[data-run]').first().getByRole('link').click();
    await waitForPlots(page, 3);
    await closePage(page);
    const stranger = await openPage(browser, here);
    await stranger.waitForSelector('h1:text("A token is needed")');
    expect(await stranger.content()).not.toContain('PPO');
    expect(await accessibilityFaults(stranger)).toEqual([]);
    await keepPicture(stranger, 'token-needed');
    await closePage(stranger);
  } finally {
    await guarded.close();
  }
});

test('a sick run: the verdict comes by itself, a fix is applied, the run tells of it', async () => {
  const training = train(
    'cartpole',
    '--steps',
    '5M',
    '--set',
    'learningRate=0.1',
    '--set',
    'learningRateSchedule=constant',
    '--set',
    'guard=null',
  );
  const page = await openPage(browser, `${server.url}#/?q=cartpole&state=running`);
  await page
    .locator('[data-run]')
    .first()
    .waitFor()
    .catch(() => expect.fail(training.output.stderr));
  await page.waitForSelector('[data-run] .verdict >> text=/watch|sick/');
  await eventually(() => page.title()).toMatch(/^[▲■] (watch|sick) · Keel$/);
  await page.locator('[data-run]').first().getByRole('link').click();
  await page.getByRole('link', { name: /^Doctor/ }).click();
  await page.waitForSelector('article');
  await keepPicture(page, 'real-doctor');
  await page
    .getByRole('button', { name: /^Apply…: Set learningRate/ })
    .first()
    .click();
  await page.getByRole('button', { name: 'Yes, apply' }).click();
  await page.waitForSelector('section [role=status].soft-good');
  await page.getByRole('link', { name: /^Events/ }).click();
  await page.waitForSelector('tr >> text=Changed by hand');
  await page.getByRole('link', { name: /^Doctor/ }).click();
  await page.getByRole('button', { name: /^Apply…: Stop the run/ }).click();
  await page.getByRole('button', { name: 'Yes, apply' }).click();
  await page.waitForSelector('.facts >> text=stopped');
  await closePage(page);
});

test("another trainer's log, as it grows, with a broken line, until it is deleted", async () => {
  const page = await openPage(browser, `${server.url}#/?q=PPO_1`);
  const row = page.locator('[data-run]').first();
  await row.waitFor();
  await row.getByRole('link').click();
  await waitForPlots(page, 3);
  await page.waitForSelector('.facts >> text=stable-baselines3');
  const values = async () =>
    Number(
      /: (\d+) values/.exec((await page.locator('.plot-host').first().getAttribute('aria-label')) ?? '')?.[1],
    );
  const before = await values();
  expect(before).toBeGreaterThan(0);
  appendFileSync(file, `${lines.slice(half).join('\n')}\nthis line, is not,, one of them\n`);
  await eventually(values).toBeGreaterThan(before);
  await page.waitForSelector('.verdict >> text=Sick');
  await keepPicture(page, 'real-foreign');
  rmSync(dirname(file), { recursive: true });
  await page.waitForSelector("text=The run's directory is gone");
  await closePage(page);
});
