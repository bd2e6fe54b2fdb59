/** A server with the answers of src/server/api.ts over fake runs, so that the page can be tested alone and told anything. */
import { readFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { extname, join, normalize } from 'node:path';
import { gzipSync } from 'node:zlib';
import type {
  Action,
  AllSettings,
  CheckpointsAnswer,
  Hello,
  Notes,
  OutputAnswer,
  SettingsAnswer,
  StreamMessage,
  XAxis,
} from '../../../src/server/api.ts';
import { securityHeaders } from '../../../src/server/http/security.ts';
import type { Hub } from '../../../src/server/stream.ts';
import { createStudyIndex } from '../../../src/server/studies.ts';
import {
  checkpointsOf,
  detailOf,
  diagnosisOf,
  envelopeOf,
  eventsOf,
  type FakeRun,
  fakeRun,
  rowOf,
  stepsPerRow,
  summaryOf,
} from './fake-runs.ts';
import { type FakeStudies, studySource } from './fake-studies.ts';

export interface FakeServer {
  readonly url: string;
  readonly runs: Map<string, FakeRun>;
  /** Requests so far, as `GET /api/…`. */
  readonly requests: string[];
  readonly actions: { readonly run: string; readonly action: Action }[];
  send(message: StreamMessage): void;
  /** A live run gets more rows, told on the stream. */
  grow(id: string, rows: number): void;
  remove(id: string): void;
  /** Ends all streams and refuses new ones until `back`. */
  down(): void;
  back(): void;
  /** Answers these paths with an error. */
  readonly broken: Map<string, { status: number; message: string }>;
  close(): Promise<void>;
}

const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
};

