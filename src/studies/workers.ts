/**
 * Who works on a study now, as its conductor tells it: `workers.json` beside the journal, written anew every few seconds.
 * Nothing depends on it: it is for people to look at, and is data like any other file, checked and bounded when it is read.
 */
import { statSync } from 'node:fs';
import { join } from 'node:path';
import * as z from 'zod/mini';
import { RunError } from '../base/errors.ts';
import { readBounded, writeFileAtomic } from '../base/files.ts';
import { encodeJson, parseJson } from '../base/json.ts';
import type { WorkersView } from './workers-view.ts';

export const workersPath = (studyDir: string): string => join(studyDir, 'workers.json');

/** All of these together stay below the bytes. */
const most = { bytes: 16 * 2 ** 20, workers: 500, doing: 64, id: 120, failures: 100, words: 400 } as const;

const words = z.string().check(z.maxLength(most.words));
const count = z.int().check(z.minimum(0));
const time = z.number().check(z.minimum(0), z.maximum(8.64e15));
const schema = z.object({
  workers: z
    .array(
      z.object({
        name: words,
        host: words,
        version: words,
        doing: z.array(z.string().check(z.maxLength(most.id))).check(z.maxLength(most.doing)),
        since: time,
      }),
    )
    .check(z.maxLength(most.workers)),
  queue: z.object({ waiting: count, active: count, delayed: count, failed: count }),
  failures: z.array(z.object({ run: words, why: words, at: time })).check(z.maxLength(most.failures)),
});

/** Writes what is so now. What would not fit is cut: the newest failures stay. */
export function writeWorkers(studyDir: string, view: WorkersView): void {
  const cut = (text: string): string => text.slice(0, most.words);
  const bounded: WorkersView = {
    workers: view.workers.slice(0, most.workers).map(({ name, host, version, doing, since }) => ({
      name: cut(name),
      host: cut(host),
      version: cut(version),
      doing: doing.slice(0, most.doing).map(id => id.slice(0, most.id)),
      since,
    })),
    queue: view.queue,
    failures: view.failures
      .slice(0, most.failures)
      .map(({ run, why, at }) => ({ run: cut(run), why: cut(why), at })),
  };
  writeFileAtomic(workersPath(studyDir), encodeJson(bounded, 'workers.json'), false);
}

/** What was written last and when; undefined where nothing was, or what is there is not ours. */
export function readWorkers(studyDir: string): (WorkersView & { readonly at: number }) | undefined {
  const path = workersPath(studyDir);
  const stat = statSync(path, { throwIfNoEntry: false });
  if (stat === undefined) return undefined;
  try {
    const found = z.safeParse(schema, parseJson(readBounded(path, most.bytes), 'workers.json'));
    return found.success ? { ...found.data, at: stat.mtimeMs } : undefined;
  } catch (error) {
    // A file that nothing depends on: one that is damaged, or went away in between, is none.
    if (error instanceof RunError) return undefined;
    throw error;
  }
}
