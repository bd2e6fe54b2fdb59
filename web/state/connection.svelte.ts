/**
 * The live stream. It is read with fetch, not EventSource, which can neither be told where to go on after a lost
 * connection nor how long to wait. Messages are handed on once a frame, or less often where that is much work; a page in the background collects few and asks
 * anew when it is looked at.
 */
import { tick } from 'svelte';
import type { StreamMessage } from '../../src/server/api.ts';
import { backoffMs, createEventParser, restAfter } from '../lib/sse.ts';
import { apiUrl } from './client.ts';

export type Link = 'connecting' | 'live' | 'lost';
type Listener = (messages: readonly StreamMessage[]) => void;

let link = $state<Link>('connecting');
let lostAt = $state<number | null>(null);
let retryAt = $state<number | null>(null);
/** Attempts since it was lost that had no answer. */
let failures = $state(0);
/** The status of an answer that was no stream. */
let refusal = $state<number | null>(null);

const listeners = new Set<Listener>();
let pending: StreamMessage[] = [];
let lastId: string | null = null;
let attempt = 0;
let timer: ReturnType<typeof setTimeout> | undefined;
let running: AbortController | undefined;
const maxPending = 2000;
/** The server says something at least every 15 s; after this long without a word the connection is dead. */
const silenceMs = 45_000;

export const connection = {
  get link(): Link {
    return link;
  },
  /** When it was lost, and when it is tried again; milliseconds since 1970. */
  get lostAt(): number | null {
    return lostAt;
  },
  get retryAt(): number | null {
    return retryAt;
  },
  /**
   * Nobody answers any more: it was lost, and coming back failed. A connection that is back at the first attempt is no
   * reason to say anything.
   */
  get gone(): boolean {
    return link === 'lost' && failures > 0;
  },
  /** Somebody answers, but wants another token. */
  get unknown(): boolean {
    return link === 'lost' && refusal === 401;
  },
  start(): void {
    if (running === undefined && timer === undefined) void connect();
  },
  retryNow(): void {
    if (link !== 'lost') return;
    clearTimeout(timer);
    attempt = 0;
    void connect();
  },
  /** Tells all messages from now on; the answer ends it. */
  listen(listener: Listener): () => void {
    listeners.add(listener);
    return () => listeners.delete(listener);
  },
};

function receive(message: StreamMessage): void {
  if (pending.length >= maxPending) pending = [{ type: 'reset' }];
  pending.push(message);
  if (pending.length > 1) return;
  // Not a frame: those stop in a hidden tab, where the title must still change.
  if (document.hidden) setTimeout(flush, 250);
  else if (restMs > 0) setTimeout(flush, restMs);
  else requestAnimationFrame(flush);
}

/** How long messages wait for others, by what the last ones cost the page. */
let restMs = 0;

/** When the one who looks last pressed something: what they asked for goes before what others tell. */
let pressedAt = Number.NEGATIVE_INFINITY;
let waitingSince: number | null = null;
const answerMs = 250;
const longestWaitMs = 1000;
for (const kind of ['pointerdown', 'keydown'])
  addEventListener(kind, () => (pressedAt = performance.now()), { capture: true, passive: true });

function flush(): void {
  const now = performance.now();
  waitingSince ??= now;
  // Two thousand runs are sorted in a frame, or told anew in a frame, not both.
  if (!document.hidden && now - pressedAt < answerMs && now - waitingSince < longestWaitMs) {
    setTimeout(flush, answerMs);
    return;
  }
  waitingSince = null;
  const messages = pending;
  pending = [];
  if (messages.length === 0) return;
  const start = performance.now();
  for (const listener of listeners) listener(messages);
  // With all that follows from them.
  void tick().then(() => {
    restMs = restAfter(performance.now() - start);
  });
}

async function connect(): Promise<void> {
  timer = undefined;
  retryAt = null;
  const abort = new AbortController();
  running = abort;
  let watchdog: ReturnType<typeof setTimeout> | undefined;
  let answered = false;
  let status: number | null = null;
  const alive = () => {
    clearTimeout(watchdog);
    watchdog = setTimeout(() => abort.abort(), silenceMs);
  };
  try {
    alive();
    const headers: Record<string, string> = { Accept: 'text/event-stream' };
    if (lastId !== null) headers['Last-Event-ID'] = lastId;
    const response = await fetch(apiUrl('stream'), { headers, signal: abort.signal, cache: 'no-store' });
    status = response.status;
    if (!response.ok || response.body === null) throw new Error(`status ${response.status}`);
    // Without the id of a message nothing can be caught up on: what came in between is asked for.
    if (lostAt !== null && lastId === null) receive({ type: 'reset' });
    answered = true;
    failures = 0;
    link = 'live';
    lostAt = null;
    attempt = 0;
    const parse = createEventParser();
    const decoder = new TextDecoder();
    const reader = response.body.getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      alive();
      for (const event of parse(decoder.decode(value, { stream: true }))) {
        if (event.id !== null) lastId = event.id;
        const message = readMessage(event.data);
        if (message !== null) receive(message);
      }
    }
  } catch {
    // Every way to lose it ends below.
  }
  clearTimeout(watchdog);
  running = undefined;
  link = 'lost';
  lostAt ??= Date.now();
  if (!answered) failures++;
  refusal = answered ? null : status;
  const wait = backoffMs(attempt++, performance.now() % 1);
  retryAt = Date.now() + wait;
  timer = setTimeout(() => void connect(), wait);
}

function readMessage(text: string): StreamMessage | null {
  try {
    const message = JSON.parse(text) as StreamMessage | null;
    return typeof message?.type === 'string' ? message : null;
  } catch {
    return null;
  }
}
