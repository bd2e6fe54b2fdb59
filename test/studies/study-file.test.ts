import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ConfigError } from '../../src/base/errors.ts';
import { reportingSeeds, seedsOf } from '../../src/studies/seeds.ts';
import { readStudyFile, studyOf, subjectIn } from '../../src/studies/study-file.ts';
import { temporaryRoot } from '../runs/support/temporary.ts';

const root = temporaryRoot('study-file');

function problemsOf(given: Record<string, unknown>, preset = {}): readonly string[] {
  try {
    studyOf({ env: 'cartpole', ...given }, { preset });
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.problems.map(({ text }) => text);
  }
  return [];
}

describe('a study file', () => {
  it('is a study, with the rest by default', () => {
    const path = join(root, 'study.yaml');
    writeFileSync(
      path,
      `env: cartpole
config: { steps: 50000 }
space:
  learningRate: { log: [1e-5, 1e-2] }
  gamma: [0.98, 0.99]
seeds: 0..2
`,
    );
    const given = readStudyFile(path);
    expect(subjectIn(given)).toEqual({ kind: 'env', reference: 'cartpole' });
    const study = studyOf(given, { preset: { envs: 4 }, now: new Date('2026-01-02T03:04:05Z') });
    expect(study).toEqual({
      kind: 'keel-study',
      schema: 1,
      name: 'cartpole',
      version: JSON.parse(readFileSync('package.json', 'utf8')).version,
      createdAt: '2026-01-02T03:04:05.000Z',
      subject: { kind: 'env', reference: 'cartpole', sha256: null, options: {} },
      config: { steps: 50_000 },
      preset: { envs: 4 },
      space: [
        { key: 'learningRate', domain: { kind: 'float', low: 1e-5, high: 1e-2, log: true } },
        { key: 'gamma', domain: { kind: 'choice', values: [0.98, 0.99] } },
      ],
      method: 'tpe',
      halving: null,
      trials: 50,
      budgetSteps: null,
      seeds: [0, 1, 2],
      searchSeed: 0,
      objective: { metric: 'score', direction: 'maximize', of: 'last', over: 'iqm' },
      constraints: { healthy: true, klMax: null },
    });
  });

  it('may say everything', () => {
    expect(
      studyOf({
        name: 'digits',
        task: 'arithmetic',
        taskOptions: { digits: 2 },
        config: { steps: 27_000 },
        space: { learningRate: [1e-4, 1e-3], 'taskOptions.digits': [1, 2] },
        method: 'grid',
        halving: { eta: 2, minSteps: 100 },
        trials: 3,
        budgetSteps: 1_000_000,
        seeds: [4, 7],
        searchSeed: 9,
        objective: { metric: 'loss/value', of: 'best', over: 'median' },
        constraints: { healthy: false, klMax: 0.05 },
      }),
    ).toMatchObject({
      name: 'digits',
      subject: { kind: 'task', reference: 'arithmetic', options: { digits: 2 } },
      method: 'grid',
      halving: { eta: 2, minSteps: 100 },
      trials: 3,
      budgetSteps: 1_000_000,
      seeds: [4, 7],
      searchSeed: 9,
      objective: { metric: 'loss/value', direction: 'minimize', of: 'best', over: 'median' },
      constraints: { healthy: false, klMax: 0.05 },
    });
  });

  it('has as many trials as a grid has combinations, and one without axes', () => {
    const grid = { env: 'cartpole', method: 'grid', space: { gamma: [0.9, 0.99], epochs: [3, 4, 5] } };
    expect(studyOf(grid).trials).toBe(6);
    expect(studyOf({ ...grid, trials: 100 }).trials).toBe(6);
    expect(studyOf({ env: 'cartpole' }).trials).toBe(1);
    expect(studyOf({ env: 'cartpole', space: { gamma: [0.9, 0.99] } }).trials).toBe(2);
  });

  it('halves from a twenty-seventh of a run on', () => {
    const study = studyOf({ env: 'cartpole', config: { steps: 27_000 }, halving: true });
    expect(study.halving).toEqual({ eta: 3, minSteps: 1000 });
    const fromPreset = studyOf({ env: 'cartpole', halving: { eta: 2 } }, { preset: { steps: 8000 } });
    expect(fromPreset.halving).toEqual({ eta: 2, minSteps: 1000 });
  });

  it('takes the direction of a metric from the registry', () => {
    const direction = (objective: unknown) => studyOf({ env: 'cartpole', objective }).objective.direction;
    expect(direction('episode/return')).toBe('maximize');
    expect(direction('loss/value')).toBe('minimize');
    expect(direction({ metric: 'loss/value', direction: 'maximize' })).toBe('maximize');
  });

  it('names a file by its absolute path and its content', () => {
    const path = join(root, 'my-env.ts');
    writeFileSync(path, 'export default 1;');
    const { subject, name } = studyOf({ env: `${path}#Walk-v0` });
    expect(subject).toMatchObject({
      kind: 'env',
      reference: `${path}#Walk-v0`,
      sha256: createHash('sha256').update('export default 1;').digest('hex'),
    });
    expect(name).toBe('my-env');
    expect(subjectIn({ env: './x.ts' })?.reference).toBe(join(process.cwd(), 'x.ts'));
  });

  it.each<[string, Record<string, unknown>, RegExp]>([
    ['an unknown key', { trails: 3 }, /^trails is not a key of a study: did you mean trials\?$/],
    [
      'a setting at the top',
      { learningRate: 1 },
      /^learningRate is not a key of a study: it is a setting: write it under config or space/,
    ],
    ['a seed', { seed: 1 }, /write seeds: 0..2/],
    ['both kinds', { task: 'arithmetic' }, /^task and env are both there/],
    [
      'options of the other kind',
      { taskOptions: {} },
      /^taskOptions is not for an environment: write envOptions/,
    ],
    [
      'a wrong setting',
      { config: { learningRat: 1 } },
      /^config.learningRat is not a config key: did you mean learningRate\?$/,
    ],
    [
      'a wrong value',
      { config: { gamma: 2 } },
      /^config.gamma is 2, above its largest value 1: the default is/,
    ],
    ['a seed in the config', { config: { seed: 3 } }, /^config.seed is of one run: write seeds/],
    ['no config', { config: 3 }, /^config is 3: expected keys with values/],
    ['a wrong axis', { space: { gamma: [2] } }, /^space.gamma is 2, above its largest value 1/],
    [
      'an axis that is set',
      { config: { gamma: 0.9 }, space: { gamma: [0.9, 0.99] } },
      /^config.gamma is searched, too/,
    ],
    [
      'an axis that does nothing',
      { space: { adaptiveRateTarget: [0.1] } },
      /^space.adaptiveRateTarget has no effect without adaptiveRate true: write that under config/,
    ],
    [
      'an axis that does nothing at times',
      { space: { adaptiveRateTarget: [0.1], adaptiveRate: [true, false] } },
      /has no effect at some values of adaptiveRate: add when/,
    ],
    ['a method', { method: 'tpee' }, /^method is "tpee": did you mean tpe\?/],
    [
      'an endless grid',
      { method: 'grid', space: { gamma: { range: [0.9, 0.99] } } },
      /^space.gamma has no end of values, which a grid cannot try/,
    ],
    ['trials', { trials: 0 }, /^trials is 0: write a whole number from 1 to 100000/],
    ['a budget', { budgetSteps: -3 }, /^budgetSteps is -3: write a whole number from 1 on/],
    [
      'seeds that report',
      { seeds: [0, 1003] },
      /^seeds has 1003: seeds from 1000 on report what was tuned on lower ones/,
    ],
    ['seeds', { seeds: 'few' }, /^seeds is "few": write a range such as 0..2/],
    ['a seed of the search', { searchSeed: 1.5 }, /^searchSeed is 1.5: write a whole number from 0 on/],
    ['halving', { halving: 3 }, /^halving is 3: write true, or/],
    ['a share', { halving: { eta: 1 } }, /^halving.eta is 1: write a number from 1.5/],
    [
      'a rung beyond the end',
      { config: { steps: 100 }, halving: { minSteps: 100 } },
      /^halving.minSteps is 100, not below the 100 steps/,
    ],
    ['a word of halving', { halving: { etta: 3 } }, /^halving.etta is not known: did you mean eta\?/],
    ['an objective', { objective: 7 }, /^objective is 7: write score/],
    [
      'a metric',
      { objective: 'episode/retrun' },
      /^objective.metric is an unknown metric "episode\/retrun": did you mean episode\/return\?/,
    ],
    ['the score', { objective: 'scor' }, /^objective.metric is "scor": did you mean score\?/],
    [
      'a metric without a better way',
      { objective: 'train/step' },
      /^objective.direction is missing: of train\/step neither/,
    ],
    ['an aggregate', { objective: { over: 'average' } }, /^objective.over is "average": write iqm, mean/],
    [
      'a word of the objective',
      { objective: { metrik: 'score' } },
      /^objective.metrik is not known: did you mean metric\?/,
    ],
    ['a bound', { constraints: { klMax: 0 } }, /^constraints.klMax is 0: write a KL above 0/],
    ['health', { constraints: { healthy: 'yes' } }, /^constraints.healthy is "yes": write true or false/],
    ['a name', { name: '../up' }, /^name is "..\/up": use letters/],
    [
      'a file that is not there',
      { env: './nowhere.ts' },
      /^env is ".*nowhere.ts": cannot read .* check the path/,
    ],
  ])('refuses %s', (_, given, problem) => {
    const problems = problemsOf(given);
    expect(problems).toHaveLength(1);
    expect(problems[0]).toMatch(problem);
  });

  it('without a subject, or with one that is none, is refused', () => {
    expect(() => studyOf({})).toThrow(/^env is missing: write what to train in/);
    expect(problemsOf({ env: 7 })).toEqual([
      'env is 7: write a name or a file, such as cartpole or ./my-env.ts',
    ]);
  });

  it('tells everything that is wrong at once', () => {
    const problems = problemsOf({
      trails: 3,
      trials: -1,
      seeds: [1000],
      method: 'x',
      config: { gamma: 2 },
      space: { seed: [1] },
      objective: 'x',
      constraints: { klMax: -1 },
    });
    expect(problems).toHaveLength(8);
  });

  it('tells of an axis that does nothing beside one that is wrong, but not of what depends on that', () => {
    const space = { adaptiveRateTarget: [0.1], clipRnage: [0.1] };
    expect(problemsOf({ space })).toEqual([
      expect.stringMatching(/^space.clipRnage is not a config key/),
      expect.stringMatching(/^space.adaptiveRateTarget has no effect without adaptiveRate true/),
    ]);
    expect(problemsOf({ space: { adaptiveRateTarget: [0.1], adaptiveRate: true } })).toHaveLength(1);
  });

  it('searches what another setting switches on, where that is on', () => {
    expect(problemsOf({ space: { adaptiveRateTarget: [0.1] } }, { adaptiveRate: true })).toEqual([]);
    expect(problemsOf({ config: { adaptiveRate: true }, space: { adaptiveRateTarget: [0.1] } })).toEqual([]);
    expect(
      problemsOf({
        space: {
          adaptiveRateTarget: { values: [0.1], when: { adaptiveRate: true } },
          adaptiveRate: [true, false],
        },
      }),
    ).toEqual([]);
  });
});

