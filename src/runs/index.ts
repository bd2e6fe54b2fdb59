/** A run on disk: what is in it, how it is written so that a kill costs nothing, and how it is found again. */

export { cleanLeftovers } from '../base/directories.ts';
export { RunError } from '../base/errors.ts';
export { writeFileAtomic } from '../base/files.ts';
export {
  type Checkpoint,
  type CheckpointFile,
  type CheckpointInfo,
  type CheckpointInput,
  checkpointProblem,
  discardCheckpointsAfter,
  listCheckpoints,
  loadCheckpoint,
  pruneCheckpoints,
  saveCheckpoint,
  wholeCheckpointBefore,
} from './checkpoint.ts';
export { type Difference, differences } from './differences.ts';
export {
  type Adjustment,
  type AskOptions,
  adjustedAt,
  adjustmentsPath,
  askRun,
  type Inbox,
  openInbox,
  type RunAnswer,
  type RunRequest,
  readAdjustments,
  writeAdjustments,
} from './inbox.ts';
export { checkpointDir, defaultRoot, isRunId, newRunId, runPaths } from './layout.ts';
export { acquireLock, type Lock, lockHolder } from './lock.ts';
export {
  type BrokenLine,
  iterateRows,
  type LogPart,
  readEvents,
  readLastRow,
  readRows,
  readTrajectory,
  truncateTo,
} from './log.ts';
export { newManifest, type RunSpec, readManifest, updateManifest, writeManifest } from './manifest.ts';
export { type ProjectionOptions, rebuildProjections } from './projections.ts';
export {
  decodeReplay,
  encodeReplay,
  packTurn,
  type Replay,
  type ReplayHeader,
  replayLimits,
} from './replay-format.ts';
export {
  bestReplay,
  chooseReplay,
  discardReplaysAfter,
  isReplayName,
  listReplays,
  loadReplay,
  pruneReplays,
  type ReplayCache,
  type ReplayInfo,
  readReplayBytes,
  replayPath,
  replayVersion,
  saveReplay,
} from './replays.ts';
export {
  describeEventType,
  type EnvironmentSpec,
  type EventScope,
  type EventType,
  eventTypes,
  isEvent,
  type Manifest,
  parseEvent,
  parseManifest,
  type RunEvent,
  type RunStatus,
  type StoredEvent,
  schemaVersion,
} from './schema.ts';
export { recentReturn, scoreEpisodes } from './score.ts';
export {
  createRun,
  deleteRun,
  listRuns,
  openRun,
  type Place,
  type Run,
  type RunList,
  resolveRun,
  statusOf,
} from './store.ts';
export { type RunProblem, type RunVerdict, verifyRun } from './verify.ts';
export { type ResumeOptions, RunWriter, type WriterOptions } from './writer.ts';
