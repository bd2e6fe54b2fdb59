/** The changes of all findings together, the root cause's first. */
import { type Finding, loud } from '../../src/doctor/findings.ts';

/** As sentences or code, each once; one that only changes settings that were changed before it is left out. */
export function allFixes(findings: readonly Finding[]): string[] {
  const changed = new Set<string>();
  const out = new Set<string>();
  for (const fix of loud(findings).flatMap(({ fixes }) => fixes)) {
    const names = fix.kind === 'setting' ? fix.changes.map(({ name }) => name) : [];
    if (names.length > 0 && names.every(name => changed.has(name))) continue;
    for (const name of names) changed.add(name);
    out.add(fix.text);
  }
  return [...out];
}

/** What of a fix is typed, and what is said beside it. */
export interface FixLine {
  readonly code: string;
  readonly aside: string | null;
}

/**
 * The changes of one finding as they are typed, each with what is said of it. Of a run of Keel they are the settings alone: the
 * commands that have them all, with the run's own steps and seed, are in one place, and two would train twice.
 */
export function fixLines(fixes: Finding['fixes'], isKeel: boolean): FixLine[] {
  return fixes.map(fix => ({
    code:
      fix.kind === 'setting' && isKeel
        ? fix.changes.map(({ name, value }) => `--set ${name}=${value}`).join(' ')
        : ((fix.kind === 'prose' ? undefined : fix.code) ?? fix.text),
    aside: (fix.kind === 'prose' || fix.code === undefined ? undefined : fix.aside) ?? null,
  }));
}
