import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { describeConfig, resolveConfig } from '../../src/algos/train-config.ts';
import { fileSchema } from '../../src/cli/commands/config.ts';
import { summary } from '../../src/cli/progress.ts';
import {
  absoluteEnv,
  checkedConfig,
  gatherSettings,
  loadPreset,
  parseSets,
  readSettings,
  whichCheckpoint,
  wholeNumber,
} from '../../src/cli/settings.ts';
import { duration, fit, grouped, number, painter, short, table, widthOf } from '../../src/cli/terminal.ts';
import { listEnvs } from '../../src/envs/index.ts';
import { root, scratch } from './support/keel.ts';

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
    const config = checkedConfig({ epochs: 4, gamma: 0.9 }, wanted);
    expect(config).toMatchObject({ steps: 3000, seed: 2, epochs: 3, gamma: 0.9 });
    expect(gatherSettings('pendulum', { config: file }).env).toBe('pendulum');
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
      checkedConfig({}, wanted);
    } catch (error) {
      message = (error as Error).message;
    }
    const lines = message.split('\n');
    expect(lines).toHaveLength(4);
    expect(lines).toContain(`${file}: epoch is not a config key: did you mean epochs?`);
    expect(lines).toContain('--set gama is not a config key: did you mean gamma?');
    expect(lines.find(line => line.startsWith(`${file}: learningRate is "fast": `))).toBeDefined();
    expect(lines.find(line => line.startsWith('--envs is 0: '))).toBeDefined();
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
    const id = listEnvs().find(env => `${env.id.toLowerCase()}.yaml` === name)?.id;
    expect(id).toBeDefined();
    expect(resolveConfig({}, loadPreset(id!))).toBeDefined();
    expect(readFileSync(join(root, 'configs', name), 'utf8')).toMatch(
      /^# yaml-language-server: \$schema=\.\/schema\.json/,
    );
  });

  test('every environment of the classics has one', () => {
    for (const name of ['cartpole-v1', 'pendulum-v1', 'acrobot-v1', 'mountaincarcontinuous-v0', 'courier-v0'])
      expect(files).toContain(`${name}.yaml`);
  });

  test('an environment without one has no preset', () => expect(loadPreset('Nothing-v0')).toEqual({}));

  test('the published schema is that of this version', () => {
    const published = JSON.parse(readFileSync(join(root, 'configs/schema.json'), 'utf8'));
    const hint =
      'write it again: npx tsx src/cli/main.ts config --schema > configs/schema.json; npx biome check --write configs';
    expect(published, hint).toEqual(JSON.parse(JSON.stringify(fileSchema())));
    const { properties } = published;
    for (const { key, doc } of describeConfig()) {
      expect(doc, key).not.toBe('');
      expect(properties[key], key).toBeDefined();
    }
  });
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
      '2.0G',
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
    expect(lines.map(widthOf)).toEqual([8, 8]);
    expect(fit('abcdef', 4)).toBe('abc…');
    expect(widthOf(fit(paint('abcdef', 'red'), 4))).toBe(4);
  });

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
          const row = { 'kl/step': kl, 'value/explained_variance': -12.5 };
          const line = summary(row, { step, totalSteps: 2e8 }, { rate, episodeReturn }, context);
          expect(widthOf(line), line).toBeLessThanOrEqual(79);
        }
      }
    }
    const row = { 'kl/step': 0.04, 'value/explained_variance': 0.5 };
    const line = summary(
      row,
      { step: 50, totalSteps: 100 },
      { rate: 10, episodeReturn: 12 },
      { paint: painter(true) },
    );
    expect(line).toContain('\u001b[31m0.04');
    expect(line).toContain('problem');
    expect(line).toContain('50%');
  });
});
