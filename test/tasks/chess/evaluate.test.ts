import { Chess } from 'chess.js';
import { describe, expect, it } from 'vitest';
import { Rng } from '../../../src/random/index.ts';
import { parseFen, spellCounts } from '../../../src/tasks/chess/fen.ts';
import { searchLabels } from '../../../src/tasks/chess/labels.ts';
import { mateInOnePositions } from '../../../src/tasks/chess/mates.ts';
import { generateLegal, MAX_MOVES, uciOf } from '../../../src/tasks/chess/moves.ts';
import { bestMoves } from '../../../src/tasks/chess/search.ts';
import {
  type Complete,
  createTask,
  evaluateChess,
  type TaskEvaluation,
  type TextTask,
} from '../../../src/tasks/index.ts';
import { findTask } from '../../../src/tasks/registry.ts';

const options = { searchDepth: 1, environmentShare: 0.3 };
const settings = { prompts: 60, mates: 20, batchSize: 7 };
const values = ({ rows }: TaskEvaluation): Record<string, number> =>
  Object.fromEntries(rows.map(({ name, value }) => [name, value]));

const fenOf = (prompt: string): string => spellCounts(prompt.slice(3).split('+')[0].trim());

/** Plays by the same search as the labels, and any move as environment. */
const perfect: Complete = async prompts =>
  prompts.map(prompt => {
    if (prompt.startsWith('A: ')) {
      const [fen, move] = prompt.slice(3).split('+');
      const chess = new Chess(spellCounts(fen));
      try {
        chess.move(move);
      } catch {
        return `${fen}+-1+0+1`;
      }
      const over = chess.isGameOver();
      return `${chess.fen()}+${chess.isCheckmate() ? 1 : over ? 0.5 : 0.001}+${over ? 1 : 0}+0`;
    }
    const labels = searchLabels(fenOf(prompt), 1);
    const list = (what: 'move' | 'pawns'): string => labels.map(label => label[what]).join(' ');
    return `M: ${list('move')} E: ${list('pawns')} B: ${labels[0].move}`;
  });

describe('positions that are held out', () => {
  it('are of other games than those of training, whatever its seed', async () => {
    const chess = findTask('chess');
    const few = { ...options, games: 3, environmentShare: 0 };
    const drawn = async (task: TextTask): Promise<Set<string>> => {
      const [rng, texts] = [new Rng(1), new Set<string>()];
      // From a few plies on no two games are alike.
      for (let i = 0; i < 60; i++) texts.add(fenOf((await task.prompt(rng)).text));
      await task.close?.();
      return new Set([...texts].filter(fen => Number(fen.split(' ').at(-1)) > 5));
    };
    const [seen, seenAgain, held] = [
      await drawn(await createTask(chess, few)),
      await drawn(await createTask(chess, few)),
      await drawn(await chess.heldOut!(few)),
    ];
    expect(seen).toEqual(seenAgain);
    expect(held.size).toBeGreaterThan(10);
    expect([...held].filter(fen => seen.has(fen))).toEqual([]);
    await expect(chess.heldOut!({ ...few, gameSeed: 2 ** 24 })).resolves.toBeDefined();
    await expect(chess.heldOut!({ ...few, gameSeed: -1 })).rejects.toThrow(/gameSeed/);
  });
});

