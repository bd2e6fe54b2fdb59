/** Figures of the doctor as people read them. */
import { amount } from '../../base/numbers.ts';

/** How sure, in words and as a share: people overrate a bare 0.62. */
export function sureness(confidence: number): string {
  const percent = `${Math.round(100 * Math.min(1, Math.max(0, confidence)))}%`;
  if (confidence >= 0.85) return `almost certain, ${percent}`;
  if (confidence >= 0.65) return `likely, ${percent}`;
  if (confidence >= 0.4) return `plausible, ${percent}`;
  return `a guess, ${percent}`;
}

/** A setting as it is shown: what is infinite bounds nothing. */
export function settingValue(value: number | string): string {
  if (typeof value === 'string') return value;
  return value === Number.POSITIVE_INFINITY ? 'off' : amount(value);
}
