/** All runs, as the server lists them and the stream changes them. */
import type { Hello, Notes, RunSummary } from '../../src/server/api.ts';
import { client, messageOf } from './client.ts';
import { connection } from './connection.svelte.ts';

let byId = $state.raw<ReadonlyMap<string, RunSummary>>(new Map());
let loading = $state(true);
let error = $state<string | null>(null);
let hello = $state.raw<Hello | null>(null);
/** Runs that were here and are gone, by id: a page that shows one can say so. */
let removed = $state.raw<ReadonlyMap<string, RunSummary>>(new Map());
const list = $derived([...byId.values()]);

export const runs = {
  get all(): readonly RunSummary[] {
    return list;
  },
  get(id: string): RunSummary | undefined {
    return byId.get(id);
  },
  wasRemoved(id: string): RunSummary | undefined {
    return removed.get(id);
  },
  get loading(): boolean {
    return loading;
  },
  get error(): string | null {
    return error;
  },
  get hello(): Hello | null {
    return hello;
  },
  /** Where notes were kept, the list shows them at once. */
  put(run: RunSummary): void {
    byId = new Map(byId).set(run.id, run);
  },
};

let asking = false;
export async function refreshRuns(): Promise<void> {
  if (asking) return;
  asking = true;
  try {
    const [answer, said] = await Promise.all([client.runs(), client.hello()]);
    const fresh = new Map(answer.runs.map(run => [run.id, run]));
    const gone = [...byId.values()].filter(run => !fresh.has(run.id));
    if (gone.length > 0) removed = new Map([...removed, ...gone.map(run => [run.id, run] as const)]);
    byId = fresh;
    hello = said;
    error = null;
    loading = false;
  } catch (cause) {
    error = messageOf(cause);
    // Until there is a first answer it is asked again, as the stream is.
    if (loading) setTimeout(() => void refreshRuns(), 2000);
  } finally {
    asking = false;
  }
}

/** Starts to follow; answers once. */
export function followRuns(): void {
  void refreshRuns();
  connection.listen(messages => {
    let next: Map<string, RunSummary> | undefined;
    for (const message of messages) {
      if (message.type === 'reset') void refreshRuns();
      else if (message.type === 'runs') {
        next ??= new Map(byId);
        for (const run of message.changed) next.set(run.id, run);
        for (const id of message.removed) {
          const gone = next.get(id);
          if (gone !== undefined) removed = new Map(removed).set(id, gone);
          next.delete(id);
        }
      } else if (message.type === 'diagnosis') {
        next ??= new Map(byId);
        const run = next.get(message.run);
        if (run !== undefined)
          next.set(run.id, { ...run, verdict: message.verdict, rootCause: message.rootCause });
      }
    }
    if (next !== undefined) byId = next;
  });
  connection.start();
}

/** Writes notes; on failure the old ones are back and the reason is thrown. */
export async function changeNotes(id: string, change: Partial<Notes>): Promise<void> {
  const before = byId.get(id);
  if (before === undefined) return;
  runs.put({ ...before, notes: { ...before.notes, ...change } });
  try {
    const notes = await client.notes(id, change);
    const now = byId.get(id);
    if (now !== undefined) runs.put({ ...now, notes });
  } catch (cause) {
    const now = byId.get(id);
    if (now !== undefined) runs.put({ ...now, notes: before.notes });
    throw cause;
  }
}
