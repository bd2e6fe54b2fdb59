/** The routes: see `api.ts` for what each answers. */

import type { HttpBindings } from '@hono/node-server';
import { type Context, Hono } from 'hono';
import { KeelError } from '../base/errors.ts';
import { typed } from '../base/typed.ts';
import { MOST_RUNS } from '../report/limits.ts';
import { referenceTo } from '../runs/reference.ts';
import type { Actions } from './actions.ts';
import type {
  CheckpointsAnswer,
  CompletionsAnswer,
  Hello,
  OutputAnswer,
  ReplaysAnswer,
  RunDetail,
} from './api.ts';
import { checkpointsOf } from './checkpoints.ts';
import { clusterOf } from './cluster.ts';
import { completionsOf, mostGroups } from './completions.ts';
import type { Doctor } from './doctor/client.ts';
import { proposals } from './doctor/proposals.ts';
import { remedyOf } from './doctor/remedy.ts';
import { csvOf } from './http/csv.ts';
import { answer, bodyOf, packed } from './http/json-answer.ts';
import { missingPage, plainPolicy, tokenPage } from './http/plain-page.ts';
import { numberOf, stepOf } from './http/query.ts';
import { reportPolicy, security } from './http/security.ts';
import { seriesOf } from './http/series-query.ts';
import { createStaticFiles, type StaticFiles } from './http/static-files.ts';
import { streamTo } from './http/stream-route.ts';
import { outputOf } from './output.ts';
import { Problem } from './problem.ts';
import { createReplays } from './replays.ts';
import { KeelRun } from './runs/keel-run.ts';
import { type NotesStore, parsePatch } from './runs/notes.ts';
import type { WatchedRun } from './runs/run.ts';
import type { RunIndex } from './runs/run-index.ts';
import { allSettings, settingsOf } from './settings.ts';
import type { Hub } from './stream.ts';
import type { StudyIndex } from './studies.ts';
import type { PageToken } from './token.ts';

export interface AppOptions {
  readonly index: RunIndex;
  readonly hub: Hub;
  readonly doctor: Doctor;
  readonly notes: NotesStore;
  readonly actions: Actions;
  readonly studies?: StudyIndex | undefined;
  readonly version: string;
  /** The address that is listened on, and the token that is asked for. */
  readonly host: string;
  readonly token?: PageToken | undefined;
  readonly readOnly?: boolean | undefined;
  /** Starts this server again where it was. */
  readonly again: () => string;
  /** Where the built page is. */
  readonly page?: string | undefined;
  /** Told of errors that are faults of ours. */
  readonly onFault?: ((error: unknown) => void) | undefined;
}

type Env = { Bindings: HttpBindings };

