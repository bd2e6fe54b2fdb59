/** Options of the task `chess`, and the weights of its rewards, which are some of them. */
import type { OptionSchema, OptionSchemas } from '../../envs/options.ts';

const weight = (value: number, doc: string): OptionSchema<number> => ({
  default: value,
  doc,
  min: -10,
  max: 10,
});

/** Weights of the policy task. */
export const policyWeights = {
  structure: weight(0.2, 'policy: M:, E: and B: are there in order; a third for each'),
  parse: weight(0.1, 'policy: times the share of moves and numbers that can be read'),
  overlap: weight(0.5, 'policy: times the share of the labelled moves that are among the candidates'),
  evaluations: weight(0.2, 'policy: times the share of labelled moves whose evaluation is within tolerance'),
  best: weight(1, 'policy: the best move is the label’s first'),
  bestTop3: weight(0.7, 'policy: the best move is the label’s second or third'),
  bestTop5: weight(0.5, 'policy: the best move is the label’s fourth or fifth'),
  bestLegal: weight(0.2, 'policy: the best move is legal, but not among the label’s'),
  bestIllegal: weight(-0.3, 'policy: the best move is illegal'),
  malformed: weight(-0.3, 'policy: a section is missing'),
} as const;

/** Weights of the environment task. */
export const environmentWeights = {
  envStructure: weight(0.1, 'environment: four fields; a share for fewer'),
  fenExact: weight(1, 'environment: the new position is exact'),
  fenSimilar: weight(0.5, 'environment: times the similarity of the new position, where it is not exact'),
  envReward: weight(0.3, 'environment: the reward is right'),
  flags: weight(0.1, 'environment: times the share of right flags'),
  envMalformed: weight(-0.3, 'environment: not four fields'),
} as const;

/** The options that rewards depend on. */
export type Weights = Readonly<
  Record<keyof typeof policyWeights | keyof typeof environmentWeights, number>
> & {
  readonly scheme: string;
  readonly evaluationTolerance: number;
  readonly similarFrom: number;
};

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

export const chessOptions: OptionSchemas<ChessOptions> = {
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
