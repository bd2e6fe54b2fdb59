/**
 * What the page costs: training with it open against training without, in turns; how long a row takes to a browser; what
 * twenty browsers cost; how fast a long log is read and a whole view of it answered.
 */
import { spawn } from 'node:child_process';
import {
  closeSync,
  fstatSync,
  mkdtempSync,
  openSync,
  readdirSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { get } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type TrainSettings, train } from '../src/algos/index.ts';
import { RunWriter } from '../src/runs/index.ts';
import { startPageThread } from '../src/server/page-thread.ts';
import { serve } from '../src/server/serve.ts';
import { machine, median, report, round } from './measure.ts';

const rounds = 5;
/** As in the bench of PPO: some forty rows a second, more than most runs have. */
const config: TrainSettings = {
  envs: 8,
  stepsPerRollout: 256,
  minibatchSize: 256,
  epochs: 10,
  steps: 2048 * 60,
};

export async function run(): Promise<void> {
  report({ bench: 'dash', ...machine() });
  await trainingCost();
  await latency();
  await clients();
  await longLog(Number(process.argv[3] ?? 1_000_000), 50);
}

interface Cost {
  readonly ms: number;
  /** Of the processor, over all threads of this process. */
  readonly cpuMs: number;
}

/** Milliseconds an iteration takes, the first few left out. */
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
  const gaps = at.slice(6).map((time, i) => time - at[i + 5]!);
  return { ms: gaps.reduce((a, b) => a + b, 0) / gaps.length, cpuMs: (user + system) / 1000 / at.length };
}

async function trainingCost(): Promise<void> {
  const [without, withPage]: [Cost[], Cost[]] = [[], []];
  const root = mkdtempSync(join(tmpdir(), 'keel-bench-'));
  const [plain, watched] = [join(root, 'plain'), join(root, 'watched')];
  // One for all rounds, as a page that is left open; its threads are warm, as those of a long run are.
  await train({ env: 'CartPole-v1', config: { ...config, steps: 2048 * 8 }, root: watched });
  const page = await startPageThread({ roots: [watched], port: 0, foreign: false });
  try {
    for (let i = 0; i < rounds; i++) {
      for (const open of i % 2 === 0 ? [false, true] : [true, false]) {
        if (!open) {
          without.push(await iterationCost(plain));
          continue;
        }
        // A browser is another process.
        const address = new URL('/api/stream', page.url).href;
        const script = `require('node:http').get(${JSON.stringify(address)}, r => r.resume())`;
        const browser = spawn(process.execPath, ['-e', script]);
        await sleep(2000);
        withPage.push(await iterationCost(watched));
        browser.kill();
      }
    }
  } finally {
    await page.close();
    rmSync(root, { recursive: true, force: true });
  }
  // Pairs of neighbours, so that a busy moment of the machine hits both.
  const ratios = without.map(({ ms }, i) => withPage[i]!.ms / ms);
  const middle = (costs: readonly Cost[], key: keyof Cost): number =>
    round(median(costs.map(cost => cost[key])));
  report({
    name: 'training CartPole with the page open and one browser, against without',
    without_ms: middle(without, 'ms'),
    with_ms: middle(withPage, 'ms'),
    without_cpu_ms: middle(without, 'cpuMs'),
    with_cpu_ms: middle(withPage, 'cpuMs'),
    ratio: round(median(ratios), 3),
    target_ratio: 1.05,
    ratios: ratios.map(ratio => round(ratio, 3)),
  });
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
  const page = await startPageThread({ roots: [root], port: 0, foreign: false });
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

async function clients(): Promise<void> {
  const root = mkdtempSync(join(tmpdir(), 'keel-bench-'));
  const write = writer(root);
  write(1);
  const server = await serve({ roots: [root], port: 0, foreign: false });
  await sleep(1000);
  const open = await Promise.all(Array.from({ length: 20 }, () => connect(server.url)));
  const memory: number[] = [];
  let iteration = 1;
  for (let part = 0; part < 6; part++) {
    for (let i = 0; i < 200; i++) {
      write(++iteration);
      await sleep(10);
    }
    for (const client of open) client.rows.clear();
    global.gc?.();
    memory.push(process.memoryUsage().rss / 2 ** 20);
  }
  report({
    name: 'twenty browsers on one live run, megabytes of memory as 1200 rows come (browsers in the same process)',
    megabytes: memory.map(value => round(value, 0)),
    still_listening: server.hub.listeners,
    megabytes_sent_to_each: round(open[0]!.bytes / 2 ** 20, 1),
  });
  for (const client of open) client.close();
  await server.close();
  rmSync(root, { recursive: true, force: true });
}

async function longLog(rows: number, metrics: number): Promise<void> {
  const root = mkdtempSync(join(tmpdir(), 'keel-bench-'));
  try {
    const megabytes = writeLongLog(root, rows, metrics);
    const started = performance.now();
    const server = await serve({ roots: [root], port: 0, foreign: false });
    const [run] = server.index.list().runs;
    const first = performance.now() - started;
    while (!server.index.get(run!.id)!.loaded) await sleep(20);
    const indexed = performance.now() - started;
    const times: number[] = [];
    let bytes = 0;
    for (let i = 0; i < 5; i++) {
      const asked = performance.now();
      const response = await fetch(`${server.url}api/runs/${run!.id}/series?buckets=600`, {
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
  const path = join(root, name!, 'metrics.jsonl');
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
