/** The rules, against published counts of games and against chess.js. */
import { Chess } from 'chess.js';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Rng } from '../../../src/random/index.ts';
import {
  formatFen,
  parseFen,
  readFen,
  START_FEN,
  spellCounts,
  spellDots,
} from '../../../src/tasks/chess/fen.ts';
import { endingOf, generateLegal, legalMoveNamed, MAX_MOVES, uciOf } from '../../../src/tasks/chess/moves.ts';
import { perft } from '../../../src/tasks/chess/perft.ts';
import { Position } from '../../../src/tasks/chess/position.ts';

const KIWIPETE = 'r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1';

// Published counts: the Chess Programming Wiki's page on perft results.
it.each([
  [START_FEN, [20, 400, 8902, 197_281]],
  [KIWIPETE, [48, 2039, 97_862]],
  ['8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1', [14, 191, 2812, 43_238]],
  ['r3k2r/Pppp1ppp/1b3nbN/nP6/BBP1P3/q4N2/Pp1P2PP/R2Q1RK1 w kq - 0 1', [6, 264, 9467]],
  ['rnbq1k1r/pp1Pbppp/2p5/8/2B5/8/PPP1NnPP/RNBQK2R w KQ - 1 8', [44, 1486, 62_379]],
  ['r4rk1/1pp1qppp/p1np1n2/2b1p1B1/2B1P1b1/P1NP1N2/1PP1QPPP/R4RK1 w - - 0 10', [46, 2079, 89_890]],
])('counts the games from %s', (fen, counts) => {
  const position = parseFen(fen);
  expect(counts.map((_, i) => perft(position, i + 1))).toEqual(counts);
  expect(formatFen(position)).toBe(fen);
});

const legalOf = (position: Position): string[] => {
  const moves = new Int32Array(MAX_MOVES);
  return [...moves.subarray(0, generateLegal(position, moves))].map(uciOf).sort();
};

const CASTLING = 'r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1';
const EN_PASSANT = '4k3/p1p1p1p1/8/1P1P1P1P/1p1p1p1p/8/P1P1P1P1/4K3 w - - 0 1';
const PROMOTION = '1n2k1n1/P1P4P/8/8/8/8/p1p4p/1N2K1N1 w - - 0 1';
const FEW_PIECES = '8/8/4k3/2pp4/8/3NK3/8/4B3 w - - 90 70';

/** What a move of chess.js is besides a move, by its flags. */
const kinds = { k: 'castling', q: 'castling', e: 'en passant', p: 'promotion', b: 'double step' } as const;

/** Plays a random game in both and compares all that there is; tells what it met. */
function compareGame(start: string, seed: number, plies: number, met: Set<string>): void {
  const rng = new Rng(seed);
  const chess = new Chess(start);
  const position = parseFen(start);
  for (let ply = 0; ply < plies; ply++) {
    // Read anew, so that chess.js counts no repetitions, which a position alone does not show.
    const shown = new Chess(chess.fen());
    const moves = shown.moves({ verbose: true });
    expect(legalOf(position)).toEqual(moves.map(({ lan }) => lan).sort());
    expect(formatFen(position)).toBe(shown.fen());
    expect(formatFen(parseFen(shown.fen()))).toBe(shown.fen());
    expect(position.inCheck()).toBe(shown.inCheck());
    const ending = endingOf(position);
    if (ending) met.add(ending);
    expect(ending !== undefined).toBe(shown.isGameOver());
    expect(ending === 'checkmate').toBe(shown.isCheckmate());
    expect(ending === 'stalemate').toBe(shown.isStalemate());
    if (ending !== 'checkmate') expect(ending !== undefined).toBe(shown.isDraw() || shown.isStalemate());
    if (ending !== 'stalemate') expect(ending === 'material').toBe(shown.isInsufficientMaterial());
    if (moves.length === 0) return;
    // Rare moves twice as often: a game of plain moves tries little.
    const rare = moves.filter(({ flags }) => /[kqep]/.test(flags));
    const from = rare.length > 0 && rng.integer(2) === 0 ? rare : moves;
    const { lan, flags } = from[rng.integer(from.length)];
    for (const flag of flags) if (flag in kinds) met.add(kinds[flag as keyof typeof kinds]);
    position.advance(legalMoveNamed(position, lan));
    chess.move(lan);
  }
}

