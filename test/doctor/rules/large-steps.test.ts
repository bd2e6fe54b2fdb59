/** Larger steps than usual, guards that are off and guards that are busy: what is said, and what is not. */
import { describe, expect, it } from 'vitest';
import type { CanonicalRun } from '../../../src/doctor/canonical.ts';
import { contractOfRun, isBanded } from '../../../src/doctor/contract.ts';
import { diagnose } from '../../../src/doctor/diagnose.ts';
import { toCanonical } from '../../../src/doctor/dialects/translate.ts';
import type { Diagnosis, Finding } from '../../../src/doctor/findings.ts';
import { diagnoseSeries } from '../../../src/doctor/in-memory.ts';
import { RunBuilder } from '../../../src/doctor/readers/run-builder.ts';
import { courseSaid, courseWords } from '../../../src/doctor/rules/course.ts';
import { progressOf } from '../../../src/doctor/rules/progress.ts';
import { trackOf } from '../../../src/doctor/rules/track.ts';
import { type More, rows, run, series } from './support/build.ts';
import { wave } from './support/learning.ts';

const N = 60;
const rising = rows(N, (i, t) => 20 + 400 * t + wave(i, 4));
const flat = rows(N, i => 20 + wave(i, 4));
/** Calm, but for some rows in the middle. */
const streak = (length: number, level = 0.035, at = 30): number[] =>
  rows(N, i => (i >= at && i < at + length ? level : 0.006 + wave(i, 0.001)));

const keel = (values: Record<string, readonly number[]>, more: More = {}): CanonicalRun =>
  run({ 'episode/return': rising, 'train/lr': rows(N, () => 3e-4), ...values }, { trainer: 'keel', ...more });
const high = (found: Diagnosis): Finding | undefined => found.findings.find(f => f.code === 'kl-high');
const of = (
  kl: readonly number[],
  more: More = {},
  others: Record<string, readonly number[]> = {},
): Diagnosis => diagnose(keel({ 'kl/step': kl, ...others }, more));

describe('five updates in a row above .03', () => {
  it('are watched, four are not, wherever they are', () => {
    for (const at of [0, 2, 30, N - 5]) {
      expect(of(streak(4, 0.035, at)).verdict, String(at)).toBe('healthy');
      expect(of(streak(5, 0.035, at)).verdict, String(at)).toBe('watch');
    }
    // On the mark is not above it.
    expect(of(streak(12, 0.03)).verdict).toBe('healthy');
    // Four and four with a calm one between them are no five.
    expect(of(streak(9).map((v, i) => (i === 34 ? 0.01 : v))).verdict).toBe('healthy');
  });

  it('say how many, how the return goes and what to do if it stalls; no setting is accused', () => {
    const found = of(streak(7));
    expect(found.rootCause).toBeNull();
    expect(high(found)).toMatchObject({ severity: 'warning', cause: null, from: 31_000, to: 37_000 });
    expect(high(found)!.title).toBe(
      'larger steps than usual: 7 updates in a row with `their/kl/step` above 0.03; `their/episode/return` still rises',
    );
    expect(high(found)!.fix.slice(0, 2)).toEqual([
      expect.stringMatching(/learningRate=.*if the return stalls/),
      expect.stringMatching(/targetKl=.*if the return stalls/),
    ]);
    expect(high(found)!.evidence.join('\n')).toContain('healthy to 0.01, ok to 0.02');
    expect(high(found)!.evidence.join('\n')).toMatch(/since then .* \(healthy\)/);
  });

  it('are to be mended at once where the return does not rise', () => {
    const found = high(of(streak(9), {}, { 'episode/return': flat }))!;
    expect(found.title).toContain('does not rise');
    expect(found.fix.join('\n')).not.toContain('if the return stalls');
  });

  it('of a run whose KL is in .03 to .05 throughout are no longer healthy, though its return rises', () => {
    const found = of(
      rows(N, i => 0.04 + wave(i, 0.008)),
      { config: { guard: 0.05 } },
    );
    expect(found.verdict).toBe('watch');
    expect(found.summary).not.toContain('Nothing wrong');
    expect(high(found)!.evidence.join('\n')).toContain('(problem)');
    expect(high(found)!.evidence.join('\n')).toContain('the guard holds every update within 0.05');
  });

  it('are watched also where the run’s own target calls them ok, which is said', () => {
    const found = high(of(streak(8), { config: { targetKl: 0.03, guard: 0.05 } }))!;
    expect(found.severity).toBe('warning');
    expect(found.evidence.join('\n')).toContain(
      "by the run's own target KL of 0.03 these steps are ok; by the absolute marks they are problem",
    );
    expect(high(of(streak(8), { config: { targetKl: 0.01 } }))!.evidence.join('\n')).not.toContain(
      'own target',
    );
  });

  it('are rows where a row may stand for several updates', () => {
    const title = (made: CanonicalRun): string => high(diagnose(made))!.title;
    const kl = streak(6);
    expect(title(keel({ 'kl/step': kl }))).toContain('6 updates in a row');
    expect(title(keel({ 'kl/step': kl }, { trainer: 'stable-baselines3' }))).toContain('6 rows on end');
    const made = keel({ 'kl/step': kl });
    const merged = { ...made.series.get('kl/step')!, series: { ...series(kl), count: 4 * N } };
    expect(title({ ...made, series: new Map([...made.series, ['kl/step', merged]]) })).toContain(
      '6 rows on end',
    );
  });

  it('are not counted in a KL that the bands do not hold for', () => {
    const meant = (kl: object): string => of(streak(20), { kl: { 'kl/step': kl } }).verdict;
    expect(meant({})).toBe('watch');
    expect(meant({ per: 'sequence' })).toBe('healthy');
    expect(meant({ pair: 'ref' })).toBe('healthy');
    expect(meant({ estimator: 'k1' })).toBe('healthy');
    expect(isBanded({ pair: 'step', per: 'action', estimator: 'k3' })).toBe(true);
    expect(isBanded({ pair: 'step', per: 'sequence', estimator: 'k3' })).toBe(false);
    expect(isBanded({ pair: 'step', per: 'action', estimator: 'k1' })).toBe(false);
  });
});

