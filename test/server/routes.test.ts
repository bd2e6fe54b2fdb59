/** Every route on a run of Keel and on another trainer's log. */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import type {
  CheckpointsAnswer,
  ClusterAnswer,
  DiagnosisAnswer,
  EventsAnswer,
  Hello,
  Notes,
  RunDetail,
  RunList,
  RunSummary,
  SeriesAnswer,
} from '../../src/server/api.ts';
import { start, until } from './support/client.ts';
import { makeForeign, makeRun, scratch } from './support/make-run.ts';

const root = scratch();
const made = makeRun(root, 'run-a', 30, { x: { y: [1, 2] } });
made.row({ 'kl/step': Number.NaN, 'env/own': 7 });
await made.writer.checkpoint({
  step: 3100,
  iteration: 31,
  files: { 'policy.safetensors': new Uint8Array(10) },
  state: {},
  score: 12,
});
made.writer.end('finished');
makeForeign(root, 'sb3', 20);
const state = scratch();
const { server, get, send } = await start({ roots: [root], stateDirectory: state });
const list = async (): Promise<readonly RunSummary[]> => (await get('/api/runs')).json<RunList>().runs;
await until(async () => {
  const runs = await list();
  return runs.length === 2 && runs.every(run => run.loaded && run.verdict !== null);
}, 'both runs are judged');
const runs = await list();
const keel = runs.find(({ trainer }) => trainer === 'keel')!;
const foreign = runs.find(({ trainer }) => trainer !== 'keel')!;

