/** A run that ended so that another one goes on for it: that one, to its end. */
import { dirname, join } from 'node:path';
import { RunError } from '../../base/errors.ts';
import { typed } from '../../base/typed.ts';
import { loadCheckpoint } from '../../runs/checkpoint.ts';
import { adjustedAt, readAdjustments } from '../../runs/inbox.ts';
import { looksLikeRun } from '../../runs/looks-like-run.ts';
import { referenceTo } from '../../runs/reference.ts';
import { openRun } from '../../runs/store.ts';
import { beginningOf } from '../beginning.ts';
import type { TrainHooks, TrainResult } from '../hooks.ts';
import { type ContinueOptions, createRun, openAgain } from '../opening.ts';
import { checkSameTask } from '../same-task.ts';
import { type Opened, runSession, type SessionResult } from '../session.ts';
import type { HandOver } from './pilot.ts';

/** Who watches it, and what it needs besides what its run says. */
type HandOnOptions = TrainHooks & Pick<ContinueOptions, 'trust' | 'envFile' | 'shardPlace'>;

/** What came of it in the end. */
export async function handedOn(
  opened: Opened,
  result: SessionResult,
  options: HandOnOptions,
): Promise<TrainResult> {
  let now = result;
  while (now.handOver !== undefined && !options.signal?.aborted)
    now = await goOn(opened, now.dir, now.handOver, options);
  const { handOver: _, ...plain } = now;
  return plain;
}

async function goOn(
  { subject, algorithm }: Pick<Opened, 'subject' | 'algorithm'>,
  dir: string,
  { step, taken }: HandOver,
  options: HandOnOptions,
): Promise<SessionResult> {
  const run = openRun(dir);
  const place = { root: dirname(dir), id: step.child! };
  if (looksLikeRun(join(place.root, place.id)))
    throw new RunError(
      `${run.id} goes on as ${place.id}, which is there: ${typed('resume', referenceTo(join(place.root, place.id)))} goes on with it, ${typed('resume', referenceTo(dir), '--set', 'autopilot=false')} with this one as it was`,
      { code: 'handed-on' },
    );
  const { trust, envFile, shardPlace } = options;
  const config = Object.fromEntries(step.changes.map(({ key, value }) => [key, value]));
  const how = { config, subject, algorithm, trust, envFile, shardPlace };
  const lineage = { autopilot: taken };
  if (step.action === 'begin-again') {
    const { start } = beginningOf(run, algorithm) ?? {};
    const opened = await openAgain('beginning again', run, { checkpoint: undefined, start }, how);
    const { beginning } = run.manifest;
    return runSession(opened, options, () => ({
      writer: createRun(
        opened,
        {
          parent: { id: run.id, step: 0 },
          beginning: start?.source && beginning ? beginning : undefined,
          ...lineage,
        },
        place,
      ),
      saveFirst: true,
      begin: () => opened.learner.begin(),
    }));
  }
  const checkpoint = loadCheckpoint(dir, step.checkpoint)!;
  const { index } = checkpoint;
  const adjusted = adjustedAt(readAdjustments(dir), index.iteration);
  const opened = await openAgain('forking', run, { checkpoint, adjusted }, how);
  const { learner, written } = opened;
  return runSession(opened, options, () => {
    const rescale = checkSameTask(
      run.manifest,
      index.environment,
      learner.environment,
      'rewardScale' in config ? 'rescale' : 'refuse',
    );
    const from = { id: run.id, step: index.step };
    return {
      writer: createRun(
        opened,
        {
          parent: from,
          beginning: { path: dir, step: index.step, forked: true, written },
          ...lineage,
        },
        place,
      ),
      saveFirst: true,
      rescale,
      begin: () => learner.restore(checkpoint, { rescale, forkedWith: written }),
    };
  });
}
