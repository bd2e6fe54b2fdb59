/** Arrivals and lengths as people write them: `gamma:1.09`, `uniform:100-2000`. */
import { fail, show } from '../errors.ts';
import type { Arrivals } from './arrivals.ts';
import type { Lengths } from './lengths.ts';

/** How arrivals are written, for messages. */
export const arrivalsHelp = 'poisson, static, gamma:CV, or bursts:ON_S/OFF_S or bursts:ON_S/OFF_S/CV';
/** How lengths are written, for messages. */
export const lengthsHelp = 'fixed:N, uniform:MIN-MAX, zipf:THETA/MIN-MAX, or lognormal:MEDIAN/SIGMA/MAX';

/** Numbers between `/` and `-`; none of them negative. */
function numbersOf(text: string): number[] {
  return text === '' ? [] : text.split(/[/-]/).map(part => (part.trim() === '' ? Number.NaN : Number(part)));
}

function partsOf(text: string): { kind: string; values: number[] } {
  const at = text.indexOf(':');
  const kind = (at === -1 ? text : text.slice(0, at)).trim();
  return { kind, values: numbersOf(at === -1 ? '' : text.slice(at + 1)) };
}

/** Arrivals from text, such as `gamma:2`; an error that says how to write them if it cannot be read. */
export function parseArrivals(text: string): Arrivals {
  const { kind, values } = partsOf(text);
  const given = values.length;
  if (!values.some(Number.isNaN)) {
    if ((kind === 'poisson' || kind === 'static') && given === 0) return { kind };
    if (kind === 'gamma' && given === 1) return { kind, cv: values[0] };
    if (kind === 'bursts' && (given === 2 || given === 3))
      return { kind, onS: values[0], offS: values[1], cv: values[2] ?? 1 };
  }
  return fail('option-invalid', `the arrivals ${show(text)} cannot be read: write ${arrivalsHelp}`);
}

/** Lengths from text, such as `uniform:10-100`; an error that says how to write them if it cannot be read. */
export function parseLengths(text: string): Lengths {
  const { kind, values } = partsOf(text);
  const given = values.length;
  if (!values.some(Number.isNaN)) {
    if (kind === 'fixed' && given === 1) return { kind, tokens: values[0] };
    if (kind === 'uniform' && given === 2) return { kind, min: values[0], max: values[1] };
    if (kind === 'zipf' && given === 3) return { kind, theta: values[0], min: values[1], max: values[2] };
    if (kind === 'lognormal' && given === 3)
      return { kind, median: values[0], sigma: values[1], max: values[2] };
  }
  return fail('option-invalid', `the lengths ${show(text)} cannot be read: write ${lengthsHelp}`);
}
