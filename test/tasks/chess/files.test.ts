import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Chess } from 'chess.js';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { Rng } from '../../../src/random/index.ts';
import { formatFen, parseFen, START_FEN } from '../../../src/tasks/chess/fen.ts';
import { gamesOfFile, readFens, readPgn } from '../../../src/tasks/chess/files.ts';
import { playGame } from '../../../src/tasks/chess/games.ts';
import { uciOf } from '../../../src/tasks/chess/moves.ts';
import { moveOfSan } from '../../../src/tasks/chess/san.ts';
import { makeTask, TaskError } from '../../../src/tasks/index.ts';
import { drawPrompts } from '../support/contract.ts';

const dir = mkdtempSync(join(tmpdir(), 'keel-chess-'));
afterAll(() => rmSync(dir, { recursive: true }));
const file = (name: string, text: string): string => {
  writeFileSync(join(dir, name), text);
  return join(dir, name);
};

const PGN = `[Event "A ] bracket and a \\"quote\\""]
[Result "1-0"]

1. e4 {a comment
over lines} e5 2. Qh5!? (2. Nf3 Nc6 (2... d6) 3. Bb5) 2... Nc6 $1 3. Bc4 ; to the end 4. a3
3... Nf6?? 4. Qxf7# 1-0

[FEN "4k3/P7/8/8/8/8/8/R3K3 w Q - 0 1"]

1. a8=Q+ Kd7 2. O-O-O+ 1/2-1/2
1.d4 d5 *
`;

describe('PGN', () => {
  it('reads main lines through comments, variations and annotations', () => {
    const games = readPgn(PGN, 'x.pgn');
    expect(games.map(({ moves }) => Array.from(moves, uciOf).join(' '))).toEqual([
      'e2e4 e7e5 d1h5 b8c6 f1c4 g8f6 h5f7',
      'a7a8q e8d7 e1c1',
      'd2d4 d7d5',
    ]);
    expect(formatFen(games[1].start)).toBe('4k3/P7/8/8/8/8/8/R3K3 w Q - 0 1');
    expect(formatFen(games[2].start)).toBe(START_FEN);
  });

  it('reads every move as chess.js writes it', () => {
    for (let seed = 0; seed < 3; seed++) {
      const position = parseFen(START_FEN);
      const chess = new Chess();
      for (const move of playGame(new Rng(seed), 80)) {
        const { san } = chess.move(uciOf(move));
        expect(moveOfSan(position, san), `${san} in ${formatFen(position)}`).toBe(move);
        position.advance(move);
      }
      const [game] = readPgn(chess.pgn(), 'x.pgn');
      expect(Array.from(game.moves, uciOf)).toEqual(chess.history({ verbose: true }).map(({ lan }) => lan));
    }
  });

  it.each([
    ['1. e4 e5\n2. Ke3', /x\.pgn:2: "Ke3" is not a legal move here \(half-move 3\)/],
    ['1. e4 {a\nb} e5\n2. zzz', /x\.pgn:3: "zzz" is not a legal move/],
    ['1. Nf3 a6 2. Nc3 a5\n3. Nd4 a4 4. Nb5', /x\.pgn:2: "Nb5" is not a legal move here/], // two can go there
    ['1. f3 e5 2. g4 Qh4# 3. a3', /"a3" follows the end of the game/],
    ['1. e4 {no end', /x\.pgn:1: a comment does not end/],
    ['1. e4 (1. d4', /ends inside of a variation/],
    ['1. e4 )', /a \) without a \(/],
    ['[Event A]\n1. e4', /x\.pgn:1: "\[Event A\]" is not a tag/],
    ['[FEN "8/8 w"]\n1. e4', /x\.pgn:1: FEN "8\/8 w": it has 2 fields/],
    [`1. ${'e4 '.repeat(2)}`, /"e4" is not a legal move here \(half-move 2\)/],
  ])('refuses %j', (text, problem) => {
    expect(() => readPgn(text, 'x.pgn')).toThrow(problem);
  });

  it('whatever a file holds, it is read or refused with its line', () => {
    const word = fc.constantFrom(
      ...PGN.split(/(\s+)/),
      '(',
      ')',
      '{',
      '}',
      '[',
      ']',
      '"',
      ';',
      '$',
      '1-0',
      '\0',
      '%',
    );
    const damaged = fc.array(word, { maxLength: 80 }).map(words => words.join(''));
    fc.assert(
      fc.property(fc.oneof(damaged, fc.string({ maxLength: 300 })), text => {
        try {
          readPgn(text, 'x.pgn');
        } catch (error) {
          expect(error).toBeInstanceOf(TaskError);
          expect((error as Error).message).toMatch(/^x\.pgn:\d+: /);
        }
      }),
      { numRuns: 200 },
    );
    expect(() => readPgn('['.repeat(100_000), 'x.pgn')).toThrow(/is not a tag/);
    expect(() => readPgn(`[a ${'"'.repeat(50_000)}`, 'x.pgn')).toThrow(/is not a tag/);
    expect(readPgn('{'.repeat(100_000).concat('}'), 'x.pgn')).toEqual([]);
  });
});

