/** All studies, as the server lists them and the stream changes them; followed from when a view first needs them. */
import type { StudyOverview } from '../../src/server/api.ts';
import { client } from './client.ts';
import { connection } from './connection.svelte.ts';

let byId = $state.raw<ReadonlyMap<string, StudyOverview>>(new Map());
const list = $derived(
  [...byId.values()].sort((a, b) => (b.startedAt ?? b.updatedAt) - (a.startedAt ?? a.updatedAt)),
);

export const studies = {
  /** Newest first. */
  get all(): readonly StudyOverview[] {
    return list;
  },
  get(id: string): StudyOverview | undefined {
    return byId.get(id);
  },
};

async function refresh(): Promise<void> {
  try {
    byId = new Map((await client.studies()).studies.map(study => [study.id, study]));
  } catch {
    // The list of runs says that nobody answers; when somebody does again, the stream says so.
  }
}

connection.listen(messages => {
  let next: Map<string, StudyOverview> | undefined;
  for (const message of messages) {
    if (message.type === 'reset') void refresh();
    else if (message.type === 'studies') {
      next ??= new Map(byId);
      for (const study of message.changed) next.set(study.id, study);
      for (const id of message.removed) next.delete(id);
    }
  }
  if (next !== undefined) byId = next;
});
void refresh();
