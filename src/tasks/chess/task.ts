/**
 * Chess as text: naming good moves (`P:`), and being the environment that plays them (`A:`). Formats are in text.ts,
 * rewards in rewards.ts; docs/chess.md tells all.
 */
import type { Rng } from '../../random/rng.ts';
import { fail } from '../errors.ts';
import type { TaskContext, TaskPrompt, TextTask } from '../text-task.ts';
import { drawPosition, outcomeOf, withIllegalMove } from './draw.ts';
import { parseFen } from './fen.ts';
import { gamesOfFile } from './files.ts';
import { type Games, generatedGames } from './games.ts';
import { type Labeller, makeLabeller } from './labeller.ts';
import type { ChessOptions } from './options.ts';
import { Position } from './position.ts';
import { gradeEnvironment, gradePolicy, METRICS, REWARD_PARTS } from './rewards.ts';
import {
  type BoardSpelling,
  type Candidate,
  CHARACTERS,
  environmentCompletion,
  environmentPrompt,
  type Outcome,
  PADDING_PIECES,
  PIECES,
  policyCompletion,
  policyPrompt,
  type TextFormat,
} from './text.ts';

/** What grading needs of a policy prompt. */
type PolicyData = { readonly task: 'policy'; readonly fen: string; readonly labels: readonly Candidate[] };
/** What grading needs of an environment prompt. */
type EnvironmentData = {
  readonly task: 'environment';
  readonly fen: string;
  readonly move: string;
} & Outcome;

/** How texts are written under these options. */
export const formatOf = (given: ChessOptions): TextFormat => ({
  board: given.board as BoardSpelling,
  padded: given.padded,
  candidates: given.candidates,
});

/** Chess with these options: its games, and who labels positions. */
export async function makeChess(given: ChessOptions, context: TaskContext): Promise<TextTask> {
  const games =
    given.positions === ''
      ? generatedGames(given.gameSeed, given.games, given.maxPlies)
      : await gamesOfFile(given.positions);
  return chessTask(given, games, await makeLabeller(given, context));
}

/** Positions that an engine may fail on in a row before a prompt gives up. */
const MAX_SKIPS = 20;

function chessTask(given: ChessOptions, games: Games, labeller: Labeller): TextTask {
  const format = formatOf(given);
  const at = new Position();

  const policy = (fen: string, labels: readonly Candidate[]): TaskPrompt => {
    const data: PolicyData = { task: 'policy', fen, labels };
    return { text: policyPrompt(fen, format), data: data as unknown as TaskPrompt['data'] };
  };
  const environment = (rng: Rng): TaskPrompt => {
    let drawn = drawPosition(games, given.maxPlies, rng);
    parseFen(drawn.fen, at);
    if (rng.uniform() < given.illegalShare) drawn = withIllegalMove(drawn, at, rng);
    const outcome = outcomeOf(drawn.fen, at, drawn.move);
    const data: EnvironmentData = { task: 'environment', fen: drawn.fen, move: drawn.move, ...outcome };
    return {
      text: environmentPrompt(drawn.fen, drawn.move, drawn.history, format),
      data: data as unknown as TaskPrompt['data'],
    };
  };
  const labelled = async (rng: Rng, first: string): Promise<TaskPrompt> => {
    let fen = first;
    for (let i = 0; i < MAX_SKIPS; i++) {
      const labels = await labeller.labels(fen);
      if (labels !== undefined) return policy(fen, labels);
      fen = drawPosition(games, given.maxPlies, rng).fen;
    }
    return fail(
      'engine-failed',
      `${labeller.source()} labelled none of ${MAX_SKIPS} positions: check the engine`,
    );
  };

  return {
    name: 'chess',
    characters: CHARACTERS,
    pieces: given.padded ? [...PIECES, ...PADDING_PIECES] : PIECES,
    rewardParts: REWARD_PARTS,
    metricNames: METRICS,
    stop: ['\n'],
    // Of the longest texts: a FEN has at most 88 tokens, ten moves 39, padded policy fields at most as many as characters.
    maxPromptTokens: given.environmentShare > 0 ? 136 : given.padded ? 94 : 90,
    maxNewTokens: given.environmentShare > 0 ? 98 : given.padded ? 82 : 8 * given.candidates + 8,
    prompt(rng) {
      if (rng.uniform() < given.environmentShare) return environment(rng);
      const { fen } = drawPosition(games, given.maxPlies, rng);
      const labels = labeller.now(fen);
      return labels === undefined ? labelled(rng, fen) : policy(fen, labels);
    },
    grade(prompt, completion, out) {
      const data = prompt.data as unknown as PolicyData | EnvironmentData;
      if (data.task === 'policy') gradePolicy(data.fen, data.labels, completion, given, format, out);
      else gradeEnvironment(data, completion, given, out);
    },
    demonstration(prompt, rng) {
      const data = prompt.data as unknown as PolicyData | EnvironmentData;
      if (data.task === 'environment') return environmentCompletion(data, format);
      const wanted = data.labels.slice(0, format.candidates);
      const shuffled = Array.from(rng.permutation(wanted.length), i => wanted[i]);
      return policyCompletion(shuffled, data.labels[0].move, format);
    },
    sources: () => ({
      labelSource: labeller.source(),
      labelsSkipped: labeller.skipped(),
      positions:
        given.positions === '' ? `${given.games} generated games, seed ${given.gameSeed}` : given.positions,
    }),
    close: () => labeller.close(),
  };
}
