/** The policy and the value function on two threads: the same bits as one after the other, whatever ends an update. */
import { afterAll, describe, expect, it } from 'vitest';
import { compilePpo, learn, type PpoKnobs, type PpoPrograms } from '../../../src/algos/ppo/programs.ts';
import { until } from '../../support/until.ts';
import { knobsOf, sameBits, shapes, type Task, taskOf } from './support/update.ts';

const opened: PpoPrograms[] = [];
afterAll(() => {
  for (const programs of opened) programs.dispose();
});

async function programsOn(task: Task, threads: 1 | 2): Promise<PpoPrograms> {
  const sizes = { samples: task.batch.advantages.length, minibatches: task.minibatches };
  const programs = await compilePpo(task.model, task.config, sizes);
  opened.push(programs);
  if (threads === 2) {
    programs.value.useThread();
    await until(() => programs.value.isAside, 'the thread is there');
  }
  return programs;
}

const learnOn = (programs: PpoPrograms, task: Task, changes: Partial<PpoKnobs> = {}) =>
  learn(programs, task.batch, task.state, Int32Array.from(task.order.flat()), knobsOf(task.config, changes));

/** Both ways, several times: the threads meet at other moments each time. */
async function expectSameBits(task: Task, changes: Partial<PpoKnobs> = {}) {
  const [one, two] = [await programsOn(task, 1), await programsOn(task, 2)];
  expect(one.value.isAside).toBe(false);
  const alone = learnOn(one, task, changes);
  for (let round = 0; round < 20; round++) {
    const beside = learnOn(two, task, changes);
    for (const name of ['weights', 'm', 'v'] as const)
      expect(sameBits(beside.state[name], alone.state[name]), `${name} in round ${round}`).toBe(true);
    expect(beside.stats).toEqual(alone.stats);
  }
  return alone;
}

describe('on two threads', () => {
  it('a whole update is the same to the bit', async () => {
    const { stats } = await expectSameBits(taskOf(shapes.gaussian, { epochs: 6 }));
    expect(stats.stopped).toBe('no');
  });

  it.each(['minibatch', 'epoch'] as const)(
    'an update that the KL stops (by the %s) is the same, though the value function may have run ahead',
    async targetKlPer => {
      const settings = { epochs: 8, learningRate: 0.02, guard: null, targetKlPer };
      const task = taskOf(shapes.gaussian, settings);
      const free = learnOn(await programsOn(task, 1), task);
      const klLimit = free.stats.kls[Math.floor(free.stats.kls.length / 3)] * 0.9;
      const { stats } = await expectSameBits(task, { klLimit });
      expect(stats.stopped).toBe('kl');
      expect(stats.minibatches).toBeLessThan(free.stats.minibatches);
    },
  );

  it('a minibatch that is not finite for one network is left out by both', async () => {
    const task = taskOf(shapes.gaussian, { epochs: 2 });
    const row = task.order[2][0];
    task.batch.returns[row] = Number.NaN; // the policy never sees it
    const { state, stats } = await expectSameBits(task);
    const odd = task.order.flatMap((rows, i) => (rows.includes(row) ? [i] : []));
    expect(stats.skipped).toBe(odd.length);
    expect(stats.taken).toBe(task.order.length - odd.length);
    expect(state.weights.every(Number.isFinite)).toBe(true);
  });

  it('what both networks see as not finite costs no second run', async () => {
    const task = taskOf(shapes.gaussian, { epochs: 3 });
    task.batch.observations[0] = Number.NaN;
    const programs = await programsOn(task, 1);
    let runs = 0;
    const { policy } = programs;
    const counted = ((...args) => {
      runs++;
      return policy.run(...args);
    }) as typeof policy.run;
    const counting = { ...policy, run: counted };
    const { stats } = learnOn({ ...programs, policy: counting }, task);
    expect(stats.skipped).toBe(3);
    expect(runs).toBe(1);
  });

  it('too many in a row end both', async () => {
    const task = taskOf(shapes.gaussian, { epochs: 4, skipLimit: 3 });
    task.batch.returns.fill(Number.NaN);
    const { stats, state } = await expectSameBits(task);
    expect(stats).toMatchObject({ stopped: 'non-finite', minibatches: 3, taken: 0, streak: 3 });
    expect(sameBits(state.weights, task.state.weights)).toBe(true);
  });
});
