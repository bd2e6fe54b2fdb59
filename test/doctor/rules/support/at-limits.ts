/** Runs that stand at the limits of a rule, and what is heard of them. */
import type { CanonicalRun } from '../../../../src/doctor/canonical.ts';
import { type RootCause, type Severity, severities } from '../../../../src/doctor/findings.ts';
import { rules, signalsOf } from '../../../../src/doctor/rules/all.ts';
import type { LimitTable } from '../../../../src/doctor/rules/limits.ts';

/**
 * What to set, just inside and just outside of a limit; how loud it is inside alone, where it speaks on both sides; and the
 * share by which the limit is moved so that one of the two hears it, where a fifth is not enough.
 */
export type Sides = readonly [inside: LimitTable, outside: LimitTable, loud?: Severity, moved?: number];

/** A table of limits, and how to stand at each of them. */
export interface AtLimits {
  /** The rule that is listened to; of what is no rule, the name of its table. */
  readonly code: string;
  /** The table, where it has another name than the rule. */
  readonly table?: string;
  /** What is listened to where it is no rule: whether it says so. */
  readonly says?: (run: CanonicalRun, at: LimitTable) => boolean;
  /** A number for each thing that the rule looks at; all inside by default. */
  readonly make: (at: LimitTable) => CanonicalRun;
  readonly cases: Readonly<Record<string, Sides>>;
  /** What is argued for inside alone: at all limits, or at one of them. */
  readonly cause?: RootCause;
  readonly causes?: Readonly<Record<string, RootCause>>;
}

/** How loud the rule is, in the order of severities; -1 where it is silent. */
function loudness({ code, make, says, cause, causes }: AtLimits, limit: string, at: LimitTable): number {
  const argued = causes?.[limit] ?? cause;
  const made = make(at);
  if (says !== undefined) return says(made, at) ? 0 : -1;
  return rules
    .find(rule => rule.code === code)!
    .check(made, signalsOf(made), [])
    .filter(found => argued === undefined || found.cause === argued)
    .reduce((most, { severity }) => Math.max(most, severities.indexOf(severity)), -1);
}

/** Whether the rule says of each side what it should: it speaks so inside, and not outside. */
export function holds(
  one: AtLimits,
  limit: string,
  [inside, outside, loud = 'info']: Sides,
): readonly boolean[] {
  const least = severities.indexOf(loud);
  return [loudness(one, limit, inside) >= least, loudness(one, limit, outside) < least];
}
