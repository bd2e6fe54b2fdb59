/** What happens while the page is open: rows, events, resumes, runs that come and go, lost connections. */
import { spawn } from 'node:child_process';
import { appendFileSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { RunWriter } from '../../src/runs/index.ts';
import type {
  DiagnosisAnswer,
  RunDetail,
  RunList,
  RunSummary,
  SeriesAnswer,
  StreamMessage,
} from '../../src/server/api.ts';
import { restAfterSearch } from '../../src/server/runs/finder.ts';
import { createHub, type Listener } from '../../src/server/stream.ts';
import { compiledUrl } from '../support/compiled.ts';
import { listen, start, type Told, until } from './support/client.ts';
import { makeForeign, makeRun, scratch } from './support/make-run.ts';

type Kind<T extends StreamMessage['type']> = Extract<StreamMessage, { type: T }>;
const only = <T extends StreamMessage['type']>(told: readonly Told[], type: T): Kind<T>[] =>
  told.map(({ message }) => message).filter((message): message is Kind<T> => message.type === type);

const rowsOf = (told: readonly Told[], run: string): Readonly<Record<string, number | null>>[] =>
  only(told, 'rows')
    .filter(message => message.run === run)
    .flatMap(({ rows }) => rows);

describe('a live run', () => {
  test('its rows are told as they come, each once, in order', async () => {
    const root = scratch();
    const made = makeRun(root, 'live', 5);
    const { port, get } = await start({ roots: [root], pollMs: undefined });
    const { runs } = (await get('/api/runs')).json<RunList>();
    const id = runs[0].id;
    await until(async () => (await get(`/api/runs/${id}`)).json<RunDetail>().run.loaded, 'it is read');
    const { told } = await listen(port);
    for (let i = 0; i < 12; i++) {
      made.row(i === 4 ? { 'kl/step': Number.POSITIVE_INFINITY } : {});
      // Most before the next is written.
      if (i % 4 !== 3) await until(() => rowsOf(told, id).length === i + 1, `row ${i} is told`);
    }
    await until(() => rowsOf(told, id).length >= 12, 'all rows are told');
    const rows = rowsOf(told, id);
    expect(rows.map(row => row['train/iteration'])).toEqual(Array.from({ length: 12 }, (_, i) => i + 6));
    expect(rows[4]['kl/step']).toBeNull();
    expect(rows[5]['kl/step']).toBeCloseTo(0.005 + 0.001 * Math.sin(11), 12);
    const last = only(told, 'rows').at(-1)!;
    expect(last).toMatchObject({ total: 17, step: 1700, more: false, generation: 0 });
    const series = (await get(`/api/runs/${id}/series?metrics=kl/step`)).json<SeriesAnswer>();
    expect(series.rows).toBe(17);
    await until(
      () => only(told, 'runs').some(({ changed }) => changed.some(run => run.step === 1700)),
      'the overview knows',
    );
  });

  test('more rows at once than a message holds: the newest, and that there were more', async () => {
    const root = scratch();
    const made = makeRun(root, 'fast', 3);
    const { port, get } = await start({ roots: [root] });
    const id = (await get('/api/runs')).json<RunList>().runs[0].id;
    await until(async () => (await get(`/api/runs/${id}`)).json<RunDetail>().run.loaded, 'it is read');
    const { told } = await listen(port);
    for (let i = 0; i < 400; i++) made.row();
    await until(() => only(told, 'rows').some(({ total }) => total === 403), 'told');
    const messages = only(told, 'rows');
    for (const { rows } of messages) expect(rows.length).toBeLessThanOrEqual(100);
    expect(messages.some(({ more }) => more)).toBe(true);
    expect(rowsOf(told, id).at(-1)!['train/iteration']).toBe(403);
  });

  test('events are told, and how it ends', async () => {
    const root = scratch();
    const made = makeRun(root, 'ends', 3);
    const { port, get } = await start({ roots: [root] });
    const id = (await get('/api/runs')).json<RunList>().runs[0].id;
    await until(
      async () => (await get(`/api/runs/${id}`)).json<RunDetail>().run.state === 'running',
      'it runs',
    );
    const { told } = await listen(port);
    made.writer.event({ type: 'note', iteration: 3, step: 300, message: 'hello', text: 'hello' });
    made.writer.end('finished');
    await until(
      () => only(told, 'runs').some(({ changed }) => changed.some(run => run.state === 'finished')),
      'finished',
    );
    const events = only(told, 'events').flatMap(message => message.events);
    expect(events.map(({ type }) => type)).toEqual(['note', 'finished']);
  });

  test('a resume from an earlier checkpoint: what was after it is gone', async () => {
    const root = scratch();
    const made = makeRun(root, 'again', 4);
    await made.writer.checkpoint({ step: 400, iteration: 4, files: {}, state: {} });
    for (let i = 0; i < 5; i++) made.row({ 'episode/return': 1000 });
    made.writer.end('stopped', 'test');
    const { port, get } = await start({ roots: [root] });
    const id = (await get('/api/runs')).json<RunList>().runs[0].id;
    const ask = async (): Promise<SeriesAnswer> =>
      (await get(`/api/runs/${id}/series?metrics=episode/return`)).json<SeriesAnswer>();
    await until(async () => (await ask()).rows === 9, 'it is read');
    const { told } = await listen(port);
    const { writer } = RunWriter.resume(made.dir, { csv: false, tensorboard: false });
    // At once as many rows as were dropped, and one more: the size alone does not tell.
    for (let i = 5; i <= 10; i++) {
      writer.row({
        'train/iteration': i,
        'train/step': i * 100,
        'kl/step': 0.005,
        'episode/return': -i,
        'loss/value': 1 / i,
        'value/explained_variance': 0.5,
      });
    }
    await until(async () => (await ask()).rows === 10, 'it is read again');
    const { series, generation } = await ask();
    expect(generation).toBeGreaterThan(0);
    expect(series[0].mean).toEqual([1, 2, 3, 4, -5, -6, -7, -8, -9, -10]);
    const summaries = only(told, 'runs').flatMap(({ changed }) => changed);
    expect(summaries.at(-1)!.generation).toBe(generation);
    const events = (await get(`/api/runs/${id}/events`)).json<{ events: { type: string }[] }>().events;
    expect(events.filter(({ type }) => type === 'resumed')).toHaveLength(1);
    writer.end('finished');
  });

  test('a line that is broken, and one that is half written', async () => {
    const root = scratch();
    const made = makeRun(root, 'broken', 3);
    const { get } = await start({ roots: [root] });
    const id = (await get('/api/runs')).json<RunList>().runs[0].id;
    const metrics = join(made.dir, 'metrics.jsonl');
    appendFileSync(
      metrics,
      '{"train/iteration":4,"train/st\n{"train/iteration":5,"train/step":500,"kl/step":0.5',
    );
    const detail = async (): Promise<RunDetail> => (await get(`/api/runs/${id}`)).json<RunDetail>();
    await until(async () => (await detail()).run.problem !== null, 'it says so');
    expect((await detail()).run.problem).toContain('one line is damaged');
    expect((await detail()).run.step).toBe(300);
    appendFileSync(metrics, '}\n');
    await until(async () => (await detail()).run.step === 500, 'it goes on');
    expect((await detail()).run.lastKl).toBe(0.5);
  });
});

describe('runs come and go', () => {
  test('a new one, a deleted one, one that cannot be read', async () => {
    const root = scratch();
    const first = makeRun(root, 'first', 3);
    first.writer.end('finished');
    const { port, get } = await start({ roots: [root] });
    const list = async (): Promise<readonly RunSummary[]> => (await get('/api/runs')).json<RunList>().runs;
    const { told } = await listen(port);
    const second = makeRun(root, 'second', 3);
    await until(async () => (await list()).length === 2, 'the second is there');
    const gone = (await list()).find(({ name }) => name === 'first')!.id;
    rmSync(first.dir, { recursive: true });
    await until(() => only(told, 'runs').some(({ removed }) => removed.includes(gone)), 'the first is gone');
    const stale = await get(`/api/runs/${gone}`);
    expect(stale.status).toBe(404);
    expect(stale.text).toContain('deleted');
    writeFileSync(join(second.dir, 'manifest.json'), '{"kind":"keel-run"');
    await until(async () => (await list()).some(({ state }) => state === 'unreadable'), 'it says so');
    expect((await list())[0].problem).toContain('damaged');
  });

  test('a run whose process is gone was killed', async () => {
    const root = scratch();
    const script = `
      import { RunWriter } from ${JSON.stringify(compiledUrl('runs/index'))};
      const writer = RunWriter.create({ algorithm: 'ppo', environment: { id: 'X', version: '1', options: {}, reward: {} },
        config: {}, seed: 1, versions: {} }, { root: ${JSON.stringify(root)}, id: 'doomed' }, { csv: false, tensorboard: false });
      writer.row({ 'train/iteration': 1, 'train/step': 10 });
      console.log('ready');
      setInterval(() => {}, 1000);`;
    const child = spawn(process.execPath, ['--input-type=module', '-e', script]);
    await new Promise<void>(done => child.stdout.once('data', () => done()));
    const { get } = await start({ roots: [root] });
    const state = async (): Promise<string> => (await get('/api/runs')).json<RunList>().runs[0].state;
    await until(async () => (await state()) === 'running', 'it runs');
    child.kill('SIGKILL');
    await until(async () => (await state()) === 'killed', 'it was killed');
  });

  test('two hundred runs, none of them reread', async () => {
    const root = scratch();
    for (let i = 0; i < 200; i++) makeRun(root, `run-${i}`, 4).writer.end('finished');
    const { get, server } = await start({ roots: [root], foreign: false });
    const list = (await get('/api/runs')).json<RunList>();
    expect(list.runs).toHaveLength(200);
    await until(
      async () => (await get('/api/runs')).json<RunList>().runs.every(run => run.loaded),
      'all are read',
    );
    // Quiet: a list, and looking at them all, is cheap.
    await new Promise(resolve => setTimeout(resolve, 1500));
    const before = process.cpuUsage();
    await new Promise(resolve => setTimeout(resolve, 2000));
    const { user, system } = process.cpuUsage(before);
    expect((user + system) / 2e6).toBeLessThan(5);
    expect(server.index.list().version).toBeGreaterThanOrEqual(200);
  });
});

describe("another trainer's log", () => {
  test('grows, and its rows are told under our names', async () => {
    const root = scratch();
    const { dir, text } = makeForeign(root, 'logs', 10);
    const { port, get } = await start({ roots: [root] });
    await until(async () => (await get('/api/runs')).json<RunList>().runs[0]?.loaded === true, 'it is read');
    const { id } = (await get('/api/runs')).json<RunList>().runs[0];
    const { told } = await listen(port);
    writeFileSync(join(dir, 'progress.csv'), text(12));
    await until(() => rowsOf(told, id).some(row => row['episode/return'] === 31), 'the new rows are told');
    const row = rowsOf(told, id).find(({ 'episode/return': value }) => value === 31)!;
    expect(row['train/step']).toBe(12 * 2048);
    await until(
      () => only(told, 'runs').some(({ changed }) => changed.some(run => run.step >= 12 * 2048)),
      'and the overview',
    );
    // Begun anew: shorter than before.
    writeFileSync(join(dir, 'progress.csv'), text(4));
    await until(
      async () => (await get('/api/runs')).json<RunList>().runs[0].generation > 0,
      'it is another log now',
    );
  });

  test('a row at a time: every point of every series is told, also of those that lag a row behind', async () => {
    const root = scratch();
    const names = ['time/iterations', 'time/total_timesteps', 'time/time_elapsed', 'rollout/ep_rew_mean'];
    const late = ['train/approx_kl', 'train/explained_variance', 'train/value_loss', 'train/n_updates'];
    // As Stable-Baselines3 writes it: the first row is from before the first update; `eval/*` is there now and then.
    const line = (i: number): string =>
      [
        ...[i, i * 1024, 3 * i, 20 + i],
        ...(i === 1 ? late.map(() => '') : [0.01 * i, 0.5 + 0.01 * i, 5 / i, 10 * (i - 1)]),
        i % 4 === 0 ? 100 + i : '',
      ].join(',');
    const file = join(root, 'progress.csv');
    const head = [...names, ...late, 'eval/mean_reward'].join(',');
    writeFileSync(file, `${[head, line(1), line(2), line(3)].join('\n')}\n`);
    const { port, get } = await start({ roots: [root] });
    await until(async () => (await get('/api/runs')).json<RunList>().runs[0]?.loaded === true, 'it is read');
    const { id } = (await get('/api/runs')).json<RunList>().runs[0];
    const points = async (): Promise<Map<string, [number, number | null][]>> => {
      const { metrics } = (await get(`/api/runs/${id}`)).json<RunDetail>();
      const asked = metrics.map(metric => encodeURIComponent(metric.id)).join(',');
      const { series } = (await get(`/api/runs/${id}/series?metrics=${asked}`)).json<SeriesAnswer>();
      return new Map(series.map(({ metric, x, mean }) => [metric, x.map((at, i) => [at, mean[i]!])]));
    };
    const grown = await points();
    const { told } = await listen(port);
    for (let i = 4; i <= 9; i++) {
      appendFileSync(file, `${line(i)}\n`);
      await until(() => rowsOf(told, id).some(row => row['episode/return'] === 20 + i), `row ${i} is told`);
    }
    const whole = (await get(`/api/runs/${id}`)).json<RunDetail>();
    expect(whole.hasTime).toBe(true);
    // How long it took is what the log's clock says, however old the copy of the file is.
    expect(whole.run.lastRowAt! - whole.run.startedAt!).toBe(24_000);
    const timed = await get(`/api/runs/${id}/series?metrics=kl/step,episode/return&x=time`);
    const times = timed.json<SeriesAnswer>().series.map(({ x }) => x.map(at => at - x[0]));
    // Seconds since the start, as logged; a value of an update is where that update's rollout is.
    expect(times).toEqual([8, 9].map(n => Array.from({ length: n }, (_, i) => 3000 * i)));
    for (const row of rowsOf(told, id)) {
      for (const [metric, value] of Object.entries(row)) {
        const own = grown.get(metric) ?? [];
        grown.set(metric, own);
        if (own.every(([at]) => at < row['train/step']!)) own.push([row['train/step']!, value]);
      }
    }
    const fresh = await points();
    expect(fresh.get('kl/step')).toHaveLength(8);
    expect(fresh.get('kl/step')!.at(-1)![0]).toBeLessThan(9 * 1024); // or the test is about nothing
    for (const [metric, all] of fresh) {
      const rows = grown.get(metric)!;
      expect([metric, rows.map(([at]) => at)]).toEqual([metric, all.map(([at]) => at)]);
      rows.forEach(([, value], i) => {
        expect(value).toBeCloseTo(all[i][1]!, 5);
      });
    }
  });

  test('that appears while the server runs is found, and told of', async () => {
    const root = scratch();
    makeForeign(root, 'before', 4);
    const { port, get } = await start({ roots: [root] });
    await until(async () => (await get('/api/runs')).json<RunList>().runs.length === 1, 'the first is there');
    const { told } = await listen(port);
    makeForeign(root, 'later', 7);
    const found = () =>
      only(told, 'runs')
        .flatMap(({ changed }) => changed)
        .find(run => run.name === 'later' && run.loaded);
    await until(() => found() !== undefined, 'the second is told of');
    expect(found()).toMatchObject({ step: 7 * 2048, trainer: 'stable-baselines3' });
  });

  test('a slow search is rarer, but a new log never waits for more than about ten seconds', () => {
    expect(restAfterSearch(10)).toBe(restAfterSearch(0));
    expect(restAfterSearch(300)).toBeGreaterThan(restAfterSearch(10));
    for (const took of [1000, 60_000, 1e9]) expect(restAfterSearch(took)).toBeLessThanOrEqual(10_000);
  });

  test('of nobody known: its series are there under their own names', async () => {
    const root = scratch();
    mkdirSync(join(root, 'odd'));
    const lines = Array.from({ length: 9 }, (_, i) => JSON.stringify({ zorp: i, flux: 2 * i, step: i * 5 }));
    writeFileSync(join(root, 'odd', 'log.jsonl'), `${lines.join('\n')}\n`);
    const { get } = await start({ roots: [root] });
    await until(async () => (await get('/api/runs')).json<RunList>().runs[0]?.loaded === true, 'it is read');
    const [run] = (await get('/api/runs')).json<RunList>().runs;
    expect(run).toMatchObject({ trainer: 'unknown', verdict: null });
    const detail = (await get(`/api/runs/${run.id}`)).json<RunDetail>();
    const zorp = detail.metrics.find(({ id }) => id === 'zorp')!;
    expect(zorp).toMatchObject({ group: 'other', points: 9, last: 8 });
    const { series } = (await get(`/api/runs/${run.id}/series?metrics=zorp`)).json<SeriesAnswer>();
    expect(series[0].max).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8]);
    expect((await get(`/api/runs/${run.id}/diagnosis`)).json<{ reason: string }>().reason).toMatch(
      /metrics that are known/,
    );
  });

  test('with a damaged line says so, without the way to it', async () => {
    const root = scratch();
    const { dir, text } = makeForeign(root, 'cut', 10);
    const { get } = await start({ roots: [root] });
    const first = async (): Promise<RunSummary | undefined> =>
      (await get('/api/runs')).json<RunList>().runs[0];
    await until(async () => (await first())?.loaded === true, 'it is read');
    expect((await first())!.problem).toBeNull();
    writeFileSync(join(dir, 'progress.csv'), text(14).replace(/^(28,.*),[^,]*,[^,]*$/m, '$1'));
    await until(async () => (await first())!.problem !== null, 'it says so');
    const said = 'progress.csv: one row that does not have 9 fields, as the header has, is left out';
    const { id, problem, lastReturn } = (await first())!;
    expect([problem, lastReturn]).toEqual([said, 33]);
    expect((await get(`/api/runs/${id}`)).json<RunDetail>().logNotes).toContain(said);
    const { diagnosis } = (await get(`/api/runs/${id}/diagnosis`)).json<DiagnosisAnswer>();
    expect(diagnosis!.notes).toContain(said);
  });

  test('that is damaged says so and does not stop the others', async () => {
    const root = scratch();
    makeForeign(root, 'good', 10);
    mkdirSync(join(root, 'bad'));
    writeFileSync(join(root, 'bad', 'progress.csv'), 'time/total_timesteps,train/approx_kl\nx,y\nz,w\n');
    const { get } = await start({ roots: [root] });
    await until(
      async () =>
        (await get('/api/runs'))
          .json<RunList>()
          .runs.some(({ name, verdict }) => name === 'good' && verdict !== null),
      'the good one is read',
    );
    const bad = (await get('/api/runs')).json<RunList>().runs.find(({ name }) => name === 'bad');
    if (bad !== undefined) expect(bad.problem).toMatch(/number/);
  });
});

