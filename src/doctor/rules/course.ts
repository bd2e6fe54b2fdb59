/** How the return went, in a sentence that is true of the numbers it cites. */
import { citeCourse, say } from '../judge/facts.ts';
import { falls } from '../judge/trends.ts';
import type { Progress } from './progress.ts';
import { name, type Said } from './words.ts';

/** Of what a run lost, so much came back where it is said to have come back. */
const CAME_BACK = 0.8;

/** Whether it lost much of what it had at some time. */
export const fellBack = ({ collapsed, drawdown }: Progress): boolean => collapsed || drawdown >= 0.5;

/** How a return stands for rules that ask whether something harms it. */
export interface Standing {
  readonly fell: boolean;
  /** It has most of what it gained; with an unusual setting what was gained at once does not count. */
  readonly holds: boolean;
  /** Neither: it never got anywhere. */
  readonly stuck: boolean;
}

/** Fewer rows of a return than this are not called stuck. */
const STUCK_ROWS = 10;

export function standingOf(progress: Progress | undefined, unusual: boolean): Standing {
  if (progress === undefined) return { fell: false, holds: false, stuck: false };
  const holds = progress.improved || progress.saturated || (progress.kept && !unusual);
  return { fell: fellBack(progress), holds, stuck: progress.track.n >= STUCK_ROWS && !holds };
}

/** What may be said of a return, each with what must hold of its numbers. */
export type Going =
  | 'fell'
  | 'came-back'
  | 'rises'
  | 'ceiling'
  | 'rose'
  | 'falls'
  | 'stands'
  | 'noise'
  | 'wavers';

/** The one that holds: what is said is chosen by the numbers that are cited beside it. */
function goingOf(progress: Progress): Going {
  const { start, end, best, worst, collapsed, improving, saturated, improved, course } = progress;
  if (fellBack(progress)) {
    if (best - end <= (1 - CAME_BACK) * (best - worst)) return 'came-back';
    return best > end ? 'fell' : 'came-back';
  }
  if (improving && end > start) return 'rises';
  if (saturated && end >= start) return 'ceiling';
  if (improved && end > start) return 'rose';
  if (falls(course) && end < start && !collapsed) return 'falls';
  if (end <= start) return 'stands';
  return end - start > 2 * progress.noise ? 'wavers' : 'noise';
}

/** In a word or two, behind the name: `still rises`. */
export const courseWords = (progress: Progress): string =>
  ({
    fell: 'fell',
    'came-back': 'fell and came back',
    rises: 'still rises',
    ceiling: 'is at its ceiling',
    rose: 'has risen',
    falls: 'falls',
    stands: 'does not rise',
    noise: 'does not rise',
    wavers: 'goes up and down',
  })[goingOf(progress)];

/** The same with its numbers. */
export function courseSaid(progress: Progress): Said {
  const [start, end, best] = (['start', 'end', 'best'] as const).map(what => citeCourse(progress, what));
  const who = name(progress.track);
  const numbers = say`from ${start} to ${end}`;
  switch (goingOf(progress)) {
    case 'fell':
      return say`${who} fell: ${best} at its best, around ${citeCourse(progress, 'bestX')}, and ${end} at the end`;
    case 'came-back':
      return say`${who} fell after ${citeCourse(progress, 'drawdownX')} and came back: ${best} at its best, ${end} at the end`;
    case 'rises':
      return say`${who} still improves, ${numbers}`;
    case 'ceiling':
      return say`${who} is at its ceiling: ${end} at the end, ${best} at best`;
    case 'rose':
      return say`${who} improved, ${numbers}`;
    case 'falls':
      return say`${who} falls, ${numbers}`;
    case 'stands':
      return say`${who} does not improve: ${start} at the start, ${end} at the end`;
    case 'noise':
      return say`${who} goes ${numbers}, which is within its noise`;
    case 'wavers':
      return say`${who} goes ${numbers}, but not steadily`;
  }
}
