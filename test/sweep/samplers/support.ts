/** Studies of functions, without runs. */
import type { Objective, Params, Space } from '../../../src/studies/schema.ts';
import { makeSampler } from '../../../src/sweep/samplers/make.ts';
import type { Sampler, Seen } from '../../../src/sweep/samplers/sampler.ts';

export const least: Objective = { metric: 'score', direction: 'minimize', of: 'last', over: 'mean' };

export const seenTrial = (number: number, params: Params, rest: Partial<Seen> = {}): Seen => ({
  number,
  state: 'complete',
  params,
  value: 0,
  rungs: [],
  violations: [],
  ...rest,
});

/** One trial after another; ends where nothing is left to try. */
export function study(sampler: Sampler, trials: number, judge: (params: Params) => Partial<Seen>): Seen[] {
  const seen: Seen[] = [];
  for (let number = 0; number < trials; number++) {
    const params = sampler.ask(number, seen);
    if (params === undefined) break;
    seen.push(seenTrial(number, params, judge(params)));
  }
  return seen;
}

export const bestOf = (seen: readonly Seen[]): number =>
  Math.min(...seen.filter(trial => trial.violations.length === 0).map(trial => trial.value ?? Infinity));

export const samplerOf = (
  method: Parameters<typeof makeSampler>[0]['method'],
  space: Space,
  searchSeed = 0,
): Sampler => makeSampler({ method, space, searchSeed, objective: least });

/** Every kind of axis, and conditions two deep. */
export const manyKinds: Space = [
  { key: 'algo', domain: { kind: 'choice', values: ['a', 'b', 'c'] } },
  { key: 'rate', domain: { kind: 'float', low: 1e-5, high: 1e-1, log: true } },
  {
    key: 'depth',
    domain: { kind: 'int', low: 1, high: 5, log: false, step: 2 },
    when: { key: 'algo', in: ['a', 'b'] },
  },
  {
    key: 'extra',
    domain: { kind: 'choice', values: [true, null, [1, 2]] },
    when: { key: 'depth', in: [3, 5] },
  },
  { key: 'width', domain: { kind: 'int', low: 8, high: 512, log: true, step: 1 } },
  { key: 'share', domain: { kind: 'float', low: 0, high: 0.5, log: false, step: 0.05 } },
];
