/**
 * What a completion is worth. Graduated: form, then readable parts, then content, so that completions of one group differ
 * and nothing is a cliff; what is malformed is mildly negative. The values are RookWorld's that worked, except that the
 * best move also counts by its rank, in the values of its other scheme, and an illegal one is as bad as a malformed text.
 *
 * With `scheme: 'cliff'` whatever is not exactly right is -1: the setting under which every group is equal and nothing is
 * learnt, kept for comparison.
 */
import { clearGrade, type Grade, sumParts } from '../text-task.ts';
import { parseFen, readFen, spellCounts } from './fen.ts';
import { legalMoveNamed } from './moves.ts';
import type { Weights } from './options.ts';
import { Position } from './position.ts';
import { MATE_PAWNS } from './search.ts';
import {
  type Candidate,
  fenSimilarity,
  type Outcome,
  type ReadPolicy,
  readEnvironment,
  readPolicy,
  type TextFormat,
} from './text.ts';

/** Names of the parts of a reward, in order. */
export const REWARD_PARTS = [
  'structure',
  'parse',
  'overlap',
  'evaluations',
  'best',
  'fen',
  'env_reward',
  'flags',
  'malformed',
] as const;

/** Names of what is measured, in order. */
export const METRICS = [
  'structure',
  'legal',
  'candidates_legal',
  'overlap',
  'evaluations',
  'best',
  'top5',
  'fen_exact',
  'fen_similarity',
  'env_reward',
  'flags',
] as const;

const part = Object.fromEntries(REWARD_PARTS.map((name, i) => [name, i])) as Record<
  (typeof REWARD_PARTS)[number],
  number
>;
const metric = Object.fromEntries(METRICS.map((name, i) => [name, i])) as Record<
  (typeof METRICS)[number],
  number
>;

const CLIFF = -1;
/** A mate's evaluation: anything as large with the same sign is right. */
const MATE_FROM = 100;

const position = new Position();

/** Grades a policy completion against the labels of the position, best first. */
export function gradePolicy(
  fen: string,
  labels: readonly Candidate[],
  completion: string,
  weights: Weights,
  format: TextFormat,
  out: Grade,
): void {
  clearGrade(out);
  const read = readPolicy(completion);
  const wanted = labels.slice(0, format.candidates);
  const shares = policyShares(fen, labels, wanted, read, weights.evaluationTolerance);
  out.parsed = shares.readable;
  out.metrics[metric.structure] = read.sections === 3 ? 1 : 0;
  out.metrics[metric.legal] = shares.legal ? 1 : 0;
  out.metrics[metric.candidates_legal] = shares.candidatesLegal;
  out.metrics[metric.overlap] = shares.overlap;
  out.metrics[metric.evaluations] = shares.evaluations;
  out.metrics[metric.best] = shares.rank === 0 ? 1 : 0;
  out.metrics[metric.top5] = shares.rank >= 0 ? 1 : 0;
  if (weights.scheme === 'cliff' && !(shares.parse === 1 && shares.rank === 0)) {
    out.parts[part.malformed] = CLIFF;
  } else {
    out.parts[part.structure] = (weights.structure * read.sections) / 3;
    out.parts[part.parse] = weights.parse * shares.parse;
    out.parts[part.overlap] = weights.overlap * shares.overlap;
    out.parts[part.evaluations] = weights.evaluations * shares.evaluations;
    // Not to name a move must not pay better than to name an illegal one: policies learn that first.
    if (read.sections < 3) {
      out.parts[part.malformed] = weights.malformed;
      out.parts[part.best] = Math.min(0, weights.bestIllegal - weights.malformed);
    } else {
      out.parts[part.best] = bestReward(shares.rank, shares.legal, weights);
    }
  }
  sumParts(out);
}

function bestReward(rank: number, legal: boolean, weights: Weights): number {
  if (rank === 0) return weights.best;
  if (rank >= 0) return rank < 3 ? weights.bestTop3 : weights.bestTop5;
  return legal ? weights.bestLegal : weights.bestIllegal;
}

