/** Studies as things on disk: making, opening and listing them, and where their parts are. */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { makeDirectories, makeDirectoryIn, readNames } from '../base/directories.ts';
import { codeOf, fail, show } from '../base/errors.ts';
import { attempt, readBounded, syncDirectory, writeFileAtomic } from '../base/files.ts';
import { encodeJson, parseJson } from '../base/json.ts';
import { didYouMean } from '../base/nearest.ts';
import { isRunId } from '../runs/layout.ts';
import { parseStudy } from './checks.ts';
import type { Study, Trial } from './schema.ts';

/** Where studies are kept unless told otherwise, relative to the working directory. */
export const defaultStudyRoot = 'studies';

/** A space of ten thousand values has a few hundred kilobytes. */
const maxStudyBytes = 8 * 2 ** 20;

/** A study as it was found. */
export interface OpenStudy {
  /** Absolute. */
  readonly dir: string;
  readonly study: Study;
}

/** Where things are in a study's directory. */
export function studyPaths(dir: string) {
  return {
    study: join(dir, 'study.json'),
    journal: join(dir, 'journal.log'),
    /** The root of its runs. */
    runs: join(dir, 'runs'),
  };
}

/** Makes the directory of a new study; `study.json`, which makes it one, comes last and whole. */
export function createStudy(study: Study, root: string = defaultStudyRoot): OpenStudy {
  const checked = parseStudy(study, `study ${show(study.name)}`);
  const dir = join(resolve(root), requireName(study.name));
  makeDirectories(dirname(dir));
  try {
    attempt('create', dir, () => mkdirSync(dir));
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error;
    // A process that died before study.json was there left nothing that counts.
    if (existsSync(studyPaths(dir).study))
      fail(`${dir} is a study already: go on with it, or choose another name`, 'exists');
    const there = readNames(dir).filter(name => name !== 'runs' && !name.startsWith('.keel-tmp-'));
    if (there.length > 0)
      fail(`${dir} exists and has ${show(there[0])} in it: choose another name`, 'exists');
  }
  makeDirectoryIn(dir, basename(studyPaths(dir).runs));
  const text = encodeJson(checked, 'study');
  if (Buffer.byteLength(text) > maxStudyBytes)
    fail(
      `study.json would have ${Buffer.byteLength(text)} bytes, at most ${maxStudyBytes}: search fewer values`,
    );
  writeFileAtomic(studyPaths(dir).study, text);
  syncDirectory(dirname(dir));
  return { dir, study: checked };
}

/** The study in a directory. */
export function openStudy(dir: string): OpenStudy {
  const absolute = resolve(dir);
  const path = studyPaths(absolute).study;
  if (!existsSync(path)) {
    const what = existsSync(absolute) ? 'is not a study: it has no study.json' : 'does not exist';
    fail(`${absolute} ${what}: check the path`, 'no-such-study');
  }
  return { dir: absolute, study: parseStudy(parseJson(readBounded(path, maxStudyBytes), path), path) };
}

/** Finds a study by its name or its directory. */
export function findStudy(reference: string, root: string = defaultStudyRoot): OpenStudy {
  if (/[\\/]/.test(reference) || existsSync(studyPaths(reference).study)) return openStudy(reference);
  const dir = join(resolve(root), reference);
  if (isRunId(reference) && existsSync(dir)) return openStudy(dir);
  const names = listStudies(root).studies.map(({ study }) => study.name);
  const hint =
    didYouMean(reference, names) ||
    (names.length > 0 ? `there are ${names.slice(0, 10).join(', ')}` : 'there are none');
  return fail(`there is no study ${show(reference)} in ${root}: ${hint}`, 'no-such-study');
}

/** What is in a root: studies, newest first, and directories that should be studies but cannot be read. */
export interface StudyList {
  readonly studies: readonly OpenStudy[];
  readonly broken: readonly { readonly dir: string; readonly problem: string }[];
}

/** All studies directly in a root; none where there is no such directory. */
export function listStudies(root: string = defaultStudyRoot): StudyList {
  const studies: OpenStudy[] = [];
  const broken: { dir: string; problem: string }[] = [];
  for (const name of readNames(resolve(root))) {
    const dir = join(resolve(root), name);
    if (!isRunId(name) || !existsSync(studyPaths(dir).study)) continue;
    try {
      studies.push(openStudy(dir));
    } catch (error) {
      broken.push({ dir, problem: (error as Error).message });
    }
  }
  studies.sort((a, b) => b.study.createdAt.localeCompare(a.study.createdAt) || a.dir.localeCompare(b.dir));
  return { studies, broken };
}

/** Names are as those of runs: one plain directory name on every system. */
function requireName(name: string): string {
  if (isRunId(name)) return name;
  return fail(
    `study name ${show(name)}: use letters, digits, dot, dash and underscore, at most 120, beginning with a letter or digit`,
    'invalid-id',
  );
}

/**
 * The run of a trial and a seed: `cartpole-3fa9c1-t0007-seed2`, `…-winner-seed1003`. The same each time, so that a study that
 * was killed finds its runs again; and another for every study, because workers do runs of many.
 */
export function runIdOf(study: Study, trial: Pick<Trial, 'number' | 'purpose'>, seed: number): string {
  const mark = createHash('sha256').update(JSON.stringify(study)).digest('hex').slice(0, 6);
  return `${study.name.slice(0, 60)}-${mark}-${partOf(trial)}-seed${seed}`;
}

function partOf({ number, purpose }: Pick<Trial, 'number' | 'purpose'>): string {
  switch (purpose) {
    case 'search':
      return `t${String(number).padStart(4, '0')}`;
    case 'confirm-winner':
      return `winner${number}`;
    case 'confirm-default':
      return `default${number}`;
    default:
      return purpose satisfies never;
  }
}
