/** Values of flags, as people write them. */
import { UsageError } from './errors.ts';

/** A whole number of a flag: `100000`, `1e5`, `100_000`, `100k`, `2M`. */
export function wholeNumber(text: string): number {
  const match = /^(\d[\d_]*(?:\.\d+)?(?:e\d+)?)([kM]?)$/i.exec(text.trim());
  const value =
    match === null
      ? Number.NaN
      : Number(match[1].replaceAll('_', '')) * ({ k: 1e3, m: 1e6 }[match[2].toLowerCase()] ?? 1);
  if (!Number.isSafeInteger(value))
    throw new UsageError(`${text} is not a whole number from 0: write 100000, 1e5 or 100k`);
  return value;
}

/** A number of a flag that is not negative: `0.8`, `12`, `1e-3`. */
export function positiveNumber(text: string): number {
  const value = text.trim() === '' ? Number.NaN : Number(text);
  if (!(value >= 0 && value < Number.POSITIVE_INFINITY))
    throw new UsageError(`${text} is not a number from 0: write 0.8 or 12`);
  return value;
}

/** Which checkpoint: `last`, `best` or a step. */
export function whichCheckpoint(text: string): 'last' | 'best' | number {
  if (text === 'last' || text === 'best') return text;
  if (/^\d+$/.test(text)) return Number(text);
  throw new UsageError(`${text} names no checkpoint: write last, best or the number of a step`);
}
