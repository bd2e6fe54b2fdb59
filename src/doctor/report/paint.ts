/** The doctor's colours in a terminal. */
import type { Tone } from '../../base/terminal.ts';
import { toneColours } from '../../metrics/tones.ts';
import { type Severity, severityTone, type Verdict, verdictTone } from '../findings.ts';

/** A remark is said in a colour, so that what it cites is not lost in a curve that is dim as well. */
export const severityTones: Readonly<Record<Severity, Tone>> = {
  info: 'cyan',
  warning: toneColours[severityTone.warning],
  critical: toneColours[severityTone.critical],
};

export const verdictTones: Readonly<Record<Verdict, Tone>> = {
  healthy: toneColours[verdictTone.healthy],
  watch: toneColours[verdictTone.watch],
  sick: toneColours[verdictTone.sick],
  'cannot-tell': toneColours[verdictTone['cannot-tell']],
};