describe('a high KL', () => {
  const wild = rows(300, i => (i < 6 ? 0.01 : 0.3 + 0.2 * Math.abs(wave(i, 1))));

  it('begins where it began, however long the run goes on', () => {
    const from = (n: number): number => {
      const found = high(
        diagnose(
          keel({
            'kl/step': wild.slice(0, n),
            'episode/return': rows(n, i => 20 + wave(i, 4)),
            'train/lr': rows(n, () => 0.03),
          }),
        ),
      );
      expect(found?.severity).toBe('critical');
      return found!.from;
    };
    expect([40, 80, 160, 300].map(from)).toEqual([7000, 7000, 7000, 7000]);
  });

  it('says of the return what its numbers say', () => {
    const progress = (values: readonly number[]) =>
      progressOf(trackOf({ id: 'episode/return', theirs: 'ret', series: series(values) }));
    // Up, but by fits and starts.
    const odd = progress(rows(40, i => (i % 8 < 4 ? 170 : 173 + 4 * i)));
    expect(
      courseSaid({
        ...odd,
        improved: false,
        improving: false,
        saturated: false,
        drawdown: 0,
        collapsed: false,
      }).text,
    ).not.toMatch(/does not improve/);
    const up = {
      ...odd,
      start: 173,
      end: 340,
      noise: 5,
      improved: false,
      improving: false,
      saturated: false,
    };
    expect(courseSaid({ ...up, drawdown: 0, collapsed: false }).text).toBe(
      '`ret` goes from 173 to 340, but not steadily',
    );
    expect(courseSaid({ ...up, drawdown: 0, collapsed: false, noise: 100 }).text).toBe(
      '`ret` goes from 173 to 340, which is within its noise',
    );
    expect(courseSaid({ ...up, drawdown: 0, collapsed: false, end: 150 }).text).toBe(
      '`ret` does not improve: 173 at the start, 150 at the end',
    );
    expect(courseWords(progress(rising))).toBe('still rises');
    expect(courseWords(progress(flat))).toBe('does not rise');
  });
});

