/** How the return went, in a sentence that is true of the numbers it cites. */
import type { Progress } from './progress.ts';
import { name, num, place } from './words.ts';

/** Whether it lost much of what it had at some time. */
export const fellBack = ({ collapsed, drawdown }: Progress): boolean => collapsed || drawdown >= 0.5;

/** In a word or two, behind the name: `still rises`. */
export function courseWords(progress: Progress): string {
  if (fellBack(progress)) return 'fell';
  if (progress.improving) return 'still rises';
  if (progress.saturated) return 'is at its ceiling';
  if (progress.improved) return 'has risen';
  return 'does not rise';
}

/** The same with its numbers. */
export function courseOf(progress: Progress): string {
  const { start, end, noise, best } = progress;
  const who = name(progress.track);
  const numbers = `from ${num(start)} to ${num(end)}`;
  if (fellBack(progress)) return `${who} fell from ${num(best)} after ${place(progress.drawdownX)}`;
  if (progress.improving && end > start) return `${who} still improves, ${numbers}`;
  if (progress.saturated) return `${who} is at its ceiling: ${num(end)} at the end, ${num(best)} at best`;
  if (progress.improved) return `${who} improved, ${numbers}`;
  if (end > start)
    return end - start > 2 * noise
      ? `${who} goes ${numbers}, but not steadily`
      : `${who} goes ${numbers}, which is within its noise`;
  return `${who} does not improve: ${num(start)} at the start, ${num(end)} at the end`;
}
