/** What is advised over all logs: never what holds already, and in the words of the trainer. */
import { rmSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { CanonicalRun } from '../../../src/doctor/canonical.ts';
import { diagnose } from '../../../src/doctor/diagnose.ts';
import type { Finding } from '../../../src/doctor/findings.ts';
import type { SettingChange } from '../../../src/doctor/fixes.ts';
import { atLimits } from '../rules/limits/all.ts';
import { allLogs, type Log } from '../support/all-logs.ts';

interface Advised {
  readonly where: string;
  readonly run: CanonicalRun;
  readonly finding: Finding;
  readonly change: SettingChange;
}

let logs: readonly Log[] = [];
let scratch = '';
const advised: Advised[] = [];

beforeAll(async () => {
  ({ logs, scratch } = await allLogs());
  const made = atLimits.flatMap(({ code, cases, make }) =>
    Object.entries(cases).map(([limit, [inside]]) => ({ name: `${code} at ${limit}`, run: make(inside) })),
  );
  for (const { name, run } of [...logs, ...made])
    for (const finding of diagnose(run).findings)
      for (const fix of finding.fixes)
        if (fix.kind === 'setting')
          for (const change of fix.changes)
            advised.push({ where: `${finding.code} (${name})`, run, finding, change });
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

it('does not pull one setting two ways in one finding', () => {
  const ways = new Map<Finding, Map<string, Set<boolean>>>();
  for (const {
    finding,
    change: { setting, from, value },
  } of advised) {
    if (typeof from !== 'number' || typeof value !== 'number') continue;
    const of = ways.get(finding) ?? new Map<string, Set<boolean>>();
    ways.set(finding, of);
    of.set(setting, (of.get(setting) ?? new Set()).add(value > from));
  }
  const both = [...ways].flatMap(([{ code }, of]) =>
    [...of].flatMap(([setting, up]) => (up.size > 1 ? [`${code}: ${setting}`] : [])),
  );
  expect(both).toEqual([]);
});