export async function startFakeServer(
  site: string,
  given: readonly FakeRun[],
  /** Told by the real index of studies; only their files are fake. */
  kept: FakeStudies = new Map(),
): Promise<FakeServer> {
  const runs = new Map(given.map(run => [run.id, run]));
  for (const run of given)
    if (run.events.length === 0 && run.trainer === 'keel' && run.rows < 5000)
      run.events = eventsOf(run, 0, run.rows, 1);
  const requests: string[] = [];
  const actions: FakeServer['actions'] = [];
  const broken: FakeServer['broken'] = new Map();
  const streams = new Set<ServerResponse>();
  const sockets = new Set<Socket>();
  const sent: { id: number; text: string }[] = [];
  let isDown = false;
  let lastId = 0;

  function send(message: StreamMessage): void {
    const item = { id: ++lastId, text: `id: ${lastId}\ndata: ${JSON.stringify(message)}\n\n` };
    sent.push(item);
    for (const stream of streams) stream.write(item.text);
  }

  const hub: Pick<Hub, 'publish'> = { publish: send };
  const studies = createStudyIndex({ source: studySource(kept), hub: hub as Hub, pollMs: 50 });
  studies.start();

  const server = createServer((request, response) => {
    void handle(request, response).catch(error => {
      response
        .writeHead(500, { 'Content-Type': 'application/json' })
        .end(JSON.stringify({ error: { code: 'bug', message: String(error) } }));
    });
  });
  server.on('connection', socket => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://localhost');
    requests.push(`${request.method} ${url.pathname}${url.search}`);
    if (isDown) return void request.socket.destroy();
    if (!url.pathname.startsWith('/api/')) return serveFile(url.pathname, response);
    const fault = broken.get(url.pathname);
    if (fault !== undefined)
      return answer(response, { error: { code: 'broken', message: fault.message } }, fault.status);
    if (url.pathname === '/api/stream') return openStream(request, response);
    if (url.pathname === '/api/hello')
      return answer(response, {
        version: '0.0.0',
        roots: ['runs'],
        canAct: true,
        startedAt: 1,
        commands: {
          again: 'npx keel dash --port 7007',
          train: 'npx keel train cartpole',
          watch: 'npx keel watch',
        },
      } satisfies Hello);
    if (url.pathname === '/api/runs')
      return answer(response, { runs: [...runs.values()].map(summaryOf), version: lastId });
    if (url.pathname === '/api/settings') return answer(response, settingsOf([...runs.values()]));
    if (url.pathname === '/api/studies') return answer(response, studies.list());
    if (url.pathname.startsWith('/api/studies/')) {
      const study = studies.get(
        decodeURIComponent(url.pathname.slice('/api/studies/'.length)),
        url.searchParams.get('version') ?? undefined,
      );
      if (study !== undefined) return answer(response, study);
      return answer(response, { error: { code: 'no-such-study', message: 'There is no such study.' } }, 404);
    }
    const [id, ...rest] = url.pathname.slice('/api/runs/'.length).split('/').map(decodeURIComponent);
    const run = runs.get(id ?? '');
    if (run === undefined)
      return answer(response, { error: { code: 'unknown-run', message: 'There is no such run.' } }, 404);
    await runAnswer(run, rest.join('/'), url.searchParams, request, response);
  }

  async function runAnswer(
    run: FakeRun,
    path: string,
    query: URLSearchParams,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const number = (key: string) => (query.get(key) ? Number(query.get(key)) : null);
    if (path === '') return answer(response, detailOf(run));
    if (path === 'series') {
      const x = (query.get('x') ?? 'step') as XAxis;
      const metrics = (query.get('metrics') ?? '').split(',').map(decodeURIComponent);
      const known = new Set(detailOf(run).metrics.map(m => m.id));
      const series = metrics
        .filter(m => known.has(m))
        .map(m => envelopeOf(run, m, x, number('from'), number('to'), number('buckets') ?? 600));
      return answer(response, {
        x,
        from: number('from'),
        to: number('to'),
        series,
        generation: run.generation,
        rows: run.rows,
      });
    }
    if (path === 'events') {
      const counts: Record<string, number> = {};
      for (const event of run.events) counts[event.type] = (counts[event.type] ?? 0) + 1;
      return answer(response, {
        events: run.events.filter(e => e.sequence > (number('after') ?? -1)),
        counts,
      });
    }
    if (path === 'settings')
      return answer(response, {
        settings: {
          epochs: { doc: 'Passes over each rollout.', fallback: 10 },
          learningRate: { doc: "Adam's step size.", fallback: 3e-4 },
          seed: { doc: 'Of all that is random.', fallback: 0 },
          targetKl: { doc: 'An update ends early where its KL passes 1.5 times this.', fallback: null },
        },
      } satisfies SettingsAnswer);
    if (path === 'output')
      return answer(response, {
        parts:
          run.state === 'failed'
            ? [{ title: 'Where it failed', text: 'Error: NaN\n    at step (env.ts:3:1)\n', cut: false }]
            : [],
      } satisfies OutputAnswer);
    if (path === 'diagnosis') return answer(response, diagnosisOf(run));
    if (path === 'completions') {
      const groups = run.groups.filter(
        ({ iteration }) => iteration < (number('before') ?? Number.POSITIVE_INFINITY),
      );
      return answer(response, { groups: groups.slice(0, 4), older: groups.length > 4 });
    }
    if (path === 'checkpoints')
      return answer(response, {
        checkpoints: checkpointsOf(run),
        fork: run.trainer === 'keel' ? `npx keel fork ${run.name} --checkpoint` : null,
      } satisfies CheckpointsAnswer);
    if (/^checkpoints\/\d+\/evaluate$/.test(path))
      return answer(response, {
        step: Number(path.split('/')[1]),
        episodes: 10,
        mean: 431.25,
        std: 12.5,
        standardError: 2.87,
        deterministic: true,
        drawn: { mean: 440.5, standardError: 3.1 },
      });
    if (path === 'policy.onnx' || path === 'metrics.csv' || path === 'report.html')
      return void response.writeHead(200, { 'Content-Type': 'text/plain' }).end(`${path} of ${run.name}`);
    const body = JSON.parse((await read(request)) || '{}') as unknown;
    if (path === 'notes') {
      Object.assign(run, body as Partial<Notes>);
      send({ type: 'runs', changed: [summaryOf(run)], removed: [] });
      return answer(response, summaryOf(run).notes);
    }
    if (path === 'actions') return act(run, body as Action, response);
    return answer(response, { error: { code: 'unknown', message: `There is no ${path}.` } }, 404);
  }

  function act(run: FakeRun, action: Action, response: ServerResponse): void {
    actions.push({ run: run.id, action });
    const event = {
      sequence: (run.events.at(-1)?.sequence ?? 0) + 1,
      type: 'act',
      step: run.rows * stepsPerRow,
      iteration: run.rows,
      time: Date.now(),
      message: `${action.type} from the page`,
    };
    run.events.push(event);
    send({ type: 'events', run: run.id, events: [event] });
    if (action.type === 'set' || action.type === 'stop') {
      if (action.type === 'set') run.adjusted[action.key] = action.value;
      answer(response, {
        done: true,
        message:
          action.type === 'set'
            ? `${action.key} is ${action.value} from the next iteration on.`
            : 'The run stops.',
        newRun: null,
      });
      return;
    }
    const next = fakeRun({
      id: `${run.id}-2`,
      name: `${run.name}-2`,
      state: 'running',
      rows: 30,
      plannedRows: 240,
      parent: run.id,
      updatedAt: Date.now(),
    });
    runs.set(next.id, next);
    run.state = 'stopped';
    send({ type: 'runs', changed: [summaryOf(run), summaryOf(next)], removed: [] });
    answer(response, {
      done: true,
      message:
        action.type === 'restart'
          ? `${next.name} goes on from step ${action.checkpoint}.`
          : `${next.name} was begun anew.`,
      newRun: next.id,
    });
  }

  function openStream(request: IncomingMessage, response: ServerResponse): void {
    response.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store' });
    response.write(': hello\n\n');
    const after = Number(request.headers['last-event-id'] ?? lastId);
    for (const item of sent) if (item.id > after) response.write(item.text);
    streams.add(response);
    response.on('close', () => streams.delete(response));
  }

  async function serveFile(path: string, response: ServerResponse): Promise<void> {
    const name = normalize(path === '/' ? '/index.html' : path);
    try {
      const body = await readFile(join(site, name));
      const headers = {
        'Content-Type': types[extname(name)] ?? 'application/octet-stream',
        ...securityHeaders,
      };
      if (extname(name) === '.js' || extname(name) === '.css')
        return void response.writeHead(200, { ...headers, 'Content-Encoding': 'gzip' }).end(gzipSync(body));
      response.writeHead(200, headers).end(body);
    } catch {
      response.writeHead(404).end('not found');
    }
  }

  await new Promise<void>(done => server.listen(0, '127.0.0.1', done));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/`,
    runs,
    requests,
    actions,
    broken,
    send,
    grow(id, count) {
      const run = runs.get(id)!;
      const before = run.rows;
      const verdict = summaryOf(run).verdict;
      run.rows += count;
      run.updatedAt = Date.now();
      const rows = Array.from({ length: count }, (_, k) => rowOf(run, before + k)).slice(-100);
      send({
        type: 'rows',
        run: id,
        generation: run.generation,
        step: run.rows * stepsPerRow,
        total: run.rows,
        more: count > 100,
        rows,
      });
      const events = eventsOf(run, before, run.rows, (run.events.at(-1)?.sequence ?? 0) + 1);
      run.events.push(...events);
      if (events.length > 0) send({ type: 'events', run: id, events });
      const summary = summaryOf(run);
      send({ type: 'runs', changed: [summary], removed: [] });
      if (summary.verdict !== null && summary.verdict !== verdict)
        send({ type: 'diagnosis', run: id, verdict: summary.verdict, rootCause: summary.rootCause });
    },
    remove(id) {
      runs.delete(id);
      send({ type: 'runs', changed: [], removed: [id] });
    },
    down() {
      isDown = true;
      for (const socket of sockets) socket.destroy();
    },
    back() {
      isDown = false;
    },
    close: () =>
      new Promise<void>(done => {
        studies.close();
        for (const socket of sockets) socket.destroy();
        server.close(() => done());
      }),
  };
}

function answer(response: ServerResponse, body: unknown, status = 200): void {
  response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body));
}

async function read(request: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  return Buffer.concat(parts).toString('utf8');
}

function settingsOf(runs: readonly FakeRun[]): AllSettings {
  const texts = runs.map(run => Object.entries(run.config).map(([key, value]) => `${key}=${value}`));
  const settings = [...new Set(texts.flat())];
  return {
    settings,
    runs: Object.fromEntries(runs.map((run, i) => [run.id, texts[i].map(text => settings.indexOf(text))])),
  };
}
