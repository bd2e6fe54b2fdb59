/**
 * The two tasks as text, in RookWorld's order of fields.
 *
 * policy       `P: <FEN> M: <moves> E: <evaluations> B: <best move>`, completed from `M:` on
 * environment  `A: <FEN>+<move>+<last moves>+<new FEN>+<reward>+<terminated>+<truncated>`, completed from the new FEN on
 *
 * With `board: 'dots'` a FEN spells each empty square, so that a square is always at the same place of the text: a model
 * of a few million parameters learns where the pieces are at once, where it would have to learn to add with counts. With
 * `padded`, FEN, moves and evaluations are padded to 90, 30 and 40 characters, as RookWorld has them.
 */
import { spellDots } from './fen.ts';
import { UCI_MOVE } from './moves.ts';

export type BoardSpelling = 'dots' | 'fen';

export interface TextFormat {
  readonly board: BoardSpelling;
  readonly padded: boolean;
  /** Moves that a policy completion names. */
  readonly candidates: number;
}

/** Longest completion that is looked at; the rest cannot make it right. */
const MAX_COMPLETION = 2000;
/** Moves that the environment task remembers. */
export const HISTORY_MOVES = 10;

const squares = Array.from({ length: 64 }, (_, i) => 'abcdefgh'[i & 7] + (1 + (i >> 3)));

/** Characters of both tasks. */
export const CHARACTERS = 'PAMEB:rnbqkpRNQK./0123456789 w-+acdefgh';
/** A square, a label, the side to move, a decimal and the usual rewards are one token each. */
export const PIECES: readonly string[] = [
  ...squares,
  ...['P: ', 'A: ', 'M: ', ' E: ', ' B: ', ' w ', ' b ', '0.001', '999.9'],
  ...Array.from('0123456789', digit => `.${digit}`),
];
/** Also, where texts are padded. */
export const PADDING_PIECES: readonly string[] = [2, 4, 8, 16].map(length => ' '.repeat(length));

const spelled = (fen: string, format: TextFormat): string => (format.board === 'dots' ? spellDots(fen) : fen);

export const policyPrompt = (fen: string, format: TextFormat): string =>
  `P: ${format.padded ? spelled(fen, format).padEnd(90) : `${spelled(fen, format)} `}`;

export interface Candidate {
  readonly move: string;
  /** Pawns, White's point of view; a mate is ±999.9. */
  readonly pawns: number;
}

/** What should follow a policy prompt; candidates in the order given. */
export function policyCompletion(candidates: readonly Candidate[], best: string, format: TextFormat): string {
  const moves = candidates.map(({ move }) => move).join(' ');
  const values = candidates.map(({ pawns }) => pawns.toFixed(1)).join(' ');
  return format.padded
    ? `M: ${moves.padEnd(30)}E: ${values.padEnd(40)}B: ${best}`
    : `M: ${moves} E: ${values} B: ${best}`;
}

export const environmentPrompt = (
  fen: string,
  move: string,
  history: readonly string[],
  format: TextFormat,
): string => `A: ${spelled(fen, format)}+${move}+${history.join(' ')}+`;

export interface Outcome {
  /** The position after the move; an illegal move leaves it as it was. */
  readonly next: string;
  readonly reward: number;
  /** The game is over. */
  readonly terminated: boolean;
  /** The move was illegal. */
  readonly truncated: boolean;
}

/** What should follow an environment prompt. */
export const environmentCompletion = (outcome: Outcome, format: TextFormat): string =>
  `${spelled(outcome.next, format)}+${outcome.reward}+${Number(outcome.terminated)}+${Number(outcome.truncated)}`;

/** A policy completion in its parts, as far as they are there. */
export interface ReadPolicy {
  /** How many of `M:`, `E:` and `B:` are there, in this order. */
  readonly sections: number;
  /** As written, in order; a word that is no UCI move is undefined. */
  readonly moves: readonly (string | undefined)[];
  /** As written, in order; a word that is no number is NaN. */
  readonly pawns: readonly number[];
  /** Undefined unless it is a UCI move and nothing else. */
  readonly best: string | undefined;
}

/** Reads a policy completion of whatever content. */
export function readPolicy(completion: string): ReadPolicy {
  const text = completion.slice(0, MAX_COMPLETION);
  const parts: string[] = [];
  let from = 0;
  const labels = ['M:', 'E:', 'B:'];
  const starts: number[] = [];
  for (const label of labels) {
    const at = text.indexOf(label, from);
    if (at < 0) break;
    starts.push(at);
    from = at + label.length;
  }
  for (const [i, at] of starts.entries()) parts.push(text.slice(at + 2, starts[i + 1]));
  const [moves = '', values = '', best = ''] = parts.map(part => part.trim());
  return {
    sections: starts.length,
    moves: words(moves).map(word => (UCI_MOVE.test(word) ? word : undefined)),
    pawns: words(values).map(numberOf),
    best: UCI_MOVE.test(best) ? best : undefined,
  };
}

/** An environment completion in its parts. */
export interface ReadEnvironment {
  /** How many of the four fields there are; more than four are too many. */
  readonly fields: number;
  readonly next: string;
  readonly reward: number;
  readonly terminated: string;
  readonly truncated: string;
}

/** Reads an environment completion of whatever content. */
export function readEnvironment(completion: string): ReadEnvironment {
  const fields = completion.slice(0, MAX_COMPLETION).split('+');
  const [next = '', reward = '', terminated = '', truncated = ''] = fields.map(field => field.trim());
  return { fields: fields.length, next, reward: numberOf(reward), terminated, truncated };
}

const words = (text: string): string[] => (text === '' ? [] : text.split(/ +/));
const numberOf = (word: string): number => (/^-?\d{1,6}(\.\d{1,6})?$/.test(word) ? Number(word) : Number.NaN);

/** How alike two FENs are, 0..1: the share of equal squares and of the five equal fields behind them. */
export function fenSimilarity(written: string, right: string): number {
  const ours = fieldsOf(written);
  const theirs = fieldsOf(right);
  let equal = 0;
  for (let rank = 0; rank < 8; rank++) {
    const [a, b] = [ours.ranks[rank] ?? '', theirs.ranks[rank] ?? ''];
    for (let file = 0; file < 8; file++) if (a[file] !== undefined && a[file] === b[file]) equal++;
  }
  for (let i = 0; i < 5; i++) if (ours.rest[i] !== undefined && ours.rest[i] === theirs.rest[i]) equal++;
  return equal / 69;
}

function fieldsOf(fen: string): { ranks: string[]; rest: string[] } {
  const [board = '', ...rest] = spellDots(fen).split(/ +/);
  return { ranks: board.split('/'), rest };
}
