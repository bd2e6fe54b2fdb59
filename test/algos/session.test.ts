/** The loop of a run, with a learner that only counts: what is saved when, how it ends, and that it is let go. */
import { expect, test } from 'vitest';
import type { Learner } from '../../src/algos/algorithm.ts';
import { type Opened, runSession } from '../../src/algos/session.ts';
import { listCheckpoints, openRun, RunWriter } from '../../src/runs/index.ts';
import { rowOf, spec } from '../runs/support/spec.ts';
import { temporaryRoot } from '../runs/support/temporary.ts';

const root = temporaryRoot('session');
let number = 0;

/** Iterations of 256 steps, to `iterations` of them. */
async function run(iterations: number, settings: object, stopAfter = Number.POSITIVE_INFINITY) {
  const counters = { iteration: 0, steps: 0 };
  let [closed, saves] = [0, 0];
  const learner = {
    config: {},
    counters,
    totalSteps: 256 * iterations,
    environment: spec.environment,
    async iterate() {
      counters.iteration++;
      counters.steps += 256;
      return { row: { ...rowOf(counters.iteration) }, events: [] };
    },
    async save() {
      saves++;
      return { files: {}, state: {} };
    },
    async close() {
      closed++;
    },
  } as unknown as Learner;
  const controller = new AbortController();
  const told: [step: number, keep: boolean][] = [];
  const config = { checkpointEvery: 2, keepEvery: 0, seed: 1, ...settings };
  const result = await runSession(
    { learner, config, algorithm: { unit: 'steps' } } as unknown as Opened,
    {
      signal: controller.signal,
      onRow: row => row['train/iteration'] === stopAfter && controller.abort(),
      onEvent: event => event.type === 'checkpoint' && told.push([event.checkpoint, event.keep]),
    },
    () => ({
      writer: RunWriter.create(spec, { root, id: `run-${++number}` }, { csv: false, tensorboard: false }),
      begin: async () => {},
    }),
  );
  return { result, told, saves, closed, dir: result.dir };
}

test('saves each so many iterations and at the end, and keeps each so many for good', async () => {
  const { result, told, saves, closed, dir } = await run(5, { keepEvery: 4 });
  expect(told).toEqual([
    [512, false],
    [1024, true],
    [1280, false],
  ]);
  expect(saves).toBe(3);
  expect(listCheckpoints(dir).map(({ step }) => step)).toEqual([512, 1024, 1280]);
  expect(result).toMatchObject({ status: 'finished', step: 1280 });
  expect(openRun(dir).manifest).toMatchObject({ status: 'finished', iteration: 5, reason: null });
  expect(closed).toBe(1);
});

test('what was saved in its last iteration is not saved again', async () => {
  const { told, saves } = await run(4, {});
  expect(told.map(([step]) => step)).toEqual([512, 1024]);
  expect(saves).toBe(2);
});

test('a run that is stopped says so, with a checkpoint of where it was', async () => {
  const { result, told, closed } = await run(9, {}, 3);
  expect(told.map(([step]) => step)).toEqual([512, 768]);
  expect(result).toMatchObject({ status: 'stopped', step: 768 });
  expect(closed).toBe(1);
});
