/** What became of each rule on a run. */
import type { Checked, Finding } from '../findings.ts';
import type { Rule } from '../rules/rule.ts';
import type { Signals } from '../rules/signals.ts';

export function checkedOf({ code, looksAt }: Rule, found: readonly Finding[], signals: Signals): Checked {
  if (found.some(finding => finding.code === code)) return { code, state: 'found' };
  const missing = looksAt.filter(id => (signals.get(id)?.n ?? 0) === 0);
  return missing.length === looksAt.length ? { code, state: 'blind', missing } : { code, state: 'clear' };
}
