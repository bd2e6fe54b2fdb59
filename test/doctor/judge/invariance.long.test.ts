/** What must not turn a verdict round: the reward's zero and unit, names, columns that nobody asked for, fewer rows. */
import { rmSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type CanonicalRun, type CanonicalSeries, objectiveOf } from '../../../src/doctor/canonical.ts';
import { diagnose } from '../../../src/doctor/diagnose.ts';
import { loud, type Verdict } from '../../../src/doctor/findings.ts';
import { runUntil } from '../../../src/doctor/judge/first-seen.ts';
import { rules } from '../../../src/doctor/rules/all.ts';
import type { Series } from '../../../src/doctor/series.ts';
import { allLogs, type Log } from '../support/all-logs.ts';

let runs: readonly Log[] = [];
let root = '';

beforeAll(async () => {
  ({ logs: runs, scratch: root } = await allLogs());
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

function thinned(series: Series, every: number): Series {
  const keep = <T extends Float64Array | Uint32Array>(array: T): T =>
    array.filter((_: number, i: number) => i % every === every - 1) as T;
  const x = keep(series.x);
  return {
    length: x.length,
    count: x.length,
    x,
    values: keep(series.values),
    min: keep(series.min),
    max: keep(series.max),
    broken: keep(series.broken),
    wallTime: keep(series.wallTime),
  };
}

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

/** Whether what is said rests on the value loss beside the return: of one of them alone in another unit it cannot be said. */
const comparesUnits = (run: CanonicalRun): boolean => {
  const told = new Set(loud(diagnose(run).findings).map(({ code }) => code));
  return rules.some(({ code, looksAt }) => told.has(code) && looksAt.includes('loss/value'));
};

const wrong = (turn: (run: CanonicalRun) => Verdict | undefined): string[] =>
  runs.flatMap(({ name, run }) => {
    const before = diagnose(run).verdict;
    const after = turn(run);
    return after !== undefined && opposite(before, after) ? [`${name}: ${before} > ${after}`] : [];
  });

/** The run with another reward: of every row, its single values too. */
const rewarded = (run: CanonicalRun, f: (v: number) => number): CanonicalRun =>
  withSeries(run, one => (one.id === objectiveOf(run)?.id ? { ...one, series: mapped(one.series, f) } : one));

describe('a verdict is not turned round', () => {
  it.each([-1000, 4096])('by %d added to every return', shift => {
    // One constant may be a task that is solved, or one that gives nothing: of that the zero does tell.
    expect(
      wrong(run => {
        const values = objectiveOf(run)?.series.values ?? [];
        if (new Set(values).size <= 1) return undefined;
        return comparesUnits(run) ? undefined : diagnose(rewarded(run, v => v + shift)).verdict;
      }),
    ).toEqual([]);
  });

  it.each([1 / 1024, 1024])('by every return being %d times what it was', times => {
    expect(
      wrong(run => (comparesUnits(run) ? undefined : diagnose(rewarded(run, v => times * v)).verdict)),
    ).toEqual([]);
  });

  it('by other names', () => {
    for (const { name, run } of runs) {
      const renamed = withSeries(run, one => ({ ...one, theirs: `x/${one.theirs}` }));
      expect(diagnose(renamed).verdict, name).toBe(diagnose(run).verdict);
    }
  });

  it('by columns that are not there: not to a harsher one, and not to another where no finding names the column', () => {
    const [turned, harsher]: [string[], string[]] = [[], []];
    for (const { name, run } of runs) {
      const before = diagnose(run);
      const told = new Set(loud(before.findings).map(({ code }) => code));
      const named = new Set(rules.flatMap(({ code, looksAt }) => (told.has(code) ? looksAt : [])));
      for (const id of run.series.keys()) {
        // Another estimator of the same KL is what is left then, which scatters around 0.
        if (id === 'kl/step' && run.series.has('kl/step_k1')) continue;
        const { verdict } = diagnose(withSeries(run, one => (one.id === id ? undefined : one)));
        const line = `${name} without ${id}: ${before.verdict} > ${verdict}`;
        if (!named.has(id) && opposite(before.verdict, verdict)) turned.push(line);
        if (loudness[verdict] > loudness[before.verdict]) harsher.push(line);
      }
    }
    expect({ turned, harsher }).toEqual({ turned: [], harsher: [] });
  });

  it.each([2, 3])('by rows that are missing, but for one in %d', every => {
    const thin = (run: CanonicalRun): Verdict =>
      diagnose(withSeries(run, one => ({ ...one, series: thinned(one.series, every) }))).verdict;
    const all = runs.map(({ name, run }) => ({ name, before: diagnose(run).verdict, after: thin(run) }));
    expect(all.filter(({ before, after }) => before === 'healthy' && after === 'sick')).toEqual([]);
    // What is just within a limit may come to lie just outside of it, by the rows that are left: of a few only.
    const harsher = all.filter(({ before, after }) => loudness[after] > loudness[before]);
    expect(harsher.length / all.length).toBeLessThan(0.02);
  });
});

describe('the step at which a finding was first seen', () => {
  it('stays where it is while the run goes on', () => {
    const moved: string[] = [];
    // Of those that have a row for each update.
    for (const { name, run } of runs
      .filter(({ name }) => name.startsWith('sb3/'))
      .filter((_, i) => i % 2 === 0)) {
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
