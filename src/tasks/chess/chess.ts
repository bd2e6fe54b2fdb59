/** Chess as text, as it is known before it is made: its options, and which of them would have no effect. task.ts makes it. */
import { defineTask } from '../definition.ts';
import { fail } from '../errors.ts';
import {
  type ChessOptions,
  chessOptions,
  environmentWeights,
  policyWeights,
  type Weights,
} from './options.ts';

/** The task `chess`. */
export const chessDefinition = defineTask<ChessOptions>({
  name: 'chess',
  summary: 'Name good moves in a chess position, and say what a move leads to.',
  options: chessOptions,
  // Rules, search and texts are loaded where the task is made: to list or find tasks takes the options alone.
  make: async (given, context) => {
    checkInert(given);
    return (await import('./task.ts')).makeChess(given, context);
  },
});

/** Options that would have no effect: whoever set one meant something else. */
function checkInert(given: ChessOptions): void {
  const inert = (names: readonly (keyof ChessOptions)[], why: string): void => {
    for (const name of names)
      if (given[name] !== chessOptions[name].default)
        fail('option-invalid', `chess: option ${name} has no effect ${why}: remove it`);
  };
  if (given.positions !== '') inert(['games', 'gameSeed'], `with positions from ${given.positions}`);
  if (given.engine === '') inert(['engineDepth', 'engineTimeoutMs'], 'without an engine');
  const policy = Object.keys(policyWeights) as (keyof Weights)[];
  const environment = Object.keys(environmentWeights) as (keyof Weights)[];
  if (given.environmentShare === 0)
    inert(['illegalShare', 'similarFrom', ...environment], 'without A: prompts');
  if (given.environmentShare === 1)
    inert(['candidates', 'engine', 'searchDepth', 'evaluationTolerance', ...policy], 'without P: prompts');
}