describe('a guard that is off', () => {
  const config = { guard: Number.POSITIVE_INFINITY, learningRate: 0.02 };
  const wild = rows(N, i => 0.3 + wave(i, 0.05));

  it('is said where the KL is high, with the setting that switches it on', () => {
    for (const found of [
      high(of(wild, { config }, { 'episode/return': flat }))!,
      high(of(streak(8), { config: { guard: Number.POSITIVE_INFINITY } }))!,
    ]) {
      expect(found.evidence).toContain('the guard is off: nothing bounds an update');
      expect(found.fixes.flatMap(fix => (fix.kind === 'setting' ? fix.changes : []))).toContainEqual(
        expect.objectContaining({ setting: 'guard', value: 0.05 }),
      );
    }
  });

  it('is not said where it is on, or where the trainer has none', () => {
    for (const guard of [{ guard: 0.05 }, {}]) {
      const found = high(of(wild, { config: { learningRate: 0.02, ...guard } }, { 'episode/return': flat }))!;
      expect(found.severity).toBe('critical');
      expect(JSON.stringify(found)).not.toContain('guard is off');
    }
  });

  it('is read from the settings of a run of Keel, and written as its user would', () => {
    const values = {
      'kl/step': wild,
      'episode/return': flat,
      'train/iteration': rows(N, i => i),
      'guard/scale': rows(N, () => 1),
    };
    const fixes = (guard: number | null): string =>
      JSON.stringify(
        diagnoseSeries(values, {
          trainer: 'keel',
          config: { 'config/guard': guard, 'config/learningRate': 0.02 },
        }).findings,
      );
    expect(fixes(null)).toContain('--set guard=0.05');
    expect(fixes(0.05)).not.toContain('--set guard');
  });
});

describe('what a run is held to', () => {
  const canonical = (settings: Record<string, number | null>): CanonicalRun => {
    const builder = new RunBuilder('x', 'jsonl', 'row');
    const raw = builder.finish();
    return toCanonical(
      {
        ...raw,
        series: new Map([['kl/step', series(streak(3))]]),
        config: new Map(Object.entries(settings)),
      },
      { trainer: 'keel' },
    );
  };

  it('is its target and its guard', () => {
    expect(contractOfRun(canonical({ 'config/targetKl': 0.02, 'config/guard': 0.04 }))).toEqual({
      target: 0.02,
      guard: 0.04,
    });
    expect(contractOfRun(canonical({ 'config/targetKl': null, 'config/guard': null }))).toEqual({
      target: null,
      guard: null,
    });
    expect(contractOfRun(canonical({}))).toEqual({ target: null });
    // A tuner's target is mostly that of the KL to its reference.
    expect(contractOfRun({ config: { targetKl: 6 }, kind: 'language-model' })).toEqual({ target: null });
  });
});

describe('a healthy verdict', () => {
  const summary = (kls: readonly number[], more: More = {}): string =>
    diagnose(keel({ 'kl/step': kls }, more)).summary;

  it('counts the steps that the bands call large, and says why they are no finding', () => {
    const quiet = rows(N, () => 0.005);
    expect(summary(quiet)).not.toContain('large step');
    const once = quiet.with(30, 0.04);
    expect(summary(once)).toMatch(/; 1 large step \(largest 0\.04, problem\), none after another\.$/);
    const twice = once.with(31, 0.045).with(45, 0.031);
    expect(summary(twice)).toMatch(/; 3 large steps \(largest 0\.045, problem\), at most 2 in a row\.$/);
    // By its own contract: what was asked for is no large step.
    expect(summary(twice, { config: { targetKl: 0.03 } })).not.toContain('large step');
  });

  it('tells the one large step of a log so long that each point stands for several rows', () => {
    const calm = keel({ 'kl/step': rows(N, () => 0.005) });
    const kl = calm.series.get('kl/step')!;
    const merged = { ...kl.series, count: 16 * N, max: kl.series.max.with(30, 1) };
    const long = { ...calm, series: new Map(calm.series).set('kl/step', { ...kl, series: merged }) };
    const { summary } = diagnose(long);
    expect(summary).toMatch(
      /^Nothing wrong in 960 rows .*; at least 1 large step \(largest 1, critical\)\.$/,
    );
  });
});

