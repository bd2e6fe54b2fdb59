/** Text tasks: prompts, graded completions and demonstrations for language models; Keel's own, and a user's. */
export type { Json } from '../envs/plain-data.ts';
export { type ArithmeticOptions, arithmeticDefinition } from './arithmetic.ts';
export { chessDefinition } from './chess/chess.ts';
export { type ChessEvaluationSettings, evaluateChess } from './chess/evaluate.ts';
export type { ChessOptions } from './chess/options.ts';
export { createTask, defineTask, taskOptions } from './definition.ts';
export { drawDemonstration, drawPrompt } from './draw-safely.ts';
export { TaskError, type TaskErrorCode } from './errors.ts';
export { type FormatOptions, formatDefinition } from './format.ts';
export { gradeSafely } from './grade-safely.ts';
export {
  findTask,
  isTaskName,
  listTasks,
  loadTaskFile,
  makeTask,
  meansTask,
  resolveTask,
  type TaskInfo,
} from './registry.ts';
export {
  type Complete,
  clearGrade,
  type EvaluationRow,
  type EvaluationSettings,
  type Grade,
  newGrade,
  sumParts,
  type TaskContext,
  type TaskEvaluation,
  type TaskPrompt,
  type TextTask,
  type TextTaskDefinition,
} from './text-task.ts';
