/**
 * Games to take positions from: game `i` of a seed is always the same. A few random half-moves open it, then each side
 * takes a good move as it sees it at a glance (material, placement, what would hang), or now and then any move.
 */
import { Rng } from '../../random/index.ts';
import { parseFen, START_FEN } from './fen.ts';
import { endingOf, generateLegal, MAX_MOVES } from './moves.ts';
import { Position, toOf, WHITE } from './position.ts';
import { exposure } from './search.ts';

/** Half-moves at random that open a game, at most. */
const OPENING_PLIES = 8;
/** How often a move is drawn from all. */
const RANDOM_SHARE = 0.1;
/** Noise on each move's value, in hundredths of a pawn. */
const NOISE = 40;

const start = parseFen(START_FEN);
const legal = new Int32Array(MAX_MOVES);

/** Plays a game of at most `maxPlies` half-moves and returns its moves; the last position may be over. */
export function playGame(rng: Rng, maxPlies: number): Int32Array {
  const position = new Position();
  position.copyFrom(start);
  const played: number[] = [];
  const opening = 2 + rng.integer(OPENING_PLIES - 1);
  while (played.length < maxPlies) {
    const count = generateLegal(position, legal);
    if (count === 0 || position.halfMoves >= 100) break;
    if (played.length % 16 === 0 && endingOf(position) !== undefined) break;
    const anyMove = played.length < opening || rng.uniform() < RANDOM_SHARE;
    const move = anyMove ? legal[rng.integer(count)]! : glance(position, count, rng);
    position.advance(move);
    played.push(move);
  }
  return Int32Array.from(played);
}

/** The first `count` of `legal` that looks best, with noise. */
function glance(position: Position, count: number, rng: Rng): number {
  const sign = position.side === WHITE ? 1 : -1;
  let best = legal[0]!;
  let bestValue = Number.NEGATIVE_INFINITY;
  for (let i = 0; i < count; i++) {
    const move = legal[i]!;
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

/** Many games, each played when first asked for. */
export interface Games {
  readonly count: number;
  /** The moves of a game. */
  moves(index: number): Int32Array;
}

/** `count` generated games of a seed. */
export function generatedGames(seed: number, count: number, maxPlies: number): Games {
  const played = new Map<number, Int32Array>();
  return {
    count,
    moves(index) {
      let game = played.get(index);
      if (game === undefined) {
        // Of its own generator: what is asked for in which order must not matter. Unrelated for neighbouring seeds.
        game = playGame(new Rng(seed * count + index), maxPlies);
        played.set(index, game);
      }
      return game;
    },
  };
}
