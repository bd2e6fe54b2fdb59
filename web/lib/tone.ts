/** The tones of what the page shows; what a tone looks like is in src/metrics/tones.ts. */

import { type KlBand, klBand, type Tone } from '../../src/metrics/registry.ts';
import type { RunState, RunSummary } from '../../src/server/api.ts';

export { severityTone, verdictTone } from '../../src/doctor/findings.ts';

/** A state's tone: quiet but for what ended badly. */
export const stateTone: Readonly<Record<RunState, Tone>> = {
  running: 'good',
  finished: 'muted',
  stopped: 'muted',
  failed: 'bad',
  killed: 'bad',
  quiet: 'muted',
  unreadable: 'warn',
};

/** The band of a run's last KL, by its own contract; null where bands do not hold for it. */
export function bandOf({
  lastKl,
  klBand: name,
  klContract,
  atRest,
}: Pick<RunSummary, 'lastKl' | 'klBand' | 'klContract' | 'atRest'>): KlBand | null {
  return name === null || lastKl === null ? null : klBand(lastKl, klContract, atRest);
}
