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
