/** A Redis of one's own, on a free port of this machine, in a temporary directory, with its file on disk. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { until } from './until.ts';

export interface OwnRedis {
  readonly url: string;
  readonly port: number;
  /** Ends it as a power cut does, and starts it again from its file. */
  restart(): Promise<void>;
  /** Ends it, and starts it again with nothing. */
  restartEmpty(): Promise<void>;
  /** A client of one's own. */
  client(): Redis;
  /** Ends it, and takes away what it wrote. */
  end(): Promise<void>;
}

async function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
}

/** Starts one; whoever did ends it. */
export async function startOwnRedis({ password }: { readonly password?: string } = {}): Promise<OwnRedis> {
  const port = await freePort();
  const dir = mkdtempSync(join(tmpdir(), 'keel-redis-'));
  const clients: Redis[] = [];
  const options = { port, ...(password !== undefined && { password }), maxRetriesPerRequest: null };
  const client = (): Redis => {
    const made = new Redis({ ...options, retryStrategy: () => 50 });
    made.on('error', () => {});
    clients.push(made);
    return made;
  };
  let server: ChildProcess;
  const start = async (): Promise<void> => {
    const flags = {
      port,
      bind: '127.0.0.1',
      dir,
      save: '',
      appendonly: 'yes',
      appendfsync: 'always',
      ...(password !== undefined && { requirepass: password }),
    };
    server = spawn(
      'redis-server',
      Object.entries(flags).flatMap(([key, value]) => [`--${key}`, String(value)]),
      { stdio: 'ignore' },
    );
    let failed: Error | undefined;
    server.once('error', error => {
      failed = new Error(`redis-server: ${error.message}; bash tools/install-test-packages.sh gets it`);
    });
    const probe = client();
    await until(async () => {
      if (failed !== undefined) throw failed;
      return probe.status === 'ready' && (await probe.ping()) === 'PONG';
    }, 'redis-server to start');
  };
  const stop = (): Promise<void> =>
    new Promise(done => {
      if (server.exitCode !== null || server.signalCode !== null) return done();
      server.once('exit', () => done());
      server.kill('SIGKILL');
    });
  await start();
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    client,
    async restart() {
      await stop();
      await start();
    },
    async restartEmpty() {
      await stop();
      rmSync(join(dir, 'appendonlydir'), { recursive: true, force: true });
      await start();
    },
    async end() {
      for (const one of clients) one.disconnect();
      await stop();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}
