/** Completions written by hand, whose grades are known. */
import { describe, expect, it } from 'vitest';
import { makeTask, newGrade, type TaskPrompt, type TextTask } from '../../../src/tasks/index.ts';

const fen = 'r1bqkbnr/pppp1ppp/2n5/4p3/4P3/5N2/PPPP1PPP/RNBQKB1R w KQkq - 2 3';
const labels = [
  { move: 'f1b5', pawns: 0.4 },
  { move: 'f1c4', pawns: 0.3 },
  { move: 'd2d4', pawns: 0.3 },
  { move: 'b1c3', pawns: 0.2 },
  { move: 'c2c3', pawns: 0 },
];
const policy: TaskPrompt = { text: `P: ${fen} `, data: { task: 'policy', fen, labels } };

function gradeOf(task: TextTask, prompt: TaskPrompt, completion: string) {
  const grade = newGrade(task);
  task.grade(prompt, completion, grade);
  const parts = Object.fromEntries(
    task.rewardParts
      .map((name, i) => [name, Number(grade.parts[i].toFixed(10))])
      .filter(([, part]) => part !== 0),
  );
  const metrics = Object.fromEntries(
    task.metricNames.map((name, i) => [name, grade.metrics[i]]).filter(([, value]) => !Number.isNaN(value)),
  );
  return { ...grade, parts, metrics };
}

const right = 'M: f1b5 f1c4 d2d4 b1c3 c2c3 E: 0.4 0.3 0.3 0.2 0.0 B: f1b5';

