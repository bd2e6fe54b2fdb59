/** `keel dash` on so many finished runs, in a process of its own: until all are read, and how fast their list is answered. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { RunList } from '../../src/server/api.ts';
import { startKeel } from '../compiled-keel.ts';
import { makeLog } from '../dash-memory.ts';
import { median } from '../measure.ts';

/** Of each run; every fifth is another trainer's. */
const ROWS = 200;
const LISTS = 15;

export interface PageFigures {
  /** From the start of the process until every run is read. */
  readonly readySeconds: number;
  readonly listMilliseconds: number;
  readonly listKilobytes: number;
  readonly peakMegabytes: number;
}

export async function pagePoint(built: string, runs: number): Promise<PageFigures> {
  const root = mkdtempSync(join(tmpdir(), 'keel-scaling-'));
  try {
    for (let i = 0; i < runs; i++) {
      const next = makeLog(root, i);
      for (let row = 1; row <= ROWS; row++) next(row === ROWS);
    }
    return await watch(built, root, runs);
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

async function watch(built: string, root: string, runs: number): Promise<PageFigures> {
  const startedAt = performance.now();
  let say: (address: string) => void = () => {};
  const address = new Promise<string>(resolve => {
    say = resolve;
  });
  const keel = startKeel(built, ['dash', root, '--port', '0', '--no-token'], {
    onLine: line => {
      const found = /http:\S+/.exec(line)?.[0];
      if (found !== undefined) say(found);
    },
  });
  const ended = keel.ended(0);
  const url = new URL('/api/runs', await Promise.race([address, ended.then(() => '')]));
  const list = async (): Promise<{ text: string; ms: number }> => {
    const askedAt = performance.now();
    const text = await (await fetch(url)).text();
    return { text, ms: performance.now() - askedAt };
  };
  const isReady = async (): Promise<boolean> => {
    const { runs: listed } = JSON.parse((await list()).text) as RunList;
    return listed.length === runs && listed.every(({ loaded }) => loaded);
  };
  while (!(await isReady())) await sleep(20);
  const readySeconds = (performance.now() - startedAt) / 1000;
  const lists: { text: string; ms: number }[] = [];
  for (let i = 0; i < LISTS; i++) lists.push(await list());
  keel.child.kill('SIGTERM');
  const { peakMegabytes } = await ended;
  return {
    readySeconds,
    listMilliseconds: median(lists.map(({ ms }) => ms)),
    listKilobytes: lists[0].text.length / 1024,
    peakMegabytes,
  };
}
