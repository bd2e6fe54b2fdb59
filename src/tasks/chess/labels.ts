/** The best moves of positions and what they are worth, from our own search or from an engine, and kept. */
import { parseFen } from './fen.ts';
import { uciOf } from './moves.ts';
import { Position } from './position.ts';
import { bestMoves, pawnsOf } from './search.ts';
import type { Candidate } from './text.ts';

/** Moves that are labelled. */
export const LABELLED_MOVES = 5;
/** Positions whose labels are kept: about 20 MB. */
const MAX_KEPT = 50_000;

const position = new Position();

/** Up to five moves of a position that is not over, best first, by our own search. */
export function searchLabels(fen: string, depth: number): Candidate[] {
  parseFen(fen, position);
  return bestMoves(position, depth, LABELLED_MOVES).map(({ move, score }) => ({
    move: uciOf(move),
    pawns: pawnsOf(score),
  }));
}

/** Labels by position; the clocks do not matter. The oldest go first when there are too many. */
export class LabelCache {
  readonly #kept = new Map<string, readonly Candidate[]>();

  get(fen: string): readonly Candidate[] | undefined {
    return this.#kept.get(keyOf(fen));
  }

  set(fen: string, labels: readonly Candidate[]): void {
    if (this.#kept.size >= MAX_KEPT) this.#kept.delete(this.#kept.keys().next().value!);
    this.#kept.set(keyOf(fen), labels);
  }
}

const keyOf = (fen: string): string => fen.replace(/ \d+ \d+$/, '');
