/**
 * Frames between a thread and its Python process (python/keel/_frames.py is the other side): a header of four numbers
 * (magic, what, sequence, bytes that follow), and so many bytes. Everything is little-endian, as all machines are on which
 * Node runs.
 */

export const MAGIC = 0x4c45454b;
export const HEADER_BYTES = 16;
/** Bytes that follow a header, at the most. */
export const MOST_BYTES = 2 ** 27;
export const PROTOCOL = 2;

/** What a frame asks for. */
export const asks = {
  hello: 0,
  make: 1,
  reset: 2,
  step: 3,
  state: 4,
  restore: 5,
  render: 6,
  drop: 7,
  replay: 8,
  quit: 9,
} as const;
export type Ask = keyof typeof asks;
/** Added to the number of an answer that tells of an error, as JSON. */
export const FAILED_ANSWER = 0x80;
/** What a frame without a question and without bytes says: the call takes long, its answer is still to come. */
export const WAITING = 0xff;

/** Bits of an environment's flags in an answer. */
export const TERMINATED = 1;
export const TRUNCATED = 2;
export const FAILED = 4;

/** Where the parts of an answer for so many environments begin. */
export interface AnswerLayout {
  readonly rewards: number;
  readonly measures: number;
  readonly observations: number;
  readonly flags: number;
  /** Without what is said of errors, which follows. */
  readonly bytes: number;
}

/** The layout of an answer to `step`, `reset` or `replay`. */
export function answerLayout(count: number, measureCount: number, obsSize: number): AnswerLayout {
  const measures = 8 * count;
  const observations = measures + 8 * count * measureCount;
  const flags = observations + 4 * count * obsSize;
  return { rewards: 0, measures, observations, flags, bytes: flags + count };
}
