/** Positions with a mate in one, taken from generated games that no training sees. */
import { formatFen } from './fen.ts';
import { generatedGames } from './games.ts';
import { generateLegal, hasLegalMove, MAX_MOVES, uciOf } from './moves.ts';
import { Position } from './position.ts';

export interface MatePosition {
  readonly fen: string;
  /** All the moves that mate, UCI. */
  readonly mates: readonly string[];
}

const MAX_PLIES = 160;
/** Games to look through for each position wanted: about one in three has a mate. */
const GAMES_FOR_ONE = 40;

const legal = new Int32Array(MAX_MOVES);

/** `count` positions from games of a seed, the first with a mate of each game. */
export function mateInOnePositions(seed: number, count: number): MatePosition[] {
  const games = generatedGames(seed, count * GAMES_FOR_ONE, MAX_PLIES);
  const found: MatePosition[] = [];
  const position = new Position();
  for (let i = 0; i < games.count && found.length < count; i++) {
    const { start, moves } = games.game(i);
    position.copyFrom(start);
    for (const move of moves) {
      const mates = matesIn(position);
      if (mates.length > 0) {
        found.push({ fen: formatFen(position), mates });
        break;
      }
      position.advance(move);
    }
  }
  return found;
}

function matesIn(position: Position): string[] {
  const mates: string[] = [];
  const count = generateLegal(position, legal);
  for (let i = 0; i < count; i++) {
    const move = legal[i];
    position.make(move);
    if (position.inCheck() && !hasLegalMove(position)) mates.push(uciOf(move));
    position.undo(move);
  }
  return mates;
}
