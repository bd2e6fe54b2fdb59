/** JSON as an answer, compressed where it is worth it. */
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { Context } from 'hono';
import { jsonOf } from '../../base/json.ts';
import { Problem } from '../problem.ts';

const pack = promisify(gzip);
/** Bytes of a packet: less is not sent sooner. */
const worthIt = 1400;
const mostBody = 256 * 1024;

export async function answer(c: Context, value: unknown, status: 200 | 202 = 200): Promise<Response> {
  const text = JSON.stringify(value);
  c.header('content-type', 'application/json; charset=utf-8');
  c.header('cache-control', 'no-store');
  c.header('vary', 'accept-encoding');
  if (text.length > worthIt && /\bgzip\b/.test(c.req.header('accept-encoding') ?? '')) {
    c.header('content-encoding', 'gzip');
    return c.body(new Uint8Array(await pack(text, { level: 1 })), status);
  }
  return c.body(text, status);
}

/** Bytes as an answer, compressed where the client can read that. Headers that say what they are come before. */
export async function packed(c: Context, bytes: Buffer): Promise<Response> {
  if (!/\bgzip\b/.test(c.req.header('accept-encoding') ?? '')) return c.body(new Uint8Array(bytes));
  c.header('content-encoding', 'gzip');
  return c.body(new Uint8Array(await pack(bytes, { level: 1 })));
}

/** The JSON of a request: of the right type, not too long, whole. */
export async function bodyOf(c: Context): Promise<unknown> {
  const type = c.req.header('content-type') ?? '';
  if (!/^application\/json(?:\s*;|$)/i.test(type.trim())) {
    throw new Problem(415, 'json-needed', 'send JSON with Content-Type: application/json');
  }
  const tooLong = new Problem(413, 'too-long', `the request is longer than ${mostBody} bytes`);
  if (Number(c.req.header('content-length') ?? 0) > mostBody) throw tooLong;
  const parts: Uint8Array[] = [];
  let length = 0;
  const reader = c.req.raw.body?.getReader();
  for (;;) {
    const part = await reader?.read();
    if (part === undefined || part.done) break;
    length += part.value.byteLength;
    if (length > mostBody) {
      await reader?.cancel();
      throw tooLong;
    }
    parts.push(part.value);
  }
  try {
    return jsonOf(Buffer.concat(parts).toString('utf8'));
  } catch {
    throw new Problem(400, 'not-json', 'the request is not JSON');
  }
}
