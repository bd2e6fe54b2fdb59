/** Positions drawn from games, with what was played in them. */
import type { Rng } from '../../random/rng.ts';
import { formatFen } from './fen.ts';
import type { Games } from './games.ts';
import { endingOf, generateLegal, legalMoveNamed, MAX_MOVES, squareName, uciOf } from './moves.ts';
import { BLACK, Position } from './position.ts';
import { HISTORY_MOVES, type Outcome } from './text.ts';

/** A position that is not over, and a move in it. */
export interface DrawnPosition {
  readonly fen: string;
  /** UCI; legal unless it was asked not to be. */
  readonly move: string;
  /** The last moves up to this one, at most ten, UCI. */
  readonly history: readonly string[];
}

/** How often the last move of a game is taken, which may end it: among all moves such are too rare to learn from. */
const LAST_MOVE_SHARE = 0.1;

const position = new Position();
const legal = new Int32Array(MAX_MOVES);

/** A position of a random game, from its first `maxPlies` half-moves, and the move played there. */
export function drawPosition(games: Games, maxPlies: number, rng: Rng): DrawnPosition {
  const { start, moves } = games.game(rng.integer(games.count));
  const last = rng.uniform() < LAST_MOVE_SHARE;
  const plies = Math.min(moves.length, maxPlies);
  const ply = plies === 0 ? 0 : last ? plies - 1 : rng.integer(plies);
  position.copyFrom(start);
  for (let i = 0; i < ply; i++) position.advance(moves[i]);
  const fen = formatFen(position);
  const move = moves[ply] ?? legal[rng.integer(generateLegal(position, legal))];
  const before = Array.from(moves.subarray(Math.max(0, ply - HISTORY_MOVES + 1), ply), uciOf);
  return { fen, move: uciOf(move), history: [...before, uciOf(move)] };
}

/** The same position with a move that is not legal: a piece of the side to move, sent anywhere it cannot go. */
export function withIllegalMove(drawn: DrawnPosition, at: Position, rng: Rng): DrawnPosition {
  const own: number[] = [];
  for (let square = 0; square < 128; square++) {
    const piece = at.squares[square];
    if ((square & 0x88) === 0 && piece !== 0 && (piece >> 3 === BLACK) === (at.side === BLACK))
      own.push(square);
  }
  for (;;) {
    const from = own[rng.integer(own.length)];
    const to = rng.integer(8) * 16 + rng.integer(8);
    const move = squareName(from) + squareName(to);
    // A pawn's move to the last rank is legal only with a promotion; without one it is not a move at all.
    if (from === to || legalMoveNamed(at, move) !== 0) continue;
    return { fen: drawn.fen, move, history: [...drawn.history.slice(0, -1), move] };
  }
}

/** What the rules make of a move: 1 for winning, 0.5 for a draw, 0.001 for any other legal move, -1 for an illegal one. */
export function outcomeOf(fen: string, at: Position, uci: string): Outcome {
  const move = legalMoveNamed(at, uci);
  if (move === 0) return { next: fen, reward: -1, terminated: false, truncated: true };
  at.make(move);
  const next = formatFen(at);
  const ending = endingOf(at);
  at.undo(move);
  if (ending === undefined) return { next, reward: 0.001, terminated: false, truncated: false };
  return { next, reward: ending === 'checkmate' ? 1 : 0.5, terminated: true, truncated: false };
}