describe('a run of Keel', () => {
  const at = (rest: string): string => `/api/runs/${keel.id}${rest}`;

  test('summary', () => {
    expect(keel).toMatchObject({
      name: 'run-a',
      root,
      state: 'finished',
      environment: 'CartPole-v1',
      algorithm: 'ppo',
      seed: 3,
      step: 3100,
      totalSteps: 100_000,
      lastReturn: 31,
      lastKl: null,
      parent: null,
      problem: null,
      generation: 0,
      notes: { tags: [], note: '', archived: false },
    });
    expect(keel.sparkline).toHaveLength(31);
    expect(keel.sparkline[4]).toBe(5);
    expect(Math.abs(Date.now() - keel.updatedAt)).toBeLessThan(60_000);
  });

  test('detail: what the registry says, the config flat, the lines', async () => {
    const detail = (await get(at(''))).json<RunDetail>();
    const kl = detail.metrics.find(({ id }) => id === 'kl/step')!;
    expect(kl).toMatchObject({ theirs: 'kl/step', group: 'kl', unit: 'nats', points: 31, last: null });
    expect(kl.doc.length).toBeGreaterThan(20);
    expect(detail.metrics.find(({ id }) => id === 'env/own')).toMatchObject({ points: 1, last: 7 });
    expect(detail.config).toMatchObject({
      learningRate: 3e-4,
      'x.y': '[1,2]',
      'environment.id': 'CartPole-v1',
      seed: 3,
    });
    expect(detail.run).toMatchObject({ klContract: { target: null, guard: 0.05 }, atRest: false });
    expect(detail.adjustable).toEqual({});
    expect([detail.unit, detail.hasTime]).toEqual(['steps', true]);
  });

  test('series on every axis, in windows, with what is not finite', async () => {
    const ask = async (query: string): Promise<SeriesAnswer> => (await get(at(`/series?${query}`))).json();
    const whole = await ask('metrics=kl/step,env/own,nothing');
    expect(whole).toMatchObject({ x: 'step', from: 100, to: 3100, rows: 31, generation: 0 });
    expect(whole.series.map(({ metric }) => metric)).toEqual(['kl/step', 'env/own']);
    const [kl, own] = whole.series;
    expect(kl.x).toHaveLength(31);
    expect([kl.min[30], kl.broken]).toEqual([null, [[30, 1]]]);
    expect(own).toMatchObject({ x: [3100], min: [7], max: [7], mean: [7], count: [1] });
    const part = await ask('metrics=episode%252Freturn,episode/return&x=iteration&from=10&to=19&buckets=2');
    expect(part.series.at(-1)).toMatchObject({
      x: [14, 19],
      min: [10, 15],
      max: [14, 19],
      mean: [12, 17],
      count: [5, 5],
    });
    const time = await ask('metrics=episode/return&x=time');
    expect(Math.abs(time.to! - Date.now())).toBeLessThan(60_000);
    expect((await ask('')).series.length).toBe((await get(at(''))).json<RunDetail>().metrics.length);
    expect((await ask('metrics=episode/return&from=5000')).series).toEqual([]);
    expect((await get(at('/series?x=colour'))).status).toBe(400);
    expect((await get(at('/series?from=x'))).status).toBe(400);
    expect((await get(at(`/series?metrics=${Array(600).fill('a').join(',')}`))).status).toBe(400);
  });

  test('events, all and after one', async () => {
    const all = (await get(at('/events'))).json<EventsAnswer>();
    expect(all.events.map(({ type }) => type)).toEqual(['started', 'checkpoint', 'finished']);
    expect(all.events.map(({ sequence }) => sequence)).toEqual([0, 1, 2]);
    expect(all.events[1]).toMatchObject({ step: 3100, iteration: 31 });
    expect(all.counts).toEqual({ started: 1, checkpoint: 1, finished: 1 });
    const later = (await get(at('/events?after=1'))).json<EventsAnswer>();
    expect(later.events.map(({ type }) => type)).toEqual(['finished']);
  });

  test('diagnosis, by the name that the user knows', async () => {
    const { diagnosis } = (await get(at('/diagnosis'))).json<DiagnosisAnswer>();
    expect(diagnosis).toMatchObject({ path: 'run-a', trainer: 'keel', steps: 3100 });
    expect(['healthy', 'watch', 'sick']).toContain(diagnosis!.verdict);
    expect(JSON.stringify(diagnosis)).not.toContain(root);
  });

  test('what a routing policy did: nothing was recorded', async () => {
    expect((await get(at('/cluster'))).json<ClusterAnswer>()).toEqual({ timeline: null, problem: null });
  });

  test('checkpoints', async () => {
    const { checkpoints } = (await get(at('/checkpoints'))).json<CheckpointsAnswer>();
    expect(checkpoints).toHaveLength(1);
    expect(checkpoints[0]).toMatchObject({
      step: 3100,
      iteration: 31,
      score: 12,
      isBest: true,
      isLast: true,
    });
    expect(checkpoints[0].bytes).toBeGreaterThan(10);
  });

  test('policy: none yet, then the file; a checkpoint that is not there', async () => {
    expect((await get(at('/policy.onnx'))).status).toBe(404);
    writeFileSync(join(made.dir, 'policy.onnx'), 'the policy');
    const file = await get(at('/policy.onnx'));
    expect([file.status, file.text]).toEqual([200, 'the policy']);
    expect(file.headers['content-disposition']).toContain('run-a.onnx');
    expect((await get(at('/policy.onnx?checkpoint=77'))).status).toBe(404);
    expect((await send('POST', at('/checkpoints/77/evaluate'), {})).status).toBe(404);
  });

  test('CSV: every row to the last digit', async () => {
    const { text, headers } = await get(at('/metrics.csv'));
    expect(headers['content-type']).toContain('text/csv');
    const [head, ...lines] = text
      .trim()
      .split('\r\n')
      .map(line => line.split(','));
    expect(lines).toHaveLength(31);
    const kl = head.indexOf('kl/step');
    expect(Number(lines[6][kl])).toBe(0.005 + 0.001 * Math.sin(7));
    expect(lines[30][kl]).toBe('NaN');
    expect(lines[6][head.indexOf('env/own')]).toBe('');
  });

  test('report', async () => {
    const { status, text, headers } = await get(at('/report.html'));
    expect(status).toBe(200);
    expect(text).toContain('<!doctype html>');
    expect(text).toContain('run-a');
    expect(text).not.toContain(root);
    expect(headers['content-security-policy']).toContain('sandbox');
  });

  test('report to keep: a download, of one run or more, and of runs that are here', async () => {
    const { status, text, headers } = await get(`/api/report.html?run=${keel.id}`);
    expect(status).toBe(200);
    expect(headers['content-disposition']).toMatch(/^attachment; filename="[^"]+\.html"$/);
    expect(text).toContain('id="data"');
    expect(text).not.toContain(root);
    expect((await get('/api/report.html')).status).toBe(400);
    expect((await get('/api/report.html?run=nobody')).status).toBe(404);
  });

  test('notes: any part, kept in the run', async () => {
    const first = await send('PATCH', at('/notes'), {
      tags: ['good', 'good', ' seed '],
      note: 'best so far',
    });
    expect(first.json<Notes>()).toEqual({ tags: ['good', 'seed'], note: 'best so far', archived: false });
    const second = await send('PATCH', at('/notes'), { archived: true });
    expect(second.json<Notes>()).toEqual({ tags: ['good', 'seed'], note: 'best so far', archived: true });
    expect(JSON.parse(readFileSync(join(made.dir, 'notes.json'), 'utf8'))).toEqual(second.json());
    expect((await list()).find(({ id }) => id === keel.id)!.notes.archived).toBe(true);
  });

  test('actions on a run that has ended are refused with a sentence', async () => {
    for (const action of [{ type: 'set', key: 'learningRate', value: 1e-4 }, { type: 'stop' }]) {
      const answer = await send('POST', at('/actions'), action);
      expect(answer.status).toBe(409);
      expect(answer.text).toContain('not being trained');
    }
    for (const wrong of [
      {},
      { type: 'explode' },
      { type: 'set', key: '../x', value: 1 },
      { type: 'set', key: 'a', value: 'b' },
      { type: 'stop', more: 1 },
    ])
      expect((await send('POST', at('/actions'), wrong)).status).toBe(422);
    expect((await send('POST', at('/actions'), { type: 'restart', checkpoint: 5, set: {} })).status).toBe(
      404,
    );
  });
});

