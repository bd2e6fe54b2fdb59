import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ppoSettings } from '../../src/algos/ppo/settings.ts';
import { ConfigError } from '../../src/base/errors.ts';
import type { Domain, Space } from '../../src/studies/schema.ts';
import { activeAxes, gridOf, isActive, sizeOf } from '../../src/studies/space.ts';
import { checkSpace, parseSpace } from '../../src/studies/space-file.ts';

const parse = (given: unknown): Space => parseSpace(given, ppoSettings);
const problemsOf = (given: unknown): string[] =>
  checkSpace(given, ppoSettings).problems.map(({ text }) => text);

describe('a space', () => {
  it('is read from lists, ranges, logarithmic ranges, steps and conditions', () => {
    expect(
      parse({
        adaptiveRateTarget: { log: [1e-3, 1e-1], when: { adaptiveRate: true } },
        learningRate: { log: [1e-5, 1e-2] },
        gamma: [0.98, 0.99, 0.995],
        epochs: { range: [3, 20] },
        stepsPerRollout: { range: [256, 2100], step: 256 },
        clipRange: { range: [0.1, 0.35], step: 0.1 },
        gaeLambda: { range: [0, 1] },
        minibatchSize: { log: [16, 256], int: true },
        hidden: [[64, 64], [32]],
        adaptiveRate: { values: [true, false] },
        'envOptions.size': { range: [1, 4], int: true },
        'envOptions.slope': { range: [1, 4] },
      }),
    ).toEqual([
      { key: 'learningRate', domain: { kind: 'float', low: 1e-5, high: 1e-2, log: true } },
      { key: 'gamma', domain: { kind: 'choice', values: [0.98, 0.99, 0.995] } },
      { key: 'epochs', domain: { kind: 'int', low: 3, high: 20, log: false, step: 1 } },
      { key: 'stepsPerRollout', domain: { kind: 'int', low: 256, high: 2048, log: false, step: 256 } },
      { key: 'clipRange', domain: { kind: 'float', low: 0.1, high: 0.3, log: false, step: 0.1 } },
      { key: 'gaeLambda', domain: { kind: 'float', low: 0, high: 1, log: false } },
      { key: 'minibatchSize', domain: { kind: 'int', low: 16, high: 256, log: true, step: 1 } },
      { key: 'hidden', domain: { kind: 'choice', values: [[64, 64], [32]] } },
      { key: 'adaptiveRate', domain: { kind: 'choice', values: [true, false] } },
      {
        key: 'adaptiveRateTarget',
        domain: { kind: 'float', low: 1e-3, high: 1e-1, log: true },
        when: { key: 'adaptiveRate', in: [true] },
      },
      { key: 'envOptions.size', domain: { kind: 'int', low: 1, high: 4, log: false, step: 1 } },
      { key: 'envOptions.slope', domain: { kind: 'float', low: 1, high: 4, log: false } },
    ]);
    expect(parse(undefined)).toEqual([]);
  });

  it.each<[string, unknown, RegExp]>([
    ['no axes', [1], /^space is \[1\], not settings with their values/],
    [
      'a misspelt setting',
      { learningrat: [1] },
      /^space.learningrat is not a config key: did you mean learningRate\?$/,
    ],
    ["another trainer's name", { lr: [1] }, /did you mean learningRate\?/],
    ['the seed', { seed: [1, 2] }, /^space.seed cannot be searched: every trial is repeated over the seeds/],
    [
      'the length',
      { steps: [1, 2] },
      /^space.steps cannot be searched: trials of other lengths do not compare/,
    ],
    ['an option of a task', { 'taskOptions.digits': [1] }, /is of a task: write envOptions.digits/],
    [
      'a low end that the setting refuses',
      { gamma: { range: [-1, 0.5] } },
      /^space.gamma is -1, below its least value 0/,
    ],
    [
      'a high end that the setting refuses',
      { gamma: { range: [0.5, 2] } },
      /^space.gamma is 2, above its largest value 1/,
    ],
    [
      'a value that the setting refuses',
      { hidden: [[64], [-1]] },
      /^space.hidden\.0 is -1, below its least value 1/,
    ],
    [
      'fractions of what is whole',
      { epochs: { range: [3, 20], int: false } },
      /^space.epochs is 9\.\d+, not a whole number/,
    ],
    [
      'half steps of what is whole',
      { epochs: { range: [3, 20], step: 0.5 } },
      /^space.epochs is 3.5, not a whole number/,
    ],
    ['an empty range', { epochs: { range: [20, 3] } }, /has range \[20, 3\], which is empty/],
    ['a range of one', { epochs: { range: [3, 3] } }, /which is empty: .* a list with one value/],
    ['a logarithm of 0', { learningRate: { log: [0, 1] } }, /there is no logarithm of 0; begin above 0/],
    ['a logarithm with steps', { learningRate: { log: [0.1, 1], step: 0.1 } }, /has log and step/],
    ['a step of 0', { learningRate: { range: [0.1, 1], step: 0 } }, /has step 0: write a number above 0/],
    ['a step beyond the end', { learningRate: { range: [0.1, 1], step: 2 } }, /which has no second value/],
    [
      'whole numbers that are none',
      { learningRate: { range: [0.1, 1], int: true } },
      /is to be whole numbers from 0.1 to 1/,
    ],
    [
      'an end that is no number',
      { learningRate: { range: [0.1, null] } },
      /write range: \[low, high\] with two numbers/,
    ],
    [
      'a range and a list',
      { learningRate: { range: [0.1, 1], values: [1] } },
      /has range and values: write one of/,
    ],
    ['nothing', { learningRate: {} }, /has no values: write one of/],
    ['a value alone', { learningRate: 0.1 }, /is 0.1, not values to search/],
    ['a misspelt word', { learningRate: { rang: [0, 1] } }, /has "rang": did you mean range\?/],
    ['an empty list', { learningRate: [] }, /has an empty list/],
    ['a value twice', { gamma: [0.9, 0.99, 0.9] }, /has 0.9 twice/],
    ['a value of a wrong kind', { gamma: [{ a: 1 }] }, /has the value \{"a":1\}: use numbers/],
    [
      'a condition on nothing',
      { gamma: { values: [0.9], when: { epoch: 3 } }, epochs: [3, 4] },
      /depends on epoch, which is not an axis: did you mean epochs\?/,
    ],
    [
      'a condition that never holds',
      { gamma: { values: [0.9], when: { epochs: 5 } }, epochs: [3, 4] },
      /depends on epochs being 5, which it never is: epochs is one of 3, 4/,
    ],
    [
      'a condition on what is not searched',
      { adaptiveRateTarget: { values: [0.1], when: { adaptiveRate: true } } },
      /depends on adaptiveRate, which is not an axis: add it to the space, or remove the condition/,
    ],
    ['a condition on itself', { gamma: { values: [0.9], when: { gamma: 0.9 } } }, /depends on itself/],
    ['two conditions', { gamma: { values: [0.9], when: { epochs: 3, hidden: 1 } } }, /with one key/],
  ])('refuses %s', (_, given, problem) => {
    const problems = problemsOf(given);
    expect(problems).toHaveLength(1);
    expect(problems[0]).toMatch(problem);
    expect(() => parse(given)).toThrow(ConfigError);
  });

  it('refuses a circle of conditions', () => {
    const given = {
      gamma: { values: [0.9], when: { epochs: 3 } },
      epochs: { values: [3], when: { gaeLambda: 0.5 } },
      gaeLambda: { values: [0.5], when: { gamma: 0.9 } },
      clipRange: [0.1],
    };
    expect(problemsOf(given)).toEqual([
      'space: gamma, epochs, gaeLambda depend on each other in a circle: remove one of their conditions',
    ]);
  });

  it('tells all that is wrong at once', () => {
    expect(problemsOf({ seed: [1], gamma: [7], learningRate: { log: [0, 1] }, nonsense: [1] })).toHaveLength(
      4,
    );
  });

  it('takes at most so many axes', () => {
    const many = Object.fromEntries(Array.from({ length: 201 }, (_, i) => [`envOptions.a${i}`, [1]]));
    expect(problemsOf(many)[0]).toMatch(/has 201 axes, at most 200/);
  });
});

