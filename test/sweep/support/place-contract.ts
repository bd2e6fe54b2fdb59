/** What every place promises. Each of them is opened on a directory of runs of its own and does the same jobs. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readTrajectory } from '../../../src/runs/log.ts';
import { openRun } from '../../../src/runs/store.ts';
import { verifyRun } from '../../../src/runs/verify.ts';
import type { Place, PlaceEvents } from '../../../src/sweep/place.ts';
import { until } from '../../support/until.ts';
import { iterationSteps, longJob, tinyJob } from './jobs.ts';

/** A place that is open, and what a test does to it. */
export interface OpenedPlace {
  readonly place: Place;
  /** The directory in which the study has its runs, in the end. */
  readonly runs: string;
  /** Kills a process that trains the run, with SIGKILL. */
  kill(run: string): void;
  close(): Promise<void>;
}

export function placeContract(
  name: string,
  open: (root: string, events: PlaceEvents) => Promise<OpenedPlace>,
  /** Where a run is while it is trained, if not among those of the study. */
  trainedIn: (opened: OpenedPlace, run: string) => string = ({ runs }, run) => join(runs, run),
): void {
  describe(name, () => {
    const root = mkdtempSync(join(tmpdir(), 'keel-place-'));
    const retried: string[] = [];
    const started: string[] = [];
    let opened: OpenedPlace;
    // Here and not before: it takes jobs of whoever has some.
    beforeAll(async () => {
      opened = await open(root, {
        onStarted: ({ run }) => started.push(run),
        onRetried: ({ run }, why) => retried.push(`${run} ${why}`),
      });
    });
    afterAll(async () => {
      await opened.close();
      rmSync(root, { recursive: true, force: true });
    });

    test('does a job, in one go and in parts, to the same bits', async () => {
      const { place, runs } = opened;
      expect(place.slots).toBeGreaterThanOrEqual(1);
      const parts = async () => {
        const first = await place.run(tinyJob('parts', { until: iterationSteps + 1 }));
        expect(first).toMatchObject({ status: 'done', step: 2 * iterationSteps, finished: false });
        return place.run(tinyJob('parts'));
      };
      const [whole, inParts] = await Promise.all([place.run(tinyJob('whole')), parts()]);
      expect(whole).toMatchObject({ status: 'done', step: 4 * iterationSteps, finished: true });
      expect(whole.weights).toMatch(/^[0-9a-f]{64}$/);
      expect(inParts).toMatchObject({ finished: true, weights: whole.weights, value: whole.value });
      const [one, other] = ['whole', 'parts'].map(run => join(runs, run));
      // Where it paused it has one checkpoint more.
      expect(readTrajectory(one).rows).toEqual(readTrajectory(other).rows);
      for (const dir of [one, other]) expect(verifyRun(dir).problems).toEqual([]);
      expect(started).toEqual(expect.arrayContaining(['whole', 'parts']));
    });

    test('a job that comes twice is harmless', async () => {
      const { place, runs } = opened;
      const outcomes = await Promise.all([place.run(tinyJob('twice')), place.run(tinyJob('twice'))]);
      const later = await place.run(tinyJob('twice'));
      for (const { weights, value, status } of [...outcomes, later])
        expect({ weights, value, status }).toEqual({
          weights: later.weights,
          value: later.value,
          status: 'done',
        });
      expect(verifyRun(join(runs, 'twice')).problems).toEqual([]);
    });

    test('a run that cannot be trained is an outcome', async () => {
      const { place } = opened;
      const outcome = await place.run(tinyJob('wrong', { config: { steps: 64, learningRate: -1 } }));
      expect(outcome).toMatchObject({ run: 'wrong', status: 'failed', value: null });
      expect(outcome.problem).toMatch(/learningRate/);
    });

    test('aborted, it leaves a run that goes on', async () => {
      const { place } = opened;
      const controller = new AbortController();
      const reason = new Error('enough');
      const running = place.run(longJob('aborted'), controller.signal);
      const dir = trainedIn(opened, 'aborted');
      await until(() => hasCheckpoint(dir), 'a checkpoint of the run');
      controller.abort(reason);
      await expect(running).rejects.toBe(reason);
      await until(() => openRun(dir).status === 'stopped', 'the run to stop');
      await expect(place.run(tinyJob('never'), controller.signal)).rejects.toBe(reason);
    });

    test('a process that is killed is replaced, and its job goes on', async () => {
      const { place, kill } = opened;
      const job = { ...longJob('killed'), until: 40 * iterationSteps };
      const running = place.run(job);
      await until(() => hasCheckpoint(trainedIn(opened, 'killed')), 'a checkpoint of the run');
      kill('killed');
      const outcome = await running;
      expect(outcome).toMatchObject({ status: 'done', step: job.until });
      expect(retried.join('\n')).toMatch(/^killed its process died/m);
    });
  });
}

function hasCheckpoint(dir: string): boolean {
  try {
    return readTrajectory(dir).rows.length > 1;
  } catch {
    return false;
  }
}