describe('a lost connection', () => {
  test('comes back with the last id and gets what it missed, each once', async () => {
    const root = scratch();
    const made = makeRun(root, 'live', 2);
    const { port, get } = await start({ roots: [root] });
    const id = (await get('/api/runs')).json<RunList>().runs[0].id;
    await until(async () => (await get(`/api/runs/${id}`)).json<RunDetail>().run.loaded, 'it is read');
    const first = await listen(port);
    const all: Told[] = [];
    made.row();
    await until(() => rowsOf(first.told, id).length === 1, 'one row');
    first.close();
    all.push(...first.told);
    made.row();
    made.row();
    await new Promise(resolve => setTimeout(resolve, 600));
    const second = await listen(port, { 'last-event-id': first.told.at(-1)!.id });
    made.row();
    await until(() => rowsOf(second.told, id).some(row => row['train/iteration'] === 6), 'the last row');
    all.push(...second.told);
    expect(rowsOf(all, id).map(row => row['train/iteration'])).toEqual([3, 4, 5, 6]);
    const ids = all.map(told => told.id);
    expect(new Set(ids).size).toBe(ids.length);
    expect(only(all, 'reset')).toEqual([]);
  });

  test.each(['other-5', 'garbage', 'zzzz-99999', '-1', 'x'.repeat(1000)])(
    'with an id that is not known (%s) it is told to begin anew',
    async lastId => {
      const { port } = await start({ roots: [scratch()] });
      const { told } = await listen(port, { 'last-event-id': lastId });
      await until(() => told.length > 0, 'an answer');
      expect(told[0].message).toEqual({ type: 'reset' });
    },
  );
});

