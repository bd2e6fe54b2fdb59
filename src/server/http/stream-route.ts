/** The stream as a response that stays open. */
import type { HttpBindings } from '@hono/node-server';
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import type { Context } from 'hono';
import type { Hub } from '../stream.ts';
import { securityHeaders } from './security.ts';

/** Written to the socket itself, which says how much of it waits: a client that does not read is dropped. */
export function streamTo(c: Context<{ Bindings: HttpBindings }>, hub: Hub): Response {
  const { outgoing, incoming } = c.env;
  outgoing.writeHead(200, {
    ...securityHeaders,
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-store, no-transform',
    'x-accel-buffering': 'no',
    connection: 'keep-alive',
  });
  incoming.socket.setTimeout(0);
  incoming.socket.setNoDelay(true);
  const lastId = c.req.header('last-event-id') ?? c.req.query('lastEventId');
  const end = hub.listen(
    {
      write: text => {
        outgoing.write(text);
      },
      get waiting() {
        return outgoing.writableLength + (outgoing.socket?.writableLength ?? 0);
      },
      close: () => outgoing.destroy(),
    },
    lastId,
  );
  outgoing.on('close', end);
  outgoing.on('error', end);
  return RESPONSE_ALREADY_SENT;
}
