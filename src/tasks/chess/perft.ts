import { generate, MAX_MOVES } from './moves.ts';
import type { Position } from './position.ts';

/** How many games of `depth` half-moves a position has: what generators of moves are checked by. */
export function perft(position: Position, depth: number): number {
  return count(position, depth, new Int32Array(MAX_MOVES * (depth + 1)), 0);
}

function count(position: Position, depth: number, moves: Int32Array, start: number): number {
  if (depth === 0) return 1;
  const end = generate(position, moves, start);
  const checked = position.inCheck();
  let games = 0;
  for (let i = start; i < end; i++) {
    const sure = position.surelyLegal(moves[i], checked);
    if (sure && depth === 1) {
      games++;
      continue;
    }
    position.make(moves[i]);
    if (sure || !position.leftInCheck()) games += depth === 1 ? 1 : count(position, depth - 1, moves, end);
    position.undo(moves[i]);
  }
  return games;
}
