/** How often the first fix cures, by cause and by rule. */
import type { Diagnosis, RootCause } from '../../src/doctor/index.ts';
import { rootCauses } from '../../src/doctor/index.ts';
import type { From } from './remedy.ts';

/** One log, what was said of it, and what following it came to; null where it said nothing that could be done. */
export interface CureCase {
  readonly label: { readonly name: string; readonly fault: RootCause | null; readonly heldOut: boolean };
  /** That it was as good as healthy ones all the same. */
  readonly wellBefore: boolean;
  readonly spelling: string;
  readonly diagnosis: Diagnosis;
  readonly cures: Partial<Record<From, boolean | null>>;
}

const share = (part: number, whole: number): number | null =>
  whole === 0 ? null : Math.round((1000 * part) / whole) / 1000;

/** Runs, and how many of them got well. */
function countsOf(cases: readonly CureCase[]) {
  const ended = (from: From) => cases.filter(({ cures }) => cures[from] !== undefined);
  const well = (from: From) => cases.filter(({ cures }) => cures[from] === true);
  return {
    runs: cases.length,
    well_before: cases.filter(one => one.wellBefore).length,
    from_start: ended('start').length,
    cured_from_start: well('start').length,
    share_from_start: share(well('start').length, ended('start').length),
    from_checkpoint: ended('checkpoint').length,
    cured_from_checkpoint: well('checkpoint').length,
    share_from_checkpoint: share(well('checkpoint').length, ended('checkpoint').length),
  };
}

/** By the rule whose fix was tried, of seeds that nothing was tuned on: what `keel doctor --explain` says. */
export function curesByRule(cases: readonly CureCase[]): Record<string, { runs: number; cured: number }> {
  const found: Record<string, { runs: number; cured: number }> = {};
  const tried = cases.filter(one => isNamed(one) && one.label.heldOut && one.cures.start !== undefined);
  for (const code of [...new Set(tried.map(({ diagnosis }) => diagnosis.findings[0].code))].sort()) {
    const own = tried.filter(({ diagnosis }) => diagnosis.findings[0].code === code);
    found[code] = { runs: own.length, cured: own.filter(({ cures }) => cures.start === true).length };
  }
  return found;
}

/** The same by cause, as a table of docs/results.md. */
export function markdownOf(
  cases: readonly CureCase[],
  heldOutOf = 'seeds that nothing was tuned on',
): string {
  const cell = (part: number, whole: number): string => (whole === 0 ? '–' : `${part} of ${whole}`);
  const row = (name: string, of: readonly CureCase[]): string => {
    const { runs, well_before, ...c } = countsOf(of);
    return `| ${[name, runs, well_before, cell(c.cured_from_start, c.from_start), cell(c.cured_from_checkpoint, c.from_checkpoint)].join(' | ')} |`;
  };
  const named = cases.filter(isNamed);
  const heldOut = named.filter(({ label }) => label.heldOut);
  return [
    '| cause | sick logs | as good as healthy already | cured from the start | cured from a checkpoint |',
    '|---|--:|--:|--:|--:|',
    ...rootCauses
      .map(cause => [cause, heldOut.filter(({ label }) => label.fault === cause)] as const)
      .filter(([, of]) => of.length > 0)
      .map(([cause, of]) => row(cause, of)),
    row(`**all, ${heldOutOf}**`, heldOut),
    row(
      'seeds that rules were tuned on',
      named.filter(({ label }) => !label.heldOut),
    ),
    row(
      'worth a look, cause named',
      cases.filter(
        ({ diagnosis, label }) => diagnosis.verdict === 'watch' && diagnosis.rootCause === label.fault,
      ),
    ),
    row(
      'another cause named',
      cases.filter(({ diagnosis, label }) => diagnosis.rootCause !== label.fault),
    ),
  ].join('\n');
}

/** Sick runs whose cause was named: what the target is about. */
const isNamed = ({ label, diagnosis }: CureCase): boolean =>
  diagnosis.verdict === 'sick' && diagnosis.rootCause === label.fault;

/** The figures, a line each. */
export function tableOf(cases: readonly CureCase[]): Record<string, unknown>[] {
  const heldOut = cases.filter(({ label }) => label.heldOut);
  const lines: Record<string, unknown>[] = [];
  for (const one of cases.filter(({ cures }) => Object.values(cures).some(cured => cured !== true)))
    lines.push({
      not_cured: one.label.name,
      spelling: one.spelling,
      verdict: one.diagnosis.verdict,
      said: one.diagnosis.rootCause,
      rule: one.diagnosis.findings[0]?.code,
      fix: one.diagnosis.findings[0]?.fixes[0]?.text,
      ...one.cures,
    });
  const byCause = (of: readonly CureCase[], cause: RootCause) =>
    of.filter(({ label }) => label.fault === cause);
  for (const cause of rootCauses) {
    const named = byCause(cases.filter(isNamed), cause);
    if (named.length > 0)
      lines.push({ cause, ...countsOf(named), held_out: countsOf(byCause(heldOut.filter(isNamed), cause)) });
  }
  const groups: [string, readonly CureCase[]][] = [
    ['sick, cause named, seeds that tune', cases.filter(one => isNamed(one) && !one.label.heldOut)],
    ['sick, cause named, held-out seeds', heldOut.filter(isNamed)],
    [
      'watch, cause named',
      cases.filter(
        ({ diagnosis, label }) => diagnosis.verdict === 'watch' && diagnosis.rootCause === label.fault,
      ),
    ],
    ['another cause named', cases.filter(({ diagnosis, label }) => diagnosis.rootCause !== label.fault)],
  ];
  for (const [group, of] of groups) lines.push({ group, ...countsOf(of) });
  return lines;
}
