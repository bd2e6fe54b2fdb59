/**
 * What the page costs: training with it open against training without, in turns; how long a row takes to a browser; what
 * twenty browsers cost; how fast a long log is read, a whole view of it answered, opened and panned.
 *
 * `npm run bench -- dash [parts…] [--minutes 10] [--rows 1000000] [--listed 2000]`, the parts being training, latency, browsers, overview, long,
 * memory (dash-memory.ts); all but the last if none is named. Twenty browsers are watched for one minute unless it says
 * otherwise, the memory of many runs for thirty.
 */
import { spawn } from 'node:child_process';
import {
  closeSync,
  copyFileSync,
  fstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { get } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { PpoSettings } from '../src/algos/ppo/settings.ts';
import { train } from '../src/algos/runs.ts';
import { RunWriter } from '../src/runs/index.ts';
import { startPageThread } from '../src/server/page-thread.ts';
import { serve } from '../src/server/serve.ts';
import { builtPage, heapOf, launch, listAndSort, lookAt, openAndPan } from './dash-browser.ts';
import { dashMemory } from './dash-memory.ts';
import { machine, median, report, round } from './measure.ts';

const rounds = 6;
/** As in the bench of PPO: some forty rows a second, more than most runs have. */
const config: PpoSettings = {
  envs: 8,
  stepsPerRollout: 256,
  minibatchSize: 256,
  epochs: 10,
  steps: 2048 * 120,
};

const parts = {
  training: trainingCost,
  latency,
  browsers: () => browsers(Number(flag('--minutes', '1'))),
  overview: () => overviewOf(Number(flag('--listed', '2000'))),
  long: () => longLog(Number(flag('--rows', '1000000')), 50),
  memory: () =>
    dashMemory(
      Number(flag('--minutes', '30')),
      Number(flag('--runs', '500')),
      Number(flag('--growing', '40')),
    ),
};

function flag(name: string, usual: string): string {
  const at = process.argv.indexOf(name);
  return at < 0 ? usual : (process.argv[at + 1] ?? usual);
}

export async function run(): Promise<void> {
  report({ bench: 'dash', ...machine() });
  const named = Object.keys(parts).filter(name => process.argv.includes(name, 3));
  for (const [name, part] of Object.entries(parts))
    if (named.length === 0 ? name !== 'memory' : named.includes(name)) await part();
}

interface Cost {
  readonly ms: number;
  /** Of the processor, over all threads of this process. */
  readonly cpuMs: number;
}

/** Iterations that are left out: the network warms up, and a browser opens the run, which it does once. */
const warmUp = 40;

/** Milliseconds an iteration takes. */
async function iterationCost(root: string): Promise<Cost> {
  const at: number[] = [];
  const before = process.cpuUsage();
  await train({
    env: 'CartPole-v1',
    config,
    root,
    onRow: () => at.push(performance.now()),
  });
  const { user, system } = process.cpuUsage(before);
  const gaps = at.slice(warmUp).map((time, i) => time - at[i + warmUp - 1]);
  return { ms: gaps.reduce((a, b) => a + b, 0) / gaps.length, cpuMs: (user + system) / 1000 / at.length };
}

/** How the page is watched while a run is trained: not at all, by a client that reads the stream, by a real browser. */
type Watching = 'none' | 'stream' | 'chromium';

async function watched(how: Watching, url: string): Promise<() => Promise<void>> {
  if (how === 'none') return async () => {};
  if (how === 'chromium') {
    const browser = await launch();
    const page = await lookAt(browser, url);
    // As soon as the run is there, its plots are looked at.
    const running = page.locator('[data-run]', { hasText: 'running' }).first();
    void running
      .getByRole('link')
      .click()
      .catch(() => {});
    await page.waitForTimeout(1500);
    return () => browser.close();
  }
  // In a process of its own, as a browser is.
  const script = `require('node:http').get(${JSON.stringify(new URL('/api/stream', url).href)}, r => r.resume())`;
  const client = spawn(process.execPath, ['-e', script]);
  await sleep(1500);
  return async () => void client.kill();
}

async function trainingCost(): Promise<void> {
  const kinds: readonly Watching[] = ['none', 'stream', 'chromium'];
  const costs: Record<Watching, Cost[]> = { none: [], stream: [], chromium: [] };
  const root = mkdtempSync(join(tmpdir(), 'keel-bench-'));
  const [plain, seen] = [join(root, 'plain'), join(root, 'watched')];
  // One for all rounds, as a page that is left open; its threads are warm, as those of a long run are.
  await train({ env: 'CartPole-v1', config: { ...config, steps: 2048 * 8 }, root: seen });
  const page = await startPageThread({
    roots: [seen],
    port: 0,
    token: false,
    foreign: false,
    page: await builtPage(),
  });
  try {
    for (let i = 0; i < rounds; i++) {
      // Each kind is first, in the middle and last equally often: what slows the machine for a while hits all alike.
      for (let k = 0; k < kinds.length; k++) {
        const how = kinds[(i % 2 === 0 ? k + i : 2 * kinds.length - 1 - k + i) % kinds.length];
        const end = await watched(how, page.url);
        costs[how].push(await iterationCost(how === 'none' ? plain : seen));
        await end();
      }
    }
  } finally {
    await page.close();
    rmSync(root, { recursive: true, force: true });
  }
  const middle = (how: Watching, key: keyof Cost): number => round(median(costs[how].map(cost => cost[key])));
  for (const how of ['stream', 'chromium'] as const) {
    const ratios = costs.none.map(({ ms }, i) => costs[how][i].ms / ms).sort((a, b) => a - b);
    const at = (share: number): number => round(ratios[Math.round((ratios.length - 1) * share)], 3);
    report({
      name: `training CartPole with the page open, read by ${how === 'stream' ? 'a client' : 'Chromium on this machine'}, against without`,
      pairs: ratios.length,
      without_ms: middle('none', 'ms'),
      with_ms: middle(how, 'ms'),
      without_cpu_ms: middle('none', 'cpuMs'),
      with_cpu_ms: middle(how, 'cpuMs'),
      ratio: round(median(ratios), 3),
      quartiles: [at(0.25), at(0.75)],
      target_ratio: 1.05,
      ratios: ratios.map(ratio => round(ratio, 3)),
    });
  }
}

interface Client {
  readonly rows: Map<number, number>;
  bytes: number;
  close(): void;
}

/** Listens as a browser does; keeps when each row came. */
function connect(url: string): Promise<Client> {
  return new Promise((resolve, reject) => {
    const request = get(new URL('/api/stream', url), response => {
      const client: Client = { rows: new Map(), bytes: 0, close: () => request.destroy() };
      response.setEncoding('utf8').on('error', () => {});
      response.on('data', (text: string) => {
        client.bytes += text.length;
        for (const [, iteration] of text.matchAll(/"train\/iteration":(\d+)/g))
          if (!client.rows.has(Number(iteration))) client.rows.set(Number(iteration), performance.now());
      });
      resolve(client);
    });
    request.on('error', reject);
  });
}

function writer(root: string): (iteration: number) => void {
  const run = RunWriter.create(
    {
      algorithm: 'ppo',
      environment: { id: 'Bench', version: '1', options: {}, reward: {} },
      config: { steps: 1e9 },
      seed: 0,
      versions: {},
    },
    { root },
    { csv: false, tensorboard: false },
  );
  const names = Array.from({ length: 40 }, (_, i) => `env/m${i}`);
  return iteration =>
    run.row({
      'train/iteration': iteration,
      'train/step': iteration * 2048,
      ...Object.fromEntries(names.map((name, i) => [name, Math.sin(iteration * (i + 1))])),
    });
}

async function latency(): Promise<void> {
  const root = mkdtempSync(join(tmpdir(), 'keel-bench-'));
  const write = writer(root);
  write(1);
  const page = await startPageThread({ roots: [root], port: 0, token: false, foreign: false });
  await sleep(1500);
  const client = await connect(page.url);
  const written = new Map<number, number>();
  for (let i = 2; i <= 80; i++) {
    written.set(i, performance.now());
    write(i);
    await sleep(37 + ((i * 53) % 100));
  }
  await sleep(1000);
  const delays = [...written].map(([i, time]) => (client.rows.get(i) ?? Number.POSITIVE_INFINITY) - time);
  report({
    name: 'milliseconds from a row on the disk to a browser',
    median_ms: round(median(delays), 0),
    worst_ms: round(Math.max(...delays), 0),
    target_ms: 1000,
  });
  client.close();
  await page.close();
  rmSync(root, { recursive: true, force: true });
}

/** Twenty listeners and a real browser on one live run that writes ten rows a second; what the server and the page hold. */
async function browsers(minutes: number): Promise<void> {
  const root = mkdtempSync(join(tmpdir(), 'keel-bench-'));
  const write = writer(root);
  write(1);
  const server = await serve({
    roots: [root],
    port: 0,
    token: false,
    foreign: false,
    page: await builtPage(),
  });
  await sleep(1000);
  const address = new URL('/api/stream', server.url).href;
  const script = `for (let i = 0; i < 20; i++) require('node:http').get(${JSON.stringify(address)}, r => r.resume())`;
  const clients = spawn(process.execPath, ['-e', script]);
  const browser = await launch();
  try {
    const page = await lookAt(browser, server.url, `#/runs/${server.index.list().runs[0].id}`);
    const [heap, resident, pageHeap]: [number[], number[], number[]] = [[], [], []];
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    let iteration = 1;
    const end = performance.now() + minutes * 60_000;
    const portionMs = (minutes * 60_000) / 10;
    while (performance.now() < end - portionMs / 4) {
      const until = performance.now() + portionMs;
      while (performance.now() < until) {
        write(++iteration);
        await sleep(100);
      }
      collect();
      const { heapUsed, arrayBuffers, rss } = process.memoryUsage();
      heap.push((heapUsed + arrayBuffers) / 2 ** 20);
      resident.push(rss / 2 ** 20);
      pageHeap.push(await heapOf(page));
    }
    const rounded = (values: readonly number[], digits: number): number[] =>
      values.map(value => round(value, digits));
    report({
      name: `twenty listeners and one Chromium on one live run for ${minutes} minutes, ten rows a second`,
      rows: iteration,
      server_megabytes: rounded(heap, 1),
      server_resident_megabytes: rounded(resident, 0),
      page_megabytes: rounded(pageHeap, 1),
      // The first fifth is warming up.
      server_growth_megabytes: round(heap.at(-1)! - heap[1], 1),
      page_growth_megabytes: round(pageHeap.at(-1)! - pageHeap[1], 1),
      still_listening: server.hub.listeners,
      target_listening: 21,
    });
  } finally {
    await browser.close();
    clients.kill();
    await server.close();
    rmSync(root, { recursive: true, force: true });
  }
}

/** Many runs in the list: how long it takes to be there, and the frames while it is sorted. */
async function overviewOf(runs: number): Promise<void> {
  const root = mkdtempSync(join(tmpdir(), 'keel-bench-'));
  try {
    writeManyRuns(root, runs);
    const started = performance.now();
    const server = await serve({
      roots: [root],
      port: 0,
      token: false,
      foreign: false,
      page: await builtPage(),
    });
    while ([...server.index.all()].some(run => !run.loaded)) await sleep(50);
    const read = performance.now() - started;
    const answer = await (await fetch(`${server.url}api/runs`)).text();
    report({
      name: `${runs} runs in the list`,
      all_read_s: round(read / 1000, 1),
      answer_kilobytes: round(answer.length / 1024, 0),
    });
    await listAndSort(server.url, runs, 'while they are judged');
    while (server.index.list().runs.some(({ verdict }) => verdict === null)) await sleep(200);
    await listAndSort(server.url, runs, 'all judged');
    await server.close();
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

/** Runs with thirty rows each, five seeds of each learning rate: one is written, the others are copies of it. */
function writeManyRuns(root: string, runs: number): void {
  const write = writer(root);
  for (let i = 1; i <= 30; i++) write(i);
  const [first] = readdirSync(root);
  const manifest = JSON.parse(readFileSync(join(root, first, 'manifest.json'), 'utf8')) as Record<
    string,
    unknown
  >;
  for (let i = 0; i < runs - 1; i++) {
    const id = `bench-${i}`;
    mkdirSync(join(root, id));
    for (const name of ['metrics.jsonl', 'events.jsonl'])
      copyFileSync(join(root, first, name), join(root, id, name));
    const own = {
      ...manifest,
      id,
      seed: i % 5,
      status: 'finished',
      config: { steps: 1e9, learningRate: Math.floor(i / 5) * 1e-6 },
    };
    writeFileSync(join(root, id, 'manifest.json'), JSON.stringify(own));
  }
}

async function longLog(rows: number, metrics: number): Promise<void> {
  const root = mkdtempSync(join(tmpdir(), 'keel-bench-'));
  try {
    const megabytes = writeLongLog(root, rows, metrics);
    const site = await builtPage();
    const started = performance.now();
    const server = await serve({ roots: [root], port: 0, token: false, foreign: false, page: site });
    const [run] = server.index.list().runs;
    const first = performance.now() - started;
    while (!server.index.get(run.id)!.loaded) await sleep(20);
    const indexed = performance.now() - started;
    const times: number[] = [];
    let bytes = 0;
    for (let i = 0; i < 5; i++) {
      const asked = performance.now();
      const response = await fetch(`${server.url}api/runs/${run.id}/series?buckets=600`, {
        headers: { 'accept-encoding': 'gzip' },
      });
      bytes = (await response.text()).length;
      times.push(performance.now() - asked);
    }
    report({
      name: `${metrics} metrics x ${rows} rows`,
      log_megabytes: round(megabytes, 0),
      list_ms: round(first, 0),
      indexed_s: round(indexed / 1000, 1),
      megabytes_per_second: round(megabytes / (indexed / 1000), 0),
      whole_view_ms: round(median(times), 0),
      target_whole_view_ms: 300,
      whole_view_kilobytes: round(bytes / 1024, 0),
      memory_megabytes: round(process.memoryUsage().rss / 2 ** 20, 0),
    });
    await openAndPan(server.url, run.id);
    await server.close();
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

/** A log that is there already, written fast; its size in megabytes. */
function writeLongLog(root: string, rows: number, metrics: number): number {
  const write = writer(root);
  write(1);
  const [name] = readdirSync(root);
  const path = join(root, name, 'metrics.jsonl');
  const names = Array.from({ length: metrics }, (_, i) => `"env/metric_${i}":`);
  writeFileSync(path, '');
  const file = openSync(path, 'a');
  let lines: string[] = [];
  for (let i = 1; i <= rows; i++) {
    const cells = names.map((key, k) => key + Math.fround(Math.sin(i * (k + 1))));
    lines.push(
      `{"train/iteration":${i},"train/step":${i * 2048},${cells.join(',')},"time/unix_s":${1.7e9 + i}}\n`,
    );
    if (lines.length === 2000 || i === rows) {
      writeSync(file, lines.join(''));
      lines = [];
    }
  }
  const { size } = fstatSync(file);
  closeSync(file);
  return size / 2 ** 20;
}