interface PolicyShares {
  /** Of moves and numbers that can be read; a move counts once. */
  readonly parse: number;
  /** All of them are there and can be read, repeated moves too. */
  readonly readable: boolean;
  readonly overlap: number;
  readonly evaluations: number;
  readonly candidatesLegal: number;
  readonly legal: boolean;
  /** Of the best move among the labels; -1 for none. */
  readonly rank: number;
}

function policyShares(
  fen: string,
  labels: readonly Candidate[],
  wanted: readonly Candidate[],
  read: ReadPolicy,
  tolerance: number,
): PolicyShares {
  const { moves, pawns, best } = read;
  const readable = (right: number, written: number): number => right / Math.max(wanted.length, written, 1);
  const known = new Set(moves.filter(move => move !== undefined));
  const numbers = pawns.filter(value => !Number.isNaN(value)).length;
  let found = 0;
  let near = 0;
  for (const { move, pawns: right } of wanted) {
    const at = moves.indexOf(move);
    if (at < 0) continue;
    found++;
    if (isNear(pawns[at], right, tolerance)) near++;
  }
  parseFen(fen, position);
  let legal = 0;
  // More than the text can hold are not looked at: grading must stay quick whatever is written.
  for (const move of [...known].slice(0, 16)) if (legalMoveNamed(position, move) !== 0) legal++;
  return {
    parse:
      (readable(known.size, moves.length) + readable(numbers, pawns.length) + (best === undefined ? 0 : 1)) /
      3,
    readable:
      best !== undefined &&
      moves.length >= wanted.length &&
      !moves.includes(undefined) &&
      pawns.length >= wanted.length &&
      numbers === pawns.length,
    overlap: found / wanted.length,
    evaluations: near / wanted.length,
    candidatesLegal: readable(legal, moves.length),
    legal: best !== undefined && legalMoveNamed(position, best) !== 0,
    rank: labels.findIndex(({ move }) => move === best),
  };
}

function isNear(written: number | undefined, right: number, tolerance: number): boolean {
  if (written === undefined || Number.isNaN(written)) return false;
  if (Math.abs(right) === MATE_PAWNS)
    return Math.sign(written) === Math.sign(right) && Math.abs(written) >= MATE_FROM;
  // Values are written to a decimal: 0.5 from 0.0 is near although 0.5 - 0.0 may come out a little more.
  return Math.abs(written - right) <= tolerance + 1e-9;
}

/** Grades an environment completion against what the rules say. */
export function gradeEnvironment(right: Outcome, completion: string, weights: Weights, out: Grade): void {
  clearGrade(out);
  const read = readEnvironment(completion);
  const whole = read.fields === 4;
  const exact = spellCounts(read.next) === right.next;
  const similarity = exact ? 1 : fenSimilarity(read.next, right.next);
  const rewardRight = Math.abs(read.reward - right.reward) < 5e-4;
  const flags =
    (Number(read.terminated === String(Number(right.terminated))) +
      Number(read.truncated === String(Number(right.truncated)))) /
    2;
  const isFlag = (text: string): boolean => text === '0' || text === '1';
  out.parsed =
    whole &&
    !Number.isNaN(read.reward) &&
    isFlag(read.terminated) &&
    isFlag(read.truncated) &&
    (exact || readFen(read.next, position) === undefined);
  out.metrics[metric.structure] = whole ? 1 : 0;
  out.metrics[metric.fen_exact] = exact ? 1 : 0;
  out.metrics[metric.fen_similarity] = similarity;
  out.metrics[metric.env_reward] = rewardRight ? 1 : 0;
  out.metrics[metric.flags] = flags;
  if (weights.scheme === 'cliff' && !(whole && exact && rewardRight && flags === 1)) {
    out.parts[part.malformed] = CLIFF;
  } else {
    out.parts[part.structure] = weights.envStructure * (read.fields <= 4 ? (read.fields - 1) / 3 : 0);
    out.parts[part.fen] = exact
      ? weights.fenExact
      : similarity >= weights.similarFrom
        ? weights.fenSimilar * similarity
        : 0;
    out.parts[part.env_reward] = rewardRight ? weights.envReward : 0;
    out.parts[part.flags] = weights.flags * flags;
    if (!whole) out.parts[part.malformed] = weights.envMalformed;
  }
  sumParts(out);
}
