/**
 * What happens, to everyone who listens: numbered messages, the newest of which are kept, so that a client that was away
 * for a moment gets each exactly once. Every message is made to text once, however many listen.
 */
import type { StreamMessage } from './api.ts';

const mostMessages = 2000;
const mostBytes = 8 * 2 ** 20;
const heartbeatMs = 15_000;
/** What may wait for one client before it is dropped; it comes back and is told what it missed, or to begin anew. */
const mostWaiting = 2 ** 20;
const mostClients = 200;

/** Where messages go: a response that is kept open. */
export interface Listener {
  write(text: string): void;
  /** Bytes that were written and not yet taken. */
  readonly waiting: number;
  close(): void;
}

export interface Hub {
  publish(message: StreamMessage): void;
  /** Sends what came after `lastId` (everything from now on if undefined) and then what comes. Returns the end. */
  listen(listener: Listener, lastId: string | undefined): () => void;
  readonly listeners: number;
  /** The newest number. */
  readonly last: string;
  close(): void;
}

export function createHub(epoch = Date.now().toString(36)): Hub {
  const kept: { readonly number: number; readonly text: string }[] = [];
  let bytes = 0;
  let next = 1;
  const listeners = new Set<Listener>();

  const frame = (number: number, message: StreamMessage): string =>
    `id: ${epoch}-${number}\ndata: ${JSON.stringify(message)}\n\n`;

  const drop = (listener: Listener): void => {
    if (listeners.delete(listener)) listener.close();
  };

  const send = (listener: Listener, text: string): void => {
    if (listener.waiting > mostWaiting) drop(listener);
    else listener.write(text);
  };

  const heartbeat = setInterval(() => {
    for (const listener of listeners) send(listener, ': still here\n\n');
  }, heartbeatMs);
  heartbeat.unref();

  return {
    publish(message) {
      const number = next++;
      const text = frame(number, message);
      kept.push({ number, text });
      bytes += text.length;
      while (kept.length > mostMessages || (bytes > mostBytes && kept.length > 1))
        bytes -= kept.shift()!.text.length;
      for (const listener of listeners) send(listener, text);
    },
    listen(listener, lastId) {
      if (listeners.size >= mostClients) drop(listeners.values().next().value!);
      // Half a minute is what a browser should wait at most; it begins with this.
      let text = 'retry: 1000\n\n';
      if (lastId !== undefined && lastId !== '') {
        const [theirEpoch, number] = splitId(lastId);
        const first = kept[0]?.number ?? next;
        if (theirEpoch !== epoch || number >= next || number < first - 1)
          text += frame(next - 1, { type: 'reset' });
        else for (const message of kept) if (message.number > number) text += message.text;
      } else text += `id: ${epoch}-${next - 1}\ndata: {"type":"runs","changed":[],"removed":[]}\n\n`;
      listeners.add(listener);
      listener.write(text);
      return () => {
        listeners.delete(listener);
      };
    },
    get listeners() {
      return listeners.size;
    },
    get last() {
      return `${epoch}-${next - 1}`;
    },
    close() {
      clearInterval(heartbeat);
      for (const listener of [...listeners]) drop(listener);
    },
  };
}

/** An id is the server's epoch and a number; what is neither is of another server. */
function splitId(id: string): [epoch: string, number: number] {
  const match = /^([a-z0-9]{1,20})-(\d{1,15})$/.exec(id);
  return match === null ? ['', 0] : [match[1], Number(match[2])];
}
