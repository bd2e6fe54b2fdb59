/** Positions as FEN: read with every field checked, and written as chess.js writes them. */
import { show } from '../../envs/errors.ts';
import { fail } from '../errors.ts';
import { legalEnPassant, squareName } from './moves.ts';
import {
  BLACK,
  BLACK_LONG,
  BLACK_SHORT,
  KING,
  PAWN,
  Position,
  ROOK,
  WHITE,
  WHITE_LONG,
  WHITE_SHORT,
} from './position.ts';

export const START_FEN = 'rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1';

/** By piece: type, with 8 added for Black. */
const LETTERS = '.PNBRQK..pnbrqk';
const MAX_LENGTH = 100;
/** Clocks beyond these are damage: the fifty-move rule ends games, and the longest known has 269 moves. */
const MAX_HALF_MOVES = 999;
const MAX_FULL_MOVES = 9999;

/** The position that a FEN describes; empty squares may be dots as well as counts. Fails on any that cannot be played. */
export function parseFen(fen: string, into: Position = new Position()): Position {
  const problem = readFen(fen, into);
  if (problem !== undefined) fail('position-invalid', `position ${show(fen)}: ${problem}`);
  return into;
}

/** Reads a FEN into a position and says what is wrong with it, if anything; the position is of no use then. */
export function readFen(fen: string, into: Position): string | undefined {
  if (typeof fen !== 'string') return 'it is not a text';
  if (fen.length > MAX_LENGTH) return `it has ${fen.length} characters, more than ${MAX_LENGTH}`;
  const fields = fen.trim().split(/ +/);
  if (fields.length !== 6 && fields.length !== 4)
    return `it has ${fields.length} fields, not 6 (board, side, castling, en passant, half-moves, move)`;
  const [board, side, castling, enPassant, half = '0', full = '1'] = fields as [
    string,
    string,
    string,
    string,
  ];
  into.clear();
  const problem = readBoard(board, into);
  if (problem !== undefined) return problem;
  if (side !== 'w' && side !== 'b') return `the side to move is ${show(side)}, not w or b`;
  into.side = side === 'w' ? WHITE : BLACK;
  if (into.leftInCheck()) return 'the side that is not to move is in check';
  return (
    readCastling(castling, into) ??
    readEnPassant(enPassant, into) ??
    readClocks(half as string, full as string, into)
  );
}

function readBoard(board: string, into: Position): string | undefined {
  const rows = board.split('/');
  if (rows.length !== 8) return `the board has ${rows.length} ranks, not 8`;
  for (const [i, row] of rows.entries()) {
    let file = 0;
    for (const letter of row) {
      if (letter >= '1' && letter <= '8') {
        file += Number(letter);
        continue;
      }
      const piece = LETTERS.indexOf(letter);
      if (piece < 0) return `rank ${8 - i} has ${show(letter)}, which is no piece`;
      if (piece !== 0) {
        if (file > 7) return `rank ${8 - i} has more than 8 squares`;
        if ((piece & 7) === PAWN && (i === 0 || i === 7)) return `there is a pawn on rank ${8 - i}`;
        into.put((7 - i) * 16 + file, piece);
      }
      file++;
    }
    if (file !== 8) return `rank ${8 - i} has ${file} squares, not 8`;
  }
  const counts = new Int32Array(16);
  for (const piece of into.squares) counts[piece]++;
  for (const colour of [WHITE, BLACK]) {
    const name = colour === WHITE ? 'White' : 'Black';
    const kings = counts[KING | (colour << 3)];
    if (kings !== 1) return `${name} has ${kings} kings, not 1`;
    if (counts[PAWN | (colour << 3)] > 8)
      return `${name} has ${counts[PAWN | (colour << 3)]} pawns, more than 8`;
    let all = 0;
    for (let type = PAWN; type <= KING; type++) all += counts[type | (colour << 3)];
    if (all > 16) return `${name} has ${all} pieces, more than 16`;
  }
  return undefined;
}