it('agrees with chess.js on every move, position and ending of games that show everything', () => {
  const met = new Set<string>();
  for (const start of [START_FEN, KIWIPETE, CASTLING, EN_PASSANT, PROMOTION, FEW_PIECES])
    compareGame(start, 7, 40, met);
  for (const end of [
    '7k/8/5KQ1/8/8/8/8/8 w - - 0 1', // mates and stalemates are a move away
    '7k/8/5KQ1/8/8/8/8/8 w - - 99 80',
    'k7/8/1K6/8/8/8/8/1Q6 w - - 0 1',
    '8/8/8/8/8/4k3/4p3/4K3 w - - 0 1',
    '4k3/8/8/3pP3/8/8/8/4K3 w - d6 0 2',
  ])
    for (let seed = 0; seed < 8; seed++) compareGame(end, seed, 6, met);
  expect([...met].sort()).toEqual(
    [
      'castling',
      'checkmate',
      'double step',
      'en passant',
      'fifty-moves',
      'material',
      'promotion',
      'stalemate',
    ].sort(),
  );
});

it('agrees with chess.js on any random game', () => {
  fc.assert(
    fc.property(
      fc.constantFrom(START_FEN, KIWIPETE, CASTLING, EN_PASSANT, PROMOTION, FEW_PIECES),
      fc.nat(1_000_000),
      (start, seed) => compareGame(start, seed, 40, new Set()),
    ),
    { numRuns: 5 },
  );
});

it('taking moves back restores everything, the score included', () => {
  const position = parseFen(KIWIPETE);
  const rng = new Rng(4);
  const moves = new Int32Array(MAX_MOVES);
  const before = formatFen(position);
  const made: number[] = [];
  for (let i = 0; i < 100; i++) {
    const count = generateLegal(position, moves);
    if (count === 0) break;
    const move = moves[rng.integer(count)];
    made.push(move);
    position.make(move);
    const anew = parseFen(formatFen(position));
    expect(anew.score).toBe(position.score);
    expect([...anew.kings]).toEqual([...position.kings]);
  }
  for (const move of made.reverse()) position.undo(move);
  expect(formatFen(position)).toBe(before);
  expect(position.score).toBe(parseFen(before).score);
});

it.each([
  ['8/8/8/4k3/8/8/8/4K3 w - - 0 1', 'material'],
  ['8/8/8/4k3/8/8/2B5/4K3 w - - 0 1', 'material'],
  ['8/8/8/4k3/8/8/2N5/4K3 w - - 0 1', 'material'],
  ['8/8/8/4k3/8/8/2NN4/4K3 w - - 0 1', undefined],
  ['5b2/8/8/4k3/8/8/8/2B1K3 w - - 0 1', 'material'],
  ['2b5/8/8/4k3/8/8/8/2B1K3 w - - 0 1', undefined],
  ['8/8/8/4k3/8/8/2P5/4K3 w - - 100 1', 'fifty-moves'],
  ['8/8/8/4k3/8/8/2P5/4K3 w - - 99 1', undefined],
  ['rnb1kbnr/pppp1ppp/8/4p3/6Pq/5P2/PPPPP2P/RNBQKBNR w KQkq - 1 3', 'checkmate'],
  ['7k/5Q2/6K1/8/8/8/8/8 b - - 0 1', 'stalemate'],
] as const)('%s has ended by %s', (fen, ending) => {
  expect(endingOf(parseFen(fen))).toBe(ending);
  expect(new Chess(fen).isGameOver()).toBe(ending !== undefined);
});

