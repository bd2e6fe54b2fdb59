/** The whole server: index, stream, doctor and routes behind one port. */
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { resolve } from 'node:path';
import { createAdaptorServer } from '@hono/node-server';
import { typed } from '../base/typed.ts';
import { VERSION } from '../base/version.ts';
import { defaultRoot } from '../runs/layout.ts';
import { nearPath } from '../runs/reference.ts';
import { defaultStudyRoot } from '../studies/store.ts';
import { type Actions, createActions } from './actions.ts';
import { createAlerts } from './alerts.ts';
import { createApp } from './app.ts';
import { startDoctor } from './doctor/client.ts';
import { requireToken } from './http/loopback.ts';
import { createNotesStore } from './runs/notes.ts';
import { rootOf } from './runs/places.ts';
import { createRunIndex, type RunIndex } from './runs/run-index.ts';
import { createHub, type Hub } from './stream.ts';
import { createStudyIndex } from './studies.ts';
import { studyReading } from './study-reading.ts';
import { createStudySource, type StudyReading } from './study-source.ts';
import { userToken } from './token.ts';

export interface ServeOptions {
  /** Directories of runs or logs, or a run itself. */
  readonly roots: readonly string[];
  /** Default 7007; another one if it is taken. 0 takes any. */
  readonly port?: number | undefined;
  /** Default 127.0.0.1. */
  readonly host?: string | undefined;
  /** Default: the user's own, which is kept. False asks for none, which this machine alone may have. */
  readonly token?: string | false | undefined;
  readonly readOnly?: boolean | undefined;
  /** Whether other trainers' logs are looked for. Default true. */
  readonly foreign?: boolean | undefined;
  readonly webhook?: string | undefined;
  readonly onVerdict?: string | undefined;
  readonly pollMs?: number | undefined;
  readonly maxCells?: number | undefined;
  /** What it may take to read and judge a small log, in milliseconds; default 20,000. */
  readonly readingLimitMs?: number | undefined;
  /** Where the built page is, and where notes on others' logs go; for tests. */
  readonly page?: string | undefined;
  readonly stateDirectory?: string | undefined;
  /** How studies are read; for tests. */
  readonly studies?: StudyReading | undefined;
  /** Sentences about what did not work and harms nobody, such as an alert that did not arrive. */
  readonly onProblem?: ((sentence: string) => void) | undefined;
}

export interface RunningServer {
  /** To open in a browser, with the token in it. */
  readonly url: string;
  readonly port: number;
  readonly host: string;
  /** Said when the wanted port was taken. */
  readonly note: string | undefined;
  readonly index: RunIndex;
  readonly hub: Hub;
  readonly actions: Actions;
  close(): Promise<void>;
}

const defaultPort = 7007;

/** What is watched unless told otherwise. */
export const defaultRoots: readonly string[] = [defaultRoot, defaultStudyRoot];

export async function serve(options: ServeOptions): Promise<RunningServer> {
  const { host = '127.0.0.1', port: wanted = defaultPort, onProblem } = options;
  requireToken(host, options.token);
  const token =
    options.token === undefined
      ? userToken(onProblem)
      : options.token === false
        ? undefined
        : { token: options.token };
  const alerts = createAlerts({
    webhook: options.webhook,
    command: options.onVerdict,
    ...(onProblem === undefined ? {} : { onProblem }),
  });
  const hub = createHub();
  const doctor = startDoctor({ limitMs: options.readingLimitMs });
  const notes = createNotesStore(options.stateDirectory);
  const roots = options.roots.map(rootOf);
  const studyFiles = createStudySource(roots, options.studies ?? studyReading);
  const studies = createStudyIndex({
    source: studyFiles,
    hub,
    pollMs: options.pollMs && 4 * options.pollMs,
  });
  const index = createRunIndex({
    roots,
    places: () => studyFiles.runDirectories,
    hub,
    doctor,
    notes,
    alerts,
    pollMs: options.pollMs,
    foreign: options.foreign,
    maxCells: options.maxCells,
    onProblem,
  });
  const actions = createActions({ index, notes });
  const app = createApp({
    index,
    hub,
    doctor,
    notes,
    actions,
    studies,
    version: VERSION,
    host,
    token,
    readOnly: options.readOnly,
    again: () => againCommand(options, (server.address() as AddressInfo).port),
    page: options.page,
    onFault: error => onProblem?.(`a fault in Keel's server: ${(error as Error).message}`),
  });
  const server = createAdaptorServer({ fetch: app.fetch, overrideGlobalObjects: false }) as Server;
  server.keepAliveTimeout = 30_000;
  let taken: boolean;
  try {
    taken = await listen(server, wanted, host);
  } catch (error) {
    hub.close();
    await doctor.close();
    throw error;
  }
  // First: the runs of studies are looked for where these are.
  studies.start();
  await index.start();
  const { port } = server.address() as AddressInfo;
  const shownHost =
    host === '0.0.0.0' || host === '::' ? 'localhost' : host.includes(':') ? `[${host}]` : host;
  const url = `http://${shownHost}:${port}/${token === undefined ? '' : `?token=${encodeURIComponent(token.token)}`}`;
  return {
    url,
    port,
    host,
    note: taken ? `port ${wanted} is taken, so it is ${port}` : undefined,
    index,
    hub,
    actions,
    async close() {
      hub.close();
      studies.close();
      alerts.close();
      const closed = new Promise<void>(done => server.close(() => done()));
      server.closeAllConnections();
      // The index waits for what is being read, which may be a log that hangs: its thread is ended first.
      const watched = index.close();
      await doctor.close();
      await watched;
      await actions.close();
      await closed;
    },
  };
}

/**
 * What to type for the same server at the same port, where this one was started. A token of its own is left out, since
 * commands are for others to see, and so is who is told of verdicts.
 */
function againCommand({ roots, host, token, readOnly }: ServeOptions, port: number): string {
  const usual = defaultRoots.map(root => resolve(root));
  const places = roots.map(root => resolve(root));
  // Without a word about where, it shows studies beside runs: nothing is missing then.
  const isDefault = places.includes(usual[0]) && places.every(place => usual.includes(place));
  return typed(
    'dash',
    ...(isDefault ? [] : roots.map(nearPath)),
    '--port',
    String(port),
    ...(host === undefined || host === '127.0.0.1' ? [] : ['--host', host]),
    ...(token === false ? ['--no-token'] : []),
    ...(readOnly ? ['--read-only'] : []),
  );
}

/** Listens on the wanted port, or on a free one if another program has it, which is true then. */
async function listen(server: Server, wanted: number, host: string): Promise<boolean> {
  const attempt = (port: number): Promise<void> =>
    new Promise((resolve, reject) => {
      server.once('error', reject);
      server.listen(port, host, () => {
        server.off('error', reject);
        resolve();
      });
    });
  try {
    await attempt(wanted);
    return false;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if ((code === 'EADDRINUSE' || code === 'EACCES') && wanted !== 0) {
      await attempt(0);
      return true;
    }
    throw explained(error as NodeJS.ErrnoException, host);
  }
}

function explained(error: NodeJS.ErrnoException, host: string): Error {
  const why =
    error.code === 'EADDRNOTAVAIL' || error.code === 'ENOTFOUND'
      ? 'this machine has no such address: use 127.0.0.1, 0.0.0.0 for all, or one of its own'
      : error.message;
  return Object.assign(new Error(`cannot listen on ${host}: ${why}`), { name: 'RunError', code: error.code });
}
