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

/** What is said in the place of a verdict that there is not. */
export const unjudged = ({
  state,
  loaded,
  trainer,
}: Pick<RunSummary, 'state' | 'loaded' | 'trainer'>): string =>
  state === 'unreadable'
    ? 'unknown'
    : !loaded
      ? 'reading'
      : trainer === 'unknown'
        ? 'no known metrics'
        : 'too short';

/** The band of a run's last KL, by its own contract; null where bands do not hold for it. */
export function bandOf({
  lastKl,
  klBand: name,
  klContract,
  atRest,
}: Pick<RunSummary, 'lastKl' | 'klBand' | 'klContract' | 'atRest'>): KlBand | null {
  return name === null || lastKl === null ? null : klBand(lastKl, klContract, atRest);
}

/** Over the reason why there is no verdict: of a run that has ended there will be none. */
export const noVerdict = (state: RunState | undefined): string =>
  state === 'running' || state === 'quiet' || state === undefined ? 'No verdict yet' : 'No verdict';

/** The doctor judges what was logged; that a program ended with an error is not in the numbers. */
export const healthyUntil = ({ verdict, state }: Pick<RunSummary, 'verdict' | 'state'>): string | null =>
  verdict !== 'healthy' || (state !== 'failed' && state !== 'killed')
    ? null
    : `until it ${state === 'failed' ? 'failed' : 'was killed'}`;