describe("another trainer's log", () => {
  const at = (rest: string): string => `/api/runs/${foreign.id}${rest}`;

  test('summary, detail and series under our names', async () => {
    expect(foreign).toMatchObject({
      name: 'sb3',
      trainer: 'stable-baselines3',
      step: 20 * 2048,
      lastReturn: 39,
      klBand: 'healthy',
      klContract: { target: null },
      atRest: false,
      state: 'running',
    });
    const detail = (await get(at(''))).json<RunDetail>();
    expect(detail.metrics.find(({ id }) => id === 'kl/step')).toMatchObject({
      theirs: 'train/approx_kl',
      points: 20,
    });
    expect(detail.adjustable).toEqual({});
    const { series, to } = (await get(at('/series?metrics=kl/step,episode/return'))).json<SeriesAnswer>();
    expect(to).toBe(20 * 2048);
    expect(series[1].x).toHaveLength(20);
    expect(series[1].max.at(-1)).toBe(39);
  });

  test('notes are not written into its directory', async () => {
    const before = readdirSync(join(root, 'sb3'));
    const answer = await send('PATCH', at('/notes'), { note: 'theirs' });
    expect(answer.json<Notes>().note).toBe('theirs');
    expect(readdirSync(join(root, 'sb3'))).toEqual(before);
    expect(existsSync(join(state, 'notes.json'))).toBe(true);
    expect((await list()).find(({ id }) => id === foreign.id)!.notes.note).toBe('theirs');
  });

  test('what only a run of Keel can do is refused', async () => {
    expect((await send('POST', at('/actions'), { type: 'stop' })).status).toBe(409);
    expect((await get(at('/policy.onnx'))).status).toBe(409);
    expect((await get(at('/checkpoints'))).json<CheckpointsAnswer>().checkpoints).toEqual([]);
  });

  test('CSV and report', async () => {
    const lines = (await get(at('/metrics.csv'))).text.trim().split('\r\n');
    // Metrics of an update stand a row earlier than those of the rollout that follows it.
    expect(lines).toHaveLength(22);
    expect((await get(at('/report.html'))).text).toContain('stable-baselines3');
  });
});

test('hello', async () => {
  const hello = (await get('/api/hello')).json<Hello>();
  expect(hello).toMatchObject({ roots: [root], canAct: true });
  expect(hello.version).toMatch(/^\d+\.\d+/);
  // A page may be opened before the first run begins, and is not asked to load again.
  const early = await start({ roots: [scratch()] });
  expect((await early.get('/api/hello')).json<Hello>().canAct).toBe(true);
});

test('long answers are packed, short ones are not', async () => {
  const path = `/api/runs/${keel.id}`;
  const plain = await get(path);
  const packed = await get(path, { 'accept-encoding': 'gzip' });
  expect(plain.headers['content-encoding']).toBeUndefined();
  expect(packed.headers['content-encoding']).toBe('gzip');
  expect(gunzipSync(packed.bytes).toString()).toBe(plain.text);
  expect(
    (await get('/api/hello', { 'accept-encoding': 'gzip' })).headers['content-encoding'],
  ).toBeUndefined();
});

test('a read-only server changes nothing and starts nothing', async () => {
  const quiet = await start({ roots: [root], readOnly: true });
  expect((await quiet.get('/api/hello')).json<Hello>().canAct).toBe(false);
  expect((await quiet.send('PATCH', `/api/runs/${keel.id}/notes`, { note: 'x' })).status).toBe(403);
  const at = (path: string): string => `/api/runs/${keel.id}${path}`;
  expect((await quiet.send('POST', at('/actions'), { type: 'stop' })).status).toBe(403);
  const { checkpoints } = (await quiet.get(at('/checkpoints'))).json<CheckpointsAnswer>();
  expect((await quiet.send('POST', at(`/checkpoints/${checkpoints[0].step}/evaluate`), {})).status).toBe(403);
  expect((await quiet.get(at(`/policy.onnx?checkpoint=${checkpoints[0].step}`))).status).toBe(403);
  // What is there already is read.
  expect((await quiet.get(at('/policy.onnx'))).status).toBe((await get(at('/policy.onnx'))).status);
});

test('a taken port: another one, and it says so', async () => {
  const taken = createServer();
  await new Promise<void>(done => taken.listen(0, '127.0.0.1', done));
  const { port } = taken.address() as { port: number };
  const other = await start({ roots: [root], port });
  expect(other.port).not.toBe(port);
  expect(other.server.note).toBe(`port ${port} is taken, so it is ${other.port}`);
  expect((await other.get('/api/hello')).status).toBe(200);
  taken.close();
});

test('links to runs hold when the server is started again', async () => {
  const again = await start({ roots: [root] });
  expect((await again.get('/api/runs')).json<RunList>().runs.map(({ id }) => id)).toContain(keel.id);
});

test('roots without a run, and without a directory', async () => {
  const empty = scratch();
  mkdirSync(join(empty, 'there'));
  const none = await start({ roots: [join(empty, 'there'), join(empty, 'not-yet')] });
  expect((await none.get('/api/runs')).json<RunList>().runs).toEqual([]);
  expect(server.port).toBeGreaterThan(0);
});
