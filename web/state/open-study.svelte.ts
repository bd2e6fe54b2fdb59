/** All that is known of one open study. It is asked for again when the stream says that it has changed. */
import type { StudyAnswer, StudyImportance, StudyOverview, StudyTrial } from '../../src/server/api.ts';
import { reuseTrials } from '../lib/study.ts';
import { client, messageOf, statusOf } from './client.ts';
import { connection } from './connection.svelte.ts';
import { studies } from './studies.svelte.ts';

/** What a study asked for; it never changes. */
export type Asked = Pick<StudyAnswer, 'space' | 'seeds' | 'halving' | 'constraints'>;

export interface OpenStudy {
  readonly overview: StudyOverview | null;
  readonly asked: Asked | null;
  /** The same objects for as long as they have not changed. */
  readonly trials: readonly StudyTrial[];
  readonly importance: StudyImportance | null;
  readonly confirmation: StudyAnswer['confirmation'];
  readonly workers: StudyAnswer['workers'];
  readonly error: string | null;
  /** There is no such study: a stale link, or it was deleted while open. */
  readonly missing: boolean;
  reload(): void;
  close(): void;
}

/** At least so long between two questions, however fast it grows. */
const restMs = 500;

export function openStudy(id: string): OpenStudy {
  let answer = $state.raw<StudyAnswer | null>(null);
  let asked = $state.raw<Asked | null>(null);
  let trials = $state.raw<readonly StudyTrial[]>([]);
  let importance = $state.raw<StudyImportance | null>(null);
  let confirmation = $state.raw<StudyAnswer['confirmation']>(null);
  let error = $state<string | null>(null);
  let missing = $state(false);
  /** Of the trials that are here. */
  let version: string | null = null;
  let closed = false;
  let asking = false;
  let again = false;
  let timer: ReturnType<typeof setTimeout> | undefined;

  async function load(): Promise<void> {
    if (asking || timer !== undefined) {
      again = true;
      return;
    }
    asking = true;
    again = false;
    try {
      const fresh = await client.study(id, version);
      if (closed) return;
      answer = fresh;
      asked ??= fresh;
      if (fresh.trials !== null) {
        trials = reuseTrials(trials, fresh.trials);
        importance = fresh.importance;
        confirmation = fresh.confirmation;
        version = fresh.overview.version;
      }
      error = null;
      missing = false;
    } catch (cause) {
      if (closed) return;
      if (statusOf(cause) === 404) missing = true;
      error = messageOf(cause);
    } finally {
      asking = false;
    }
    timer = setTimeout(() => {
      timer = undefined;
      if (again) void load();
    }, restMs);
  }

  const stop = connection.listen(messages => {
    for (const message of messages) {
      if (message.type === 'reset') void load();
      else if (message.type === 'studies') {
        if (message.removed.includes(id)) missing = true;
        if (message.changed.some(study => study.id === id)) void load();
      }
    }
  });
  void load();

  return {
    get overview() {
      return studies.get(id) ?? answer?.overview ?? null;
    },
    get asked() {
      return asked;
    },
    get trials() {
      return trials;
    },
    get importance() {
      return importance;
    },
    get confirmation() {
      return confirmation;
    },
    get workers() {
      return answer?.workers ?? null;
    },
    get error() {
      return error;
    },
    get missing() {
      return missing;
    },
    reload: () => void load(),
    close() {
      closed = true;
      clearTimeout(timer);
      stop();
    },
  };
}
