import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { algorithmFor } from '../../src/algos/algorithms.ts';
import { ppo } from '../../src/algos/ppo/algorithm.ts';
import { type PpoSettings, ppoSettings } from '../../src/algos/ppo/settings.ts';
import { settingTables } from '../../src/algos/settings.ts';
import { ConfigError } from '../../src/base/errors.ts';
import { duration, grouped, number, short } from '../../src/base/numbers.ts';
import { columnsOf, fit, painter, table, wrap } from '../../src/base/terminal.ts';
import { whichCheckpoint, wholeNumber } from '../../src/cli/options.ts';
import { summary } from '../../src/cli/progress.ts';
import { absoluteEnv, gatherSettings, located, parseSets, type Wanted } from '../../src/cli/settings.ts';
import { findEnv, listEnvs } from '../../src/envs/index.ts';
import { meantKey } from '../../src/settings/explain.ts';
import { loadPreset, readSettings } from '../../src/settings/files.ts';
import {
  describeSettings,
  resolveSettings,
  settingsJsonSchema,
  settingsOf,
} from '../../src/settings/resolve.ts';
import { isTaskName } from '../../src/tasks/index.ts';
import { root, scratch } from './support/keel.ts';

/** What colours are made of. */
const escapes = new RegExp(`${String.fromCharCode(27)}\\[\\d+m`, 'g');

/** As a command resolves them: what is wrong says where it was set. */
function checked(preset: PpoSettings, { settings, sources }: Wanted) {
  try {
    return resolveSettings(ppoSettings, { preset, given: settings });
  } catch (error) {
    throw located(error, sources);
  }
}

