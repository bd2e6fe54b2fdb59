/** An update inside its bound, with attempts that are made up: what is tried, counted and told, and in which order. */
import { describe, expect, it } from 'vitest';
import { sentenceOf, type TrainEvent } from '../../../src/algos/events.ts';
import {
  type Attempt,
  continuedCounters,
  countedRow,
  type GuardedSettings,
  guardedRow,
  guardedUpdate,
  type Held,
  newCounters,
  UNTOUCHED,
  type UpdateCounters,
} from '../../../src/algos/update/guarded.ts';
import { TrainError } from '../../../src/base/errors.ts';
import { pendulum } from '../../../src/envs/index.ts';
import { parseEvent } from '../../../src/runs/schema.ts';
import { disposeTrainers, iterations, trainerOf } from '../ppo/support/trainer.ts';

const config: GuardedSettings = { guard: 0.02, guardRetries: 3, recoveries: 2, recoveryFactor: 0.1 };
const RATE = 1e-3;
const diagnosis = { wrong: 'nothing was finite', remedy: 'look at the rewards' };

/** What one attempt comes to; the rate is that of the counters, as in a trainer. */
type Outcome = Partial<Omit<Attempt, 'learningRate'>>;

/** Updates whose attempts come to these outcomes, one after the other; `log` says who was asked for what. */
function updates(
  settings: Partial<GuardedSettings>,
  outcomes: readonly Outcome[],
  start: Partial<UpdateCounters> = {},
) {
  const counters = { ...newCounters(), ...start };
  const events: TrainEvent[] = [];
  const log: string[] = [];
  const rest = [...outcomes];
  const rate = (): number => RATE * counters.guardedFactor * counters.recoveryFactor;
  const update = (left: Partial<Held> = {}) =>
    guardedUpdate({ ...config, ...settings }, counters, events, {
      steps: 64,
      diagnosis,
      attempt(): Attempt {
        const outcome = rest.shift();
        if (outcome === undefined) throw new Error('one attempt too many');
        log.push(`attempt at ${rate()}`);
        return {
          learningRate: rate(),
          failed: false,
          kl: 0.01,
          klBegun: 0,
          shareWithin: 1,
          taken: 8,
          skipped: 0,
          streak: 0,
          ...outcome,
        };
      },
      hold({ kl }, bound) {
        log.push(`hold ${kl} to ${bound}`);
        return { ...UNTOUCHED, kl: Math.min(kl, bound), klP99: 0.3, klMax: 0.7, ...left };
      },
    });
  return { counters, events, log, update, left: () => rest.length };
}

describe('an update within its bound', () => {
  it('is one attempt, which counts, tells nothing, and regains a little of a rate that was cut', async () => {
    const { counters, events, log, update } = updates({}, [{ kl: 0.005 }], { guardedFactor: 0.5 });
    expect(await update()).toMatchObject({ klRaw: 0.005, retries: 0, held: { kl: 0.005 } });
    expect(log).toEqual(['attempt at 0.0005', 'hold 0.005 to 0.02']);
    expect(events).toEqual([]);
    expect(counters).toEqual({
      ...newCounters(),
      iteration: 1,
      steps: 64,
      gradientSteps: 8,
      guardedFactor: 0.5 * 1.05,
    });
  });

  it('never regains more than there was', async () => {
    const { counters, update } = updates({}, [{ kl: 0.005 }], { guardedFactor: 0.99 });
    await update();
    expect(counters.guardedFactor).toBe(1);
  });

  it('on the bound is within it', async () => {
    const { events, update, counters } = updates({}, [{ kl: 0.02 }], { guardedFactor: 0.5 });
    expect((await update()).retries).toBe(0);
    expect(events).toEqual([]);
    expect(counters.guardedFactor).toBe(0.5);
  });

  it('tells of steps that were left out, and of a stop, and carries the streak on', async () => {
    const stop = { type: 'early-stop', kl: 0.03, limit: 0.015, epoch: 1, minibatch: 2 } as const;
    const { counters, events, update } = updates({}, [{ skipped: 2, streak: 1, taken: 5, stop }]);
    const done = await update();
    expect(events).toEqual([{ type: 'skipped', count: 2 }, stop]);
    expect(counters).toMatchObject({ gradientSteps: 5, skippedInARow: 1 });
    expect(countedRow(counters, done.done)).toEqual({
      'train/iteration': 1,
      'train/step': 64,
      'train/lr': RATE,
      'train/minibatches_run': 5,
      'train/skipped': 2,
    });
  });
});

