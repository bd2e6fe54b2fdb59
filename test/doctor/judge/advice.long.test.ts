/** What is advised over all logs: never what holds already, and in the words of the trainer. */
import { rmSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { CanonicalRun } from '../../../src/doctor/canonical.ts';
import { diagnose } from '../../../src/doctor/diagnose.ts';
import type { Finding, RootCause } from '../../../src/doctor/findings.ts';
import type { SettingChange } from '../../../src/doctor/fixes.ts';
import { atLimits } from '../rules/limits/all.ts';
import { allLogs, type Log } from '../support/all-logs.ts';

interface Advised {
  readonly where: string;
  readonly run: CanonicalRun;
  readonly finding: Finding;
  readonly change: SettingChange;
  readonly rootCause: RootCause | null;
}

let logs: readonly Log[] = [];
let scratch = '';
const advised: Advised[] = [];

beforeAll(async () => {
  ({ logs, scratch } = await allLogs());
  const made = atLimits.flatMap(({ code, cases, make }) =>
    Object.entries(cases).map(([limit, [inside]]) => ({ name: `${code} at ${limit}`, run: make(inside) })),
  );
  for (const { name, run } of [...logs, ...made]) {
    const { findings, rootCause } = diagnose(run);
    for (const finding of findings)
      for (const fix of finding.fixes)
        if (fix.kind === 'setting')
          for (const change of fix.changes)
            advised.push({ where: `${finding.code} (${name})`, run, finding, change, rootCause });
  }
});
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const where = (some: readonly Advised[]): string[] =>
  some.map(one => `${one.where}: ${JSON.stringify(one.change)}`);

it('advises something of hundreds of logs', () => {
  expect(advised.length).toBeGreaterThan(300);
  expect(new Set(advised.map(({ change }) => change.setting)).size).toBeGreaterThan(10);
});

it('sets nothing to what it is', () => {
  const held = advised.filter(
    ({ change: { setting, from, value }, run }) => from === value || run.config[setting] === value,
  );
  expect(where(held)).toEqual([]);
});

it('says from what, wherever the log knows', () => {
  const unsaid = advised.filter(({ change: { setting, from }, run }) => {
    const known = run.config[setting];
    return known !== undefined && from !== known;
  });
  expect(where(unsaid)).toEqual([]);
});

it('names each setting as its trainer does, in what is to be typed as well', () => {
  const strange = advised.filter(({ change: { setting, name }, run, finding }) => {
    const fix = finding.fixes.find(
      one => one.kind === 'setting' && one.changes.some(c => c.setting === setting),
    );
    const typed = fix !== undefined && 'code' in fix ? fix.code : undefined;
    return name !== (run.wording.nameOf(setting) ?? name) || (typed !== undefined && !typed.includes(name));
  });
  expect(where(strange)).toEqual([]);
});

const isUp = ({ from, value }: SettingChange): boolean | undefined =>
  typeof from === 'number' && typeof value === 'number' ? value > from : undefined;

it.each<[string, (one: Advised) => unknown]>([
  ['in one finding', ({ finding }) => finding],
  ['in one report', ({ run, finding }) => (finding.severity === 'info' ? finding : run)],
])('does not pull one setting two ways %s', (_, of) => {
  const ways = new Map<unknown, Map<string, Set<boolean>>>();
  const both: string[] = [];
  for (const one of advised) {
    const up = isUp(one.change);
    if (up === undefined) continue;
    const settings = ways.get(of(one)) ?? new Map<string, Set<boolean>>();
    ways.set(of(one), settings);
    const seen = (settings.get(one.change.setting) ?? new Set()).add(up);
    settings.set(one.change.setting, seen);
    if (seen.size > 1) both.push(`${one.where}: ${one.change.setting}`);
  }
  expect(both).toEqual([]);
});

it('does not ask for a stronger pull where the pull has the wrong sign', () => {
  const pulled = advised.filter(
    ({ rootCause, change }) =>
      rootCause === 'kl-sign-wrong' && change.setting === 'refCoef' && isUp(change) !== false,
  );
  expect(where(pulled).filter(text => !text.startsWith('kl-sign'))).toEqual([]);
});