describe('settings', () => {
  test('--set values are YAML', () => {
    const pairs = ['a=1e-3', 'b=[64, 64]', 'c=null', 'd=true', 'e=linear', 'f=x=y', 'envOptions.g=9.81'];
    expect(parseSets(pairs)).toEqual({
      a: 0.001,
      b: [64, 64],
      c: null,
      d: true,
      e: 'linear',
      f: 'x=y',
      envOptions: { g: 9.81 },
    });
    for (const wrong of ['a', '=1', 'a=', 'a=[1']) expect(() => parseSets([wrong])).toThrow(/--set/);
  });

  test('flags win over --set, that over the file, that over the preset', () => {
    const file = join(scratch(), 'c.yaml');
    writeFileSync(
      file,
      'env: cartpole\nsteps: 1000\nseed: 1\nepochs: 3\nenvOptions:\n  maxEpisodeSteps: 10\n',
    );
    const wanted = gatherSettings(undefined, { config: file, set: ['seed=2', 'steps=2000'], steps: 3000 });
    expect(wanted).toMatchObject({ env: 'cartpole', envOptions: { maxEpisodeSteps: 10 } });
    const config = checked({ epochs: 4, gamma: 0.9 }, wanted);
    expect(config).toMatchObject({ steps: 3000, seed: 2, epochs: 3, gamma: 0.9 });
    expect(gatherSettings('pendulum', { config: file }).env).toBe('pendulum');
    // Options of the environment one by one, too.
    const options = gatherSettings(undefined, { config: file, set: ['envOptions.suttonBartoReward=true'] });
    expect(options.envOptions).toEqual({ maxEpisodeSteps: 10, suttonBartoReward: true });
  });

  test('JSON files do the same, and may name their schema', () => {
    const file = join(scratch(), 'c.json');
    writeFileSync(file, '{ "$schema": "./schema.json", "steps": 5 }');
    expect(readSettings(file)).toEqual({ steps: 5 });
  });

  test.each([
    ['a: [1', /c\.yaml:\d+:\d+ is not YAML/],
    ['a: 1\na: 2', /c\.yaml:2:1 is not YAML: Map keys must be unique/],
    ['- 1', /holds a list, not keys with values/],
    ['5', /holds the number 5/],
  ])('a file with %j says where it is wrong', (text, message) => {
    const file = join(scratch(), 'c.yaml');
    writeFileSync(file, text);
    expect(() => readSettings(file)).toThrow(message);
  });

  test('what is wrong is said with where it was set', () => {
    const file = join(scratch(), 'c.yaml');
    writeFileSync(file, 'learningRate: fast\nepoch: 3\n');
    const wanted = gatherSettings('cartpole', { config: file, set: ['gama=1'], envs: 0 });
    let message = '';
    try {
      checked({}, wanted);
    } catch (error) {
      message = (error as Error).message;
    }
    const lines = message.split('\n');
    expect(lines).toHaveLength(4);
    expect(lines).toContain(`${file}: epoch is not a config key: did you mean epochs?`);
    expect(lines).toContain('--set gama is not a config key: did you mean gamma?');
    expect(lines).toContain(`${file}: learningRate is "fast", not a number: the default is 0.0003`);
    expect(lines).toContain('--envs is 0, below its least value 1: the default is 8');
  });

  test.each<[string, unknown, string]>([
    ['gamma', 1.5, 'gamma is 1.5, above its largest value 1: the default is 0.99'],
    ['learningRate', 0, 'learningRate is 0, not above 0: the default is 0.0003'],
    ['epochs', 1.5, 'epochs is 1.5, not a whole number: the default is 10'],
    ['epochs', null, 'epochs is null, not a number: the default is 10'],
    ['targetKl', 'x', 'targetKl is "x", not a number or null: the default is null'],
    ['csv', 'maybe', 'csv is "maybe", not true or false: the default is true'],
    ['device', 'gpu', 'device is "gpu", not one of cpu, webgpu, cuda: the default is "cpu"'],
    ['hidden', 64, 'hidden is 64, not a list such as [64, 64]: the default is [64,64]'],
    ['hidden', [64, 0], 'hidden.1 is 0, below its least value 1: the default of hidden is [64,64]'],
    ['hidden', [], 'hidden is [], which needs at least 1 of them: the default is [64,64]'],
    ['seed', Number.NaN, 'seed is NaN, not a number: the default is 0'],
    [
      'hidden',
      'x'.repeat(500),
      `hidden is "${'x'.repeat(56)}..., not a list such as [64, 64]: the default is [64,64]`,
    ],
  ])('%s %j says what is expected', (key, value, message) => {
    expect(() => resolveSettings(ppoSettings, { given: { [key]: value } })).toThrow(
      new ConfigError([{ key, text: message }]),
    );
  });

  test('the remedy is what would count without the wrong value', () => {
    expect(() =>
      resolveSettings(ppoSettings, { preset: { learningRate: 0.001 }, given: { learningRate: -1 } }),
    ).toThrow('learningRate is -1, not above 0: without this learningRate is 0.001');
  });

  test('settings that are none, or no settings', () => {
    expect(settingsOf(null)).toEqual({});
    expect(() => settingsOf([1])).toThrow('config is [1], not keys with values');
    const long = join(scratch(), 'long.yaml');
    writeFileSync(long, `"${'\\a'.repeat(3_000)}"`);
    expect(() => readSettings(long)).toThrow(/holds the string ".{30,60}…, not keys with values/);
    writeFileSync(long, `# ${'x'.repeat(1_000_001)}`);
    expect(() => readSettings(long)).toThrow('settings at most 1000000');
  });

  test('what other trainers call a key suggests ours, and so does another way to write it', () => {
    const known = {
      lr: 'learningRate',
      n_steps: 'stepsPerRollout',
      n_epochs: 'epochs',
      batch_size: 'minibatchSize',
      ent_coef: 'entropyCoef',
      vf_coef: 'valueCoef',
      clip_range: 'clipRange',
      clip_coef: 'clipRange',
      gae_lambda: 'gaeLambda',
      max_grad_norm: 'gradientClip',
      target_kl: 'targetKl',
      num_envs: 'envs',
      total_timesteps: 'steps',
      'total-timesteps': 'steps',
      net_arch: 'hidden',
      normalize_advantage: 'normaliseAdvantages',
      update_epochs: 'epochs',
    };
    expect(Object.fromEntries(Object.keys(known).map(word => [word, meantKey(ppoSettings, word)]))).toEqual(
      known,
    );
    for (const { key } of describeSettings(ppoSettings)) {
      const snake = key.replace(/[A-Z]/g, letter => `_${letter.toLowerCase()}`);
      for (const word of [snake, snake.replaceAll('_', '-'), snake.toUpperCase()])
        expect(meantKey(ppoSettings, word)).toBe(key);
    }
    expect(meantKey(ppoSettings, 'zzzzzz')).toBeUndefined();
    expect(meantKey(ppoSettings, 'constructor')).toBeUndefined();
    expect(() => resolveSettings(ppoSettings, { given: { lr: 3 } })).toThrow(
      'lr is not a config key: did you mean learningRate?',
    );
    expect(() => resolveSettings(ppoSettings, { given: { zzzzzz: 3 } })).toThrow(
      'zzzzzz is not a config key: keel config lists them',
    );
  });

  test.each(settingTables.map(table => [table.name, table] as const))(
    'another name of a key of %s leads to it, and to no other',
    (_, table) => {
      const names = Object.entries(table.keys).flatMap(([key, { aliases = [] }]) => {
        for (const name of aliases) {
          expect(name).toMatch(/^[a-z]+$/);
          expect(meantKey(table, name)).toBe(key);
        }
        return aliases;
      });
      expect(new Set(names).size).toBe(names.length);
    },
  );

  test('a rollout that is more than the steps is said before it runs', () => {
    const plan = (settings: PpoSettings, step = 0) =>
      ppo.remark!({
        config: resolveSettings(ppoSettings, { given: settings }),
        step,
        started: step > 0,
        subject: 'CartPole-v1',
      });
    expect(plan({ steps: 4096 })).toBe(
      'it will do 16,384 steps, not 4,096, because one rollout is 16,384 (envs 8 x stepsPerRollout 2048): --set stepsPerRollout=512 does just those',
    );
    expect(plan({ steps: 100, stepsPerRollout: 32 })).toMatch(
      /^it will do 256 steps, not 100, .*: for fewer, set a smaller stepsPerRollout, envs or minibatchSize$/,
    );
    // What it advises is true.
    expect(plan({ steps: 4096, stepsPerRollout: 512 })).toBeUndefined();
    expect(plan({ steps: 1_000_000 })).toBeUndefined();
    // Of a run that goes on, only what is left counts.
    expect(plan({ steps: 20_000 }, 16_384)).toMatch(/^it will do 32,768 steps, not 20,000/);
    expect(plan({ steps: 32_768 }, 16_384)).toBeUndefined();
    expect(plan({ steps: 16_384 }, 16_384)).toBeUndefined();
  });

  test('numbers and checkpoints of flags', () => {
    expect(['100000', '1e5', '100_000', '100k', '2M', '1.5k'].map(wholeNumber)).toEqual([
      1e5, 1e5, 1e5, 1e5, 2e6, 1500,
    ]);
    for (const wrong of ['', 'x', '-1', '1.5', '1e99', '0x10', '1kk'])
      expect(() => wholeNumber(wrong)).toThrow();
    expect(['last', 'best', '2048'].map(whichCheckpoint)).toEqual(['last', 'best', 2048]);
    expect(() => whichCheckpoint('first')).toThrow(/last, best/);
  });

  test('files of environments are named by their absolute path', () => {
    expect(absoluteEnv('cartpole')).toBe('cartpole');
    expect(absoluteEnv('./e.ts#A-v0')).toBe(`${join(process.cwd(), 'e.ts')}#A-v0`);
  });
});

describe('presets', () => {
  const files = readdirSync(join(root, 'configs')).filter(name => name.endsWith('.yaml'));

  test.each(files)('%s is of an environment and valid, with nothing inert', name => {
    const task = /^(.*?)(-clone)?\.yaml$/.exec(name)!;
    if (isTaskName(task[1])) {
      const { preset, settings } = algorithmFor(task[2] ? 'clone' : 'train', { kind: 'task' });
      expect(resolveSettings(settings, { given: preset(task[1]) })).toBeDefined();
      expect(readFileSync(join(root, 'configs', name), 'utf8').split('\n')[0]).toBe(
        `# yaml-language-server: $schema=./${settings.schemaFile}`,
      );
      return;
    }
    const id = listEnvs().find(env => `${env.id.toLowerCase()}.yaml` === name)?.id;
    expect(id).toBeDefined();
    expect(resolveSettings(ppoSettings, { given: loadPreset(id!) })).toBeDefined();
    expect(readFileSync(join(root, 'configs', name), 'utf8')).toMatch(
      /^# yaml-language-server: \$schema=\.\/schema\.json/,
    );
  });

  test('every environment of the classics has one', () => {
    for (const name of ['cartpole-v1', 'pendulum-v1', 'acrobot-v1', 'mountaincarcontinuous-v0', 'courier-v0'])
      expect(files).toContain(`${name}.yaml`);
  });

  test('every robot has one', () => {
    const robots = listEnvs().filter(env => findEnv(env.id).definition.slow);
    expect(robots.length).toBeGreaterThanOrEqual(8);
    for (const { id } of robots) expect(files).toContain(`${id.toLowerCase()}.yaml`);
  });

  test('an environment without one has no preset', () => expect(loadPreset('Nothing-v0')).toEqual({}));

  test.each(settingTables.map(table => [table.schemaFile!, table] as const))(
    'configs/%s is the schema of this version',
    (file, table) => {
      const published = JSON.parse(readFileSync(join(root, 'configs', file), 'utf8'));
      expect(published, 'write it again: npm run docs:schemas').toEqual(
        JSON.parse(JSON.stringify(settingsJsonSchema(table))),
      );
      for (const { key, doc } of describeSettings(table)) {
        expect(doc, key).not.toBe('');
        expect(published.properties[key], key).toBeDefined();
      }
    },
  );
});

describe('terminal', () => {
  test('numbers that fit', () => {
    expect([0, 999, 1000, 99_940, 99_950, 123_456, 1.5e6, 2e9].map(short)).toEqual([
      '0',
      '999',
      '1.0k',
      '99.9k',
      '100k',
      '123k',
      '1.5M',
      '2.0B',
    ]);
    expect([0, 0.00612345, -212.44, 5.678, 1.2e7, 1e-9, Number.NaN, undefined].map(number)).toEqual([
      '0',
      '0.00612',
      '-212.4',
      '5.68',
      '1.2e+7',
      '1.0e-9',
      'NaN',
      '-',
    ]);
    expect([0, 1234, 1_234_567].map(grouped)).toEqual(['0', '1,234', '1,234,567']);
    expect([0, 75, 3675, 1e6, Number.POSITIVE_INFINITY].map(duration)).toEqual([
      '0:00',
      '1:15',
      '1h01m',
      '12d',
      '?',
    ]);
  });

  test('tables line up whatever their colours, and long lines are cut', () => {
    const paint = painter(true);
    const lines = table(
      [
        ['a', paint('1', 'red')],
        ['bbb', '100'],
      ],
      [1],
    );
    expect(lines.map(columnsOf)).toEqual([8, 8]);
    expect(fit('abcdef', 4)).toBe('abc…');
    expect(columnsOf(fit(paint('abcdef', 'red'), 4))).toBe(4);
  });

  test('lines are broken at spaces, with colours and long words whole', () => {
    expect(wrap('one two three four', 9)).toEqual(['one two', 'three', 'four']);
    expect(wrap('  one two three', 9, 4)).toEqual(['  one two', '    three']);
    expect(wrap('a /a/very/long/path b', 6)).toEqual(['a', '/a/very/long/path', 'b']);
    expect(wrap('short', 80, 4)).toEqual(['short']);
    const paint = painter(true);
    fc.assert(
      fc.property(
        fc.array(fc.stringMatching(/^[a-z]{1,9}$/), { minLength: 1 }),
        fc.integer({ min: 12, max: 60 }),
        (words, columns) => {
          const lines = wrap(
            words.map((word, i) => (i % 3 ? word : paint(word, 'red'))).join(' '),
            columns,
            2,
          );
          for (const line of lines) expect(columnsOf(line)).toBeLessThanOrEqual(columns);
          // Nothing is lost.
          const bare = lines.join(' ').replaceAll(escapes, '').split(/ +/).filter(Boolean);
          expect(bare).toEqual(words);
        },
      ),
    );
  });

  const config = { learningRate: 1e-3 };
  test('the live line fits 80 columns in every case', () => {
    const context = { paint: painter(true) };
    const klSteps = [0, 1e-9, 0.000155, 0.0061, 0.0249, 0.049, 7.5, Number.NaN, -1];
    const returns = [undefined, -1_234_567, -1681.7, 0.123456, 500];
    for (const kl of klSteps) {
      for (const episodeReturn of returns) {
        for (const [step, rate] of [
          [1, 0.01],
          [999_999, 1e5],
          [123_456_789, 3],
        ] as const) {
          for (const last of [
            { 'value/explained_variance': -12.5 },
            { 'completion/length': 30, 'completion/parse_rate': 0.25 },
          ]) {
            const row = { 'kl/step': kl, ...last };
            for (const evalReturn of [undefined, episodeReturn]) {
              const speed = { rate, episodeReturn, evalReturn };
              const line = summary(row, { step, totalSteps: 2e8, config }, speed, context);
              expect(columnsOf(line), line).toBeLessThanOrEqual(79);
              expect(line.includes('eval')).toBe(evalReturn !== undefined);
            }
          }
        }
      }
    }
    const row = { 'kl/step': 0.04, 'value/explained_variance': 0.5 };
    const line = summary(
      row,
      { step: 50, totalSteps: 100, config },
      { rate: 10, episodeReturn: 12 },
      { paint: painter(true) },
    );
    expect(line).toContain('\u001b[31m0.04');
    expect(line).toContain('problem');
    expect(line).toContain('50%');
  });

  test('an update that changed nothing is frozen, quietly where a schedule has ended', () => {
    const shown = (lr: number): string =>
      summary(
        { 'kl/step': 1e-7, 'train/lr': lr },
        { step: 99, totalSteps: 100, config },
        { rate: 10, episodeReturn: 12 },
        { paint: painter(true) },
      );
    const [quiet, loud] = [`${'\u001b'}[2m1.0e-7  frozen`, `${'\u001b'}[33m1.0e-7  frozen`];
    expect(shown(1e-6)).toContain(quiet);
    expect(shown(1e-3)).toContain(loud);
    // A fiftieth of the rate is where one becomes the other.
    expect(shown(config.learningRate / 51)).toContain(quiet);
    expect(shown(config.learningRate / 49)).toContain(loud);
  });

  test('the word is that of the contract: a target moves it, a guard cuts it off', () => {
    const word = (own: object): string | undefined =>
      summary(
        { 'kl/step': 0.04 },
        { step: 50, totalSteps: 100, config: { ...config, ...own } },
        { rate: 10, episodeReturn: 12 },
        { paint: painter(false) },
      ).match(/kl 0\.04 +(\w+)/)?.[1];
    expect(word({ targetKl: null, guard: 0.05 })).toBe('problem');
    expect(word({ targetKl: 0.03, guard: 0.05 })).toBe('ok');
    expect(word({ targetKl: 0.03, guard: 0.02 })).toBe('critical');
    expect(word({ targetKl: null, guard: null })).toBe('problem');
  });
});