describe('an update that leaves its bound', () => {
  it('by far is made again, slower each time, until it fits; the lower rate stays', async () => {
    const { counters, events, log, update, left } = updates({}, [
      { kl: 0.5, shareWithin: 0.1 },
      { kl: 0.08, shareWithin: 1 },
      { kl: 0.015, taken: 6 },
    ]);
    const done = await update();
    // A KL that is 125 times too large for its steps, then four times: roots of both, and a margin.
    const [first, second] = [0.1, 0.97 / 2];
    expect(log).toEqual([
      `attempt at ${RATE}`,
      `attempt at ${RATE * first}`,
      `attempt at ${RATE * (first * second)}`,
      'hold 0.015 to 0.02',
    ]);
    expect(left()).toBe(0);
    expect(done).toMatchObject({ klRaw: 0.5, retries: 2, done: { kl: 0.015 }, held: { kl: 0.015 } });
    const change = { type: 'rate-change', what: 'learningRate' };
    const why = 'the update left the bound of 0.02';
    expect(events).toEqual([
      { ...change, why: `${why} after 10% of its steps`, from: RATE, to: expect.closeTo(RATE * first, 12) },
      { ...change, why, from: RATE * first, to: expect.closeTo(RATE * first * second, 12) },
      { type: 'guard', klBefore: 0.5, klAfter: 0.015, bound: 0.02, retries: 2, backtracks: 0, scale: 1 },
    ]);
    // One update, of the steps of the attempt that stands, whose success regains nothing: it was too fast at first.
    expect(counters).toMatchObject({ iteration: 1, steps: 64, gradientSteps: 6, recoveries: 0 });
    expect(counters.guardedFactor).toBeCloseTo(first * second, 12);
    expect(guardedRow(counters, done)).toMatchObject({
      'train/lr': expect.closeTo(RATE * first * second, 12),
      'train/minibatches_run': 6,
      'kl/step': 0.015,
      'kl/step_raw': 0.5,
      'kl/step_p99': 0.3,
      'kl/step_max': 0.7,
      'guard/rate': expect.closeTo(first * second, 12),
      'guard/retries': 2,
      'guard/backtracks': 0,
      'guard/scale': 1,
    });
  });

  it('by a few percent is only taken back, and the next one is slower by a few percent', async () => {
    const { counters, events, log, update, left } = updates({}, [{ kl: 0.021, shareWithin: 0.95 }, {}]);
    const done = await update({ backtracks: 1, scale: 0.97 });
    expect([done.retries, left()]).toEqual([0, 1]);
    expect(log).toEqual([`attempt at ${RATE}`, 'hold 0.021 to 0.02']);
    expect(events.map(({ type }) => type)).toEqual(['rate-change', 'guard']);
    expect(counters.guardedFactor).toBeCloseTo(0.97 * Math.sqrt(0.02 / 0.021), 12);
    expect(counters.guardedFactor).toBeGreaterThan(0.94);
  });

  it('regains only in the next one, and only where that is calm', async () => {
    const calm = { kl: 0.006 };
    const { counters, update } = updates({}, [{ kl: 0.5 }, calm, calm, { kl: 0.0061 }]);
    await update(); // two attempts
    const cut = 0.97 * Math.sqrt(0.02 / 0.5);
    expect(counters.guardedFactor).toBeCloseTo(cut, 12);
    await update();
    expect(counters.guardedFactor).toBeCloseTo(cut * 1.05, 12);
    await update();
    expect(counters.guardedFactor).toBeCloseTo(cut * 1.05, 12);
  });

  it('of single states alone is told with what they were, and neither tried again nor slower', async () => {
    const { counters, events, update } = updates({ guard: null, guardP99: 0.4, guardMax: 0.8 }, [{}]);
    const before = { kl: 0.01, klP99: 0.5, klMax: 1.5 };
    await update({ before, backtracks: 1, scale: 0.7 });
    expect(events).toEqual([
      {
        type: 'guard',
        klBefore: 0.01,
        klAfter: 0.01,
        p99: { before: 0.5, after: 0.3, bound: 0.4 },
        max: { before: 1.5, after: 0.7, bound: 0.8 },
        retries: 0,
        backtracks: 1,
        scale: 0.7,
      },
    ]);
    expect(counters.guardedFactor).toBe(1);
    expect(
      parseEvent({ ...events[0], time: '2026-01-01T00:00:00.000Z', iteration: 1, step: 64, message: '' }),
    ).toMatchObject(events[0]);
    expect(sentenceOf(events[0])).toBe(
      'KL 0.01 taken back to 0.01; 99th percentile 0.5 to 0.3, bound 0.4; largest 1.5 to 0.7, bound 0.8',
    );
  });

  it('is taken back by the guard where it still leaves it, and that is told', async () => {
    const far = { kl: 0.5, shareWithin: 0 };
    const { counters, events, log, update, left } = updates({ guardRetries: 2 }, [far, far, far]);
    const done = await update({ backtracks: 4, scale: 0.0625 });
    expect([done.retries, left()]).toEqual([2, 0]);
    expect(log.at(-1)).toBe('hold 0.5 to 0.02');
    // The last one too: the next update begins with what it has shown.
    expect(events.map(({ type }) => type)).toEqual(['rate-change', 'rate-change', 'rate-change', 'guard']);
    expect(events[3]).toMatchObject({
      klBefore: 0.5,
      klAfter: 0.02,
      retries: 2,
      backtracks: 4,
      scale: 0.0625,
    });
    expect(counters.guardedFactor).toBeCloseTo(0.001, 12);
  });

  it('is only taken back where nothing may be tried again', async () => {
    const { counters, events, update } = updates({ guardRetries: 0 }, [{ kl: 0.5, shareWithin: 0 }]);
    expect((await update({ backtracks: 1, scale: 0.5 })).retries).toBe(0);
    expect(events.map(({ type }) => type)).toEqual(['guard']);
    expect(counters.guardedFactor).toBe(1);
  });

  it('is not tried again at a rate that cannot be lower', async () => {
    const { events, update, left } = updates({}, [{ kl: 0.5, shareWithin: 0 }], { guardedFactor: 1e-4 });
    await update({ backtracks: 1, scale: 0.5 });
    expect(left()).toBe(0);
    expect(events.map(({ type }) => type)).toEqual(['guard']);
  });

  it('is one of a KL that is no number, too', async () => {
    const { update } = updates({}, [{ kl: Number.NaN, shareWithin: 0.3 }, {}]);
    expect((await update()).retries).toBe(1);
  });

  it('that then fails is a failure, and the guard event says that it was tried again', async () => {
    const { counters, events, update } = updates({}, [
      { kl: 0.08, shareWithin: 1 },
      { failed: true, kl: 0, skipped: 4 },
    ]);
    await update();
    expect(events.map(({ type }) => type)).toEqual(['rate-change', 'restored', 'guard']);
    expect(counters).toMatchObject({
      guardedFactor: expect.closeTo(0.485, 12),
      recoveryFactor: 0.1,
      gradientSteps: 0,
    });
  });
});

