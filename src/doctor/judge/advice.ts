/** What is advised: never what already holds, and never the wrong way. */
import type { CanonicalRun } from '../canonical.ts';
import type { Finding, RootCause } from '../findings.ts';
import { type Fix, type SettingChange, together, wayOf } from '../fixes.ts';
import type { KnownSetting } from '../known-settings.ts';

/** Which way a setting goes as the remedy of a cause. */
const ways: Partial<Record<RootCause, Partial<Record<KnownSetting, 'up' | 'down'>>>> = {
  'learning-rate-too-high': { learningRate: 'down', targetKl: 'down', epochs: 'down', clipRange: 'down' },
  'too-many-epochs': { learningRate: 'down', targetKl: 'down', epochs: 'down' },
  'clip-range-too-large': { clipRange: 'down', targetKl: 'down', learningRate: 'down' },
  'learning-rate-too-low': { learningRate: 'up' },
  'target-kl-too-tight': { targetKl: 'up' },
  'reward-scale-too-large': { rewardScale: 'down' },
  'entropy-bonus-too-large': { entropyCoef: 'down' },
  'entropy-collapse': { entropyCoef: 'up' },
  'critic-not-learning': { valueCoef: 'up' },
  'reference-too-weak': { refCoef: 'up', learningRate: 'down' },
  'reference-too-strong': { refCoef: 'down' },
  'degenerate-groups': { groupSize: 'up' },
};

/** What a root cause makes look too small though it is not: nobody is told to raise that before the cause is mended. */
const notUp: Partial<Record<RootCause, KnownSetting>> = {
  'kl-sign-wrong': 'refCoef',
  'target-kl-too-tight': 'learningRate',
  'reward-scale-too-large': 'learningRate',
  'entropy-collapse': 'learningRate',
  'no-reward-signal': 'learningRate',
};

/** Whether a change changes something, and in the way that is wanted. */
function helps({ setting, from, value }: SettingChange, cause: RootCause | null): boolean {
  if (from === value) return false;
  const way = cause === null ? undefined : ways[cause]?.[setting];
  if (way === undefined || typeof from !== 'number' || typeof value !== 'number') return true;
  // A bound of 0 is one that is switched off.
  if (setting === 'targetKl' && from === 0) return true;
  return way === 'down' ? value < from : value > from;
}

/** The fix without what is so already; undefined if nothing of it is left. */
function kept(fix: Fix, cause: RootCause | null, { wording }: CanonicalRun): Fix | undefined {
  if (fix.kind !== 'setting') return fix;
  const changes = fix.changes.filter(one => helps(one, cause));
  if (changes.length === fix.changes.length) return fix;
  const parts = changes.flatMap(({ setting, value, from }) => {
    const said = typeof value === 'boolean' ? undefined : wording.setting({ [setting]: value });
    if (said?.kind !== 'setting') return [];
    return [{ ...said, changes: said.changes.map(one => ({ ...one, from })) }];
  });
  return together(parts);
}

const directionOf = ({ from, value }: SettingChange): number => wayOf(from, value);

/** The findings, with advice that changes something, and works neither against the root nor against an earlier one. */
export function withAdvice(
  findings: readonly Finding[],
  root: RootCause | undefined,
  run: CanonicalRun,
): Finding[] {
  const advised = new Map<KnownSetting, number>();
  const isAgainst = (change: SettingChange, cause: RootCause | null): boolean =>
    directionOf(change) * (advised.get(change.setting) ?? 0) < 0 ||
    (root !== undefined &&
      cause !== root &&
      change.setting === notUp[root] &&
      (change.from === null || directionOf(change) > 0));
  return findings.map(finding => {
    const { cause } = finding;
    const fixes = finding.fixes
      .flatMap(fix => kept(fix, cause, run) ?? [])
      .filter(fix => fix.kind !== 'setting' || !fix.changes.some(change => isAgainst(change, cause)));
    for (const fix of finding.severity === 'info' ? [] : fixes)
      for (const change of fix.kind === 'setting' ? fix.changes : [])
        if (!advised.has(change.setting)) advised.set(change.setting, directionOf(change));
    return fixes.length === finding.fixes.length && fixes.every((fix, i) => fix === finding.fixes[i])
      ? finding
      : { ...finding, fixes, fix: fixes.map(({ text }) => text) };
  });
}
