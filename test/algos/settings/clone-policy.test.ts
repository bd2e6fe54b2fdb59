/** Every key of cloning a policy does something: what is learnt differs, or what is written. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type ClonePolicyConfig,
  type ClonePolicySettings,
  clonePolicySettings,
} from '../../../src/algos/clone/policy/settings.ts';
import type { TrainResult } from '../../../src/algos/hooks.ts';
import { ppoSettings } from '../../../src/algos/ppo/settings.ts';
import { clone } from '../../../src/algos/runs.ts';
import { checkpointDir, readRows } from '../../../src/runs/index.ts';
import { loadPreset } from '../../../src/settings/files.ts';
import { ofTrainingPreset, savedSettings } from '../../../src/settings/resolve.ts';

const root = mkdtempSync(join(tmpdir(), 'keel-clone-keys-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const small = {
  steps: 256,
  epochs: 2,
  batchSize: 32,
  envs: 2,
  hidden: [4],
  demonstrators: ['least-finish'],
  tensorboard: false,
  csv: false,
};
const cloned = (settings: ClonePolicySettings = {}): Promise<TrainResult> =>
  clone({
    env: 'cluster',
    envOptions: { replicas: 'h100,a40', requests: 128 },
    config: { ...small, ...settings },
    preset: {},
    root,
  });
const weights = ({ dir, step }: TrainResult): string =>
  readFileSync(join(checkpointDir(dir, step), 'policy.safetensors')).toString('base64');

let usual: TrainResult;
beforeAll(async () => {
  usual = await cloned();
});

/** Learns something else, from the same seed. */
const learnsOther = (settings: ClonePolicySettings) => async () => {
  expect(weights(await cloned(settings))).not.toBe(weights(usual));
};
/** Another way to the same end. */
const learnsSame = (settings: ClonePolicySettings) => async () => {
  expect(weights(await cloned(settings))).toBe(weights(usual));
};
const writes = (settings: ClonePolicySettings, file: RegExp) => async () => {
  const { dir } = await cloned(settings);
  expect(readdirSync(dir).some(name => file.test(name))).toBe(true);
  expect(readdirSync(usual.dir).some(name => file.test(name))).toBe(false);
};

/** What a run on a network of discrete actions cannot show, or what shows in longer runs alone. */
type Elsewhere = 'logStdInitial' | 'logStdMin' | 'logStdMax' | 'checkpointEvery' | 'keepEvery' | 'device';

const evaluated = async (settings: ClonePolicySettings): Promise<(number | undefined)[]> =>
  readRows((await cloned(settings)).dir).items.map(row => row['eval/episodes']);

const cases: Record<Exclude<keyof ClonePolicyConfig, Elsewhere>, () => Promise<void>> = {
  steps: learnsOther({ steps: 512 }),
  epochs: learnsOther({ epochs: 3 }),
  batchSize: learnsOther({ batchSize: 64 }),
  learningRate: learnsOther({ learningRate: 0.1 }),
  learningRateSchedule: learnsOther({ learningRateSchedule: 'constant' }),
  learningRateEnd: learnsOther({ learningRateEnd: 0.5 }),
  demonstrators: learnsOther({ demonstrators: ['least-requests'] }),
  adamEpsilon: learnsOther({ adamEpsilon: 0.1 }),
  gradientClip: learnsOther({ gradientClip: 1e-3 }),
  gamma: learnsOther({ gamma: 0.5 }),
  valueCoef: learnsOther({ valueCoef: 0 }),
  hidden: learnsOther({ hidden: [5] }),
  criticHidden: learnsOther({ criticHidden: [5] }),
  activation: learnsOther({ activation: 'relu' }),
  network: learnsOther({ network: 'set' }),
  normaliseObservations: learnsOther({ normaliseObservations: true }),
  seed: learnsOther({ seed: 1 }),
  envs: learnsOther({ envs: 4 }),
  rewardScale: learnsOther({ rewardScale: 10 }),
  workers: learnsSame({ workers: 1 }),
  threads: learnsSame({ threads: 2 }),
  async evaluateEvery() {
    await learnsSame({ evaluateEvery: 1, evaluateEpisodes: 3 })();
    expect(await evaluated({ evaluateEvery: 1, evaluateEpisodes: 3 })).toEqual([3, 3]);
    expect(readRows(usual.dir).items.some(row => 'eval/episodes' in row)).toBe(false);
  },
  async evaluateEpisodes() {
    expect(await evaluated({ evaluateEvery: 2, evaluateEpisodes: 5 })).toEqual([undefined, 5]);
  },
  async stopAt() {
    const settings = { evaluateEvery: 1, evaluateEpisodes: 1 };
    expect(await evaluated({ ...settings, stopAt: -1e9 })).toEqual([1]);
    expect(await evaluated({ ...settings, stopAt: 1e9 })).toEqual([1, 1]);
  },
  csv: writes({ csv: true }, /^metrics\.csv$/),
  tensorboard: writes({ tensorboard: true }, /tfevents/),
};

describe('each key', () => {
  it.each(Object.entries(cases))('%s', (_, run) => run());
});

it('takes of a preset for training what is trained later alone', () => {
  expect(ofTrainingPreset(clonePolicySettings, loadPreset('Cluster-v0'))).toEqual({
    network: 'set',
    hidden: [64, 64],
    envs: 16,
    gamma: 0.95,
    rewardScale: 0.1,
  });
});

describe('a run that an earlier version cloned', () => {
  const manifest = (config: object, status = 'stopped') => ({
    id: 'old',
    config,
    versions: { keel: '0.1.0' },
    status,
    iteration: 3,
  });
  // The whole config of training was saved, of which cloning used a part.
  const old = { ...ppoSettings.defaults, env: 'cluster', steps: 5000, hidden: [32], gamma: 0.9, envs: 4 };

  it('has its network and environments, and cloned as the defaults do', () => {
    expect(savedSettings(clonePolicySettings, manifest(old))).toEqual({
      ...clonePolicySettings.defaults,
      steps: 5000,
      hidden: [32],
      gamma: 0.9,
      envs: 4,
    });
  });

  it('has done the epochs that it was to do where it has finished, which were not saved', () => {
    expect(savedSettings(clonePolicySettings, manifest(old, 'finished')).epochs).toBe(3);
    expect(savedSettings(clonePolicySettings, manifest(old)).epochs).toBe(
      clonePolicySettings.defaults.epochs,
    );
  });

  it('is refused where it has a key that never was one', () => {
    expect(() => savedSettings(clonePolicySettings, manifest({ ...old, cliprange: 1 }))).toThrow(
      'old was written by another version of Keel (0.1.0): cliprange is not a config key; use that version, or train again',
    );
    expect(() => savedSettings(clonePolicySettings, manifest({ epochs: 0 }))).toThrow(
      /epochs is 0, below its least value 1; use that version/,
    );
  });

  it('keeps what it was cloned with from now on', () => {
    const own = { ...clonePolicySettings.defaults, epochs: 3, learningRate: 0.1 };
    expect(savedSettings(clonePolicySettings, manifest(own))).toEqual(own);
  });
});
