/**
 * A chess position that moves are made on and taken back from, fast enough to search: chess.js, which is right but makes
 * objects and strings of everything, is what the tests hold this to.
 *
 * Squares are 0x88: `rank * 16 + file`, so that a step off the board has a bit of 0x88 set. A piece is its type with 8
 * added for Black. A move is one integer: from, to << 7, promotion << 14, kind << 17.
 */
import { pieceScore } from './piece-scores.ts';

export const WHITE = 0;
export const BLACK = 1;
export const PAWN = 1;
export const KNIGHT = 2;
export const BISHOP = 3;
export const ROOK = 4;
export const QUEEN = 5;
export const KING = 6;

/** Bits of `castling`. */
export const WHITE_SHORT = 1;
export const WHITE_LONG = 2;
export const BLACK_SHORT = 4;
export const BLACK_LONG = 8;

/** Kinds of moves. */
export const EN_PASSANT = 1;
export const CASTLE = 2;
export const DOUBLE_STEP = 3;

const A1 = 0x00;
const E1 = 0x04;
const H1 = 0x07;
const A8 = 0x70;
const E8 = 0x74;
const H8 = 0x77;

/** Moves that can be taken back: more than any search is deep. */
const MAX_UNDO = 128;

export const fromOf = (move: number): number => move & 0x7f;
export const toOf = (move: number): number => (move >> 7) & 0x7f;
export const promotionOf = (move: number): number => (move >> 14) & 7;
export const kindOf = (move: number): number => (move >> 17) & 3;

/** Castling rights that remain when a piece leaves or reaches a square. */
const remaining = new Uint8Array(128).fill(15);
remaining[A1] = 15 & ~WHITE_LONG;
remaining[H1] = 15 & ~WHITE_SHORT;
remaining[E1] = 15 & ~(WHITE_LONG | WHITE_SHORT);
remaining[A8] = 15 & ~BLACK_LONG;
remaining[H8] = 15 & ~BLACK_SHORT;
remaining[E8] = 15 & ~(BLACK_LONG | BLACK_SHORT);

const KNIGHT_STEPS = new Int8Array([14, 18, 31, 33, -14, -18, -31, -33]);
/** Rook's, then bishop's. */
const SLIDES = new Int8Array([1, -1, 16, -16, 15, 17, -15, -17]);

/** Whether two squares, by their difference + 0x77, are the same or share a rank, file or diagonal. */
const onLine = new Uint8Array(0xef);
onLine[0x77] = 1;
for (const slide of SLIDES) for (let i = 1; i < 8; i++) onLine[0x77 + i * slide] = 1;

export class Position {
  readonly squares = new Int8Array(128);
  /** Where the kings are, by colour. */
  readonly kings = new Int32Array(2);
  side = WHITE;
  castling = 0;
  /** The square that a pawn has just stepped over, whether or not it can be taken there; -1 for none. */
  enPassant = -1;
  /** Half-moves since a capture or a pawn's move. */
  halfMoves = 0;
  fullMoves = 1;
  /** White's material and placement less Black's, in hundredths of a pawn. */
  score = 0;
  readonly #undo = new Int32Array(2 * MAX_UNDO);
  #made = 0;

  /** Makes this an equal of another; its moves cannot be taken back here. */
  copyFrom(other: Position): void {
    this.squares.set(other.squares);
    this.kings.set(other.kings);
    this.side = other.side;
    this.castling = other.castling;
    this.enPassant = other.enPassant;
    this.halfMoves = other.halfMoves;
    this.fullMoves = other.fullMoves;
    this.score = other.score;
    this.#made = 0;
  }

  clear(): void {
    this.squares.fill(0);
    this.kings.fill(-1);
    this.side = WHITE;
    this.castling = 0;
    this.enPassant = -1;
    this.halfMoves = 0;
    this.fullMoves = 1;
    this.score = 0;
    this.#made = 0;
  }

  /** Puts a piece on an empty square. */
  put(square: number, piece: number): void {
    this.squares[square] = piece;
    this.score += pieceScore[(piece << 7) | square];
    if ((piece & 7) === KING) this.kings[piece >> 3] = square;
  }

  /** Makes a move for good: nothing before it can be taken back. */
  advance(move: number): void {
    this.#made = 0;
    this.make(move);
    this.#made = 0;
  }

