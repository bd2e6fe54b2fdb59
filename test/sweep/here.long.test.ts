/** The pool of processes keeps the contract of places, and what is its own. */
import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { lockHolder } from '../../src/runs/lock.ts';
import { openRun } from '../../src/runs/store.ts';
import { compiled, compiledUrl } from '../support/compiled.ts';
import { until } from '../support/until.ts';
import { longJob, tinyJob } from './support/jobs.ts';
import { placeContract } from './support/place-contract.ts';

const { openHerePlace } =
  await compiled<typeof import('../../src/sweep/places/here.ts')>('sweep/places/here');

placeContract('here', async (root, events) => {
  const place = openHerePlace({ root, jobs: 2, ...events });
  return {
    place,
    runs: root,
    kill: run => process.kill(lockHolder(join(root, run))!.pid, 'SIGKILL'),
    close: () => place.close(),
  };
});

const root = mkdtempSync(join(tmpdir(), 'keel-here-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

test('a job whose process dies each time fails, and says how', async () => {
  const place = openHerePlace({
    root,
    jobs: 1,
    onStarted: ({ run }) => process.kill(lockHolder(join(root, run))!.pid, 'SIGKILL'),
  });
  expect(await place.run(longJob('deadly'))).toMatchObject({
    status: 'failed',
    problem: 'its process died 3 times, the last time by SIGKILL',
  });
  await place.close();
});

test('one process does many jobs, the most urgent first', async () => {
  const started: string[] = [];
  const place = openHerePlace({ root, jobs: 1, onStarted: ({ run }) => started.push(run) });
  expect(place.slots).toBe(1);
  const priorities = [5, 1, 3, 2];
  const outcomes = await Promise.all(
    priorities.map(priority => place.run(tinyJob(`p${priority}`, { priority }))),
  );
  expect(new Set(outcomes.map(({ worker }) => worker)).size).toBe(1);
  expect(started).toEqual(['p5', 'p3', 'p2', 'p1']);
  await place.close();
});

test('its processes end with it, also when it is killed, and leave runs that go on', async () => {
  const dir = join(root, 'orphan');
  const program = `
    const { openHerePlace } = await import(${JSON.stringify(compiledUrl('sweep/places/here'))});
    await openHerePlace({ root: ${JSON.stringify(root)}, jobs: 1 }).run(${JSON.stringify(longJob('orphan'))});`;
  const parent = spawn(process.execPath, ['--input-type=module', '--eval', program], { stdio: 'ignore' });
  await until(() => readdirSync(root).includes('orphan') && rowsOf(dir) > 1, 'rows of the run');
  const { pid } = lockHolder(dir)!;
  expect(pid).not.toBe(parent.pid);
  parent.kill('SIGKILL');
  await until(() => openRun(dir).status === 'stopped', 'the run to stop by itself');
  await until(() => isGone(pid), 'its process to end');
});

const rowsOf = (dir: string): number => {
  try {
    return readFileSync(join(dir, 'metrics.jsonl'), 'utf8').split('\n').length;
  } catch {
    return 0;
  }
};

function isGone(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return false;
  } catch {
    return true;
  }
}
