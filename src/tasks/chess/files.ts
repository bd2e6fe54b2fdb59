/** Positions from a user's files: PGN games, or a FEN a line. Checked and bounded; problems name file and line. */
import { readFile, stat } from 'node:fs/promises';
import { extname, resolve } from 'node:path';
import { show } from '../../envs/errors.ts';
import { fail } from '../errors.ts';
import { parseFen, readFen, START_FEN } from './fen.ts';
import type { Game, Games } from './games.ts';
import { endingOf } from './moves.ts';
import { Position } from './position.ts';
import { moveOfSan } from './san.ts';

const MAX_BYTES = 128 * 2 ** 20;
const MAX_GAMES = 1_000_000;
/** The longest game ever played has 538. */
const MAX_PLIES = 2000;

/** The games of a `.pgn` file, or the positions of a `.fen`, `.epd` or `.txt` file. */
export async function gamesOfFile(path: string): Promise<Games> {
  const file = resolve(path);
  const extension = extname(file).toLowerCase();
  if (!['.pgn', '.fen', '.epd', '.txt'].includes(extension))
    fail(
      'file-invalid',
      `${file}: positions come from .pgn, .fen, .epd or .txt files, not ${show(extension)}`,
    );
  const found = await stat(file).catch(() => undefined);
  if (!found?.isFile())
    fail(
      'file-not-found',
      `${file}: there is no such file: check the path, which begins at ${process.cwd()}`,
    );
  if (found.size > MAX_BYTES)
    fail('file-invalid', `${file} has ${found.size} bytes, more than ${MAX_BYTES}: split it`);
  const text = (await readFile(file, 'utf8')).replace(/^\uFEFF/, '');
  const games = extension === '.pgn' ? readPgn(text, file) : readFens(text, file);
  if (games.length === 0) {
    const what = extension === '.pgn' ? 'game with a move' : 'position';
    fail('file-invalid', `${file} has no ${what}: is it the right file?`);
  }
  return { count: games.length, game: index => games[index] };
}

/** A FEN or EPD a line; empty lines and those that begin with # are passed over. */
export function readFens(text: string, file: string): Game[] {
  const games: Game[] = [];
  for (const [i, line] of text.split('\n').entries()) {
    const trimmed = line.trim();
    if (trimmed === '' || trimmed.startsWith('#')) continue;
    if (games.length >= MAX_GAMES)
      fail('file-invalid', `${file} has more than ${MAX_GAMES} positions: split it`);
    const start = new Position();
    // An EPD has operations instead of clocks: `… w - - bm Qd1+; id "x";`.
    const fields = trimmed.split(/ +/);
    const fen = fields.slice(0, /^\d+$/.test(fields[4] ?? '') ? 6 : 4).join(' ');
    const problem = readFen(fen, start) ?? overProblem(start);
    if (problem) fail('file-invalid', `${file}:${i + 1}: ${show(fen)}: ${problem}`);
    games.push({ start, moves: new Int32Array(0) });
  }
  return games;
}

function overProblem(position: Position): string | undefined {
  const ending = endingOf(position);
  return ending === undefined ? undefined : `the game is over (${ending}): remove the line`;
}

/** The main lines of a PGN's games; comments, variations and annotations are passed over. */
export function readPgn(text: string, file: string): Game[] {
  const games: Game[] = [];
  let line = 1;
  const wrong = (problem: string): never => fail('file-invalid', `${file}:${line}: ${problem}`);
  let start = parseFen(START_FEN);
  let position = copyOf(start);
  let moves: number[] = [];
  let over = false;
  let depth = 0; // of variations
  let inTags = false;
  const endGame = (): void => {
    if (moves.length > 0) games.push({ start, moves: Int32Array.from(moves) });
    if (games.length > MAX_GAMES) wrong(`there are more than ${MAX_GAMES} games: split the file`);
    if (depth > 0) wrong('a game ends inside of a variation: a ) is missing');
    start = parseFen(START_FEN);
    position = copyOf(start);
    moves = [];
    over = false;
  };

  const token =
    /\n|;[^\n]*|\{[^}]*(?:\}|$)|\[\w+\s+"(?:[^"\\\n]|\\.)*"\s*\]|\[[^\n]*|[()]|\$\d+|%[^\n]*|[^\s;{}()[\]$]+/g;
  for (const [word] of text.matchAll(token)) {
    if (word === '\n') {
      line++;
      continue;
    }
    const first = word[0];
    if (first === '{') {
      if (!word.endsWith('}')) wrong('a comment does not end: a } is missing');
      line += word.split('\n').length - 1;
    } else if (first === ';' || first === '$' || first === '%') {
      // A comment, a code or an escape.
    } else if (first === '[') {
      if (!inTags) endGame();
      inTags = true;
      const fen = /^\[FEN\s+"([^"]*)"\]$/i.exec(word)?.[1];
      if (!/^\[\w+\s+".*"\]$/.test(word)) wrong(`${show(word)} is not a tag such as [White "Name"]`);
      if (fen !== undefined) {
        const problem = readFen(fen, position);
        if (problem !== undefined) wrong(`FEN ${show(fen)}: ${problem}`);
        start = copyOf(position);
      }
    } else if (first === '(') {
      depth++;
    } else if (first === ')') {
      if (--depth < 0) wrong('there is a ) without a (');
    } else if (depth === 0) {
      inTags = false;
      if (/^(1-0|0-1|1\/2-1\/2|\*)$/.test(word)) {
        endGame();
        continue;
      }
      const san = word.replace(/^\d+\.+/, '');
      if (san === '' || /^[!?]+$/.test(san) || /^\d+$/.test(san)) continue;
      if (over) wrong(`${show(word)} follows the end of the game`);
      const move = moveOfSan(position, san);
      if (move === 0) wrong(`${show(san)} is not a legal move here (half-move ${moves.length + 1})`);
      if (moves.length >= MAX_PLIES) wrong(`the game has more than ${MAX_PLIES} half-moves`);
      position.advance(move);
      moves.push(move);
      over = endingOf(position) === 'checkmate' || endingOf(position) === 'stalemate';
    }
  }
  endGame();
  return games;
}

function copyOf(position: Position): Position {
  const copy = new Position();
  copy.copyFrom(position);
  return copy;
}
