/**
 * Frames between a thread and its Python process (python/keel/_frames.py is the other side): a header of four numbers
 * (magic, what, sequence, bytes that follow), and so many bytes. Everything is little-endian, as all machines are on which
 * Node runs.
 */
import { ChildGone } from './faults.ts';

export const MAGIC = 0x4c45454b;
export const HEADER_BYTES = 16;
/** Bytes that follow a header, at the most. */
export const MOST_BYTES = 2 ** 27;
export const PROTOCOL = 3;

/** What a frame asks for. */
export const asks = {
  hello: 0,
  make: 1,
  reset: 2,
  step: 3,
  state: 4,
  render: 5,
  drop: 6,
  replay: 7,
  quit: 8,
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

/** What an answer is about: so many environments, each with so many numbers. */
export interface AnswerSize {
  readonly count: number;
  readonly measureCount: number;
  readonly obsSize: number;
}

/** Where the parts of an answer to `step`, `reset` or `replay` begin; the rewards are first. */
interface AnswerLayout {
  readonly measures: number;
  readonly observations: number;
  readonly flags: number;
  /** Without what is said of errors, which follows. */
  readonly bytes: number;
}

/** The layout of an answer, if it has its size. */
export function answerLayout(
  ask: Ask,
  { length }: Buffer,
  { count, measureCount, obsSize }: AnswerSize,
): AnswerLayout {
  const measures = 8 * count;
  const observations = measures + 8 * count * measureCount;
  const flags = observations + 4 * count * obsSize;
  const bytes = flags + count;
  if (length < bytes) throw new ChildGone(`its answer to ${ask} has ${length} bytes, ${bytes} are right`);
  return { measures, observations, flags, bytes };
}

/** So many numbers in an answer; they stay until the next question. */
export function rowOf(payload: Buffer, at: number, length: number): Float32Array {
  return new Float32Array(payload.buffer, payload.byteOffset + at, length);
}
