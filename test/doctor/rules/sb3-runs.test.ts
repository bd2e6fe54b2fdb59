import { readdirSync, readFileSync } from 'node:fs';
import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import type { CanonicalRun, CanonicalSeries } from '../../../src/doctor/canonical.ts';
import { diagnose } from '../../../src/doctor/diagnose.ts';
import { toCanonical } from '../../../src/doctor/dialects/translate.ts';
import { findRuns } from '../../../src/doctor/readers/find.ts';
import { readRun } from '../../../src/doctor/readers/read.ts';
import { rules, signalsOf } from '../../../src/doctor/rules/all.ts';
import { series } from './support/build.ts';

const root = new URL('../fixtures/sb3/', import.meta.url).pathname;
const names = readdirSync(root).sort();

/** The run of a directory, and of each of its files alone: a table tells what an event file does not, and the reverse. */
async function load(name: string): Promise<CanonicalRun[]> {
  const files = readdirSync(`${root}${name}`).filter(file => /^(progress|events)/.test(file));
  const found = await Promise.all(['', ...files].map(file => findRuns(`${root}${name}/${file}`)));
  return Promise.all(
    found.flatMap(({ candidates }) => candidates).map(async c => toCanonical(await readRun(c))),
  );
}

function labelOf(name: string): string {
  return (JSON.parse(readFileSync(`${root}${name}/label.json`, 'utf8')) as { label: string }).label;
}

const runs = new Map<string, CanonicalRun[]>();
beforeAll(async () => {
  for (const name of names) runs.set(name, await load(name));
});

describe('runs of Stable-Baselines3 with known faults', () => {
  it('has all twelve', () => {
    expect(names).toHaveLength(12);
  });

  it.each(names)('%s', name => {
    const label = labelOf(name);
    expect(runs.get(name)!.length).toBeGreaterThanOrEqual(2);
    for (const run of runs.get(name)!) {
      const said = diagnose(run);
      if (label === 'healthy') {
        expect(said.verdict, said.summary).toBe('healthy');
        expect(said.rootCause).toBeNull();
      } else if (label === 'watch') {
        // Event files do not tell the epochs, and nothing else is wrong.
        if (!run.series.has('train/epochs_run')) continue;
        expect(said.verdict, said.summary).toBe('watch');
        expect(said.rootCause).toBe('too-many-epochs');
      } else {
        expect(said.rootCause, said.summary).toBe(label);
        expect(said.verdict).not.toBe('healthy');
        expect(said.findings[0].cause).toBe(label);
        expect(said.findings[0].evidence.length).toBeGreaterThan(0);
        expect(said.findings[0].fix.length).toBeGreaterThan(0);
      }
    }
  });

  it('types the fix in the words of the trainer', () => {
    const said = diagnose(runs.get('cartpole-lr-high')![0]);
    expect(said.findings[0].fix[0]).toMatch(/^PPO\(.*learning_rate=/);
  });
});

const healthy = names.filter(name => labelOf(name) === 'healthy');

describe('every rule on every healthy run', () => {
  it.each(rules.map(rule => rule.code))('%s is silent', code => {
    const rule = rules.find(r => r.code === code)!;
    for (const name of healthy) {
      for (const run of runs.get(name)!) {
        const found = rule.check(run, signalsOf(run), []).filter(f => f.severity !== 'info');
        expect(found, name).toEqual([]);
      }
    }
  });

  it('stays so when KL, losses and noise are shuffled within a window, and when returns are scaled', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...healthy),
        fc.integer({ min: 1, max: 1e9 }),
        fc.double({ min: 0.5, max: 50, noNaN: true }),
        (name, seed, factor) => {
          const [run] = runs.get(name)!;
          const changed = new Map<string, CanonicalSeries>();
          let state = seed >>> 0;
          const next = (n: number): number => {
            state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
            return state % n;
          };
          for (const [id, entry] of run.series) {
            const values = [...entry.series.values.subarray(0, entry.series.length)];
            const times = id === 'episode/return' ? factor : 1;
            // Neighbours change places: the noise stays as it is, its order does not.
            if (/^(kl|loss|policy\/clip)/.test(id)) {
              for (let i = 0; i + 3 < values.length; i++) {
                const j = i + next(3);
                [values[i], values[j]] = [values[j], values[i]];
              }
            }
            const made = series(values.map(v => v * times));
            changed.set(id, {
              ...entry,
              series: { ...made, x: entry.series.x.slice(0, entry.series.length) },
            });
          }
          expect(diagnose({ ...run, series: changed }).verdict).toBe('healthy');
        },
      ),
      { numRuns: 60 },
    );
  });

  it('stays so for every length of the log, as it grows', () => {
    for (const name of healthy) {
      const [run] = runs.get(name)!;
      const rows = Math.max(...[...run.series.values()].map(s => s.series.length));
      for (let n = 1; n <= rows; n++) {
        const cut = new Map<string, CanonicalSeries>();
        for (const [id, entry] of run.series) {
          const values = [...entry.series.values.subarray(0, Math.min(n, entry.series.length))];
          cut.set(id, { ...entry, series: { ...series(values), x: entry.series.x.slice(0, values.length) } });
        }
        const said = diagnose({ ...run, series: cut });
        // The first rows tell of no trend yet.
        const right = n < 15 ? ['healthy', 'cannot-tell'] : ['healthy'];
        expect(right, `${name} after ${n} rows: ${said.summary}`).toContain(said.verdict);
      }
    }
  });
});
