/** Names that people add to their logs whatever the trainer; what the dialect has a name for comes first. */
import type { Mapping } from './dialect.ts';

const sep = '[_ -]?';
const among = '(?:.*[/. ])?';
const shareWords = `(?:${sep}(?:ratio|frac(?:tion)?|share|rate|portion|prop(?:ortion)?))?`;

export const commonMappings: readonly Mapping[] = [
  {
    theirs: new RegExp(
      `${among}(?:(?:saturated|clipped)${sep}actions?|actions?${sep}(?:saturation|saturated|clipped|clip))${shareWords}`,
      'i',
    ),
    id: 'policy/saturated_actions',
  },
  {
    theirs: new RegExp(
      `${among}(?:dead|dormant)${sep}(?:(?:units?|neurons?|relus?)${shareWords}|(?:ratio|frac(?:tion)?|share|rate))`,
      'i',
    ),
    id: 'policy/dead_units',
  },
  // Of agents that learn the values of actions.
  {
    theirs: new RegExp(
      `${among}(?:qf?1?${sep}values?(?:${sep}mean)?|mean${sep}q(?:${sep}values?)?|q${sep}mean|value${sep}estimate)`,
      'i',
    ),
    id: 'value/mean',
  },
];
