/** The four tones that all colour on the page comes from, and the shape that says the same without colour. */

import type { Severity, Verdict } from '../../src/doctor/findings.ts';
import { type KlBand, klBand, klBands } from '../../src/metrics/registry.ts';
import type { RunState } from '../../src/server/api.ts';

export type Tone = 'muted' | 'good' | 'warn' | 'bad';

export const verdictTone: Readonly<Record<Verdict, Tone>> = { healthy: 'good', watch: 'warn', sick: 'bad' };
export const severityTone: Readonly<Record<Severity, Tone>> = {
  info: 'muted',
  warning: 'warn',
  critical: 'bad',
};

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

/** A state as it is shown. What ran when it was last heard of need not run any more. */
export function shownState(state: RunState, gone: boolean): { readonly text: string; readonly tone: Tone } {
  return gone && state === 'running'
    ? { text: 'was running', tone: 'muted' }
    : { text: state, tone: stateTone[state] };
}

/** The band of a summary's KL: by its name if the server gave one, so that both agree at the edges. */
export function bandOf(value: number | null, name: string | null): KlBand | null {
  if (name === null) return null;
  return klBands.find(band => band.name === name) ?? (value === null ? null : klBand(value));
}