  /** Makes a pseudo-legal move; `undo` takes it back. */
  make(move: number): void {
    const squares = this.squares;
    const from = move & 0x7f;
    const to = (move >> 7) & 0x7f;
    const promotion = (move >> 14) & 7;
    const kind = (move >> 17) & 3;
    const us = this.side;
    const piece = squares[from];
    const captured = squares[to];
    const at = 2 * this.#made++;
    this.#undo[at] = captured | (this.castling << 4) | ((this.enPassant + 1) << 8) | (this.halfMoves << 16);
    this.#undo[at + 1] = this.score;

    const placed = promotion === 0 ? piece : promotion | (us << 3);
    let score = this.score - pieceScore[(piece << 7) | from] + pieceScore[(placed << 7) | to];
    if (captured !== 0) score -= pieceScore[(captured << 7) | to];
    squares[from] = 0;
    squares[to] = placed;
    this.castling &= remaining[from] & remaining[to];
    this.enPassant = -1;
    this.halfMoves = captured !== 0 || (piece & 7) === PAWN ? 0 : this.halfMoves + 1;
    if ((piece & 7) === KING) this.kings[us] = to;
    if (kind === DOUBLE_STEP) {
      this.enPassant = (from + to) >> 1;
    } else if (kind === EN_PASSANT) {
      const taken = (from & 0x70) | (to & 7);
      score -= pieceScore[(squares[taken] << 7) | taken];
      squares[taken] = 0;
    } else if (kind === CASTLE) {
      const rookFrom = to > from ? to + 1 : to - 2;
      const rookTo = to > from ? to - 1 : to + 1;
      const rook = squares[rookFrom];
      score += pieceScore[(rook << 7) | rookTo] - pieceScore[(rook << 7) | rookFrom];
      squares[rookFrom] = 0;
      squares[rookTo] = rook;
    }
    this.score = score;
    this.fullMoves += us;
    this.side = us ^ 1;
  }

  /** Takes back the move that was made last. */
  undo(move: number): void {
    const squares = this.squares;
    const from = move & 0x7f;
    const to = (move >> 7) & 0x7f;
    const kind = (move >> 17) & 3;
    const us = this.side ^ 1;
    const at = 2 * --this.#made;
    const saved = this.#undo[at];
    const piece = ((move >> 14) & 7) === 0 ? squares[to] : PAWN | (us << 3);
    squares[from] = piece;
    squares[to] = saved & 15;
    if ((piece & 7) === KING) this.kings[us] = from;
    if (kind === EN_PASSANT) {
      squares[(from & 0x70) | (to & 7)] = PAWN | (this.side << 3);
    } else if (kind === CASTLE) {
      const rookFrom = to > from ? to + 1 : to - 2;
      const rookTo = to > from ? to - 1 : to + 1;
      squares[rookFrom] = squares[rookTo];
      squares[rookTo] = 0;
    }
    this.castling = (saved >> 4) & 15;
    this.enPassant = ((saved >> 8) & 0xff) - 1;
    this.halfMoves = saved >> 16;
    this.score = this.#undo[at + 1];
    this.fullMoves -= us;
    this.side = us;
  }

  /** Whether a side attacks a square. */
  attacks(side: number, square: number): boolean {
    const squares = this.squares;
    const colour = side << 3;
    // A white pawn attacks upwards, so it stands below what it attacks.
    const pawnFrom = side === WHITE ? square - 16 : square + 16;
    const pawn = PAWN | colour;
    if (((pawnFrom - 1) & 0x88) === 0 && squares[pawnFrom - 1] === pawn) return true;
    if (((pawnFrom + 1) & 0x88) === 0 && squares[pawnFrom + 1] === pawn) return true;
    const knight = KNIGHT | colour;
    for (let i = 0; i < 8; i++) {
      const from = square + KNIGHT_STEPS[i];
      if ((from & 0x88) === 0 && squares[from] === knight) return true;
    }
    const queen = QUEEN | colour;
    const king = KING | colour;
    for (let i = 0; i < 8; i++) {
      const step = SLIDES[i];
      let from = square + step;
      if ((from & 0x88) !== 0) continue;
      if (squares[from] === king) return true;
      const slider = (i < 4 ? ROOK : BISHOP) | colour;
      while ((from & 0x88) === 0) {
        const piece = squares[from];
        if (piece !== 0) {
          if (piece === slider || piece === queen) return true;
          break;
        }
        from += step;
      }
    }
    return false;
  }

  /** Whether the side to move is in check. */
  inCheck(): boolean {
    return this.attacks(this.side ^ 1, this.kings[this.side]);
  }

  /**
   * Whether a pseudo-legal move is surely legal, known without making it: a piece that stands on no line with its king
   * cannot have been pinned. `checked` is whether the side to move is in check.
   */
  surelyLegal(move: number, checked: boolean): boolean {
    if (checked || ((move >> 17) & 3) === EN_PASSANT) return false;
    return onLine[(move & 0x7f) - this.kings[this.side] + 0x77] === 0;
  }

  /** Whether the side that has just moved left its king in check, so that the move was not legal. */
  leftInCheck(): boolean {
    return this.attacks(this.side, this.kings[this.side ^ 1]);
  }
}

/** Steps for the generator of moves. */
export const steps = { knight: KNIGHT_STEPS, slides: SLIDES } as const;
