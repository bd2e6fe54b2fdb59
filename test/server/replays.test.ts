/** Replays over HTTP: the list, the bytes, caching, and nothing from outside of the runs. */
import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { beforeAll, describe, expect, test } from 'vitest';
import { decodeReplay, replayPath, saveReplay } from '../../src/runs/index.ts';
import type { ReplaysAnswer, RunList, RunSummary } from '../../src/server/api.ts';
import { ballReplay } from '../view/support/replay.ts';
import { type Answer, listen, start, until } from './support/client.ts';
import { makeForeign, makeRun, scratch } from './support/make-run.ts';

const root = scratch();
const outside = scratch();
let get: (path: string, headers?: Record<string, string>) => Promise<Answer>;
let port: number;
let run: { id: string; dir: string };
let foreignId: string;

const summaryOf = async (name: string): Promise<RunSummary> =>
  (await get('/api/runs')).json<RunList>().runs.find(item => item.name === name)!;

beforeAll(async () => {
  const made = makeRun(root, 'robot', 3);
  saveReplay(made.dir, ballReplay({ step: 100, episodeReturn: 5 }));
  saveReplay(made.dir, ballReplay({ step: 200, episodeReturn: 3 }));
  makeForeign(root, 'sb3', 5);
  makeRun(root, 'plain', 3);
  ({ get, port } = await start({ roots: [root] }));
  await until(async () => (await get('/api/runs')).json<RunList>().runs.length === 3, 'three runs');
  run = { id: (await summaryOf('robot')).id, dir: made.dir };
  foreignId = (await summaryOf('sb3')).id;
});

test('a run says whether it has replays', async () => {
  await until(async () => (await summaryOf('robot')).replaysAt !== null, 'replaysAt');
  expect((await summaryOf('plain')).replaysAt).toBeNull();
  expect((await summaryOf('sb3')).replaysAt).toBeNull();
});

test('a run says when its routing was recorded', async () => {
  const { dir } = makeRun(root, 'router', 3);
  await until(async () => (await summaryOf('router')) !== undefined, 'the run');
  expect((await summaryOf('router')).clusterAt).toBeNull();
  writeFileSync(join(dir, 'cluster.json'), '{}');
  await until(async () => (await summaryOf('router')).clusterAt !== null, 'clusterAt');
});

test('the list, oldest policy first, with the best marked', async () => {
  const { replays } = (await get(`/api/runs/${run.id}/replays`)).json<ReplaysAnswer>();
  expect(replays).toMatchObject([
    { name: '100', step: 100, episodeReturn: 5, isBest: true, end: 'truncated', iteration: 3 },
    { name: '200', step: 200, episodeReturn: 3, isBest: false },
  ]);
  expect(replays[0].seconds).toBeCloseTo(1, 9);
  expect((await get(`/api/runs/${foreignId}/replays`)).json<ReplaysAnswer>().replays).toEqual([]);
});

describe('one replay', () => {
  const at = (name: string): string => `/api/runs/${run.id}/replays/${name}`;

  test('its bytes are the file, compressed where that is understood', async () => {
    const plain = await get(at('100'));
    expect(plain.status).toBe(200);
    expect(plain.headers['content-type']).toBe('application/octet-stream');
    expect(plain.headers['x-content-type-options']).toBe('nosniff');
    expect(plain.bytes).toEqual(readFileSync(replayPath(run.dir, '100')));
    const packed = await get(at('100'), { 'accept-encoding': 'gzip' });
    expect(packed.headers['content-encoding']).toBe('gzip');
    expect(decodeReplay(gunzipSync(packed.bytes)).step).toBe(100);
  });

  test('under its version it is kept for good, under its name it is asked about again', async () => {
    const { replays } = (await get(`/api/runs/${run.id}/replays`)).json<ReplaysAnswer>();
    const { version } = replays[0];
    expect((await get(`${at('100')}?v=${version}`)).headers['cache-control']).toContain('immutable');
    const plain = await get(at('100'));
    expect(plain.headers['cache-control']).toBe('private, no-cache');
    expect((await get(`${at('100')}?v=other`)).headers['cache-control']).toBe('private, no-cache');
    const again = await get(at('100'), { 'if-none-match': plain.headers.etag! });
    expect([again.status, again.bytes.length]).toEqual([304, 0]);
  });

  test('no name leads out of the run', async () => {
    for (const name of [
      '999',
      '..%2F..%2Fmanifest',
      '%2e%2e%2fmanifest.json',
      'best',
      '100.replay',
      '100%00',
      '1e2',
    ]) {
      const answer = await get(at(name));
      expect([answer.status, answer.text.includes('keel-run')], name).toEqual([404, false]);
    }
    for (const path of ['../manifest.json', '100/../../manifest.json'])
      expect((await get(at(path))).text).not.toContain('keel-run');
  });

  test('a link that leads out of the roots is not followed', async () => {
    saveReplay(outside, ballReplay({ step: 300 }));
    symlinkSync(replayPath(outside, '300'), join(run.dir, 'replays', '300.replay'));
    expect((await get(at('300'))).status).toBe(404);
    const { replays } = (await get(`/api/runs/${run.id}/replays`)).json<ReplaysAnswer>();
    expect(replays.map(({ name }) => name)).toEqual(['100', '200']);
    rmSync(join(run.dir, 'replays', '300.replay'));
    // Nor a whole directory of them.
    const linked = makeRun(root, 'linked', 1);
    symlinkSync(join(outside, 'replays'), join(linked.dir, 'replays'));
    await until(async () => (await summaryOf('linked')) !== undefined, 'the linked run');
    const { id } = await summaryOf('linked');
    expect((await get(`/api/runs/${id}/replays`)).json<ReplaysAnswer>().replays).toEqual([]);
    expect((await get(`/api/runs/${id}/replays/300`)).status).toBe(404);
  });

  test('a damaged file is an error in words', async () => {
    writeFileSync(join(run.dir, 'replays', '400.replay'), 'no replay at all, but text');
    const answer = await get(at('400'));
    expect(answer.status).toBe(500);
    expect(answer.text).toContain('damaged');
    rmSync(join(run.dir, 'replays', '400.replay'));
  });

  test("another trainer's log has none, and an unknown run is none", async () => {
    expect((await get(`/api/runs/${foreignId}/replays/100`)).status).toBe(409);
    expect((await get('/api/runs/nothing/replays')).status).toBe(404);
    expect((await get('/api/runs/nothing/replays/100')).status).toBe(404);
  });

  test('strangers are refused as everywhere', async () => {
    expect((await get(at('100'), { host: 'evil.example' })).status).toBe(403);
    expect((await get(at('100'), { origin: 'https://evil.example' })).status).toBe(403);
  });
});

test('a token is asked for here too', async () => {
  const guarded = await start({ roots: [root], token: 'sesame-open-12' });
  expect((await guarded.get(`/api/runs/${run.id}/replays`)).status).toBe(401);
  expect((await guarded.get(`/api/runs/${run.id}/replays/100`)).status).toBe(401);
});

test('the stream tells of a new replay', async () => {
  const { told } = await listen(port);
  const before = (await summaryOf('plain')).replaysAt;
  expect(before).toBeNull();
  mkdirSync(join(root, 'plain', 'replays'));
  saveReplay(join(root, 'plain'), ballReplay({ step: 50 }));
  await until(
    () =>
      told.some(
        ({ message }) =>
          message.type === 'runs' &&
          message.changed.some(({ name, replaysAt }) => name === 'plain' && replaysAt !== null),
      ),
    'the summary with replaysAt',
  );
});
