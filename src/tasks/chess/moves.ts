/** Which moves a position has, their UCI names, and whether the game is over. */
import {
  BISHOP,
  BLACK_LONG,
  BLACK_SHORT,
  CASTLE,
  DOUBLE_STEP,
  EN_PASSANT,
  KING,
  KNIGHT,
  PAWN,
  type Position,
  promotionOf,
  QUEEN,
  ROOK,
  steps,
  toOf,
  WHITE,
  WHITE_LONG,
  WHITE_SHORT,
} from './position.ts';

/** No position has more moves: 218 is the largest known. */
export const MAX_MOVES = 256;

/**
 * Writes the pseudo-legal moves (the own king may be left in check, except by castling) to `out` from `start` on and
 * returns where they end; with `capturesOnly` captures and promotions to queens.
 */
export function generate(position: Position, out: Int32Array, start: number, capturesOnly = false): number {
  const { squares, side: us } = position;
  let end = start;
  for (let from = 0; from < 0x78; from++) {
    if ((from & 0x88) !== 0) {
      from += 7;
      continue;
    }
    const piece = squares[from];
    if (piece === 0 || piece >> 3 !== us) continue;
    const type = piece & 7;
    if (type === PAWN) {
      end = pawnMoves(position, from, out, end, capturesOnly);
    } else if (type === KNIGHT) {
      for (let i = 0; i < 8; i++) {
        const to = from + steps.knight[i];
        if ((to & 0x88) !== 0) continue;
        const target = squares[to];
        if (target === 0 ? !capturesOnly : target >> 3 !== us) out[end++] = from | (to << 7);
      }
    } else {
      const first = type === BISHOP ? 4 : 0;
      const last = type === ROOK ? 4 : 8;
      for (let i = first; i < last; i++) {
        const step = steps.slides[i];
        let to = from + step;
        while ((to & 0x88) === 0) {
          const target = squares[to];
          if (target !== 0) {
            if (target >> 3 !== us) out[end++] = from | (to << 7);
            break;
          }
          if (!capturesOnly) out[end++] = from | (to << 7);
          if (type === KING) break;
          to += step;
        }
      }
      if (type === KING && !capturesOnly && position.castling !== 0) end = castles(position, from, out, end);
    }
  }
  return end;
}

function pawnMoves(
  position: Position,
  from: number,
  out: Int32Array,
  start: number,
  capturesOnly: boolean,
): number {
  const { squares, side: us } = position;
  const forward = us === WHITE ? 16 : -16;
  let end = start;
  const one = from + forward;
  if (squares[one] === 0) {
    if (one < 16 || one >= 0x70) {
      end = promotions(from, one, out, end, capturesOnly);
    } else if (!capturesOnly) {
      out[end++] = from | (one << 7);
      const two = one + forward;
      if (from >> 4 === (us === WHITE ? 1 : 6) && squares[two] === 0)
        out[end++] = from | (two << 7) | (DOUBLE_STEP << 17);
    }
  }
  for (let to = one - 1; to <= one + 1; to += 2) {
    if ((to & 0x88) !== 0) continue;
    const target = squares[to];
    if (target !== 0) {
      if (target >> 3 === us) continue;
      if (to < 16 || to >= 0x70) end = promotions(from, to, out, end, capturesOnly);
      else out[end++] = from | (to << 7);
    } else if (to === position.enPassant) {
      out[end++] = from | (to << 7) | (EN_PASSANT << 17);
    }
  }
  return end;
}

function promotions(from: number, to: number, out: Int32Array, start: number, queenOnly: boolean): number {
  let end = start;
  for (let type = QUEEN; type >= (queenOnly ? QUEEN : KNIGHT); type--)
    out[end++] = from | (to << 7) | (type << 14);
  return end;
}

function castles(position: Position, from: number, out: Int32Array, start: number): number {
  const { squares, side: us, castling } = position;
  const them = us ^ 1;
  let end = start;
  const short = (castling & (us === WHITE ? WHITE_SHORT : BLACK_SHORT)) !== 0;
  const long = (castling & (us === WHITE ? WHITE_LONG : BLACK_LONG)) !== 0;
  if ((!short && !long) || position.attacks(them, from)) return end;
  if (short && squares[from + 1] === 0 && squares[from + 2] === 0) {
    if (!position.attacks(them, from + 1) && !position.attacks(them, from + 2))
      out[end++] = from | ((from + 2) << 7) | (CASTLE << 17);
  }
  if (long && squares[from - 1] === 0 && squares[from - 2] === 0 && squares[from - 3] === 0) {
    if (!position.attacks(them, from - 1) && !position.attacks(them, from - 2))
      out[end++] = from | ((from - 2) << 7) | (CASTLE << 17);
  }
  return end;
}

