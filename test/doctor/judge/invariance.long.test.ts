/** What must not turn a verdict round: the reward's zero and unit, names, columns that nobody asked for, fewer rows. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readCached } from '../../../bench/doctor/cache.ts';
import { spell } from '../../../bench/doctor/spellings.ts';
import type { CanonicalRun, CanonicalSeries } from '../../../src/doctor/canonical.ts';
import { diagnose } from '../../../src/doctor/diagnose.ts';
import type { Verdict } from '../../../src/doctor/findings.ts';
import { findRuns, readRun, toCanonical } from '../../../src/doctor/index.ts';
import { runUntil } from '../../../src/doctor/judge/first-seen.ts';
import type { Series } from '../../../src/doctor/series.ts';

/** One run in so many of the matrix, as Stable-Baselines3 would log it. */
const EVERY = 8;
const root = mkdtempSync(join(tmpdir(), 'keel-invariance-'));
const runs: { readonly name: string; readonly run: CanonicalRun }[] = [];

beforeAll(async () => {
  for (const [i, cached] of readCached().entries()) {
    if (i % EVERY !== 0) continue;
    const { candidates } = await findRuns(spell(cached, 'sb3', root).path);
    runs.push({ name: cached.label.name, run: toCanonical(await readRun(candidates[0])) });
  }
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

const opposite = (a: Verdict, b: Verdict): boolean =>
  (a === 'healthy' && b === 'sick') || (a === 'sick' && b === 'healthy');
/** Alarm: what cannot be told is none. */
const loudness: Readonly<Record<Verdict, number>> = { healthy: 0, 'cannot-tell': 0, watch: 1, sick: 2 };

const mapped = (series: Series, f: (v: number) => number): Series => ({
  ...series,
  values: series.values.map(f),
  min: series.min.map(f),
  max: series.max.map(f),
});

function withSeries(
  run: CanonicalRun,
  change: (entry: CanonicalSeries) => CanonicalSeries | undefined,
): CanonicalRun {
  const series = new Map<string, CanonicalSeries>();
  for (const [id, entry] of run.series) {
    const made = change(entry);
    if (made !== undefined) series.set(id, made);
  }
  return { ...run, series };
}

const wrong = (turn: (run: CanonicalRun) => Verdict | undefined): string[] =>
  runs.flatMap(({ name, run }) => {
    const before = diagnose(run).verdict;
    const after = turn(run);
    return after !== undefined && opposite(before, after) ? [`${name}: ${before} > ${after}`] : [];
  });

describe('a verdict is not turned round', () => {
  it.each([-1000, 64, 4096])('by %d added to every return', shift => {
    // One constant may be a task that is solved, or one that gives nothing: of that the zero does tell.
    expect(
      wrong(run => {
        const values = run.series.get('episode/return')?.series.values ?? [];
        if (new Set(values).size <= 1) return undefined;
        return diagnose(
          withSeries(run, one =>
            one.id === 'episode/return' ? { ...one, series: mapped(one.series, v => v + shift) } : one,
          ),
        ).verdict;
      }),
    ).toEqual([]);
  });

  it('by other names', () => {
    for (const { name, run } of runs) {
      const renamed = withSeries(run, one => ({ ...one, theirs: `x/${one.theirs}` }));
      expect(diagnose(renamed).verdict, name).toBe(diagnose(run).verdict);
    }
  });

  it('by columns that no finding names and that are not there any more', () => {
    const turned = runs.flatMap(({ name, run }) => {
      const before = diagnose(run);
      const named = new Set(before.findings.flatMap(({ marks }) => marks.map(({ metric }) => metric)));
      return [...run.series.keys()].flatMap(id => {
        if (named.has(id)) return [];
        const { verdict } = diagnose(withSeries(run, one => (one.id === id ? undefined : one)));
        return opposite(before.verdict, verdict)
          ? [`${name} without ${id}: ${before.verdict} > ${verdict}`]
          : [];
      });
    });
    expect(turned).toEqual([]);
  });

  it('to a harsher one by columns that are missing', () => {
    const harsher = runs.flatMap(({ name, run }) => {
      const before = diagnose(run).verdict;
      return [...run.series.keys()].flatMap(id => {
        const { verdict } = diagnose(withSeries(run, one => (one.id === id ? undefined : one)));
        return loudness[verdict] > loudness[before] ? [`${name} without ${id}: ${before} > ${verdict}`] : [];
      });
    });
    expect(harsher).toEqual([]);
  });

  it('by every second row that is missing', () => {
    expect(
      wrong(
        run =>
          diagnose(
            withSeries(run, one => {
              const keep = <T extends Float64Array | Uint32Array>(array: T): T =>
                array.filter((_: number, i: number) => i % 2 === 1) as T;
              const { series } = one;
              const x = keep(series.x);
              return {
                ...one,
                series: {
                  length: x.length,
                  count: x.length,
                  x,
                  values: keep(series.values),
                  min: keep(series.min),
                  max: keep(series.max),
                  broken: keep(series.broken),
                  wallTime: keep(series.wallTime),
                },
              };
            }),
          ).verdict,
      ).filter(line => line.includes('healthy > sick')),
    ).toEqual([]);
  });
});

describe('the step at which a finding was first seen', () => {
  it('stays where it is while the run goes on', () => {
    const moved: string[] = [];
    for (const { name, run } of runs) {
      const first = new Map<string, number>();
      const kept = new Set<string>();
      const longest = Math.max(...[...run.series.values()].map(({ series }) => series.length));
      const { x } = [...run.series.values()].find(({ series }) => series.length === longest)!.series;
      for (let n = 14; n <= longest; n += 9) {
        const told = diagnose(runUntil(run, x[n - 1])).findings.filter(({ severity }) => severity !== 'info');
        const now = new Set(told.map(({ code }) => code));
        for (const { code, firstSeen } of told) {
          // What was gone in between is seen anew.
          if (kept.has(code) && firstSeen > first.get(code)!)
            moved.push(`${name} ${code}: ${first.get(code)} > ${firstSeen}`);
          first.set(code, firstSeen);
        }
        kept.clear();
        for (const code of now) kept.add(code);
      }
    }
    expect(moved).toEqual([]);
  });
});
