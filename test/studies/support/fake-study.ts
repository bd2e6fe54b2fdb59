/** A study for tests of the server and the page, made from formulas: the same number of trials is always the same study. */
import type { Domain, ParamValue, RunOutcome, Study, Trial } from '../../../src/studies/schema.ts';
import type { WorkersView } from '../../../src/studies/workers-view.ts';

export const fakeStudy: Study = {
  kind: 'keel-study',
  schema: 1,
  name: 'hopper-rates',
  version: '0.0.0',
  createdAt: '2026-01-05T09:00:00.000Z',
  subject: { kind: 'env', reference: '/home/someone/envs/hopper.ts', sha256: null, options: {} },
  config: { steps: 200_000 },
  preset: {},
  space: [
    { key: 'learningRate', domain: { kind: 'float', low: 1e-5, high: 1e-2, log: true } },
    { key: 'gamma', domain: { kind: 'float', low: 0.95, high: 0.999, log: false } },
    { key: 'epochs', domain: { kind: 'int', low: 2, high: 20, log: false, step: 1 } },
    { key: 'klControl', domain: { kind: 'choice', values: ['none', 'stop', 'penalty'] } },
    {
      key: 'klTarget',
      domain: { kind: 'float', low: 0.003, high: 0.3, log: true },
      when: { key: 'klControl', in: ['stop', 'penalty'] },
    },
  ],
  method: 'tpe',
  halving: { eta: 3, minSteps: 22_000 },
  trials: 60,
  budgetSteps: 20_000_000,
  seeds: [0, 1, 2],
  searchSeed: 0,
  objective: { metric: 'score', direction: 'maximize', of: 'last', over: 'iqm' },
  constraints: { healthy: true, klMax: 0.05 },
};

const begun = Date.parse(fakeStudy.createdAt);

/** Evenly spread without a pattern to be seen: multiples of an irrational number. */
const spread = (i: number, k: number): number =>
  ((i + 1) * (0.754877666 + 0.569840296 * k) + 0.31 * k * k) % 1;

function valueAt(domain: Domain, u: number): ParamValue {
  if (domain.kind === 'choice') return domain.values[Math.floor(u * domain.values.length)];
  const { low, high, log } = domain;
  const value = log ? low * (high / low) ** u : low + u * (high - low);
  return domain.kind === 'int' ? Math.round(value) : Number(value.toPrecision(4));
}

/** What trial `number` has come to, in which state. Every seventh cannot win, every ninth failed, every fifth was pruned. */
export function fakeTrial(number: number, state: Trial['state']): Trial {
  const us = fakeStudy.space.map((_, k) => {
    const u = spread(number, k);
    // A search goes to where it was good: the later the trial, the closer.
    return k === 0 ? 0.55 + (u - 0.55) * (1 - Math.min(0.7, number / 60)) : u;
  });
  const params: Record<string, ParamValue> = {};
  fakeStudy.space.forEach(({ key, domain, when }, k) => {
    if (when === undefined || when.in.includes(params[when.key])) params[key] = valueAt(domain, us[k]);
  });
  const score = 3200 * Math.exp(-14 * (us[0] - 0.6) ** 2) + 500 * us[1] - 25 * Math.abs(us[2] - 0.5);
  const isOver = state === 'complete' || state === 'pruned';
  const sick = state === 'complete' && number % 7 === 3;
  const klLargest = sick ? 0.083 : 0.021 + 0.02 * us[3];
  const outcome = (seed: number): RunOutcome => ({
    run: `t${String(number).padStart(4, '0')}-s${seed}`,
    seed,
    status: state === 'failed' && seed === 1 ? 'failed' : 'done',
    step: state === 'complete' ? 200_000 : state === 'pruned' ? 22_000 : 9000,
    finished: state === 'complete',
    value: state === 'failed' ? null : score + 60 * (spread(number, seed + 9) - 0.5),
    verdict: sick ? 'sick' : us[0] > 0.8 ? 'watch' : 'healthy',
    rootCause: sick ? 'learning-rate-too-high' : null,
    klMedian: 0.006 + 0.006 * us[3],
    klLargest: klLargest + 0.002 * seed,
    seconds: 41 + seed,
    weights: null,
    worker: `box-${1 + (number % 2)}`,
    problem:
      state === 'failed' && seed === 1 ? 'the process was killed three times: it needs more memory' : null,
  });
  return {
    number,
    state,
    params,
    purpose: 'search',
    seeds: fakeStudy.seeds,
    value: isOver ? score : null,
    rungs: isOver ? [{ steps: 22_000, value: score * 0.4 }] : [],
    outcomes: state === 'waiting' || state === 'running' ? [] : fakeStudy.seeds.map(outcome),
    violations: sick ? ['seed 0 is sick: learning rate too high', 'KL 0.083 is above the bound of 0.05'] : [],
    startedAt: state === 'waiting' ? null : begun + 60_000 * number,
    endedAt: state === 'waiting' || state === 'running' ? null : begun + 60_000 * number + 150_000,
  };
}

/** The first trials of the study, of which the last two run. */
export function fakeTrials(count: number): Trial[] {
  return Array.from({ length: count }, (_, i) =>
    fakeTrial(
      i,
      i >= count - 2 ? 'running' : i % 9 === 8 ? 'failed' : i > 5 && i % 5 === 1 ? 'pruned' : 'complete',
    ),
  );
}

export const fakeWorkers = (now: number): WorkersView => ({
  workers: [
    {
      name: 'box-1/4121',
      host: 'box-1',
      version: '0.0.0',
      doing: ['t0038-s0', 't0038-s1'],
      since: now - 95_000,
    },
    { name: 'box-2/877', host: 'box-2', version: '0.0.0', doing: ['t0039-s0'], since: now - 12_000 },
    { name: 'box-2/901', host: 'box-2', version: '0.0.0', doing: [], since: now - 3000 },
  ],
  queue: { waiting: 7, active: 3, delayed: 1, failed: 2 },
  failures: [
    { run: 't0035-s1', why: 'the process was killed three times: it needs more memory', at: now - 240_000 },
    { run: 't0026-s1', why: 'box-2 went away: the job was given to another worker', at: now - 800_000 },
  ],
});
