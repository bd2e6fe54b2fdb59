import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { JournalWriter } from '../../src/studies/journal.ts';
import type { Params, RunOutcome, Study } from '../../src/studies/schema.ts';
import { conduct, confirm, jobOf } from '../../src/sweep/conduct.ts';
import type { Place, RunJob } from '../../src/sweep/place.ts';
import { makeSampler } from '../../src/sweep/samplers/make.ts';
import { temporaryRoot } from '../runs/support/temporary.ts';
import { newDirectory, study as studyWith } from '../studies/support/studies.ts';

const root = temporaryRoot('conduct');
const MAX_STEPS = 900;

const space: Study['space'] = [{ key: 'x', domain: { kind: 'float', low: 0, high: 1, log: false } }];
const study = (changes: Partial<Study> = {}): Study =>
  studyWith({ space, method: 'random', trials: 6, seeds: [0, 1], halving: null, ...changes });

/** A run whose value is known: near x = .7 is best, and it gets there as it trains. */
const worthOf = ({ config, seed, until }: RunJob): number =>
  -((Number(config.x ?? 0.5) - 0.7) ** 2) * 100 + seed * 0.01 + Math.min(1, (until ?? MAX_STEPS) / MAX_STEPS);

interface FakePlace extends Place {
  readonly done: RunJob[];
  most: number;
}

/** Does every job at once, or fails as told; counts what it was asked for. */
function fakePlace({
  slots = 2,
  answer = () => ({}),
  limit = Number.POSITIVE_INFINITY,
}: {
  slots?: number;
  answer?: (job: RunJob) => Partial<RunOutcome>;
  /** After so many jobs the machine goes down. */
  limit?: number;
} = {}): FakePlace {
  let under = 0;
  const place: FakePlace = {
    slots,
    done: [],
    most: 0,
    async run(job, signal) {
      place.most = Math.max(place.most, ++under);
      // A turn of the event loop, so that several are under way.
      await new Promise(done => setImmediate(done));
      under--;
      signal?.throwIfAborted();
      if (place.done.length >= limit) throw new Error('the machine went down');
      place.done.push(job);
      return {
        run: job.run,
        seed: job.seed,
        status: 'done',
        step: job.until ?? MAX_STEPS,
        finished: job.until === null,
        value: worthOf(job),
        verdict: 'healthy',
        rootCause: null,
        klMedian: 0.005,
        klLargest: 0.01,
        seconds: 1,
        weights: null,
        worker: 'fake',
        problem: null,
        ...answer(job),
      };
    },
    async close() {},
  };
  return place;
}

const names = (jobs: readonly RunJob[]): string[] => jobs.map(({ run, until }) => `${run}@${until}`);

async function conductIn(dir: string, one: Study, place: Place, signal?: AbortSignal) {
  const log = new JournalWriter(join(dir, 'journal.log'), one);
  try {
    const status = await conduct({
      study: one,
      log,
      place,
      signal,
      maxSteps: MAX_STEPS,
      sampler: makeSampler(one),
    });
    return { status, trials: [...log.trials] };
  } finally {
    log.close();
  }
}

describe('a study', () => {
  it('does every trial on every seed, once, and no more at once than there are slots', async () => {
    const place = fakePlace({ slots: 3 });
    const { status, trials } = await conductIn(newDirectory(root), study(), place);
    expect(status).toBe('finished');
    expect(trials.map(({ state }) => state)).toEqual(Array(6).fill('complete'));
    expect(new Set(names(place.done)).size).toBe(12);
    expect(place.done).toHaveLength(12);
    expect(place.most).toBe(3);
    for (const { params, value, outcomes } of trials) {
      expect(outcomes.map(({ seed }) => seed).sort()).toEqual([0, 1]);
      // Of two seeds the interquartile mean is the mean.
      expect(value).toBeCloseTo(worthOf({ config: params, seed: 0.5, until: null } as never), 9);
    }
  });

  it.each([1, 3, 5, 8, 11])('that is killed after %i runs goes on, and does no run again', async limit => {
    const dir = newDirectory(root);
    const first = fakePlace({ limit });
    await expect(conductIn(dir, study(), first)).rejects.toThrow('the machine went down');
    const second = fakePlace();
    const { trials } = await conductIn(dir, study(), second);
    const all = names([...first.done, ...second.done]);
    expect(all).toHaveLength(12);
    expect(new Set(all).size).toBe(12);
    const whole = await conductIn(newDirectory(root), study(), fakePlace());
    expect(trials.map(({ params, value }) => [params, value])).toEqual(
      whole.trials.map(({ params, value }) => [params, value]),
    );
  });

  it('that is stopped leaves its trials open, and finishes later', async () => {
    const dir = newDirectory(root);
    const controller = new AbortController();
    const place = fakePlace({
      answer: () => {
        controller.abort(new Error('Ctrl-C'));
        return {};
      },
    });
    expect((await conductIn(dir, study(), place, controller.signal)).status).toBe('stopped');
    const { status, trials } = await conductIn(dir, study(), fakePlace());
    expect(status).toBe('finished');
    expect(trials).toHaveLength(6);
  });

  it('ends a trial whose run cannot be trained, and does not train its other seeds', async () => {
    const place = fakePlace({
      slots: 1,
      answer: ({ seed }) => (seed === 0 ? { status: 'failed', value: null, problem: 'no' } : {}),
    });
    const { trials } = await conductIn(newDirectory(root), study({ trials: 3 }), place);
    expect(trials.map(({ state, value }) => [state, value])).toEqual(Array(3).fill(['failed', null]));
    expect(place.done.every(({ seed }) => seed === 0)).toBe(true);
  });

  it('does not let a trial win that is sick, or leaves the bound', async () => {
    const constraints = { healthy: true, klMax: 0.02 };
    const place = fakePlace({
      answer: ({ run, seed }) => ({
        ...(run.includes('t0001') && seed === 1 && { verdict: 'sick' }),
        ...(run.includes('t0002') && { klLargest: 0.03 }),
      }),
    });
    const { trials } = await conductIn(newDirectory(root), study({ constraints }), place);
    expect(trials.map(({ violations }) => violations)).toEqual([
      [],
      ['the doctor calls seed 1 sick'],
      ['seeds 0, 1 had an update with a KL above 0.02'],
      [],
      [],
      [],
    ]);
  });

  it('begins no trial beyond its budget of steps', async () => {
    const place = fakePlace({ slots: 1 });
    await conductIn(newDirectory(root), study({ budgetSteps: 2 * 2 * MAX_STEPS }), place);
    expect(place.done).toHaveLength(4);
  });
});