describe('evaluation', () => {
  it('of a perfect model', async () => {
    const evaluation = await evaluateChess(options, perfect, settings);
    const { reward, reward_policy, reward_environment, unique_moves, legal_unique, fen_exact, ...rates } =
      values(evaluation);
    expect(legal_unique).toBe(unique_moves);
    const names = evaluation.rows.map(({ name }) => name);
    expect(names[names.indexOf('legal') + 1]).toBe('legal_unique');
    expect(fen_exact).toBe(1); // chess.js agrees with us
    const { repetition, ...perfectRates } = rates;
    expect(Object.values(perfectRates)).toEqual(Object.values(perfectRates).map(() => 1));
    expect(Object.keys(perfectRates)).toContain('mate_in_one');
    expect(repetition).toBe(0);
    expect(unique_moves).toBeGreaterThan(0.3);
    expect(reward).toBeGreaterThan(1.5);
    // All parts of each task: structure, parse, overlap, evaluations, best; structure, position, reward, flags.
    expect([reward_policy, reward_environment]).toEqual([expect.closeTo(2, 9), expect.closeTo(1.5, 9)]);
    expect(evaluation.sources.labelSource).toBe('own search, depth 1');
    // Batches change nothing, nor does a second time.
    expect(await evaluateChess(options, perfect, { ...settings, batchSize: 64 })).toEqual(evaluation);
  });

  it('of models that are not', async () => {
    const noise = values(await evaluateChess(options, async prompts => prompts.map(() => 'noise'), settings));
    expect(noise).toMatchObject({ parsed: 0, structure: 0, legal: 0, best: 0, fen_exact: 0, mate_in_one: 0 });
    expect(noise.reward).toBeCloseTo(-0.3, 1);
    const same = values(
      await evaluateChess(
        { ...options, environmentShare: 0 },
        async prompts => prompts.map(() => 'M: e2e4 e2e4 e2e4 e2e4 e2e4 E: 0 0 0 0 0 B: e2e4'),
        settings,
      ),
    );
    expect(same).toMatchObject({ structure: 1, repetition: expect.closeTo(0.8, 9), parsed: 1 });
    expect(same.unique_moves).toBeCloseTo(1 / 60);
    // One move in all, however many of the sixty positions allow it.
    expect(same.legal).toBeGreaterThan(0);
    expect(same.legal_unique).toBeCloseTo(1 / (60 * same.legal), 9);
    expect(same).not.toHaveProperty('fen_exact');
    expect(same).not.toHaveProperty('reward_environment');
    expect(same.reward_policy).toBe(same.reward);
    const rng = new Rng(1);
    const legal = new Int32Array(MAX_MOVES);
    const anyMove: Complete = async prompts =>
      prompts.map(prompt => {
        const count = generateLegal(parseFen(fenOf(prompt)), legal);
        return `M: E: B: ${uciOf(legal[rng.integer(count)])}`;
      });
    const random = values(await evaluateChess({ ...options, environmentShare: 0 }, anyMove, settings));
    expect(random).toMatchObject({ legal: 1, mate_legal: 1, overlap: 0 });
    expect(random.best).toBeLessThan(0.5);
  });

  it.each([
    [{ prompts: 0 }, /prompts is 0, not a whole number in 1/],
    [{ mates: 1.5 }, /mates is 1.5/],
    [{ seed: -1 }, /seed is -1/],
  ])('refuses %j', async (wrong, problem) => {
    await expect(evaluateChess(options, perfect, { ...settings, ...wrong })).rejects.toThrow(problem);
  });

  it('says when a model gives too few completions', async () => {
    await expect(evaluateChess(options, async () => [], settings)).rejects.toThrow(
      /gave 0 texts for 7 prompts/,
    );
  });
});

it('finds positions with a mate in one, and all of their mates, as chess.js sees them', () => {
  const found = mateInOnePositions(3, 12);
  expect(found).toHaveLength(12);
  expect(mateInOnePositions(3, 12)).toEqual(found);
  expect(new Set(found.map(({ fen }) => fen)).size).toBe(12);
  for (const { fen, mates } of found) {
    const mating = new Chess(fen).moves({ verbose: true }).filter(({ san }) => san.endsWith('#'));
    expect(mating.map(({ lan }) => lan).sort()).toEqual([...mates].sort());
  }
});

describe('the own search', () => {
  it.each([
    ['6k1/5ppp/8/8/8/8/8/R5K1 w - - 0 1', 'a1a8', 999.9], // mates
    ['6k1/8/8/3q4/4P3/8/8/6K1 w - - 0 1', 'e4d5', undefined], // takes what hangs
    ['k7/8/8/8/8/8/6q1/7K w - - 0 1', 'h1g2', undefined],
    ['r5k1/8/8/8/8/8/5PPP/6K1 b - - 0 1', 'a8a1', -999.9], // White's point of view
    ['k7/2Q5/8/8/8/8/8/7K w - - 0 1', undefined, undefined],
  ])('in %s plays %s', (fen, move, pawns) => {
    for (const depth of [1, 2, 3]) {
      const labels = searchLabels(fen, depth);
      if (move !== undefined) expect(labels[0].move).toBe(move);
      if (pawns !== undefined) expect(labels[0].pawns).toBe(pawns);
      const sign = fen.includes(' w ') ? 1 : -1;
      const order = labels.map(label => sign * label.pawns);
      expect(order).toEqual([...order].sort((a, b) => b - a));
      expect(new Set(labels.map(label => label.move)).size).toBe(labels.length);
    }
  });

  it('the best five are the best of all, whose values are exact', () => {
    for (const { fen } of mateInOnePositions(9, 5)) {
      const position = parseFen(fen);
      const all = bestMoves(position, 2, MAX_MOVES).map(({ score }) => score);
      expect(bestMoves(position, 2, 5).map(({ score }) => score)).toEqual(all.slice(0, 5));
      expect(Math.abs(all[0])).toBeGreaterThan(90_000);
    }
  });
});
