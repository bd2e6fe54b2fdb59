/** What became of each rule on a run. */
import type { Checked, Finding } from '../findings.ts';
import type { Gauge, Rule } from '../rules/rule.ts';
import type { Signals } from '../rules/signals.ts';

/** A value on the quiet side of a limit, and no further from it than this share of it, is near. */
const NEAR = 0.2;

/** How far a value on the quiet side is from the limit, as a share of it; undefined on the other side, or of nothing. */
function distanceOf({ at, value, speaks }: Gauge): number | undefined {
  const off = (speaks === 'above' ? at - value : value - at) / Math.abs(at);
  return off >= 0 ? off : undefined;
}

export function checkedOf(rule: Rule, found: readonly Finding[], signals: Signals): Checked {
  const { code, looksAt } = rule;
  if (found.some(finding => finding.code === code)) return { code, state: 'found' };
  const missing = looksAt.filter(id => (signals.get(id)?.n ?? 0) === 0);
  if (missing.length === looksAt.length) return { code, state: 'blind', missing };
  const near = (rule.gauges?.(signals.run, signals) ?? [])
    .flatMap(gauge => {
      const distance = gauge === undefined ? undefined : distanceOf(gauge);
      return gauge === undefined || distance === undefined || distance > NEAR ? [] : [{ gauge, distance }];
    })
    .toSorted((a, b) => a.distance - b.distance)[0];
  if (near === undefined) return { code, state: 'clear' };
  const { of, at, value } = near.gauge;
  return { code, state: 'near', limit: { of, at, value } };
}