describe('FEN', () => {
  it('spells boards with dots and with counts', () => {
    const dots = 'rnbqkbnr/pppppppp/......../......../......../......../PPPPPPPP/RNBQKBNR w KQkq - 0 1';
    expect(spellDots(START_FEN)).toBe(dots);
    expect(spellCounts(dots)).toBe(START_FEN);
    expect(formatFen(parseFen(START_FEN), true)).toBe(dots);
    expect(formatFen(parseFen(dots))).toBe(START_FEN);
  });

  it('names en passant only where it can be played', () => {
    expect(formatFen(parseFen('rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq e3 0 1'))).toContain(
      ' KQkq - 0 1',
    );
    // The capturing pawn is pinned along the rank: both pawns would leave it.
    expect(formatFen(parseFen('8/8/8/8/k2pP2R/8/8/4K3 b - e3 0 1'))).toContain(' b - - 0 1');
    expect(formatFen(parseFen('8/8/8/8/3pP3/1k6/8/4K3 b - e3 0 1'))).toContain(' b - e3 0 1');
  });

  it.each([
    ['', /1 fields/],
    ['x'.repeat(500), /500 characters/],
    ['8/8/8/8/8/8/8/8 w - - 0 1', /White has 0 kings/],
    ['kk6/8/8/8/8/8/8/K7 w - - 0 1', /Black has 2 kings/],
    ['k7/8/8/8/8/8/8/K6 w - - 0 1', /rank 1 has 7 squares/],
    ['k7/8/8/8/8/8/8/K8 w - - 0 1', /rank 1 has 9 squares/],
    ['k7/8/8/8/8/8/K7 w - - 0 1', /7 ranks/],
    ['k7/8/8/8/8/8/8/X6K w - - 0 1', /rank 1 has "X"/],
    ['k7/8/8/8/8/8/8/K6P w - - 0 1', /pawn on rank 1/],
    ['k7/pppppppp/p7/8/8/8/8/K7 w - - 0 1', /9 pawns/],
    ['k7/8/8/8/QQQQQQQQ/QQQQQQQQ/8/K7 w - - 0 1', /17 pieces/],
    ['k7/8/8/8/8/8/8/K7 x - - 0 1', /side to move is "x"/],
    ['k6R/8/8/8/8/8/8/K7 w - - 0 1', /not to move is in check/],
    ['k7/8/8/8/8/8/8/K7 w KQ - 0 1', /castling has K/],
    ['k7/8/8/8/8/8/8/K7 w QK - 0 1', /castling is "QK"/],
    ['k7/8/8/8/8/8/8/K7 w - e6 0 1', /no pawn is in front/],
    ['k7/8/8/8/4P3/8/8/K7 w - e3 0 1', /no pawn can have stepped over/],
    ['k7/8/8/8/8/8/8/K7 w - z9 0 1', /en passant is "z9"/],
    ['k7/8/8/8/4P3/8/4N3/K7 b - e3 0 1', /en passant is e3, which no pawn can have stepped over/],
    ['k7/8/8/8/4P3/4N3/8/K7 b - e3 0 1', /en passant is e3, which no pawn can have stepped over/],
    ['k7/8/8/8/8/8/8/K7 b - e3 0 1', /en passant is e3, but no pawn is in front of it/],
    ['k7/8/8/4p3/8/8/8/K7 w - e3 0 1', /en passant is e3, which no pawn can have stepped over/],
    ['k7/8/8/8/8/8/8/K7 w - - -1 1', /half-moves "-1"/],
    ['k7/8/8/8/8/8/8/K7 w - - 0 1e9', /move "1e9"/],
  ])('refuses %j', (fen, problem) => {
    expect(() => parseFen(fen)).toThrow(problem);
  });

  it('never throws on damaged text, and what it accepts it writes back', () => {
    const letters = fc.string({
      maxLength: 90,
      unit: fc.constantFrom(...'rnbqkpRNBQKP12345678/ wb-KQkqe36.09'),
    });
    const damaged = fc
      .tuple(fc.constantFrom(START_FEN, KIWIPETE), fc.nat(80), fc.nat(3), letters)
      .map(([fen, at, cut, text]) => fen.slice(0, at) + text.slice(0, 2) + fen.slice(at + cut));
    const position = new Position();
    fc.assert(
      fc.property(fc.oneof(letters, damaged, fc.string()), text => {
        if (readFen(text, position) !== undefined) return;
        const fen = formatFen(position);
        expect(formatFen(parseFen(fen))).toBe(fen);
      }),
      { numRuns: 500 },
    );
  });
});