export function createApp(options: AppOptions): Hono<Env> {
  const { index, hub, doctor, notes, actions, version, host, token, readOnly = false } = options;
  const files: StaticFiles = createStaticFiles(options.page);
  const replays = createReplays(index.roots);
  const startedAt = Date.now();
  const app = new Hono<Env>({ strict: false });

  app.use(security({ host, token }));

  const fail = (c: Context, { status, code, message }: Problem): Response => {
    c.header('cache-control', 'no-store');
    if (status === 401 && !c.req.path.startsWith('/api/') && c.req.method === 'GET') {
      c.header('content-security-policy', plainPolicy);
      return c.html(tokenPage(token?.file), 401);
    }
    return c.json({ error: { code, message } }, status);
  };

  const known = (asked: Context | string): WatchedRun => {
    const run = index.get(typeof asked === 'string' ? asked : (asked.req.param('id') ?? ''));
    if (run !== undefined) return run;
    throw new Problem(
      404,
      'no-such-run',
      'there is no such run here: it may have been deleted, or the link is of another server',
    );
  };
  const loaded = async (c: Context): Promise<WatchedRun> => {
    known(c);
    return (await index.load(c.req.param('id') ?? '')) ?? known(c);
  };
  const writable = (): void => {
    if (readOnly)
      throw new Problem(
        403,
        'read-only',
        'this server was started with --read-only: it changes and starts nothing',
      );
  };
  const keelRun = (c: Context): KeelRun => {
    const run = known(c);
    if (run instanceof KeelRun) return run;
    throw new Problem(409, 'not-keel', "this is another trainer's log: only runs of Keel can do that");
  };

  app.get('/api/hello', c => {
    const hello: Hello = {
      version,
      roots: index.roots.map(({ shown }) => shown),
      // Not whether there is a run of Keel yet: it may come while the page is open.
      canAct: !readOnly,
      startedAt,
      commands: { again: options.again(), train: typed('train', 'cartpole'), watch: typed('watch') },
    };
    return answer(c, hello);
  });

  app.get('/api/runs', c => answer(c, index.list()));

  app.get('/api/studies', c => answer(c, options.studies?.list() ?? { studies: [] }));

  app.get('/api/studies/:id', c => {
    const study = options.studies?.get(c.req.param('id'), c.req.query('version'));
    if (study !== undefined) return answer(c, study);
    throw new Problem(
      404,
      'no-such-study',
      'there is no such study here: it may have been deleted, or the link is of another server',
    );
  });

  app.get('/api/stream', c => streamTo(c, hub));

  app.get('/api/runs/:id', async c => {
    const run = await loaded(c);
    const tracks = [...run.tracks().values()];
    const detail: RunDetail = {
      run: index.summary(run),
      metrics: tracks.map(({ info }) => info),
      config: run.config,
      commands: {
        record: typed('record', referenceTo(run.path)),
        render: typed('render', referenceTo(run.path)),
        route: typed('simulate', 'cluster', '--router', referenceTo(run.path)),
      },
      logNotes: run.logNotes,
      adjustable: readOnly || !(run instanceof KeelRun) ? {} : actions.adjustable(run),
      unit: run.unit,
      hasTime: tracks.some(
        ({ x, length }) => length > 0 && !Number.isNaN(x('time')?.[length - 1] ?? Number.NaN),
      ),
    };
    return answer(c, detail);
  });

  app.get('/api/settings', c => answer(c, allSettings(index.all())));

  app.get('/api/runs/:id/settings', c => answer(c, settingsOf(known(c))));

  app.get('/api/runs/:id/output', c => {
    const run = known(c);
    const none: OutputAnswer = { parts: [] };
    return answer(c, run instanceof KeelRun ? outputOf(run.path, index.roots) : none);
  });

  app.get('/api/runs/:id/series', async c => answer(c, seriesOf(await loaded(c), c)));

  app.get('/api/runs/:id/events', async c => {
    const after = numberOf(c, 'after') ?? -1;
    return answer(c, (await loaded(c)).events(after));
  });

  app.get('/api/runs/:id/diagnosis', async c => {
    const run = await loaded(c);
    const { diagnosis, reason } = run.diagnosis;
    const offered =
      run instanceof KeelRun && diagnosis !== null && !readOnly
        ? proposals(run, diagnosis, checkpointsOf(run), actions.adjustable(run))
        : { actions: [], note: null };
    const remedy =
      run instanceof KeelRun && diagnosis !== null ? remedyOf(run, diagnosis, checkpointsOf(run)) : null;
    return answer(c, {
      // Where it is on the disk is nobody's business who is not told otherwise.
      diagnosis: diagnosis === null ? null : { ...diagnosis, path: index.summary(run).name },
      reason: diagnosis === null ? (reason ?? whyNotJudged(run, index.summary(run).problem)) : null,
      ...offered,
      remedy,
    });
  });

  app.get('/api/runs/:id/checkpoints', async c => {
    const run = known(c);
    const checkpoints: CheckpointsAnswer =
      run instanceof KeelRun
        ? { checkpoints: checkpointsOf(run), fork: typed('fork', referenceTo(run.path), '--checkpoint') }
        : { checkpoints: [], fork: null };
    return answer(c, checkpoints);
  });

  app.get('/api/runs/:id/cluster', async c => answer(c, clusterOf(keelRun(c).path)));

  app.post('/api/runs/:id/checkpoints/:step/evaluate', async c => {
    const run = keelRun(c);
    writable();
    await bodyOf(c);
    return answer(c, await actions.evaluate(run, stepOf(c.req.param('step'))));
  });

  app.get('/api/runs/:id/completions', c => {
    const run = known(c);
    const count = Math.max(1, Math.min(mostGroups, Math.trunc(numberOf(c, 'groups') ?? 20)));
    const before = numberOf(c, 'before') ?? Number.POSITIVE_INFINITY;
    const none: CompletionsAnswer = { groups: [], older: false };
    return answer(c, run instanceof KeelRun ? completionsOf(run, index.roots, { before, count }) : none);
  });

  app.get('/api/runs/:id/replays', c => {
    const run = known(c);
    const list: ReplaysAnswer = { replays: run instanceof KeelRun ? replays.list(run) : [] };
    return answer(c, list);
  });

  app.get('/api/runs/:id/replays/:name', async c => {
    const { bytes, version: own } = replays.file(keelRun(c), c.req.param('name'));
    const etag = `"${own}"`;
    c.header('etag', etag);
    c.header('vary', 'accept-encoding');
    // Under its version it never changes; under its name alone it may be recorded again.
    const lasting = c.req.query('v') === own;
    c.header('cache-control', lasting ? 'private, max-age=31536000, immutable' : 'private, no-cache');
    if (c.req.header('if-none-match') === etag) return c.body(null, 304);
    c.header('content-type', 'application/octet-stream');
    return packed(c, bytes);
  });

  app.get('/api/runs/:id/policy.onnx', async c => {
    const run = keelRun(c);
    const asked = c.req.query('checkpoint');
    const checkpoint = asked === undefined ? undefined : stepOf(asked);
    // The run's own file is read; that of a checkpoint is made by another process.
    if (checkpoint !== undefined) writable();
    const file = await actions.policy(run, checkpoint);
    c.header('content-type', 'application/octet-stream');
    c.header(
      'content-disposition',
      `attachment; filename="${fileName(run, checkpoint === undefined ? 'onnx' : `${checkpoint}.onnx`)}"`,
    );
    c.header('cache-control', 'no-store');
    return c.body(new Uint8Array(file));
  });

  app.get('/api/runs/:id/metrics.csv', async c => {
    const run = await loaded(c);
    c.header('content-type', 'text/csv; charset=utf-8');
    c.header('content-disposition', `attachment; filename="${fileName(run, 'csv')}"`);
    c.header('cache-control', 'no-store');
    return c.body(csvOf(run));
  });

  app.get('/api/runs/:id/report.html', async c => {
    const run = known(c);
    const page = await doctor.report([{ path: run.path, shown: index.summary(run).name }], false);
    c.header('content-security-policy', reportPolicy);
    c.header('content-disposition', `inline; filename="${fileName(run, 'html')}"`);
    c.header('cache-control', 'no-store');
    return c.html(page);
  });

  /** To keep: it is a download, so it never runs under this address. */
  app.get('/api/report.html', async c => {
    const ids = [...new Set(c.req.queries('run') ?? [])];
    if (ids.length === 0 || ids.length > MOST_RUNS)
      throw new Problem(400, 'wrong-query', `name one to ${MOST_RUNS} runs, as in ?run=<id>`);
    const runs = ids.map(id => known(id));
    const page = await doctor.report(
      runs.map(run => ({ path: run.path, shown: index.summary(run).name })),
      true,
    );
    c.header('content-security-policy', reportPolicy);
    c.header(
      'content-disposition',
      `attachment; filename="${runs.length === 1 ? fileName(runs[0], 'html') : 'keel-comparison.html'}"`,
    );
    c.header('cache-control', 'no-store');
    return c.html(page);
  });

  app.patch('/api/runs/:id/notes', async c => {
    const run = known(c);
    writable();
    const changed = notes.set(run, parsePatch(await bodyOf(c)));
    index.touch(run);
    return answer(c, changed);
  });

  app.post('/api/runs/:id/actions', async c => {
    const run = keelRun(c);
    writable();
    return answer(c, await actions.act(run, await bodyOf(c)));
  });

  app.all('/api/*', c => {
    if (c.req.method !== 'GET')
      throw new Problem(405, 'wrong-method', `${c.req.method} is not for this address`);
    throw new Problem(404, 'no-such-address', 'there is nothing at this address');
  });

  app.get('*', async c => {
    const found = await files.serve(c.req.path, {
      accept: c.req.header('accept-encoding'),
      etag: c.req.header('if-none-match'),
    });
    if (found !== undefined) return found;
    if (!/\.[a-z0-9]+$/i.test(c.req.path) || c.req.path === '/index.html') {
      c.header('content-security-policy', plainPolicy);
      return c.html(missingPage, 503);
    }
    throw new Problem(404, 'no-such-file', 'there is no such file');
  });

  app.notFound(c => fail(c, new Problem(404, 'no-such-address', 'there is nothing at this address')));
  app.onError((error, c) => {
    if (error instanceof Problem) return fail(c, error);
    // Their messages are sentences for users, and name no path but of the runs that the user gave.
    if (error instanceof KeelError) {
      const roots = index.roots.flatMap(({ path, shown }) => [[path, shown] as const]);
      const clean = roots.reduce((text, [path, shown]) => text.replaceAll(path, shown), error.message);
      return fail(c, new Problem(500, 'failed', clean.replace(/\s+/g, ' ').slice(0, 1000)));
    }
    options.onFault?.(error);
    return fail(c, new Problem(500, 'fault', 'something went wrong in the server: it is a fault in Keel'));
  });
  return app;
}

/** Why a run has no verdict: one that ended without a row, or that cannot be read, will never have one. */
function whyNotJudged(run: WatchedRun, problem: string | null): string {
  if (run.state === 'unreadable') return problem ?? 'it cannot be read';
  if (!run.loaded || run.rows > 0) return 'it has not been judged yet: wait a moment';
  return run.state === 'running'
    ? 'it has no rows yet: the first comes after the first iteration'
    : 'it ended before its first iteration was done: there is nothing to judge';
}

const fileName = (run: WatchedRun, ending: string): string =>
  `${(run.path.split(/[\\/]/).at(-1) ?? 'run').replace(/[^A-Za-z0-9._-]+/g, '_').slice(0, 100) || 'run'}.${ending}`;
