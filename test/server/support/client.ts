/** A client that can lie about everything: node's own http, with any header, and a reader of the stream. */
import { type IncomingMessage, request } from 'node:http';
import { afterAll } from 'vitest';
import type { StreamMessage } from '../../../src/server/api.ts';
import type { RunningServer, ServeOptions } from '../../../src/server/serve.ts';
import { compiled } from '../../support/compiled.ts';
import { scratch } from './make-run.ts';

export { until } from '../../support/until.ts';

export interface Answer {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly text: string;
  readonly bytes: Buffer;
  json<T>(): T;
}

export interface Asking {
  readonly method?: string;
  readonly headers?: Record<string, string>;
  readonly body?: string | Buffer;
  /** Sent as it is, dots and all. */
  readonly path: string;
}

/** The token of each server that was started without naming one; who names it sends it themselves. */
const tokens = new Map<number, string>();

const withToken = (port: number, headers: Record<string, string>): Record<string, string> =>
  tokens.has(port) ? { authorization: `Bearer ${tokens.get(port)}`, ...headers } : headers;

/** From now on requests to the server at this address have the token that is in it. */
export function keepToken(url: string | URL): void {
  const { port, searchParams } = new URL(url);
  tokens.set(Number(port), searchParams.get('token')!);
}

export function ask(port: number, { method = 'GET', headers = {}, body, path }: Asking): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const how = { host: '127.0.0.1', port, path, method, headers: withToken(port, headers) };
    const outgoing = request(how, response => {
      const parts: Buffer[] = [];
      response.on('data', (part: Buffer) => parts.push(part));
      response.on('end', () => {
        const bytes = Buffer.concat(parts);
        const text = bytes.toString('utf8');
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          text,
          bytes,
          json: <T>() => JSON.parse(text) as T,
        });
      });
      response.on('error', reject);
    });
    outgoing.on('error', reject);
    outgoing.end(body);
  });
}

export const { serve } = await compiled<typeof import('../../../src/server/serve.ts')>('server/serve');

/** A server on a free port, closed after the file's tests. */
export async function start(options: Partial<ServeOptions> & { roots: readonly string[] }) {
  const server: RunningServer = await serve({
    port: 0,
    stateDirectory: scratch(),
    page: scratch(),
    pollMs: 100,
    ...options,
  });
  if (options.token === undefined) keepToken(server.url);
  else tokens.delete(server.port);
  afterAll(() => server.close());
  const get = (path: string, headers: Record<string, string> = {}): Promise<Answer> =>
    ask(server.port, { path, headers });
  const send = (method: string, path: string, value: unknown, headers: Record<string, string> = {}) =>
    ask(server.port, {
      method,
      path,
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(value),
    });
  return { server, port: server.port, get, send };
}

export interface Told {
  readonly id: string;
  readonly message: StreamMessage;
}

/** Listens to the stream; `told` grows. */
export async function listen(port: number, headers: Record<string, string> = {}) {
  const told: Told[] = [];
  let rest = '';
  const { response, destroy } = await new Promise<{ response: IncomingMessage; destroy: () => void }>(
    (resolve, reject) => {
      const how = { host: '127.0.0.1', port, path: '/api/stream', headers: withToken(port, headers) };
      const outgoing = request(how, incoming =>
        resolve({ response: incoming, destroy: () => outgoing.destroy() }),
      );
      outgoing.on('error', reject);
      outgoing.end();
    },
  );
  response.on('error', () => {});
  response.setEncoding('utf8').on('data', (text: string) => {
    rest += text;
    const frames = rest.split('\n\n');
    rest = frames.pop()!;
    for (const frame of frames) {
      const id = /^id: (.*)$/m.exec(frame)?.[1];
      const data = /^data: (.*)$/m.exec(frame)?.[1];
      if (id !== undefined && data !== undefined)
        told.push({ id, message: JSON.parse(data) as StreamMessage });
    }
  });
  afterAll(destroy);
  return { told, response, close: destroy };
}