describe('the hub', () => {
  const listener = (): Listener & { text: string; closed: boolean; waiting: number } => {
    const own = {
      text: '',
      closed: false,
      waiting: 0,
      write: (text: string) => {
        own.text += text;
      },
      close: () => {
        own.closed = true;
      },
    };
    return own;
  };
  const removed = (n: number): StreamMessage => ({ type: 'runs', changed: [], removed: [String(n)] });

  test('keeps two thousand messages; who was away for longer begins anew', () => {
    const hub = createHub('e');
    for (let i = 1; i <= 5000; i++) hub.publish(removed(i));
    const [late, inTime] = [listener(), listener()];
    hub.listen(late, 'e-2999');
    hub.listen(inTime, 'e-3000');
    expect(late.text).toContain('"reset"');
    expect(inTime.text).not.toContain('"reset"');
    expect(inTime.text.match(/^id: /gm)).toHaveLength(2000);
    expect(inTime.text).toContain('id: e-3001\n');
    hub.close();
    expect(late.closed).toBe(true);
  });

  test('who does not read is dropped, the others go on', () => {
    const hub = createHub('e');
    const [slow, quick] = [listener(), listener()];
    hub.listen(slow, undefined);
    hub.listen(quick, undefined);
    slow.waiting = 2 * 2 ** 20;
    hub.publish(removed(1));
    expect([slow.closed, quick.closed, hub.listeners]).toEqual([true, false, 1]);
    expect(quick.text).toContain('id: e-1\n');
    hub.close();
  });

  test('a client that stops reading is dropped for real', async () => {
    const { port, server } = await start({ roots: [scratch()] });
    const socket = connect(port, '127.0.0.1');
    await new Promise<void>(done => socket.once('connect', done));
    socket.write(`GET /api/stream${new URL(server.url).search} HTTP/1.1\r\nHost: localhost:${port}\r\n\r\n`);
    await until(() => server.hub.listeners === 1, 'it listens');
    socket.pause();
    const closed = new Promise<void>(done => socket.once('close', () => done()));
    const big = removed(1);
    const filler: StreamMessage = { ...big, removed: Array(2000).fill('x'.repeat(50)) } as StreamMessage;
    await until(() => {
      server.hub.publish(filler);
      return server.hub.listeners === 0;
    }, 'it is dropped');
    socket.resume();
    await closed;
  });
});

test('twenty clients on one live run', async () => {
  const root = scratch();
  const made = makeRun(root, 'live', 2);
  const { port, get } = await start({ roots: [root] });
  const id = (await get('/api/runs')).json<RunList>().runs[0].id;
  await until(async () => (await get(`/api/runs/${id}`)).json<RunDetail>().run.loaded, 'it is read');
  const clients = await Promise.all(Array.from({ length: 20 }, () => listen(port)));
  for (let i = 0; i < 60; i++) {
    made.row();
    await new Promise(resolve => setTimeout(resolve, 20));
  }
  await until(() => clients.every(({ told }) => rowsOf(told, id).length === 60), 'all have all rows');
  for (const { told } of clients) {
    expect(rowsOf(told, id).map(row => row['train/iteration'])).toEqual(
      Array.from({ length: 60 }, (_, i) => i + 3),
    );
  }
});
