/** The doctor's readers: files of any trainer become series under the names that it gave them. */
export type { ReadOptions } from './bytes.ts';
export type { Candidate } from './candidate.ts';
export { ReadError } from './errors.ts';
export { type FindOptions, type Found, findRuns, signature } from './find.ts';
export { readRun } from './read.ts';