const conditional: Space = [
  { key: 'a', domain: { kind: 'choice', values: [1, [2], null] } },
  {
    key: 'b',
    domain: { kind: 'int', low: 1, high: 3, log: false, step: 1 },
    when: { key: 'a', in: [1, [2]] },
  },
  {
    key: 'c',
    domain: { kind: 'float', low: 0.1, high: 0.3, log: false, step: 0.1 },
    when: { key: 'b', in: [2] },
  },
  { key: 'd', domain: { kind: 'choice', values: [true, false] } },
];

describe('conditions', () => {
  it('hold where the other axis has the value, lists too', () => {
    const [, b, c, d] = conditional;
    expect(isActive(b, { a: [2] })).toBe(true);
    expect(isActive(b, { a: null })).toBe(false);
    expect(isActive(c, {})).toBe(false);
    expect(isActive(d, {})).toBe(true);
    expect(activeAxes(conditional, { a: 1, b: 1 }).map(({ key }) => key)).toEqual(['a', 'b', 'd']);
  });
});

describe('a grid', () => {
  it('has every combination once, in order', () => {
    const grid = gridOf(conditional);
    // a = 1 and a = [2] have b = 1, b = 2 with three of c, b = 3: five each; a = null one; times two of d.
    expect(grid).toHaveLength((5 + 5 + 1) * 2);
    expect(sizeOf(conditional)).toBe(22);
    expect(new Set(grid.map(params => JSON.stringify(params))).size).toBe(22);
    expect(grid[0]).toEqual({ a: 1, b: 1, d: true });
    expect(grid[1]).toEqual({ a: 1, b: 1, d: false });
    expect(grid[6]).toEqual({ a: 1, b: 2, c: 0.3, d: true });
    expect(grid.at(-1)).toEqual({ a: null, d: false });
    expect(gridOf([])).toEqual([{}]);
  });

  it('is as large as it says, for any space', () => {
    const choice = fc
      .integer({ min: 1, max: 4 })
      .map((n): Domain => ({ kind: 'choice', values: Array.from({ length: n }, (_, i) => i) }));
    const spaces = fc.array(
      fc.tuple(
        choice,
        fc.option(fc.tuple(fc.nat(), fc.uniqueArray(fc.nat({ max: 5 }), { minLength: 1, maxLength: 3 }))),
      ),
      { maxLength: 5 },
    );
    fc.assert(
      fc.property(spaces, drawn => {
        const space = drawn.map(([domain, when], i) => ({
          key: `k${i}`,
          domain,
          ...(when !== null && i > 0 && { when: { key: `k${when[0] % i}`, in: when[1] } }),
        }));
        expect(gridOf(space)).toHaveLength(sizeOf(space));
      }),
    );
  });

  it('refuses what has no end, and what is too much', () => {
    expect(() => gridOf(parse({ learningRate: { log: [1e-4, 1e-2] } }))).toThrow(
      /no end of values, .* use method: random/,
    );
    expect(sizeOf(parse({ learningRate: { log: [1e-4, 1e-2] } }))).toBe(Number.POSITIVE_INFINITY);
    const large = parse({ epochs: { range: [1, 1000] }, stepsPerRollout: { range: [1, 101] } });
    expect(() => gridOf(large)).toThrow(/space has 101000 combinations, a grid at most 100000/);
  });
});
