/** Answers of a task that may be promises: a task may run code or ask another machine, and must not hang the run. */

/** How long one answer may take. */
export const LONGEST_MS = 60_000;

const isPromise = (value: unknown): value is PromiseLike<unknown> =>
  typeof (value as { then?: unknown } | null | undefined)?.then === 'function';

/** What comes of an answer, a promise or not, if it comes in time; undefined if it does not. Throws what it rejects with. */
export async function inTime<T>(
  answer: T | PromiseLike<T>,
  longestMs: number = LONGEST_MS,
): Promise<{ readonly value: T } | undefined> {
  if (!isPromise(answer)) return { value: answer };
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>(resolve => {
    timer = setTimeout(() => resolve(undefined), longestMs);
  });
  try {
    return await Promise.race([Promise.resolve(answer).then(value => ({ value })), late]);
  } finally {
    clearTimeout(timer);
  }
}

/** What to do about one that does not. */
export const tooSlow = (what: string, longestMs: number = LONGEST_MS): string =>
  `${what} took longer than ${longestMs / 1000} s: give it a limit of its own, or make it faster`;