const RIGHTS = [
  { letter: 'K', bit: WHITE_SHORT, king: 0x04, rook: 0x07, colour: WHITE },
  { letter: 'Q', bit: WHITE_LONG, king: 0x04, rook: 0x00, colour: WHITE },
  { letter: 'k', bit: BLACK_SHORT, king: 0x74, rook: 0x77, colour: BLACK },
  { letter: 'q', bit: BLACK_LONG, king: 0x74, rook: 0x70, colour: BLACK },
];

function readCastling(field: string, into: Position): string | undefined {
  if (field === '-') return undefined;
  if (!/^K?Q?k?q?$/.test(field)) return `castling is ${show(field)}, not - or some of KQkq in that order`;
  for (const { letter, bit, king, rook, colour } of RIGHTS) {
    if (!field.includes(letter)) continue;
    if (into.squares[king] !== (KING | (colour << 3)) || into.squares[rook] !== (ROOK | (colour << 3)))
      return `castling has ${letter}, but its king and rook are not at home`;
    into.castling |= bit;
  }
  return undefined;
}

function readEnPassant(field: string, into: Position): string | undefined {
  if (field === '-') return undefined;
  const [rank, forward] = into.side === WHITE ? [5, 16] : [2, -16];
  if (!/^[a-h][36]$/.test(field)) return `en passant is ${show(field)}, not - or a square such as e3`;
  const square = (field.charCodeAt(1) - 49) * 16 + field.charCodeAt(0) - 97;
  const pawn = PAWN | ((into.side ^ 1) << 3);
  const { squares } = into;
  if (square >> 4 !== rank || squares[square] !== 0 || squares[square + forward] !== 0)
    return `en passant is ${field}, which no pawn can have stepped over`;
  if (squares[square - forward] !== pawn) return `en passant is ${field}, but no pawn is in front of it`;
  into.enPassant = square;
  return undefined;
}

function readClocks(half: string, full: string, into: Position): string | undefined {
  if (!/^\d{1,3}$/.test(half)) return `the half-moves ${show(half)} are not a number in 0..${MAX_HALF_MOVES}`;
  if (!/^\d{1,4}$/.test(full)) return `the move ${show(full)} is not a number in 0..${MAX_FULL_MOVES}`;
  into.halfMoves = Number(half);
  into.fullMoves = Number(full);
  return undefined;
}

/** The position as a FEN. En passant is named only where it can be played; `dots` spells every empty square. */
export function formatFen(position: Position, dots = false): string {
  const { squares } = position;
  let text = '';
  for (let rank = 7; rank >= 0; rank--) {
    let empty = 0;
    for (let file = 0; file < 8; file++) {
      const piece = squares[rank * 16 + file];
      if (piece === 0 && !dots) {
        empty++;
        continue;
      }
      if (empty > 0) text += empty;
      empty = 0;
      text += LETTERS[piece];
    }
    if (empty > 0) text += empty;
    if (rank > 0) text += '/';
  }
  const rights = RIGHTS.filter(({ bit }) => (position.castling & bit) !== 0).map(({ letter }) => letter);
  const square = legalEnPassant(position);
  const enPassant = square < 0 ? '-' : squareName(square);
  const side = position.side === WHITE ? 'w' : 'b';
  return `${text} ${side} ${rights.join('') || '-'} ${enPassant} ${position.halfMoves} ${position.fullMoves}`;
}

/** A FEN's board with every empty square as a dot, or with counts: the two spellings of one position. */
export function spellDots(fen: string): string {
  return onBoard(fen, board => board.replaceAll(/\d/g, count => '.'.repeat(Number(count))));
}

/** The reverse of {@link spellDots}. */
export function spellCounts(fen: string): string {
  return onBoard(fen, board => board.replaceAll(/\.+/g, dots => String(dots.length)));
}

function onBoard(fen: string, change: (board: string) => string): string {
  const end = fen.indexOf(' ');
  return end < 0 ? change(fen) : change(fen.slice(0, end)) + fen.slice(end);
}
