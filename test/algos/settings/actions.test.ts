/** Settings that do nothing for the actions of an environment. */
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { ppoSettings } from '../../../src/algos/ppo/settings.ts';
import { resume, train } from '../../../src/algos/runs.ts';
import { ConfigError } from '../../../src/base/errors.ts';
import {
  box,
  dict,
  discrete,
  multiBinary,
  multiDiscrete,
  type Space,
  tuple,
} from '../../../src/envs/index.ts';
import { inertForActions, refuseInertForActions } from '../../../src/settings/resolve.ts';

const work = mkdtempSync(join(tmpdir(), 'keel-actions-'));
afterAll(() => rmSync(work, { recursive: true }));

describe('settings that do nothing for the actions', () => {
  const tiny = { steps: 64, envs: 2, stepsPerRollout: 32, minibatchSize: 32, epochs: 1, hidden: [4] };

  test.each([
    { noiseCorrelation: 0.5 },
    { logStdMin: 0 },
    { logStdMax: 1 },
    { logStdInitial: -1 },
    { logStdEnd: -1 },
  ])('%j is refused where actions are discrete, and no run is made', async extra => {
    const root = join(work, 'refused');
    const error = await train({ env: 'cartpole', preset: {}, config: { ...tiny, ...extra }, root }).catch(
      e => e,
    );
    expect(error).toBeInstanceOf(ConfigError);
    const [key] = Object.keys(extra);
    expect(error.message).toMatch(
      new RegExp(`^${key} has no effect on the actions Discrete\\(2\\): .*; remove ${key}$`),
    );
    expect(existsSync(root)).toBe(false);
  });

  test('a preset may have them, and a resume may not', async () => {
    const root = join(work, 'preset');
    const preset = { noiseCorrelation: 0.5, logStdMin: -1 };
    const { dir, status } = await train({ env: 'cartpole', preset, config: tiny, root });
    expect(status).toBe('finished');
    await expect(resume(dir, { config: { steps: 128, noiseCorrelation: 0.4 } })).rejects.toThrow(
      /^noiseCorrelation has no effect/,
    );
    await expect(resume(dir, { config: { steps: 128 } })).resolves.toMatchObject({ step: 128 });
  });

  test('continuous actions have them all', async () => {
    const config = { ...tiny, noiseCorrelation: 0.5, logStdMin: -1, logStdMax: 1, logStdInitial: 0.5 };
    const done = await train({ env: 'pendulum', preset: {}, config, root: join(work, 'continuous') });
    expect(done.status).toBe('finished');
  });

  const stds = ['logStdInitial', 'logStdMin', 'logStdMax', 'logStdEnd'];
  const torque = box({ low: -1, high: 1, shape: [2] });
  test.each<[Space, string[]]>([
    [torque, []],
    [discrete(3), [...stds, 'noiseCorrelation']],
    [multiDiscrete([2, 3]), [...stds, 'noiseCorrelation']],
    [multiBinary(4), [...stds, 'noiseCorrelation']],
    [tuple([torque, discrete(2)]), ['noiseCorrelation']],
    [dict({ a: discrete(2), b: multiBinary(1) }), [...stds, 'noiseCorrelation']],
  ])('of %j', (space, keys) => {
    expect([...inertForActions(ppoSettings, space).keys()]).toEqual(keys);
    // Values that are the defaults change nothing anywhere.
    refuseInertForActions(
      ppoSettings,
      { noiseCorrelation: 0, logStdInitial: 0, logStdMin: -5, logStdMax: 2 },
      space,
    );
  });
});