describe('an update that fails', () => {
  const failed: Outcome = { failed: true, kl: 0, taken: 3, skipped: 4, streak: 4 };

  it('counts as an update without steps; the rate is cut, and nothing is tried again or regained', async () => {
    const { counters, events, log, update } = updates({}, [failed], { guardedFactor: 0.5, skippedInARow: 2 });
    await update();
    expect(log).toEqual(['attempt at 0.0005', 'hold 0 to 0.02']);
    expect(events).toEqual([
      { type: 'restored', attempt: 1, attempts: 2, lrFrom: 5e-4, lrTo: expect.closeTo(5e-5, 12) },
    ]);
    expect(counters).toEqual({
      ...newCounters(),
      iteration: 1,
      steps: 64,
      guardedFactor: 0.5,
      recoveryFactor: 0.1,
      recoveries: 1,
    });
  });

  it('as often as is allowed cuts as often; once more ends with what was wrong and the remedy', async () => {
    const { counters, events, update } = updates({}, [failed, {}, failed, failed]);
    await update();
    await update();
    await update();
    expect(counters.recoveryFactor).toBeCloseTo(0.01, 12);
    expect(events.map(event => event.type === 'restored' && event.attempt)).toEqual([1, 2]);
    const error = await update().catch((e: unknown) => e);
    expect(error).toBeInstanceOf(TrainError);
    expect((error as Error).message).toBe(
      'nothing was finite, after 2 restores with the learning rate cut to 1.0e-5: look at the rewards',
    );
    expect(events).toHaveLength(2);
  });

  it('where none is allowed ends at once, without a word of restores', async () => {
    const { update } = updates({ recoveries: 0 }, [failed]);
    await expect(update()).rejects.toThrow(/^nothing was finite: look at the rewards$/);
  });
});

