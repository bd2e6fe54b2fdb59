/** A run beside one that is well: what differs, and from which step on. */
import { describe, expect, test } from 'vitest';
import { besideOf } from '../../src/doctor/beside.ts';
import { renderHtml } from '../../src/doctor/report/html.ts';
import { renderJson } from '../../src/doctor/report/json.ts';
import { renderMarkdown } from '../../src/doctor/report/markdown.ts';
import { runReport } from '../../src/doctor/report/report-of-run.ts';
import type { RunReport } from '../../src/doctor/report/run-report.ts';
import { renderTerminal } from '../../src/doctor/report/terminal.ts';
import { diagnosisOf, findingOf, runOf } from './report/made.ts';
import { reportSchema } from './report/schema.ts';

const wild = (i: number, seed: number): number => Math.sin(i * 12.9898 + seed * 78.233);

interface Given {
  readonly seed: number;
  readonly fallsAt?: number;
  readonly rate?: number;
  readonly more?: readonly (readonly [string, string])[];
  readonly verdict?: 'healthy' | 'sick';
  readonly unit?: string;
  readonly trainer?: string;
}

/** The return of 200 rows rises with some noise, and may fall from a row on. */
function reportOf(given: Given): RunReport {
  const { seed, fallsAt = 1000, rate = 3e-4, more = [], verdict = 'healthy', unit = 'steps' } = given;
  const trainer = given.trainer ?? 'stable-baselines3';
  const rows = Array.from({ length: 200 }, (_, i) => i);
  const run = runOf(
    {
      'episode/return': rows.map(i => (i < fallsAt ? 2 * i : 20) + 12 * wild(i, seed)),
      'kl/step': rows.map(i => 0.008 + 0.002 * wild(i, seed + 5)),
    },
    { 'episode/return': 'rollout/ep_rew_mean', 'kl/step': 'train/approx_kl' },
    { unit, trainer },
  );
  const base = diagnosisOf({ path: `logs/${verdict}`, verdict, trainer });
  const settings = [{ setting: 'learningRate', name: 'learning_rate', value: rate }] as const;
  return {
    ...runReport({ ...base, understood: { ...base.understood, settings } }, run),
    log: {
      settings: [['learning_rate', String(rate)], ['seed', String(seed)], ...more],
      seconds: null,
      events: [],
    },
  };
}

describe('where series part', () => {
  test('at the step from which on they differ by more than the noise of both', () => {
    const { partings, compared } = besideOf(reportOf({ seed: 1, fallsAt: 120 }), reportOf({ seed: 2 }));
    expect(compared).toEqual(['kl/step', 'episode/return']);
    expect(partings.map(({ metric }) => metric)).toEqual(['episode/return']);
    expect(partings[0].step / 2048).toBeGreaterThan(115);
    expect(partings[0].step / 2048).toBeLessThan(128);
    expect(partings[0].value).toBeLessThan(60);
    expect(partings[0].other).toBeGreaterThan(200);
  });

  test('two seeds of one setting do not part', () => {
    for (let seed = 0; seed < 20; seed++)
      expect(besideOf(reportOf({ seed }), reportOf({ seed: seed + 100 })).partings).toEqual([]);
  });

  test('what does not count the same is not compared', () => {
    const { compared } = besideOf(reportOf({ seed: 1 }), reportOf({ seed: 2, unit: 'iterations' }));
    expect(compared).toEqual([]);
  });
});

describe('settings', () => {
  test('differ only where both logs have them, and a seed is no difference', () => {
    const sick = reportOf({
      seed: 1,
      rate: 0.03,
      more: [
        ['n_steps', '64'],
        ['only_here', '1'],
      ],
    });
    const well = reportOf({
      seed: 2,
      more: [
        ['n_steps', '2048'],
        ['only_there', '1'],
      ],
    });
    expect(besideOf(sick, well).settings).toEqual([
      { name: 'learning_rate', value: '0.03', otherName: 'learning_rate', other: '0.0003' },
      { name: 'n_steps', value: '64', otherName: 'n_steps', other: '2048' },
    ]);
  });

  test('are not to become like those of a run that the first finding leads away from, nor of another task', () => {
    const sick = reportOf({ seed: 1, rate: 5e-4, verdict: 'sick' });
    const lower = { setting: 'learningRate', name: 'learning_rate', from: 5e-4, value: 1e-4 } as const;
    const text = 'PPO(learning_rate=1e-4)';
    const advised = findingOf({ fixes: [{ kind: 'setting', changes: [lower], text }] });
    const told = (report: RunReport, other: RunReport): string =>
      renderTerminal({ ...report, beside: besideOf(report, other) });
    const led = { ...sick, diagnosis: { ...sick.diagnosis, findings: [advised] } };
    expect(told(led, reportOf({ seed: 2, rate: 5e-5 }))).toContain('To become like it');
    expect(told(led, reportOf({ seed: 2, rate: 5e-3 }))).not.toContain('To become like it');

    const of = (task: string, report: RunReport): RunReport => {
      const { understood } = report.diagnosis;
      const settings = [...understood.settings, { setting: 'task', name: 'task', value: task } as const];
      return {
        ...report,
        diagnosis: { ...report.diagnosis, understood: { ...understood, settings } },
      };
    };
    const other = told(of('A-v1', sick), of('B-v1', reportOf({ seed: 2, rate: 5e-5, fallsAt: 100 })));
    expect(other).toContain('They are of different tasks');
    expect(other).not.toContain('To become like it');
  });

  test('of two trainers are those that Keel knows in both', () => {
    const sick = reportOf({ seed: 1, rate: 0.03, more: [['n', '1']] });
    const well = reportOf({ seed: 2, more: [['n', '2']], trainer: 'cleanrl' });
    expect(besideOf(sick, well).settings.map(({ name }) => name)).toEqual(['learning_rate']);
  });
});

test('every report tells it in the same words, and JSON as data', () => {
  const sick = reportOf({ seed: 1, rate: 0.03, fallsAt: 120, verdict: 'sick' });
  const report = { ...sick, beside: besideOf(sick, reportOf({ seed: 2 })) };
  const texts = [renderTerminal(report, { columns: 100 }), renderMarkdown([report]), renderHtml([report])];
  for (const text of texts) {
    const plain = text.replaceAll(/<[^>]*>|[\\`*]/g, '').replaceAll(/\s+/g, ' ');
    expect(plain).toContain('Beside logs/healthy, which is healthy');
    expect(plain).toContain('2 series compared, 1 part; first rollout/ep_rew_mean from step');
    expect(plain).toContain('set learning_rate to 0.0003 (now 0.03)');
  }
  const [run] = reportSchema.parse(JSON.parse(renderJson([report]))).runs;
  expect(run.against).toMatchObject({ path: 'logs/healthy', verdict: 'healthy' });
  expect(run.against!.partings[0].metric).toBe('episode/return');
});
