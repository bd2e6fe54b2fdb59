/** The loop of a run, with a learner that only counts: what is saved when, how it ends, and that it is let go. */
import { expect, test } from 'vitest';
import type { Learner } from '../../src/algos/algorithm.ts';
import { type Opened, runSession } from '../../src/algos/session.ts';
import { registeringFrom } from '../../src/envs/registry.ts';
import { listCheckpoints, openRun, RunWriter, readEvents, readRows } from '../../src/runs/index.ts';
import { rowOf, spec } from '../runs/support/spec.ts';
import { temporaryRoot } from '../runs/support/temporary.ts';

const root = temporaryRoot('session');
let number = 0;

/** What the learner's iterations return, and its evaluations; neither unless told. */
interface Returns {
  readonly training?: (iteration: number) => { readonly mean: number; readonly count: number };
  readonly evaluation?: (iteration: number) => readonly number[];
}

/** Iterations of 256 steps, to `iterations` of them. */
async function run(
  iterations: number,
  settings: object,
  stopAfter = Number.POSITIVE_INFINITY,
  { training, evaluation }: Returns = {},
) {
  const counters = { iteration: 0, steps: 0 };
  let [closed, saves] = [0, 0];
  const evaluated: number[] = [];
  const learner = {
    config: {},
    counters,
    totalSteps: 256 * iterations,
    environment: spec.environment,
    async iterate() {
      counters.iteration++;
      counters.steps += 256;
      const { 'eval/return': _, ...row } = rowOf(counters.iteration);
      const ended = training?.(counters.iteration);
      const returns = ended && { 'episode/return': ended.mean, 'episode/count': ended.count };
      return { row: { ...row, ...returns }, events: [] };
    },
    ...(evaluation && {
      async evaluate() {
        evaluated.push(counters.iteration);
        const returns = evaluation(counters.iteration);
        return { returns, lengths: returns.map(() => 7) };
      },
    }),
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
  return { result, told, saves, closed, evaluated, dir: result.dir };
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

const bestOf = (dir: string) => listCheckpoints(dir).find(({ isBest }) => isBest)?.index;

test('evaluates each so many iterations and after the last, into the row, and saves what was judged', async () => {
  const evaluation = (iteration: number) => [iteration, iteration + 2];
  const { evaluated, told, dir } = await run(7, { checkpointEvery: 100, evaluateEvery: 3 }, undefined, {
    evaluation,
  });
  expect(evaluated).toEqual([3, 6, 7]);
  expect(told.map(([step]) => step)).toEqual([3 * 256, 6 * 256, 7 * 256]);
  const rows = readRows(dir).items;
  expect(rows.map(row => row['eval/return'])).toEqual([undefined, undefined, 4, undefined, undefined, 7, 8]);
  expect(rows[2]).toMatchObject({
    'eval/return_se': 1,
    'eval/return_std': 1,
    'eval/episodes': 2,
    'eval/length': 7,
  });
  expect(rows.map(row => 'time/eval_s' in row)).toEqual([false, false, true, false, false, true, true]);
});

test('never evaluates where it is not asked to', async () => {
  const { evaluated, dir } = await run(7, {}, undefined, { evaluation: () => [1] });
  expect(evaluated).toEqual([]);
  expect(readRows(dir).items.some(row => 'time/eval_s' in row)).toBe(false);
});

test('the best is picked by evaluations where there are some, whatever training says', async () => {
  const returns: Returns = {
    training: iteration => ({ mean: iteration, count: 5 }), // ever better
    evaluation: iteration => [{ 2: 1, 4: 9, 6: 3 }[iteration]!], // best in the middle
  };
  const looking = await run(6, { checkpointEvery: 1, evaluateEvery: 2 }, undefined, returns);
  expect(bestOf(looking.dir)).toMatchObject({ iteration: 4, score: 9, scoredBy: 'evaluation' });
  // Those between two evaluations were not judged.
  const scores = listCheckpoints(looking.dir).map(({ index }) => [index!.iteration, index!.score]);
  expect(scores).toContainEqual([5, null]);
  const blind = await run(6, { checkpointEvery: 1 }, undefined, returns);
  expect(bestOf(blind.dir)).toMatchObject({ iteration: 6, score: 6 });
});

test('stops at a return of an evaluation, as finished, and says why before its checkpoint', async () => {
  const { result, evaluated, dir } = await run(
    99,
    { evaluateEvery: 2, stopAt: 5, checkpointEvery: 4 },
    undefined,
    {
      training: () => ({ mean: 1000, count: 1000 }), // is not what counts here
      evaluation: iteration => [iteration - 1, iteration + 1],
    },
  );
  expect(evaluated).toEqual([2, 4, 6]);
  const reached = { return: 6, stopAt: 5, episodes: 2, of: 'evaluation' };
  expect(result).toMatchObject({ status: 'finished', step: 6 * 256, reached });
  const reason = 'mean return 6 in an evaluation over 2 episodes reached stopAt 5';
  expect(openRun(dir).manifest).toMatchObject({ status: 'finished', iteration: 6, reason });
  const events = readEvents(dir).items.filter(({ iteration }) => iteration === 6);
  expect(events.map(({ type }) => type)).toEqual(['reached', 'checkpoint', 'finished']);
  expect(events[0]).toMatchObject({ ...reached, message: reason });
  expect(events[2]).toMatchObject({ message: reason });
});

test('without evaluations stops at the mean of the newest episodes, of which there must be enough', async () => {
  // Four an iteration: twenty after the fifth. Returns rise by 1 an iteration: their mean is 3 then.
  const training = (iteration: number) => ({ mean: iteration, count: 4 });
  const early = await run(99, { stopAt: 2.5 }, undefined, { training });
  expect(early.result).toMatchObject({
    step: 5 * 256,
    reached: { return: 3, stopAt: 2.5, episodes: 20, of: 'training' },
  });
  // After the seventh the mean of 1 to 7 is 4.
  expect((await run(99, { stopAt: 4 }, undefined, { training })).result.step).toBe(7 * 256);
  // The first ones are left out once a hundred follow: of 76 to 100, when the mean is 88.
  expect((await run(120, { stopAt: 88 }, undefined, { training })).result.step).toBe(100 * 256);
  const never = await run(6, { stopAt: 1000 }, undefined, { training });
  expect(never.result).not.toHaveProperty('reached');
  expect(never.result.step).toBe(6 * 256);
});

test('an algorithm that cannot evaluate is not asked to', async () => {
  await expect(run(3, { evaluateEvery: 1 })).rejects.toThrow(
    /^evaluateEvery 1 has no effect: the learner of .* has no evaluate\(\); add one, or remove evaluateEvery$/,
  );
});

test('a program that trains is refused where it is loaded as an environment, and one beside it is not', async () => {
  let inside: Promise<unknown> | undefined;
  await registeringFrom('/home/me/program.ts', async () => {
    inside = run(1, {});
    await inside.catch(() => {});
  });
  await expect(inside).rejects.toThrow(
    '/home/me/program.ts trains while it is being loaded as an environment or a task: run a program of your own by itself, npx tsx /home/me/program.ts',
  );
  const [, beside] = await Promise.all([
    registeringFrom('/home/me/slow.ts', () => new Promise(resolve => setTimeout(resolve, 20))),
    run(1, {}),
  ]);
  expect(beside).toBeDefined();
});
