import { runPaths } from '../layout.ts';
import { describeEventType, isEvent } from '../schema.ts';
import { boundsOf } from './bounds.ts';
import type { Evidence, Tell } from './evidence.ts';

/** Events are in the order in which they can happen, and say what the rows say. */
export function verifyEvents(evidence: Evidence, tell: Tell): void {
  verifyProcess(evidence, tell);
  verifyOrder(evidence, tell);
  verifyGuard(evidence, tell);
}

const endings = ['finished', 'stopped', 'failed'];

/** A run starts once, is resumed after it ended or was killed, and its manifest says how it ended. */
function verifyProcess({ run, isWhole, events }: Evidence, tell: Tell): void {
  const { events: path, manifest } = runPaths(run.dir);
  const lives = events.filter(({ item: { type } }) => ['started', 'resumed', ...endings].includes(type));
  let before = 'nothing';
  for (const { line, item } of lives) {
    const isFirst = before === 'nothing';
    // Killed before it could say that it started, it begins again.
    const beginsAgain = isEvent(item, 'resumed') && item.checkpoint === null;
    const allowed = isFirst ? item.type === 'started' || beginsAgain : item.type !== 'started';
    const isSecondEnd = endings.includes(item.type) && endings.includes(before);
    if (!allowed || isSecondEnd)
      tell(path, `line ${line}`, `${item.type} after ${before}, expected ${expectedAfter(before)}`);
    before = item.type;
  }
  if (isWhole && before !== run.manifest.status)
    tell(
      path,
      undefined,
      `the last process event is ${before}, expected ${run.manifest.status}, as the manifest says`,
    );
  const resumed = lives.filter(({ item }) => item.type === 'resumed').length;
  if (resumed > run.manifest.resumes)
    tell(manifest, 'resumes', `${run.manifest.resumes}, expected at least ${resumed}, as events.jsonl says`);
}

const expectedAfter = (before: string): string =>
  before === 'nothing'
    ? 'started'
    : endings.includes(before)
      ? 'resumed'
      : 'resumed, finished, stopped or failed';

/** What belongs to iterations comes in their order, and none of it is of one that was never reached. */
function verifyOrder({ run, rows, events }: Evidence, tell: Tell): void {
  const { events: path } = runPaths(run.dir);
  const last = rows.at(-1)?.item['train/iteration'] ?? 0;
  let before = 0;
  for (const { line, item } of events) {
    if (describeEventType(item.type).scope !== 'training') continue;
    if (item.iteration < before)
      tell(path, `line ${line}`, `${item.type} of iteration ${item.iteration}, expected ${before} or later`);
    if (item.iteration > last + 1)
      tell(path, `line ${line}`, `${item.type} of iteration ${item.iteration}, expected at most ${last + 1}`);
    before = Math.max(before, item.iteration);
  }
}

/** Where the guard acted, there is an event that says so, with the same numbers. */
function verifyGuard({ run, rows, events }: Evidence, tell: Tell): void {
  const { events: path } = runPaths(run.dir);
  const boundAt = boundsOf(run.manifest, events);
  const acted = new Map(
    events.flatMap(({ line, item }) => (isEvent(item, 'guard') ? [[item.iteration, { line, item }]] : [])),
  );
  for (const { item: row } of rows) {
    const iteration = row['train/iteration'];
    const { 'guard/backtracks': backtracks = 0, 'guard/retries': retries = 0 } = row;
    const found = acted.get(iteration);
    acted.delete(iteration);
    if (found === undefined) {
      if (backtracks > 0 || retries > 0)
        tell(
          path,
          `iteration ${iteration}`,
          `no guard event, expected one: the row has guard/backtracks ${backtracks} and guard/retries ${retries}`,
        );
      continue;
    }
    const { line, item } = found;
    const expected = {
      backtracks: [item.backtracks, backtracks],
      retries: [item.retries ?? 0, retries],
      klAfter: [item.klAfter, row['kl/step']],
      klBefore: [item.klBefore, row['kl/step_raw']],
      bound: [item.bound ?? null, boundAt(iteration)],
      p99: [item.p99?.after, item.p99 && row['kl/step_p99']],
      max: [item.max?.after, item.max && row['kl/step_max']],
    } as const;
    for (const [name, [said, wanted]] of Object.entries(expected))
      if (wanted !== undefined && !Object.is(said, wanted))
        tell(
          path,
          `line ${line}`,
          `${name} of the guard is ${said}, expected ${wanted}, as the row of iteration ${iteration} has it`,
        );
  }
  const last = rows.at(-1)?.item['train/iteration'] ?? 0;
  for (const [iteration, { line }] of acted)
    if (iteration <= last)
      tell(
        path,
        `line ${line}`,
        `a guard event of iteration ${iteration}, expected none: there is no such row`,
      );
}
