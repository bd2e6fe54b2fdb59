/** Requests to the page's server, without a socket: a request line, headers, an empty line, a body. */
import { join } from 'node:path';
import { RunWriter } from '../../src/runs/index.ts';
import type { Actions } from '../../src/server/actions.ts';
import { createApp } from '../../src/server/app.ts';
import { startDoctor } from '../../src/server/doctor/client.ts';
import { Problem } from '../../src/server/problem.ts';
import { createNotesStore } from '../../src/server/runs/notes.ts';
import { idOf, rootOf } from '../../src/server/runs/places.ts';
import { createRunIndex } from '../../src/server/runs/run-index.ts';
import { createHub } from '../../src/server/stream.ts';
import { rowOf, spec } from '../../test/runs/support/spec.ts';
import { type FuzzedReader, insist, Wrong } from './reader.ts';

const refuse = (): Promise<never> => Promise.reject(new Problem(409, 'not-here', 'nothing is started here'));
/** They start processes, which is not what is tried here. */
const actions: Actions = {
  adjustable: () => ({}),
  act: refuse,
  evaluate: refuse,
  policy: refuse,
  close: () => Promise.resolve(),
};

/** What was sent, as far as HTTP lets it through: the socket's parser refuses the rest before the server sees it. */
function requestOf(bytes: Uint8Array, isHostKept: boolean): Request | undefined {
  const [head, body = ''] = Buffer.from(bytes).toString('latin1').split('\n\n', 2);
  const [line, ...lines] = head.split('\n');
  const [method = '', path = ''] = line.split(' ');
  const headers = new Headers();
  for (const header of lines) {
    const at = header.indexOf(':');
    try {
      headers.append(header.slice(0, at), header.slice(at + 1).trim());
    } catch {
      // No header that could be sent.
    }
  }
  // Without it all that is tried is the door.
  if (isHostKept) headers.set('host', '127.0.0.1:7007');
  const hasBody = body !== '' && !/^(?:GET|HEAD)$/i.test(method);
  try {
    return new Request(`http://127.0.0.1:7007/${path.replace(/^\//, '')}`, {
      method,
      headers,
      ...(hasBody && { body }),
    });
  } catch {
    return undefined;
  }
}

export const http: FuzzedReader = {
  name: 'http',
  async open(directory) {
    const writer = RunWriter.create(spec, { root: join(directory, 'runs'), id: 'run' });
    for (let i = 1; i <= 6; i++) writer.row(rowOf(i));
    writer.end('stopped', 'x');
    const root = rootOf(join(directory, 'runs'));
    const [hub, doctor, notes] = [createHub(), startDoctor(), createNotesStore(join(directory, 'state'))];
    const index = createRunIndex({ roots: [root], hub, doctor, notes, foreign: false });
    await index.start();
    let fault: unknown;
    const app = createApp({
      index,
      hub,
      doctor,
      notes,
      actions,
      version: '0',
      again: () => 'keel dash',
      host: '127.0.0.1',
      page: directory,
      onFault: error => {
        fault = error;
      },
    });
    const id = idOf(join(root.path, 'run'));
    const run = `/api/runs/${id}`;
    const json = 'host: 127.0.0.1:7007\ncontent-type: application/json';
    /** Sound requests, with the answers that they must have: a fuzzer that never gets in tries nothing. */
    const sound: readonly (readonly [status: number, request: string])[] = [
      [200, `GET ${run} HTTP/1.1\nhost: 127.0.0.1:7007\naccept-encoding: gzip\n\n`],
      [
        200,
        `GET ${run}/series?metrics=kl/step,loss/value&buckets=100&from=0&to=1000&x=step HTTP/1.1\nhost: 127.0.0.1:7007\n\n`,
      ],
      [200, `GET ${run}/events?after=0 HTTP/1.1\nhost: 127.0.0.1:7007\ncookie: a=b\n\n`],
      [200, `GET ${run}/metrics.csv HTTP/1.1\nhost: 127.0.0.1:7007\norigin: http://127.0.0.1:7007\n\n`],
      [404, `GET ${run}/replays/1.replay HTTP/1.1\nhost: 127.0.0.1:7007\nrange: bytes=0-10\n\n`],
      [200, `GET ${run}/completions?iteration=1&limit=10 HTTP/1.1\nhost: 127.0.0.1:7007\n\n`],
      // The page was not built.
      [503, `GET /assets/../index.html HTTP/1.1\nhost: localhost\nif-none-match: "x"\n\n`],
      [200, `PATCH ${run}/notes HTTP/1.1\n${json}\n\n{"tags":["b"],"note":"c","archived":true}`],
      [409, `POST ${run}/actions HTTP/1.1\n${json}\n\n{"type":"set","key":"clipRange","value":0.1}`],
    ];
    const samples = sound.map(([, text]) => Buffer.from(text));
    for (const [i, [wanted]] of sound.entries()) {
      const { status } = await app.fetch(requestOf(samples[i], false)!);
      insist(status === wanted, () => `${sound[i][1]} is answered with ${status}, not ${wanted}`);
    }
    return {
      samples,
      async read(bytes, _, index) {
        const request = requestOf(bytes, index % 4 > 0);
        if (request === undefined) throw new Problem(400, 'bad', 'no request');
        fault = undefined;
        const response = await app.fetch(request);
        insist(response.headers.has('content-security-policy'), () => 'an answer without a policy');
        // The stream never ends.
        if (/event-stream/.test(response.headers.get('content-type') ?? '')) await response.body?.cancel();
        else await response.arrayBuffer();
        if (fault !== undefined) throw new Wrong('a fault of the server', { cause: fault });
        // 503 is the page that was not built.
        insist(response.status < 500 || response.status === 503, () => `status ${response.status}`);
      },
    };
  },
};
