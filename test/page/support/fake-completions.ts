/** Groups of completions for the tests of the page, from formulas. */
import type { Completion, CompletionGroup } from '../../../src/server/api.ts';
import { noise } from './fake-runs.ts';

const PROMPT = 'P: r.bqkbnr/pppp.ppp/..n...../....p.../....P.../.....N../PPPP.PPP/RNBQKB.R w KQkq - 2 3 ';
const MOVES = ['f1b5', 'f1c4', 'd2d4', 'b1c3', 'c2c3', 'a2a3', 'h2h4', 'g2g3'];

function completion(salt: number, broken: boolean): Completion {
  const moves = MOVES.map((move, i) => ({ move, key: noise(i, salt) })).sort((a, b) => a.key - b.key);
  const tokens = ['M: '];
  for (const { move } of moves.slice(0, 5)) tokens.push(move.slice(0, 2), move.slice(2), ' ');
  if (!broken) tokens.push('E: ', ...'0.4 0.3 0.3 0.2 0.0', ' B: ', 'f1', 'b5');
  const best = broken ? 0 : [1, 0.7, 0.2, -0.3][salt % 4];
  const parts = {
    structure: broken ? 0.07 : 0.2,
    parse: 0.1,
    overlap: 0.3,
    best,
    malformed: broken ? -0.3 : 0,
  };
  return {
    text: tokens.join(''),
    tokens,
    logProbs: tokens.map((_, i) => Math.log(0.05 + 0.95 * noise(i, salt + 1))),
    kl: tokens.map((_, i) => 0.6 * noise(i, salt + 2) ** 4),
    reward: Object.values(parts).reduce((sum, part) => sum + part, 0),
    advantage: 0,
    parsed: !broken,
    ended: broken ? 'length' : 'end',
    parts,
    metrics: { legal: best > -0.3 ? 1 : 0, overlap: 0.6, fen_exact: null },
    problem: null,
  };
}

/** Newest first, two of each iteration; the second of the newest has equal rewards. */
export function fakeGroups(iterations: number): CompletionGroup[] {
  return Array.from({ length: 2 * iterations }, (_, i) => {
    const iteration = iterations - Math.floor(i / 2);
    const written = Array.from({ length: 4 }, (_, k) => completion(100 * i + k, k === 3));
    const mean = written.reduce((sum, { reward }) => sum + reward! / written.length, 0);
    const completions = written.map(one => ({ ...one, advantage: one.reward! - mean }));
    return {
      iteration,
      step: 64 * iteration,
      prompt: PROMPT,
      klEstimator: 'exact' as const,
      completions: i === 1 ? completions.map(one => ({ ...one, reward: -0.3, advantage: 0 })) : completions,
    };
  });
}
