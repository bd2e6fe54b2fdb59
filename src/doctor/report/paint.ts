/** Colours of a terminal, where they are wanted. */
import type { Severity, Verdict } from '../findings.ts';

export type Tone =
  | 'red'
  | 'green'
  | 'yellow'
  | 'cyan'
  | 'dim'
  | 'bold'
  | 'badge-red'
  | 'badge-green'
  | 'badge-yellow';
export type Paint = (text: string, tone: Tone) => string;

const codes: Readonly<Record<Tone, readonly [string, string]>> = {
  red: ['31', '39'],
  green: ['32', '39'],
  yellow: ['33', '39'],
  cyan: ['36', '39'],
  dim: ['2', '22'],
  bold: ['1', '22'],
  'badge-red': ['1;37;41', '22;39;49'],
  'badge-green': ['1;30;42', '22;39;49'],
  'badge-yellow': ['1;30;43', '22;39;49'],
};

export function painter(colour: boolean): Paint {
  return (text, tone) =>
    colour && text !== '' ? `\u001b[${codes[tone][0]}m${text}\u001b[${codes[tone][1]}m` : text;
}

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
