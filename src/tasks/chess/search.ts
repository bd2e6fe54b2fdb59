/**
 * A small search that labels positions where no engine is installed: alpha-beta to a fixed depth, then captures until the
 * position is quiet, on material and placement. It sees mates and hanging pieces within its depth and knows no strategy.
 */
import { generate, MAX_MOVES } from './moves.ts';
import { pieceValues } from './piece-scores.ts';
import { PAWN, type Position, WHITE } from './position.ts';

/** A mate now, in hundredths of a pawn; later mates are worth one less a half-move. */
const MATE = 100_000;
/** Scores beyond this are mates. */
const MATE_BOUND = MATE - 1000;
const MAX_DEPTH = 6;
/** Half-moves that quiescence may add: captures run out long before. */
const MAX_PLY = MAX_DEPTH + 34;
/** What a capture can win beside the piece: below this it cannot reach alpha. */
const DELTA_MARGIN = 150;
/** The larger share of a tempo: whoever is to move can improve something. */
const TEMPO = 10;

/** A move and its value, White's point of view, hundredths of a pawn. */
export interface ScoredMove {
  readonly move: number;
  readonly score: number;
}

// One stack of moves for the whole search: a ply's moves begin where those of the ply before end.
const moves = new Int32Array(MAX_MOVES * (MAX_PLY + 2));
const order = new Int32Array(moves.length);

/** The `count` best moves of a position that is not over, best first; the depth counts half-moves, 1..6. */
export function bestMoves(position: Position, depth: number, count: number): ScoredMove[] {
  if (!Number.isInteger(depth) || depth < 1 || depth > MAX_DEPTH)
    throw new RangeError(`search depth ${depth} is not a whole number in 1..${MAX_DEPTH}`);
  const end = generate(position, moves, 0);
  const found: ScoredMove[] = [];
  const sign = position.side === WHITE ? 1 : -1;
  for (let i = 0; i < end; i++) {
    position.make(moves[i]);
    order[i] = sign * position.score;
    position.undo(moves[i]);
  }
  for (let i = 0; i < end; i++) {
    const move = takeBest(i, end);
    position.make(move);
    if (!position.leftInCheck()) {
      // Only moves better than the worst that is kept need an exact value.
      const alpha = found.length < count ? -MATE - 1 : found[count - 1].score;
      const score = -negamax(position, depth - 1, -MATE - 1, -alpha, 1, end);
      if (score > alpha) {
        let at = found.length;
        while (at > 0 && found[at - 1].score < score) at--;
        found.splice(at, 0, { move, score });
        if (found.length > count) found.pop();
      }
    }
    position.undo(move);
  }
  return sign === 1 ? found : found.map(({ move, score }) => ({ move, score: -score }));
}

function negamax(
  position: Position,
  depth: number,
  lowest: number,
  beta: number,
  ply: number,
  start: number,
): number {
  let left = depth;
  const checked = position.inCheck();
  if (left <= 0) {
    // A mate shows only when the answers to check are looked at.
    if (ply >= MAX_PLY || !checked) return quiesce(position, lowest, beta, ply, start);
    left = 1;
  }
  const end = generate(position, moves, start);
  rank(position, start, end);
  let alpha = lowest;
  let best = -MATE - 1;
  for (let i = start; i < end; i++) {
    const move = takeBest(i, end);
    const sure = position.surelyLegal(move, checked);
    position.make(move);
    const legal = sure || !position.leftInCheck();
    const score = legal ? -negamax(position, left - 1, -beta, -alpha, ply + 1, end) : 0;
    position.undo(move);
    if (!legal || score <= best) continue;
    best = score;
    if (score > alpha) alpha = score;
    if (alpha >= beta) break;
  }
  if (best > -MATE - 1) return best;
  return checked ? ply - MATE : 0;
}

function quiesce(position: Position, lowest: number, beta: number, ply: number, start: number): number {
  const standing = (position.side === WHITE ? position.score : -position.score) + TEMPO;
  if (standing >= beta || ply >= MAX_PLY) return standing;
  let alpha = Math.max(lowest, standing);
  let best = standing;
  const end = generate(position, moves, start, true);
  rank(position, start, end);
  for (let i = start; i < end; i++) {
    const move = takeBest(i, end);
    const promotes = ((move >> 14) & 7) !== 0;
    const gain = pieceValues[position.squares[(move >> 7) & 0x7f] & 7];
    if (!promotes && standing + Math.max(gain, 100) + DELTA_MARGIN <= alpha) continue;
    position.make(move);
    const legal = !position.leftInCheck();
    const score = legal ? -quiesce(position, -beta, -alpha, ply + 1, end) : 0;
    position.undo(move);
    if (!legal || score <= best) continue;
    best = score;
    if (score > alpha) alpha = score;
    if (alpha >= beta) break;
  }
  return best;
}

/** What to try first: large captures by small pieces, promotions. */
function rank({ squares }: Position, start: number, end: number): void {
  for (let i = start; i < end; i++) {
    const move = moves[i];
    const victim = squares[(move >> 7) & 0x7f] & 7;
    const promotion = (move >> 14) & 7;
    order[i] = victim === 0 ? promotion * 8 : victim * 16 - (squares[move & 0x7f] & 7) + 8 + promotion * 8;
  }
}

/** Brings the best-ranked of the moves from `at` on to `at`; the rest keeps no order. */
function takeBest(at: number, end: number): number {
  let best = at;
  for (let i = at + 1; i < end; i++) if (order[i] > order[best]) best = i;
  const move = moves[best];
  if (best !== at) {
    moves[best] = moves[at];
    moves[at] = move;
    order[best] = order[at];
  }
  return move;
}

/** Mates are written so, with their sign: no other value comes near. */
export const MATE_PAWNS = 999.9;

/** A score in pawns, to one decimal; never -0. */
export function pawnsOf(score: number): number {
  if (Math.abs(score) >= MATE_BOUND) return Math.sign(score) * MATE_PAWNS;
  return Math.round(score / 10) / 10 || 0;
}

/** How cheaply a piece could be lost on a square after a move there: for playing games fast, see games.ts. */
export function exposure(position: Position, square: number): number {
  const them = position.side;
  const type = position.squares[square] & 7;
  if (!position.attacks(them, square)) return 0;
  const value = pieceValues[type];
  if (!position.attacks(them ^ 1, square)) return value;
  return type === PAWN ? 0 : pawnAttacks(position, them, square) ? value - 100 : Math.max(0, value - 320) / 2;
}

function pawnAttacks({ squares }: Position, side: number, square: number): boolean {
  const from = side === WHITE ? square - 16 : square + 16;
  const pawn = PAWN | (side << 3);
  return (
    (((from - 1) & 0x88) === 0 && squares[from - 1] === pawn) ||
    (((from + 1) & 0x88) === 0 && squares[from + 1] === pawn)
  );
}
