/** The tones of what the page shows; what a tone looks like is in src/metrics/tones.ts. */

import { type KlBand, klBand, type Tone } from '../../src/metrics/registry.ts';
import type { RunState, RunSummary } from '../../src/server/api.ts';

export { severityTone, verdictTone } from '../../src/doctor/findings.ts';

/** A state's tone: quiet but for what ended badly. */
const stateTone: Readonly<Record<RunState, Tone>> = {
  running: 'good',
  finished: 'muted',
  stopped: 'muted',
  failed: 'bad',
  killed: 'bad',
  quiet: 'muted',
  unreadable: 'warn',
};

/** A run's or a study's state as it is shown. What ran when it was last heard of need not run any more. */
export function shownState(state: RunState, gone: boolean): { readonly text: string; readonly tone: Tone } {
  return gone && state === 'running'
    ? { text: 'was running', tone: 'muted' }
    : { text: state, tone: stateTone[state] };
}

/** The band of a run's last KL, by its own contract; null where bands do not hold for it. */
export function bandOf({
  lastKl,
  klBand: name,
  klContract,
  atRest,
}: Pick<RunSummary, 'lastKl' | 'klBand' | 'klContract' | 'atRest'>): KlBand | null {
  return name === null || lastKl === null ? null : klBand(lastKl, klContract, atRest);
}