describe('seeds', () => {
  it.each<[unknown, readonly number[]]>([
    [3, [0, 1, 2]],
    ['0..2', [0, 1, 2]],
    ['1000 .. 1001', [1000, 1001]],
    ['7..7', [7]],
    [
      [5, 2],
      [5, 2],
    ],
  ])('%j are', (given, seeds) => {
    expect(seedsOf(given)).toEqual(seeds);
  });

  it.each<[unknown, RegExp]>([
    [0, /a count from 1 to 1000/],
    [1.5, /a count from 1/],
    ['2..1', /is empty/],
    ['0..1000', /1001 seeds: at most 1000/],
    ['0...2', /write a range/],
    [[], /has 0 seeds/],
    [[1, -1], /has -1: a seed is a whole number/],
    [[1, 1], /has 1 twice/],
    [null, /write a range/],
  ])('%j are none', (given, why) => {
    expect(seedsOf(given)).toMatch(why);
  });

  it('that report another winner are of a block that nobody has seen', () => {
    const winner = { a: 1, b: 2 };
    const confirmed = { purpose: 'confirm-winner', params: winner, seeds: [1000, 1001] } as const;
    const base = { purpose: 'confirm-default', params: {}, seeds: [1000, 1001] } as const;
    expect(reportingSeeds([], winner, 3)).toEqual([1000, 1001, 1002]);
    expect(reportingSeeds([{ purpose: 'search', params: {}, seeds: [0, 1] }], winner, 1)).toEqual([1000]);
    // What was stopped goes on, however its settings are written.
    expect(reportingSeeds([confirmed, base], { b: 2, a: 1 }, 2)).toEqual([1000, 1001]);
    expect(reportingSeeds([confirmed, base], { a: 1 }, 2)).toEqual([1100, 1101]);
  });
});