describe('policy', () => {
  it.each<[string, string, Record<string, number>]>([
    ['all is right', right, { structure: 0.2, parse: 0.1, overlap: 0.5, evaluations: 0.2, best: 1 }],
    [
      'in another order, padded',
      'M: c2c3 b1c3 d2d4 f1c4 f1b5      E: 0.0 0.2 0.3 0.3 0.4      B: f1b5  ',
      { structure: 0.2, parse: 0.1, overlap: 0.5, evaluations: 0.2, best: 1 },
    ],
    [
      'the third move is best',
      right.replace(/f1b5$/, 'd2d4'),
      { structure: 0.2, parse: 0.1, overlap: 0.5, evaluations: 0.2, best: 0.7 },
    ],
    [
      'the fourth',
      right.replace(/f1b5$/, 'b1c3'),
      { structure: 0.2, parse: 0.1, overlap: 0.5, evaluations: 0.2, best: 0.5 },
    ],
    [
      'ten candidates, of which more is not better',
      'M: f1b5 f1c4 d2d4 b1c3 c2c3 a2a3 a2a4 h2h3 h2h4 b2b3 E: 0.4 0.3 0.3 0.2 0.0 0.1 0.1 0.1 0.1 0.1 B: f1b5',
      { structure: 0.2, parse: 0.1, overlap: 0.5, evaluations: 0.2, best: 1 },
    ],
    [
      'the fifth',
      right.replace(/f1b5$/, 'c2c3'),
      { structure: 0.2, parse: 0.1, overlap: 0.5, evaluations: 0.2, best: 0.5 },
    ],
    [
      'a legal move',
      right.replace(/f1b5$/, 'a2a3'),
      { structure: 0.2, parse: 0.1, overlap: 0.5, evaluations: 0.2, best: 0.2 },
    ],
    [
      'an illegal move',
      right.replace(/f1b5$/, 'a1a5'),
      { structure: 0.2, parse: 0.1, overlap: 0.5, evaluations: 0.2, best: -0.3 },
    ],
    [
      'other candidates',
      'M: a2a3 h2h3 d2d4 b1c3 c2c3 E: 0.4 0.3 0.9 0.7 -0.5 B: f1b5',
      { structure: 0.2, parse: 0.1, overlap: 0.3, evaluations: 0.08, best: 1 },
    ],
    [
      'three candidates',
      'M: f1b5 f1c4 d2d4 E: 0.4 0.3 0.3 B: f1b5',
      { structure: 0.2, parse: (0.1 * (0.6 + 0.6 + 1)) / 3, overlap: 0.3, evaluations: 0.12, best: 1 },
    ],
    [
      'one candidate five times',
      'M: f1b5 f1b5 f1b5 f1b5 f1b5 E: 0.4 0.4 0.4 0.4 0.4 B: f1b5',
      { structure: 0.2, parse: (0.1 * (0.2 + 1 + 1)) / 3, overlap: 0.1, evaluations: 0.04, best: 1 },
    ],
    [
      'words that are no moves or numbers',
      'M: Bb5 f1c4 x9 b1c3 c2c3 E: a 0.3 0.3 - 1e5 B: Bb5',
      { structure: 0.2, parse: (0.1 * (0.6 + 0.4)) / 3, overlap: 0.3, evaluations: 0.04, best: -0.3 },
    ],
    [
      'no best move',
      'M: f1b5 f1c4 d2d4 b1c3 c2c3 E: 0.4 0.3 0.3 0.2 0.0',
      { structure: (0.2 * 2) / 3, parse: (0.1 * 2) / 3, overlap: 0.5, evaluations: 0.2, malformed: -0.3 },
    ],
    ['only a label', 'M:', { structure: 0.2 / 3, malformed: -0.3 }],
    ['nothing', '', { malformed: -0.3 }],
    ['noise', 'e2e4 e2e4 e2e4', { malformed: -0.3 }],
    [
      'labels out of order',
      'B: f1b5 E: 0.4 M: f1b5',
      { structure: 0.2 / 3, parse: (0.1 * 0.2) / 3, overlap: 0.1, malformed: -0.3 },
    ],
  ])('%s', async (_, completion, parts) => {
    const task = await makeTask('chess');
    const grade = gradeOf(task, policy, completion);
    const expected = Object.fromEntries(
      Object.entries(parts).map(([name, part]) => [name, expect.closeTo(part, 9)]),
    );
    expect(grade.parts).toEqual(expected);
    expect(grade.reward).toBeCloseTo(
      Object.values(parts).reduce((sum, part) => sum + part, 0),
      9,
    );
  });

  it('orders malformed < illegal < legal < among the best < the best', async () => {
    const task = await makeTask('chess');
    const candidates = 'M: a2a3 h2h3 g2g3 b2b3 h2h4 E: 0.4 0.3 0.3 0.2 0.0 B: ';
    const rewards = ['', ...['a1a5', 'a2a3', 'c2c3', 'd2d4', 'f1b5'].map(best => candidates + best)].map(
      completion => gradeOf(task, policy, completion).reward,
    );
    expect(rewards).toEqual([...rewards].sort((a, b) => a - b));
    expect(new Set(rewards).size).toBe(rewards.length);
    expect(rewards[0]).toBeCloseTo(-0.3);
  });

  it.each([-0.3, -1])(
    'never pays more for naming no move than for an illegal one (%d)',
    async bestIllegal => {
      const task = await makeTask('chess', { bestIllegal });
      const rewardOf = (completion: string): number => gradeOf(task, policy, completion).reward;
      const candidates = 'M: f1b5 f1c4 d2d4 b1c3 c2c3 E: 0.4 0.3 0.3 0.2 0.0';
      const illegal = rewardOf(`${candidates} B: a1a5`);
      for (const ending of ['', ' B:', ' B: ', ' B: Bb5', ' B: f1b5f1c4', ' B: f1b5 x'])
        expect(rewardOf(candidates + ending)).toBeLessThanOrEqual(illegal);
      expect(rewardOf('')).toBeLessThan(illegal);
    },
  );

  it('measures rates', async () => {
    const task = await makeTask('chess');
    const grade = gradeOf(task, policy, 'M: f1b5 a1a5 a2a3 b1c3 zz E: 0.4 0 0 0.9 0 B: a2a3');
    expect(grade.metrics).toEqual({
      structure: 1,
      legal: 1,
      candidates_legal: 3 / 5,
      overlap: 2 / 5,
      evaluations: 1 / 5,
      best: 0,
      top5: 0,
    });
    expect(grade.parsed).toBe(false);
    expect(gradeOf(task, policy, right).parsed).toBe(true);
    // Repeating a move costs a part of the reward, but can be read; too few moves or numbers cannot.
    const repeated = gradeOf(task, policy, 'M: a2a3 a2a3 a2a3 a2a3 b1c3 E: 0 0 0 0 0 B: a2a3');
    expect(repeated.parsed).toBe(true);
    expect(repeated.parts.parse).toBeLessThan(gradeOf(task, policy, right).parts.parse);
    expect(gradeOf(task, policy, 'M: a2a3 b1c3 E: 0 0 0 0 0 B: a2a3').parsed).toBe(false);
    expect(gradeOf(task, policy, 'M: a2a3 b1c3 f1b5 a2a4 h2h3 E: 0 0 B: a2a3').parsed).toBe(false);
  });

  it('takes any large number of the right sign for a mate', async () => {
    const task = await makeTask('chess', { candidates: 1 });
    const prompt = { text: '', data: { task: 'policy', fen, labels: [{ move: 'f1b5', pawns: -999.9 }] } };
    for (const [pawns, part] of [['-999.9', 0.2], ['-100', 0.2], ['-99', 0], ['999.9', 0]] as const) // biome-ignore format: pairs
      expect(gradeOf(task, prompt, `M: f1b5 E: ${pawns} B: f1b5`).parts.evaluations ?? 0).toBe(part);
  });

  it('every weight is an option', async () => {
    const task = await makeTask('chess', {
      structure: 1,
      parse: 2,
      overlap: 3,
      evaluations: 4,
      best: 5,
      malformed: -6,
    });
    expect(gradeOf(task, policy, right).parts).toEqual({
      structure: 1,
      parse: 2,
      overlap: 3,
      evaluations: 4,
      best: 5,
    });
    expect(gradeOf(task, policy, '').parts).toEqual({ malformed: -6 });
    const strict = await makeTask('chess', { bestTop3: 0, bestTop5: 0, bestLegal: 0, bestIllegal: -1 });
    expect(gradeOf(strict, policy, right.replace(/f1b5$/, 'd2d4')).parts.best).toBeUndefined();
    expect(gradeOf(strict, policy, right.replace(/f1b5$/, 'a1a5')).parts.best).toBe(-1);
  });
});