describe('a guard that is busy', () => {
  const calm = rows(N, i => 0.02 + wave(i, 0.002));
  const busy = (acts: Record<string, readonly number[]>, more: More = {}): Finding | undefined =>
    diagnose(keel({ 'kl/step': calm, ...acts }, more)).findings.find(f => f.code === 'guard-busy');
  const every = (n: number, on: number, off: number) => rows(N, i => (i % n === 0 ? on : off));

  it('is told by retries, backtracks or what is left of the updates', () => {
    expect(busy({ 'guard/retries': every(3, 2, 0), 'guard/backtracks': rows(N, () => 0) })!.title).toMatch(
      /^The guard acted in 33% .*guard\/retries/,
    );
    expect(busy({ 'guard/backtracks': every(2, 1, 0) })!.title).toContain('50%');
    expect(busy({ 'guard/scale': every(3, 0.4, 1) })!.evidence.join()).toContain('40% is left');
    // Rows in which either acted all count: 14 of the last 30. Those in which both did count once.
    const retries = every(4, 1, 0);
    const other = rows(N, i => (i % 4 === 1 ? 1 : 0));
    expect(busy({ 'guard/retries': retries, 'guard/backtracks': other })!.title).toContain('47%');
    expect(busy({ 'guard/retries': retries, 'guard/backtracks': retries })).toBeUndefined();
  });

  it('is not so where it acts now and then, or did so once', () => {
    expect(busy({ 'guard/retries': every(4, 1, 0) })).toBeUndefined();
    expect(busy({ 'guard/retries': rows(N, i => (i < N / 2 ? 1 : 0)) })).toBeUndefined();
    expect(busy({})).toBeUndefined();
  });

  it('says which bound acts: one on single states is named, and may be raised', () => {
    const acts = { 'guard/backtracks': every(2, 1, 0), 'kl/step_raw': rows(N, () => 0.02) };
    const config = { guard: 0.05, guardP99: 0.4, guardMax: 0.1 };
    const states = { 'kl/step_p99': rows(N, () => 0.05), 'kl/step_max': rows(N, () => 0.095) };
    const found = busy({ ...acts, ...states }, { config })!;
    expect(found.evidence.join(' ')).toMatch(/what acts is .*guardMax.*, the bound of 0.1 on single states/);
    expect(found.evidence.join(' ')).not.toContain('the bound is 0.05');
    const changes = found.fixes.flatMap(fix => (fix.kind === 'setting' ? fix.changes : []));
    expect(changes.map(({ setting }) => setting)).not.toContain('guard');
    expect(changes).toContainEqual(expect.objectContaining({ setting: 'guardMax', value: 0.2 }));
    // The mean's own where its raw KL is beyond it.
    const mean = busy({ ...acts, ...states, 'kl/step_raw': rows(N, () => 0.06) }, { config })!;
    expect(mean.evidence.join(' ')).toContain('the bound is 0.05');
  });

  it('is told, too, where it is quiet because it has taken the rate', () => {
    const left = (share: number) =>
      busy(
        { 'guard/retries': rows(N, () => 0), 'guard/rate': rows(N, () => share) },
        { config: { guard: 0.01, learningRate: 0.03 } },
      );
    expect(left(0.11)).toBeUndefined();
    const found = left(0.09)!;
    expect(found.title).toContain('has left 9% of the learning rate');
    expect(found.fixes.flatMap(fix => (fix.kind === 'setting' ? fix.changes : []))).toContainEqual(
      expect.objectContaining({ setting: 'learningRate', value: 0.003 }),
    );
  });

  it('names the settings that should change; a tight bound may be raised, a wide one not', () => {
    const changes = (guard: number): unknown[] =>
      busy({ 'guard/retries': every(2, 1, 0) }, { config: { guard } })!.fixes.flatMap(fix =>
        fix.kind === 'setting' ? fix.changes.map(({ setting, value }) => [setting, value]) : [],
      );
    expect(changes(0.01)).toEqual([
      ['learningRate', 1e-4],
      // Below the bound, or it would stop nothing.
      ['targetKl', 0.005],
      ['guard', 0.02],
    ]);
    expect(changes(0.03)).toContainEqual(['guard', 0.05]);
    expect(changes(0.05).map(change => (change as unknown[])[0])).toEqual(['learningRate', 'targetKl']);
  });
});