describe('without a guard', () => {
  it('no KL is too far: one attempt, held to no bound, no event', async () => {
    const { counters, events, log, update } = updates({ guard: null }, [{ kl: 50, shareWithin: 0 }]);
    expect(await update()).toMatchObject({ retries: 0, klRaw: 50, held: { kl: 50 } });
    expect(log).toEqual([`attempt at ${RATE}`, 'hold 50 to Infinity']);
    expect(events).toEqual([]);
    expect(counters.guardedFactor).toBe(1);
  });

  it('a rate that a guard had cut comes back, and failures are still restored', async () => {
    const { counters, events, update } = updates({ guard: null }, [{ kl: 50 }, { failed: true }], {
      guardedFactor: 0.5,
    });
    await update();
    expect(counters.guardedFactor).toBe(0.5 * 1.05);
    await update();
    expect(events.map(({ type }) => type)).toEqual(['restored']);
  });
});

it('a fork counts its own updates and restores, a resumed run those before; a rate that is written is the rate', () => {
  const counters = { ...newCounters(), iteration: 7, steps: 448, gradientSteps: 50, recoveries: 1 };
  const slow = { ...counters, guardedFactor: 0.2, recoveryFactor: 0.1, skippedInARow: 2 };
  const written = { learningRate: 1e-3 };
  const [anew, free] = [
    { iteration: 0, recoveries: 0 },
    { guardedFactor: 1, recoveryFactor: 1 },
  ];
  expect(continuedCounters(slow, { written: { steps: 1000 }, forked: true })).toEqual({ ...slow, ...anew });
  expect(continuedCounters(slow, { written, forked: true })).toEqual({ ...slow, ...anew, ...free });
  expect(continuedCounters(slow, { written: { steps: 1000 }, forked: false })).toEqual(slow);
  expect(continuedCounters(slow, { written, forked: false })).toEqual({ ...slow, ...free });
});

it("PPO's own rate is not raised in an update that was made again", async () => {
  const trainer = await trainerOf(
    { learningRate: 0.05, guard: 1e-3, guardRetries: 8 },
    { env: () => pendulum() },
  );
  let retried = 0;
  for (let i = 0; i < 6; i++) {
    const before = trainer.counters.guardedFactor;
    const [{ row }] = await iterations(trainer, 1);
    const { guardedFactor } = trainer.counters;
    // The row has the rate of the attempt that stands; where it had to be stepped back, the next one begins slower still.
    if (row['guard/retries'] > 0) {
      retried++;
      expect(guardedFactor).toBeLessThanOrEqual(before * 0.7 ** row['guard/retries']);
      const left = guardedFactor / (row['train/lr'] / 0.05);
      if (row['guard/backtracks'] > 0) expect(left).toBeLessThan(0.971);
      else expect(left).toBeCloseTo(1, 6);
    } else expect(guardedFactor).toBeLessThanOrEqual(Math.min(1, before * 1.05));
  }
  expect(retried).toBeGreaterThan(0);
  await disposeTrainers();
});
