/**
 * Chess as text: naming good moves (`P:`), and being the environment that plays them (`A:`). Formats are in text.ts,
 * rewards in rewards.ts; docs/chess.md tells all.
 */
import type { OptionSchemas } from '../../envs/options.ts';
import type { Rng } from '../../random/rng.ts';
import { defineTask } from '../definition.ts';
import { fail } from '../errors.ts';
import type { TaskPrompt, TextTask } from '../text-task.ts';
import { drawPosition, outcomeOf, withIllegalMove } from './draw.ts';
import { parseFen } from './fen.ts';
import { gamesOfFile } from './files.ts';
import { type Games, generatedGames } from './games.ts';
import { type Labeller, makeLabeller } from './labeller.ts';
import { Position } from './position.ts';
import {
  environmentWeights,
  gradeEnvironment,
  gradePolicy,
  METRICS,
  policyWeights,
  REWARD_PARTS,
  type Weights,
} from './rewards.ts';
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

/** Options of the task `chess`; docs/chess.md says what each does. */
export type ChessOptions = Weights & {
  readonly environmentShare: number;
  readonly illegalShare: number;
  readonly board: string;
  readonly padded: boolean;
  readonly candidates: number;
  readonly positions: string;
  readonly games: number;
  readonly gameSeed: number;
  readonly maxPlies: number;
  readonly searchDepth: number;
  readonly engine: string;
  readonly engineDepth: number;
  readonly engineTimeoutMs: number;
};

const options: OptionSchemas<ChessOptions> = {
  environmentShare: { default: 0.2, doc: 'share of A: prompts, the rest are P:', min: 0, max: 1 },
  illegalShare: { default: 0.1, doc: 'share of A: prompts whose move is illegal', min: 0, max: 1 },
  board: {
    default: 'dots',
    doc: 'empty squares: one dot each, or counted as in a FEN',
    oneOf: ['dots', 'fen'],
  },
  padded: { default: false, doc: 'FEN, moves and evaluations padded to 90, 30 and 40 characters' },
  candidates: { default: 5, doc: 'moves that a completion names', min: 1, max: 5, integer: true },
  positions: { default: '', doc: 'a .pgn, .fen, .epd or .txt file; empty for generated games' },
  games: { default: 5000, doc: 'generated games', min: 1, max: 2 ** 24, integer: true },
  gameSeed: { default: 0, doc: 'seed of the generated games', min: 0, max: 2 ** 24, integer: true },
  maxPlies: {
    default: 80,
    doc: 'half-moves of a game that positions are from',
    min: 1,
    max: 500,
    integer: true,
  },
  searchDepth: {
    default: 2,
    doc: 'half-moves that our own search looks ahead',
    min: 1,
    max: 4,
    integer: true,
  },
  engine: {
    default: '',
    doc: 'a UCI engine that labels positions, such as stockfish; empty for our own search',
  },
  engineDepth: { default: 8, doc: 'half-moves that the engine looks ahead', min: 1, max: 40, integer: true },
  engineTimeoutMs: {
    default: 5000,
    doc: 'ms that the engine may take for one position',
    min: 10,
    max: 600_000,
  },
  scheme: {
    default: 'graduated',
    doc: 'graduated, or cliff: -1 for all that is not exactly right',
    oneOf: ['graduated', 'cliff'],
  },
  evaluationTolerance: { default: 0.5, doc: 'pawns that an evaluation may be off', min: 0, max: 100 },
  similarFrom: { default: 0.5, doc: 'similarity from which a new position counts', min: 0, max: 1 },
  ...policyWeights,
  ...environmentWeights,
};

/** What grading needs of a policy prompt. */
type PolicyData = { readonly task: 'policy'; readonly fen: string; readonly labels: readonly Candidate[] };
/** What grading needs of an environment prompt. */
type EnvironmentData = {
  readonly task: 'environment';
  readonly fen: string;
  readonly move: string;
} & Outcome;

/** The task `chess`. */
export const chessDefinition = defineTask<ChessOptions>({
  name: 'chess',
  summary: 'Name good moves in a chess position, and say what a move leads to.',
  options,
  make: async (given, context) => {
    checkInert(given);
    const games =
      given.positions === ''
        ? generatedGames(given.gameSeed, given.games, given.maxPlies)
        : await gamesOfFile(given.positions);
    return chessTask(given, games, await makeLabeller(given, context));
  },
});

/** Options that would have no effect: whoever set one meant something else. */
function checkInert(given: ChessOptions): void {
  const inert = (names: readonly (keyof ChessOptions)[], why: string): void => {
    for (const name of names)
      if (given[name] !== options[name].default)
        fail('option-invalid', `chess: option ${name} has no effect ${why}: remove it`);
  };
  if (given.positions !== '') inert(['games', 'gameSeed'], `with positions from ${given.positions}`);
  if (given.engine === '') inert(['engineDepth', 'engineTimeoutMs'], 'without an engine');
  const policy = Object.keys(policyWeights) as (keyof Weights)[];
  const environment = Object.keys(environmentWeights) as (keyof Weights)[];
  if (given.environmentShare === 0)
    inert(['illegalShare', 'similarFrom', ...environment], 'without A: prompts');
  if (given.environmentShare === 1)
    inert(['candidates', 'engine', 'searchDepth', 'evaluationTolerance', ...policy], 'without P: prompts');
}

/** How texts are written under these options. */
export const formatOf = (given: ChessOptions): TextFormat => ({
  board: given.board as BoardSpelling,
  padded: given.padded,
  candidates: given.candidates,
});

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
