/** How often the first fix cures, by cause and by rule. */
import type { Diagnosis, RootCause } from '../../src/doctor/index.ts';
import { rootCauses } from '../../src/doctor/index.ts';
import type { CachedRun } from './cache.ts';
import { isCured } from './harm.ts';
import type { From } from './remedy.ts';

/** One log, what was said of it, and what following it came to; null where it said nothing that could be done. */
export interface CureCase {
  readonly run: CachedRun;
  readonly spelling: string;
  readonly diagnosis: Diagnosis;
  readonly cures: Partial<Record<From, boolean | null>>;
}

const share = (part: number, whole: number): number | null =>
  whole === 0 ? null : Math.round((1000 * part) / whole) / 1000;

/** Runs, and how many of them got well. */
export function countsOf(cases: readonly CureCase[], all: readonly CachedRun[]) {
  const ended = (from: From) => cases.filter(({ cures }) => cures[from] !== undefined);
  const well = (from: From) => cases.filter(({ cures }) => cures[from] === true);
  return {
    runs: cases.length,
    well_before: cases.filter(({ run }) => isCured(run.label, run, all)).length,
    from_start: ended('start').length,
    cured_from_start: well('start').length,
    share_from_start: share(well('start').length, ended('start').length),
    from_checkpoint: ended('checkpoint').length,
    cured_from_checkpoint: well('checkpoint').length,
    share_from_checkpoint: share(well('checkpoint').length, ended('checkpoint').length),
  };
}

/** Sick runs whose cause was named: what the target is about. */
export const isNamed = ({ run, diagnosis }: CureCase): boolean =>
  diagnosis.verdict === 'sick' && diagnosis.rootCause === run.label.fault;

/** The figures, a line each. */
export function tableOf(cases: readonly CureCase[], all: readonly CachedRun[]): Record<string, unknown>[] {
  const heldOut = cases.filter(({ run }) => run.label.heldOut);
  const lines: Record<string, unknown>[] = [];
  for (const one of cases.filter(({ cures }) => Object.values(cures).some(cured => cured !== true)))
    lines.push({
      not_cured: one.run.label.name,
      spelling: one.spelling,
      verdict: one.diagnosis.verdict,
      said: one.diagnosis.rootCause,
      rule: one.diagnosis.findings[0]?.code,
      fix: one.diagnosis.findings[0]?.fixes[0]?.text,
      ...one.cures,
    });
  const byCause = (of: readonly CureCase[], cause: RootCause) =>
    of.filter(({ run }) => run.label.fault === cause);
  for (const cause of rootCauses) {
    const named = byCause(cases.filter(isNamed), cause);
    if (named.length > 0)
      lines.push({ cause, ...countsOf(named, all), held_out: countsOf(byCause(heldOut.filter(isNamed), cause), all) });
  }
  const groups: [string, readonly CureCase[]][] = [
    ['sick, cause named, seeds that tune', cases.filter(one => isNamed(one) && !one.run.label.heldOut)],
    ['sick, cause named, held-out seeds', heldOut.filter(isNamed)],
    ['watch, cause named', cases.filter(({ diagnosis, run }) => diagnosis.verdict === 'watch' && diagnosis.rootCause === run.label.fault)],
    ['another cause named', cases.filter(({ diagnosis, run }) => diagnosis.rootCause !== run.label.fault)],
  ];
  for (const [group, of] of groups) lines.push({ group, ...countsOf(of, all) });
  return lines;
}