const next = 'r1bqkbnr/pppp1ppp/2n5/1B2p3/4P3/5N2/PPPP1PPP/RNBQK2R b KQkq - 3 3';
const outcome = {
  task: 'environment',
  fen,
  move: 'f1b5',
  next,
  reward: 0.001,
  terminated: false,
  truncated: false,
};
const environment: TaskPrompt = { text: '', data: outcome };
const dots = 'r.bqkbnr/pppp.ppp/..n...../.B..p.../....P.../.....N../PPPP.PPP/RNBQK..R b KQkq - 3 3';

describe('environment', () => {
  it.each<[string, string, Record<string, number>]>([
    ['all is right', `${dots}+0.001+0+0`, { structure: 0.1, fen: 1, env_reward: 0.3, flags: 0.1 }],
    ['with counts', `${next}+0.001+0+0`, { structure: 0.1, fen: 1, env_reward: 0.3, flags: 0.1 }],
    ['a wrong reward', `${dots}+1+0+0`, { structure: 0.1, fen: 1, flags: 0.1 }],
    ['a wrong flag', `${dots}+0.001+1+0`, { structure: 0.1, fen: 1, env_reward: 0.3, flags: 0.05 }],
    [
      'a wrong clock',
      `${dots.replace('- 3', '- 4')}+0.001+0+0`,
      { structure: 0.1, fen: (0.5 * 68) / 69, env_reward: 0.3, flags: 0.1 },
    ],
    [
      'the old position',
      `${fen}+0.001+0+0`,
      { structure: 0.1, fen: (0.5 * 65) / 69, env_reward: 0.3, flags: 0.1 },
    ],
    [
      'a rank too long',
      `${dots.replace('r.b', 'r..b')}+0.001+0+0`,
      { structure: 0.1, fen: (0.5 * 63) / 69, env_reward: 0.3, flags: 0.1 },
    ],
    ['another position', '........+0.001+0+0', { structure: 0.1, env_reward: 0.3, flags: 0.1 }],
    ['the position alone', dots, { fen: 1, malformed: -0.3 }],
    ['five fields', `${dots}+0.001+0+0+0`, { fen: 1, env_reward: 0.3, flags: 0.1, malformed: -0.3 }],
    ['nothing', '', { malformed: -0.3 }],
  ])('%s', async (_, completion, parts) => {
    const grade = gradeOf(await makeTask('chess'), environment, completion);
    expect(grade.parts).toEqual(
      Object.fromEntries(Object.entries(parts).map(([name, part]) => [name, expect.closeTo(part, 9)])),
    );
  });

  it('measures rates', async () => {
    const task = await makeTask('chess');
    expect(gradeOf(task, environment, `${dots}+0.001+0+1`).metrics).toEqual({
      structure: 1,
      fen_exact: 1,
      fen_similarity: 1,
      env_reward: 1,
      flags: 0.5,
    });
    expect(gradeOf(task, environment, `${dots}+0.001+0+0`).parsed).toBe(true);
    expect(gradeOf(task, environment, `${dots}+0.001+0+2`).parsed).toBe(false);
    expect(gradeOf(task, environment, `${dots}+much+0+0`).parsed).toBe(false);
    expect(gradeOf(task, environment, 'k+0.001+0+0').parsed).toBe(false);
  });
});

describe('cliff', () => {
  it('gives -1 to all that is not exactly right, and the whole reward to what is', async () => {
    const task = await makeTask('chess', { scheme: 'cliff' });
    for (const completion of ['', 'noise', right.replace(/f1b5$/, 'd2d4'), right.replace(/f1b5$/, 'a1a5')])
      expect(gradeOf(task, policy, completion)).toMatchObject({ reward: -1, parts: { malformed: -1 } });
    expect(gradeOf(task, policy, right).reward).toBeCloseTo(2);
    expect(gradeOf(task, environment, `${dots}+1+0+0`).reward).toBe(-1);
    expect(gradeOf(task, environment, `${dots}+0.001+0+0`).reward).toBeCloseTo(1.5);
  });
});

it.each([
  [{ engineDepth: 3 }, /engineDepth has no effect without an engine/],
  [{ environmentShare: 0, fenExact: 2 }, /fenExact has no effect without A: prompts/],
  [{ environmentShare: 1, best: 2 }, /best has no effect without P: prompts/],
  [{ positions: 'x.pgn', games: 3 }, /games has no effect with positions from x.pgn/],
  [{ scheme: 'steep' }, /scheme is "steep", not one of "graduated", "cliff"/],
  [{ candidates: 6 }, /candidates is 6, above its largest value 5/],
  [{ positions: 'none.pgn' }, /none.pgn: there is no such file/],
])('refuses the options %j', async (options, problem) => {
  await expect(makeTask('chess', options)).rejects.toThrow(problem);
});
