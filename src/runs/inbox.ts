/**
 * How someone outside changes a run that is being trained: a request is a whole JSON file in `<run>/inbox`, the trainer
 * looks once an iteration, does it or refuses, and leaves an answer beside it.
 *
 * What was set is also written to `<run>/adjustments.json`, with the iteration from which on it holds. A run that is
 * killed and resumed makes the same changes at the same iterations, and so comes to the same bits.
 */
import { randomUUID } from 'node:crypto';
import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import * as z from 'zod/mini';
import { makeDirectories } from '../base/directories.ts';
import { codeOf, RunError, show } from '../base/errors.ts';
import { readBounded, writeFileAtomic } from '../base/files.ts';
import { parseJson } from '../base/json.ts';

const mostBytes = 2 ** 16;
const mostAdjustmentBytes = 4 * 2 ** 20;
const requestPattern = /^([0-9a-f-]{36})\.json$/;

const value = z.union([z.number(), z.null()]);
const keySchema = z.string().check(z.regex(/^[A-Za-z][A-Za-z0-9]{0,60}$/));
const by = z.string().check(z.minLength(1), z.maxLength(60));

const requestSchema = z.discriminatedUnion('type', [
  z.object({ type: z.literal('set'), key: keySchema, value, by }),
  z.object({ type: z.literal('stop'), by }),
]);

/** What may be asked of a run. */
export type RunRequest = Readonly<z.infer<typeof requestSchema>>;

const answerSchema = z.object({ done: z.boolean(), message: z.string() });
/** What became of it, as a sentence. */
export type RunAnswer = Readonly<z.infer<typeof answerSchema>>;

const adjustmentSchema = z.object({
  /** The first iteration that it holds for. */
  iteration: z.int().check(z.positive()),
  key: keySchema,
  value,
  by,
});
/** One change to a run under way. */
export type Adjustment = Readonly<z.infer<typeof adjustmentSchema>>;
const adjustmentsSchema = z.object({ changes: z.array(adjustmentSchema) });

const inboxDir = (runDir: string): string => join(runDir, 'inbox');
/** Where the changes that were made to a run by hand are kept, for when it is resumed. */
export const adjustmentsPath = (runDir: string): string => join(runDir, 'adjustments.json');
const answerPath = (runDir: string, id: string): string => join(inboxDir(runDir), `${id}.answer`);

// ---------------------------------------------------------------------------------------------------- asking

/** How long to wait for the answer. */
export interface AskOptions {
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

/** Asks the run that is being trained, and waits for its answer. Not answered in time, the request is taken back. */
export async function askRun(
  runDir: string,
  request: RunRequest,
  { timeoutMs, signal }: AskOptions,
): Promise<RunAnswer> {
  const id = randomUUID();
  const dir = inboxDir(runDir);
  makeDirectories(dir);
  const path = join(dir, `${id}.json`);
  writeFileAtomic(path, `${JSON.stringify(checked(request))}\n`, false);
  let until = performance.now() + timeoutMs;
  let withdrawn = false;
  for (;;) {
    const answer = readAnswer(runDir, id);
    if (answer !== undefined) return answer;
    if (performance.now() > until || signal?.aborted) {
      if (withdrawn || remove(path)) {
        return {
          done: false,
          message: `the run did not answer within ${Math.round(timeoutMs / 1000)} seconds, and nothing was changed: it looks once an iteration; try again`,
        };
      }
      // It is being done right now.
      withdrawn = true;
      until = performance.now() + 5000;
    }
    await sleep(50);
  }
}

function readAnswer(runDir: string, id: string): RunAnswer | undefined {
  const path = answerPath(runDir, id);
  try {
    const result = z.safeParse(answerSchema, parseJson(readBounded(path, mostBytes), path));
    remove(path);
    return result.success ? result.data : { done: false, message: 'the answer of the run is damaged' };
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}

/** Whether there was something to remove. */
function remove(path: string): boolean {
  try {
    rmSync(path);
    return true;
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return false;
    throw error;
  }
}

function checked(request: unknown): RunRequest {
  const result = z.safeParse(requestSchema, request);
  if (result.success) return result.data;
  const issue = result.error.issues[0];
  throw new RunError(
    `a request is ${show(request)}: ${issue.path.join('.') || 'it'} is not as expected: send { type: 'set', key, value, by } or { type: 'stop', by }`,
    {
      code: 'invalid',
    },
  );
}

// ---------------------------------------------------------------------------------------------------- answering

/** The trainer's side. */
export interface Inbox {
  /** What was asked since the last look; what cannot be understood is refused here. */
  take(): { readonly id: string; readonly request: RunRequest }[];
  answer(id: string, answer: RunAnswer): void;
}

/** Opens the inbox of a run whose lock is held. What was left in it was meant for a process that is gone. */
export function openInbox(runDir: string): Inbox {
  const dir = inboxDir(runDir);
  const answer = (id: string, value: RunAnswer): void => {
    try {
      writeFileAtomic(answerPath(runDir, id), `${JSON.stringify(value)}\n`, false);
    } catch {
      // Nobody to tell, or no room to: the run goes on.
    }
  };
  const names = (): string[] => {
    try {
      return readdirSync(dir);
    } catch {
      return []; // nobody has asked anything yet
    }
  };
  for (const name of names()) {
    try {
      rmSync(join(dir, name), { recursive: true, force: true });
    } catch {
      // Refused at the first look instead.
    }
  }
  return {
    take() {
      const found: { id: string; request: RunRequest }[] = [];
      for (const name of names()) {
        const id = requestPattern.exec(name)?.[1];
        if (id === undefined) continue;
        const path = join(dir, name);
        try {
          const bytes = readBounded(path, mostBytes);
          // Whoever asked may have taken it back meanwhile.
          if (remove(path)) found.push({ id, request: checked(parseJson(bytes, path)) });
        } catch (error) {
          try {
            rmSync(path, { recursive: true, force: true });
          } catch {}
          answer(id, {
            done: false,
            message: `the request cannot be understood: ${(error as Error).message}`,
          });
        }
      }
      return found;
    },
    answer,
  };
}

// ---------------------------------------------------------------------------------------------------- adjustments

/** The changes that were made to a run under way, in their order. */
export function readAdjustments(runDir: string): Adjustment[] {
  const path = adjustmentsPath(runDir);
  let bytes: Buffer;
  try {
    bytes = readBounded(path, mostAdjustmentBytes);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return [];
    throw error;
  }
  const result = z.safeParse(adjustmentsSchema, jsonOf(bytes));
  if (result.success) return result.data.changes;
  const { path: place, message } = result.error.issues[0];
  const where = bytes.length === 0 ? 'it is empty' : `${place.join('.') || 'it'}: ${message}`;
  throw new RunError(
    `${path} is damaged (${where}): repair it, or delete it to go on without the changes made by hand`,
    { code: 'invalid' },
  );
}

/** Undefined where it is none. */
function jsonOf(bytes: Buffer): unknown {
  try {
    return parseJson(bytes, 'it');
  } catch {
    return undefined;
  }
}

/** Replaces what {@link readAdjustments} reads. */
export function writeAdjustments(runDir: string, changes: readonly Adjustment[]): void {
  writeFileAtomic(adjustmentsPath(runDir), `${JSON.stringify({ changes }, null, 2)}\n`);
}

/** Their effect at an iteration: the last change of each key up to it. */
export function adjustedAt(changes: readonly Adjustment[], iteration: number): Record<string, number | null> {
  const settings: Record<string, number | null> = {};
  for (const change of changes) if (change.iteration <= iteration) settings[change.key] = change.value;
  return settings;
}
