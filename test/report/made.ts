/** Runs as `keel report` reads them: with every series, settings and events. */

import { runReport } from '../../src/doctor/report/report-of-run.ts';
import type { RunReport } from '../../src/doctor/report/run-report.ts';
import { diagnosisOf, runOf } from '../doctor/report/made.ts';

/** A run of a seed, which has one row in 4,000 with a KL of 3. */
export function seedRun(seed: number, more: { name?: string; rate?: string; text?: string } = {}): RunReport {
  const rows = Array.from({ length: 4000 }, (_, i) => i);
  const text = more.text ?? '';
  const path = `runs/${more.name ?? `seed-${seed}`}${text}`;
  const run = runOf(
    {
      'kl/step': rows.map(i => (i === 1234 ? 3 : 0.006 + 0.002 * Math.sin(i * (seed + 1)))),
      'episode/return': rows.map(i => 500 - 480 * Math.exp(-i / 900) + seed),
    },
    { 'kl/step': `train/approx_kl${text}`, 'episode/return': 'rollout/ep_rew_mean' },
    { path },
  );
  const report = runReport(diagnosisOf({ path }), run);
  return {
    ...report,
    log: {
      settings: [
        ['learning_rate', more.rate ?? '0.0003'],
        ['seed', String(seed)],
        ...(text === '' ? [] : [[text, text] as const]),
      ],
      seconds: 3725,
      events: [{ step: 2048 * 1000, kind: 'Note', message: `looked at${text}` }],
    },
  };
}
