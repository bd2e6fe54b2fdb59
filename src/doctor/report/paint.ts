/** The doctor's colours in a terminal. */
import type { Tone } from '../../base/terminal.ts';
import type { Severity, Verdict } from '../findings.ts';

export const severityTones: Readonly<Record<Severity, Tone>> = {
  info: 'cyan',
  warning: 'yellow',
  critical: 'red',
};

export const verdictTones: Readonly<Record<Verdict, Tone>> = {
  healthy: 'green',
  watch: 'yellow',
  sick: 'red',
};
