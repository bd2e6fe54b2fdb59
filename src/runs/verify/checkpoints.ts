import { join } from 'node:path';
import { codeOf, show } from '../../base/errors.ts';
import { readBounded } from '../../base/files.ts';
import {
  type CheckpointInfo,
  checkpointProblem,
  listCheckpoints,
  loadCheckpoint,
  stateName,
} from '../checkpoint.ts';
import { checkpointDir, runPaths } from '../layout.ts';
import { isEvent } from '../schema.ts';
import { bestScored } from '../score.ts';
import type { Evidence, Tell } from './evidence.ts';

/** Checkpoints are whole, `best` and `last` lead to them, and they are those that the log tells of. Returns how many there are. */
export function verifyCheckpoints(evidence: Evidence, tell: Tell): number {
  const { dir } = evidence.run;
  const all = listCheckpoints(dir);
  const whole = all.filter(({ step, dir: place }) => {
    const problem = checkpointProblem(dir, step);
    if (problem !== undefined) tell(place, undefined, problem);
    return problem === undefined;
  });
  verifyPointers(all, evidence, tell);
  verifyAgainstLog(whole, all, evidence, tell);
  const last = whole.at(-1);
  if (last !== undefined) verifyState(last, evidence, tell);
  return all.length;
}

function verifyPointers(all: readonly CheckpointInfo[], { run, isWhole }: Evidence, tell: Tell): void {
  const { best, last } = runPaths(run.dir);
  for (const [path, is] of [
    [best, ({ isBest }: CheckpointInfo) => isBest],
    [last, ({ isLast }: CheckpointInfo) => isLast],
  ] as const) {
    const wanted = all.find(is)?.step;
    const said = textOf(path)?.trim();
    if (said === (wanted === undefined ? undefined : String(wanted))) continue;
    // Between a checkpoint and its pointers a kill may come; the next start writes them.
    if (!isWhole && (said === undefined || all.some(({ step }) => String(step) === said))) continue;
    tell(
      path,
      undefined,
      `${said === undefined ? 'it is missing' : show(said)}, expected ${wanted ?? 'no such file'}`,
    );
  }
}

function textOf(path: string): string | undefined {
  try {
    return readBounded(path, 100).toString('utf8');
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}

/** Each has its event and its row, and those that pruning spares are there. */
function verifyAgainstLog(
  whole: readonly CheckpointInfo[],
  all: readonly CheckpointInfo[],
  { run, isWhole, rows, events }: Evidence,
  tell: Tell,
): void {
  const { events: path } = runPaths(run.dir);
  const saved = new Map(
    events.flatMap(({ line, item }) =>
      isEvent(item, 'checkpoint') ? [[item.checkpoint, { line, item }]] : [],
    ),
  );
  const stepOf = new Map(rows.map(({ item }) => [item['train/iteration'], item['train/step']]));
  for (const { step, dir, index } of whole) {
    if (index === undefined) continue;
    const place = join(dir, 'checkpoint.json');
    const event = saved.get(step)?.item;
    if (event === undefined)
      tell(path, undefined, `no event of checkpoint ${step}, expected one: it is there`);
    else if (event.iteration !== index.iteration)
      tell(place, 'iteration', `${index.iteration}, expected ${event.iteration}, as its event says`);
    else if ((event.score ?? null) !== index.score)
      tell(place, 'score', `${index.score}, expected ${event.score ?? null}, as its event says`);
    if (index.iteration > 0 && stepOf.get(index.iteration) !== step)
      tell(
        place,
        'step',
        `${step}, expected ${stepOf.get(index.iteration) ?? 'none'}, as the row of iteration ${index.iteration} says`,
      );
  }
  const there = new Set(all.map(({ step }) => step));
  const list = [...saved.values()];
  const best = bestScored(list.map(({ item }) => item));
  for (const { line, item } of list) {
    const why = item.keep
      ? 'kept for good'
      : item === best
        ? 'the best'
        : item === list.at(-1)?.item
          ? 'the last'
          : undefined;
    // The event of a checkpoint comes before it: a kill may have come between.
    if (why === undefined || there.has(item.checkpoint) || (!isWhole && item === list.at(-1)?.item)) continue;
    tell(
      checkpointDir(run.dir, item.checkpoint),
      undefined,
      `it is missing, expected: line ${line} of events.jsonl says that it was saved, and it is ${why}`,
    );
  }
}

/** The counters of the newest one, where it has ours, are those of its row. */
function verifyState({ step, dir, index }: CheckpointInfo, { run }: Evidence, tell: Tell): void {
  const counters = loadCheckpoint(run.dir, step)?.state.counters as
    | { iteration?: unknown; envSteps?: unknown }
    | undefined;
  for (const [name, said, wanted] of [
    ['iteration', counters?.iteration, index?.iteration],
    ['envSteps', counters?.envSteps, step],
  ] as const)
    if (said !== undefined && said !== wanted)
      tell(join(dir, stateName), `counters.${name}`, `${show(said)}, expected ${wanted}, as the log says`);
}
