/** What the doctor says of every run of known cause, and how often it is right. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Diagnosis, type RootCause, rootCauses } from '../../src/doctor/index.ts';
import { readCached } from './cache.ts';
import { diagnoseFile } from './diagnose-file.ts';
import { spell, spellingsOf } from './spellings.ts';

/** One log, what is wrong with it, and what was said. */
export interface Case {
  readonly name: string;
  readonly source: string;
  readonly fault: RootCause | null;
  readonly harmless: boolean;
  readonly traceless: boolean;
  readonly heldOut: boolean;
  readonly said: Pick<Diagnosis, 'verdict' | 'rootCause' | 'confidence' | 'summary' | 'findings'>;
}

/** Every cached run in every spelling. */
export async function matrixCases(filter: string): Promise<Case[]> {
  const root = mkdtempSync(join(tmpdir(), 'keel-doctor-'));
  const cases: Case[] = [];
  try {
    for (const run of readCached().filter(({ label }) => label.name.includes(filter))) {
      for (const spelling of spellingsOf(run)) {
        const { path, traceless } = spell(run, spelling, root);
        const { name, fault, harmless, heldOut } = run.label;
        const said = await diagnoseFile(path);
        cases.push({ name, source: spelling, fault, harmless, traceless, heldOut, said });
      }
    }
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
  return cases;
}

/** Real runs of Stable-Baselines3 with known faults, in each of their formats. */
export async function fixtureCases(filter: string): Promise<Case[]> {
  const root = new URL('../../test/doctor/fixtures/sb3/', import.meta.url).pathname;
  const cases: Case[] = [];
  for (const name of readdirSync(root).sort()) {
    if (!name.includes(filter)) continue;
    const { label } = JSON.parse(readFileSync(join(root, name, 'label.json'), 'utf8')) as { label: string };
    const harmless = label === 'watch';
    const fault = harmless ? 'too-many-epochs' : (rootCauses.find(cause => cause === label) ?? null);
    for (const file of readdirSync(join(root, name)).filter(file => file !== 'label.json')) {
      const said = await diagnoseFile(join(root, name, file));
      const source = `real-sb3 ${file.startsWith('events') ? 'tensorboard' : file}`;
      cases.push({ name, source, fault, harmless, traceless: false, heldOut: false, said });
    }
  }
  return cases;
}

/** What was said, in a word: the root cause, or the verdict if there is none. */
export function answerOf({ said }: Case): string {
  if (said.verdict === 'healthy') return 'healthy';
  return said.rootCause ?? said.verdict;
}

/** Whether a remark names it: a setting that is unusual and did no harm. */
const isRemarked = ({ said, fault }: Case): boolean => said.findings.some(({ cause }) => cause === fault);

/**
 * A healthy run is healthy; a fault is named; one that did no harm may also be worth no more than a look, or healthy if
 * the report says what is unusual.
 */
export function isRight(one: Case): boolean {
  const answer = answerOf(one);
  if (one.fault === null) return answer === 'healthy';
  if (answer === one.fault) return true;
  return one.harmless && (one.said.verdict === 'watch' || (answer === 'healthy' && isRemarked(one)));
}

export interface Score {
  readonly runs: number;
  readonly right: number;
  readonly accuracy: number;
}

/** Top-1: the share of logs whose first answer is right. */
export function scoreOf(cases: readonly Case[]): Score {
  const right = cases.filter(isRight).length;
  return { runs: cases.length, right, accuracy: share(right, cases.length) };
}

/** How often a cause that was named was there, and one that was there was named. */
export function precisionAndRecall(cases: readonly Case[], cause: RootCause): Record<string, number> {
  const named = cases.filter(one => answerOf(one) === cause);
  const there = cases.filter(one => one.fault === cause);
  const hits = named.filter(one => one.fault === cause).length;
  return {
    runs: there.length,
    named: named.length,
    precision: share(hits, named.length),
    recall: share(hits, there.length),
    // Where the fault did no harm, a warning is a right answer too.
    found_or_watched: share(there.filter(isRight).length, there.length),
  };
}

/** Of the answers that were said to be so sure, how many were right: the curve by which a confidence means something. */
export function reliability(cases: readonly Case[], bins = 5): Record<string, number>[] {
  return Array.from({ length: bins }, (_, bin) => {
    const [from, to] = [bin / bins, (bin + 1) / bins];
    const within = cases.filter(({ said: { confidence } }) =>
      bin === bins - 1 ? confidence >= from : confidence >= from && confidence < to,
    );
    const said = within.reduce((sum, { said: { confidence } }) => sum + confidence, 0);
    return {
      from,
      to,
      runs: within.length,
      said: share(said, within.length),
      right: share(within.filter(isRight).length, within.length),
    };
  }).filter(({ runs }) => runs > 0);
}

const share = (part: number, whole: number): number =>
  whole === 0 ? Number.NaN : Math.round((1000 * part) / whole) / 1000;
