/**
 * What `keel dash` holds while it watches many runs, some of which grow: resident memory every half minute, in a process
 * of its own, with a client on the stream and one that opens a run now and then.
 *
 * `npm run bench -- dash memory [--minutes 30] [--runs 500] [--growing 40]`
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { appendFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { get } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { RunWriter } from '../src/runs/index.ts';
import { report, round } from './measure.ts';

const entry = fileURLToPath(new URL('../bin/keel.js', import.meta.url));
/** Rows of a run before anyone looks, and seconds between two rows of one that grows. */
const firstRows = 200;
const rowSeconds = 2;
const sampleSeconds = 30;
/** Every fifth log is another trainer's. */
const isForeign = (i: number): boolean => i % 5 === 4;

const columns = ['rollout/ep_rew_mean', 'train/approx_kl', 'train/clip_fraction', 'train/entropy_loss'];
const names = Array.from({ length: 30 }, (_, i) => `env/m${i}`);

/** A run or a log that is there; the function writes its next row. */
export function makeLog(root: string, i: number): (last?: boolean) => void {
  if (isForeign(i)) {
    const path = join(root, `sb3-${i}`, 'progress.csv');
    mkdirSync(join(root, `sb3-${i}`));
    writeFileSync(path, `time/total_timesteps,time/iterations,${columns.join(',')}\n`);
    let row = 0;
    return () => {
      row++;
      const values = columns.map((_, k) => Math.abs(Math.sin(row * (k + 1)) / 100));
      appendFileSync(path, `${row * 2048},${row},${values.join(',')}\n`);
    };
  }
  const run = RunWriter.create(
    {
      algorithm: 'ppo',
      environment: { id: 'Bench', version: '1', options: {}, reward: {} },
      config: { steps: 1e9, guard: 0.05 },
      seed: i,
      versions: {},
    },
    { root, id: `run-${i}` },
    { csv: false, tensorboard: false },
  );
  let row = 0;
  return last => {
    row++;
    run.row({
      'train/iteration': row,
      'train/step': row * 2048,
      'kl/step': 0.004 + Math.abs(Math.sin(row)) / 1000,
      ...Object.fromEntries(names.map((name, k) => [name, Math.sin(row * (k + 1))])),
    });
    if (last) run.end('finished');
  };
}

/** Megabytes that a process holds, from Linux; elsewhere NaN. */
function residentMegabytes({ pid }: ChildProcess): number {
  try {
    return Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
  } catch {
    return Number.NaN;
  }
}

/** Starts the page's server as people do, and gives the address that it prints. */
function startDash(root: string): Promise<{ server: ChildProcess; url: URL }> {
  const server = spawn(process.execPath, [entry, 'dash', root, '--port', '0'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  return new Promise((resolve, reject) => {
    server.stdout.setEncoding('utf8').on('data', (text: string) => {
      const address = /http:\S+/.exec(text)?.[0];
      if (address !== undefined) resolve({ server, url: new URL(address) });
    });
    server.on('exit', code => reject(new Error(`keel dash ended with ${code} before it said its address`)));
  });
}

/** Megabytes a minute that a straight line through the samples rises by. */
function slope(samples: readonly { readonly minute: number; readonly megabytes: number }[]): number {
  const mean = (of: (sample: (typeof samples)[number]) => number): number =>
    samples.reduce((sum, sample) => sum + of(sample), 0) / samples.length;
  const [x, y] = [mean(({ minute }) => minute), mean(({ megabytes }) => megabytes)];
  const above = mean(({ minute, megabytes }) => (minute - x) * (megabytes - y));
  return above / mean(({ minute }) => (minute - x) ** 2);
}

/** Watches it for some minutes and reports what it held. */
export async function dashMemory(minutes: number, runs: number, growing: number): Promise<void> {
  const root = mkdtempSync(join(tmpdir(), 'keel-bench-'));
  const live: (() => void)[] = [];
  for (let i = 0; i < runs; i++) {
    const next = makeLog(root, i);
    const grows = i < growing;
    for (let row = 1; row <= firstRows; row++) next(row === firstRows && !grows);
    if (grows) live.push(() => next());
  }
  const { server, url } = await startDash(root);
  const token = url.searchParams.get('token');
  const headers = token === null ? {} : { authorization: `Bearer ${token}` };
  const listening = get(new URL('/api/stream', url), { headers }, answer => answer.resume());
  try {
    const samples: { minute: number; megabytes: number }[] = [];
    const started = performance.now();
    const elapsed = (): number => (performance.now() - started) / 1000;
    let rows = 0;
    for (let sampled = 0; elapsed() < minutes * 60; ) {
      for (const next of live) next();
      rows += live.length;
      if (elapsed() >= sampled * sampleSeconds) {
        sampled++;
        samples.push({ minute: round(elapsed() / 60, 1), megabytes: round(residentMegabytes(server), 0) });
        const list = await (await fetch(new URL('/api/runs', url), { headers })).json();
        const ids = (list as { runs: { id: string }[] }).runs.map(({ id }) => id);
        const opened = ids[(sampled * 37) % ids.length];
        await (await fetch(new URL(`/api/runs/${opened}/series?buckets=600`, url), { headers })).text();
      }
      await sleep(rowSeconds * 1000);
    }
    // What is read first, and what V8 needs for it, is there by then.
    const settled = samples.filter(({ minute }) => minute >= 5);
    report({
      name: `keel dash on ${runs} runs of which ${growing} grow by a row every ${rowSeconds} s, for ${minutes} minutes`,
      rows,
      resident_megabytes: samples.map(({ megabytes }) => megabytes),
      every_s: sampleSeconds,
      largest_megabytes: Math.max(...samples.map(({ megabytes }) => megabytes)),
      megabytes_a_minute_after_5: settled.length < 2 ? null : round(slope(settled), 2),
    });
  } finally {
    listening.destroy();
    server.kill('SIGTERM');
    rmSync(root, { recursive: true, force: true });
  }
}
