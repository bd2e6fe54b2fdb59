/**
 * Games to take positions from: game `i` of a seed is always the same. A few random half-moves open it, then each side
 * takes a good move as it sees it at a glance (material, placement, what would hang), or now and then any move.
 */
import { Rng } from '../../random/rng.ts';
import { parseFen, START_FEN } from './fen.ts';
import { generateLegal, insufficientMaterial, MAX_MOVES } from './moves.ts';
import { Position, toOf, WHITE } from './position.ts';
import { exposure } from './search.ts';

/** A game from its first position on; no moves for a position alone. */
export interface Game {
  readonly start: Position;
  readonly moves: Int32Array;
}

/** Many games, each made when first asked for. */
export interface Games {
  readonly count: number;
  game(index: number): Game;
}

/** Half-moves at random that open a game, at least and at most. */
const OPENING_PLIES = [2, 8] as const;
/** How often a later move is drawn from all. */
const RANDOM_SHARE = 0.1;
/** Noise on each move's value, in hundredths of a pawn. */
const NOISE = 40;

const start = parseFen(START_FEN);
const legal = new Int32Array(MAX_MOVES);

/** `count` generated games of a seed, of at most `maxPlies` half-moves. */
export function generatedGames(seed: number, count: number, maxPlies: number): Games {
  const played = new Map<number, Game>();
  return {
    count,
    game(index) {
      let game = played.get(index);
      if (game === undefined) {
        // A generator of its own: it must not matter which game was asked for first. Games of two seeds differ.
        game = { start, moves: playGame(new Rng(seed * 2 ** 24 + index), maxPlies) };
        played.set(index, game);
      }
      return game;
    },
  };
}

/** Plays a game and returns its moves; only the position after the last may be over. */
export function playGame(rng: Rng, maxPlies: number): Int32Array {
  const position = new Position();
  position.copyFrom(start);
  const played: number[] = [];
  const [least, most] = OPENING_PLIES;
  const opening = least + rng.integer(most - least + 1);
  while (played.length < maxPlies) {
    const count = generateLegal(position, legal);
    if (count === 0 || position.halfMoves >= 100) break;
    if (position.halfMoves === 0 && insufficientMaterial(position)) break;
    const anyMove = played.length < opening || rng.uniform() < RANDOM_SHARE;
    const move = anyMove ? legal[rng.integer(count)] : glance(position, count, rng);
    position.advance(move);
    played.push(move);
  }
  return Int32Array.from(played);
}

/** Of the first `count` legal moves the one that looks best, with noise. */
function glance(position: Position, count: number, rng: Rng): number {
  const sign = position.side === WHITE ? 1 : -1;
  let best = legal[0];
  let bestValue = Number.NEGATIVE_INFINITY;
  for (let i = 0; i < count; i++) {
    const move = legal[i];
    position.make(move);
    const value = sign * position.score - exposure(position, toOf(move)) + NOISE * rng.normal();
    position.undo(move);
    if (value > bestValue) {
      best = move;
      bestValue = value;
    }
  }
  return best;
}