describe('FEN files', () => {
  it('reads FEN and EPD, and passes comments over', () => {
    const text = `# mates\n\n${START_FEN}\r\n6k1/5ppp/8/8/8/8/8/R5K1 w - - bm Ra8#; id "a";\n`;
    expect(readFens(text, 'x.fen').map(({ start }) => formatFen(start))).toEqual([
      START_FEN,
      '6k1/5ppp/8/8/8/8/8/R5K1 w - - 0 1',
    ]);
  });

  it.each([
    [`${START_FEN}\nrubbish`, /x\.fen:2: "rubbish": it has 1 fields/],
    ['7k/5Q2/6K1/8/8/8/8/8 b - - 0 1', /x\.fen:1: .*the game is over \(stalemate\): remove the line/],
  ])('refuses %j', (text, problem) => {
    expect(() => readFens(text, 'x.fen')).toThrow(problem);
  });
});

describe('the task on files', () => {
  it('takes positions from a PGN, and its moves', async () => {
    const task = await makeTask('chess', {
      positions: file('games.pgn', PGN),
      environmentShare: 1,
      illegalShare: 0,
    });
    const moves = new Set(
      (await drawPrompts(task, 1, 200)).map(({ data }) => (data as { move: string }).move),
    );
    expect([...moves].sort()).toEqual(
      'a7a8q b8c6 d1h5 d2d4 d7d5 e1c1 e2e4 e7e5 e8d7 f1c4 g8f6 h5f7'.split(' '),
    );
  });

  it('takes positions from a FEN file, with moves of its own', async () => {
    const positions = file('mate.fen', '6k1/5ppp/8/8/8/8/8/R5K1 w - - 0 1\n');
    const policy = await makeTask('chess', { positions, environmentShare: 0 });
    const [prompt] = await drawPrompts(policy, 1, 1);
    expect((prompt.data as { labels: unknown[] }).labels[0]).toEqual({ move: 'a1a8', pawns: 999.9 });
    const world = await makeTask('chess', { positions, environmentShare: 1, illegalShare: 0 });
    const outcomes = (await drawPrompts(world, 1, 300)).map(({ data }) => data as Record<string, unknown>);
    expect(outcomes.find(({ move }) => move === 'a1a8')).toMatchObject({ reward: 1, terminated: true });
    expect(outcomes.every(({ truncated }) => truncated === false)).toBe(true);
  });

  it.each([
    ['empty.pgn', '', /has no game with a move/],
    ['empty.fen', '# nothing\n', /has no position/],
    ['games.zip', 'PK', /positions come from \.pgn, \.fen, \.epd or \.txt files, not "\.zip"/],
  ])('refuses %s', async (name, text, problem) => {
    await expect(gamesOfFile(file(name, text))).rejects.toThrow(problem);
  });
});