/** Writes the legal moves to `out` from `start` on and returns where they end. */
export function generateLegal(position: Position, out: Int32Array, start = 0): number {
  const pseudo = generate(position, out, start);
  const checked = position.inCheck();
  let end = start;
  for (let i = start; i < pseudo; i++) {
    const move = out[i];
    if (position.surelyLegal(move, checked)) {
      out[end++] = move;
      continue;
    }
    position.make(move);
    if (!position.leftInCheck()) out[end++] = move;
    position.undo(move);
  }
  return end;
}

/** Whether the side to move has a legal move. */
export function hasLegalMove(position: Position): boolean {
  const end = generate(position, anyMove, 0);
  const checked = position.inCheck();
  for (let i = 0; i < end; i++) {
    if (position.surelyLegal(anyMove[i], checked)) return true;
    position.make(anyMove[i]);
    const legal = !position.leftInCheck();
    position.undo(anyMove[i]);
    if (legal) return true;
  }
  return false;
}

const anyMove = new Int32Array(MAX_MOVES);

/** The square that en passant could legally be played to now, as a FEN names it; -1 for none. */
export function legalEnPassant(position: Position): number {
  if (position.enPassant < 0) return -1;
  const end = generate(position, anyMove, 0, true);
  for (let i = 0; i < end; i++) {
    const move = anyMove[i];
    if (move >> 17 !== EN_PASSANT) continue;
    position.make(move);
    const legal = !position.leftInCheck();
    position.undo(move);
    if (legal) return toOf(move);
  }
  return -1;
}

const PROMOTIONS = ['', '', 'n', 'b', 'r', 'q'];

/** `e4`. */
export const squareName = (square: number): string =>
  String.fromCharCode(97 + (square & 7), 49 + (square >> 4));

/** `e2e4`, `e7e8q`. */
export const uciOf = (move: number): string =>
  squareName(move & 0x7f) + squareName(toOf(move)) + PROMOTIONS[promotionOf(move)];

/** A move in UCI's notation, legal or not. */
export const UCI_MOVE = /^[a-h][1-8][a-h][1-8][nbrq]?$/;

/** The legal move that UCI calls so; 0 if there is none. */
export function legalMoveNamed(position: Position, uci: string): number {
  if (!UCI_MOVE.test(uci)) return 0;
  const from = (uci.charCodeAt(1) - 49) * 16 + uci.charCodeAt(0) - 97;
  const to = (uci.charCodeAt(3) - 49) * 16 + uci.charCodeAt(2) - 97;
  const named = from | (to << 7) | (Math.max(0, PROMOTIONS.indexOf(uci.slice(4))) << 14);
  const end = generate(position, anyMove, 0);
  for (let i = 0; i < end; i++) {
    const move = anyMove[i];
    if ((move & 0x1ffff) !== named) continue;
    position.make(move);
    const legal = !position.leftInCheck();
    position.undo(move);
    return legal ? move : 0;
  }
  return 0;
}

export type Ending = 'checkmate' | 'stalemate' | 'material' | 'fifty-moves';

/**
 * How the game has ended, if it has. Repetition is not asked: a position alone does not show it. As in chess.js, a draw by
 * fifty moves ends the game without being claimed.
 */
export function endingOf(position: Position): Ending | undefined {
  if (!hasLegalMove(position)) return position.inCheck() ? 'checkmate' : 'stalemate';
  if (insufficientMaterial(position)) return 'material';
  return position.halfMoves >= 100 ? 'fifty-moves' : undefined;
}

/** Whether nobody can mate any more: kings alone, with one minor piece, or with bishops on squares of one colour. */
export function insufficientMaterial({ squares }: Position): boolean {
  let knights = 0;
  let light = 0;
  let dark = 0;
  for (let square = 0; square < 128; square++) {
    if ((square & 0x88) !== 0) continue;
    const type = squares[square] & 7;
    if (type === PAWN || type === ROOK || type === QUEEN) return false;
    if (type === KNIGHT) knights++;
    else if (type === BISHOP) {
      if ((((square >> 4) + square) & 1) === 0) dark++;
      else light++;
    }
  }
  if (knights > 0) return knights === 1 && light + dark === 0;
  return light === 0 || dark === 0;
}