describe('successive halving', () => {
  const halved = study({ trials: 9, seeds: [0], halving: { eta: 3, minSteps: 100 } });

  it('sends the best on, which go on with the same run, and prunes the rest', async () => {
    const place = fakePlace({ slots: 1 });
    const { trials } = await conductIn(newDirectory(root), halved, place);
    const by = (state: string) => trials.filter(trial => trial.state === state);
    expect(by('complete').length).toBeGreaterThan(0);
    expect(by('complete').length + by('pruned').length).toBe(9);
    // The one that came to the end is the best of all, as values do not cross here.
    const best = Math.max(
      ...trials.map(({ params }) => worthOf({ config: params, seed: 0, until: null } as never)),
    );
    expect(Math.max(...by('complete').map(({ value }) => value!))).toBe(best);
    // Each part once, and later parts of the same run.
    expect(new Set(names(place.done)).size).toBe(place.done.length);
    const ids = new Set(place.done.map(({ run }) => run));
    expect(ids.size).toBe(9);
    const wholes = place.done.filter(({ until }) => until === null);
    expect(wholes.length).toBe(by('complete').length);
    expect(place.done.length).toBeLessThan(9 * 2);
  });

  it.each([2, 7, 10, 12])('that is killed after %i parts comes to the same winner', async limit => {
    const dir = newDirectory(root);
    await conductIn(dir, halved, fakePlace({ slots: 1, limit })).catch(() => {});
    const { trials } = await conductIn(dir, halved, fakePlace({ slots: 1 }));
    const whole = await conductIn(newDirectory(root), halved, fakePlace({ slots: 1 }));
    const winner = (all: typeof trials) =>
      all.filter(({ state }) => state === 'complete').sort((a, b) => b.value! - a.value!)[0].params;
    expect(winner(trials)).toEqual(winner(whole.trials));
  });
});

describe('confirming', () => {
  it('trains winner and default on the same fresh seeds, and goes on where it was stopped', async () => {
    const one = study();
    const dir = newDirectory(root);
    const wanted = (['confirm-winner', 'confirm-default'] as const).map(purpose => ({
      purpose,
      params: (purpose === 'confirm-winner' ? { x: 0.7 } : {}) as Params,
      seeds: [1000, 1001, 1002],
    }));
    const attempt = async (place: Place) => {
      const log = new JournalWriter(join(dir, 'journal.log'), one);
      try {
        return await confirm({ study: one, log, place }, wanted);
      } finally {
        log.close();
      }
    };
    const first = fakePlace({ limit: 2 });
    await expect(attempt(first)).rejects.toThrow();
    const second = fakePlace();
    const ended = await attempt(second);
    expect(first.done.length + second.done.length).toBe(6);
    expect(ended!.map(({ purpose, state }) => [purpose, state])).toEqual([
      ['confirm-winner', 'complete'],
      ['confirm-default', 'complete'],
    ]);
    expect(ended![0].value!).toBeGreaterThan(ended![1].value!);
    expect(existsSync(join(dir, 'journal.log'))).toBe(true);
  });
});

describe('the job of a run', () => {
  it('has the settings of study and trial, and options where they belong', () => {
    const one = study({ config: { steps: 10 } });
    const params = { x: 0.3, 'envOptions.size': 8 };
    const job = jobOf(one, { number: 4, purpose: 'search', params, rungs: [] }, 1, 100);
    expect(job).toMatchObject({ config: { steps: 10, x: 0.3 }, seed: 1, until: 100 });
    expect(job.subject.options).toEqual({ ...one.subject.options, size: 8 });
    expect(job.config).not.toHaveProperty('envOptions.size');
  });
});
