/** Models that the real libraries made (models/make-models.py), as runs of Keel. */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { afterAll, describe, expect, it } from 'vitest';
import { compileNetwork } from '../../../src/algos/agents/actor.ts';
import { networkFor } from '../../../src/algos/agents/networks/network.ts';
import { normaliserOf, startOf } from '../../../src/algos/agents/start.ts';
import { type ImportOptions, importRun } from '../../../src/algos/import/import-run.ts';
import { readNormaliser } from '../../../src/algos/import/vecnormalize.ts';
import { snapshotFrom } from '../../../src/algos/ppo/checkpoint.ts';
import { type PpoConfig, ppoSettings } from '../../../src/algos/ppo/settings.ts';
import { openPolicy, resume, train } from '../../../src/algos/runs.ts';
import { makeEnv } from '../../../src/envs/index.ts';
import { secondMomentScale } from '../../../src/nn/adam.ts';
import { decodeSafetensors } from '../../../src/nn/index.ts';
import { openTorch, stateDict } from '../../../src/pickle/torch.ts';
import { openZip } from '../../../src/pickle/zip.ts';
import { loadCheckpoint, openRun, readEvents, verifyRun } from '../../../src/runs/index.ts';
import { savedSettings } from '../../../src/settings/resolve.ts';
import { zipOf } from '../../pickle/support.ts';

const root = mkdtempSync(join(tmpdir(), 'keel-import-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const model = (name: string): string => join(import.meta.dirname, 'models', name);
const normaliser = model('ppo-pendulum-vecnormalize.pkl');
const imported = (file: string, more: Partial<ImportOptions> = {}) =>
  importRun({ format: 'sb3', file: model(file), root, ...more });

/** What the original said. */
interface Said {
  readonly observations: number[][];
  readonly actions: number[][];
  readonly samples: number[][];
  readonly logProbs: number[];
  readonly values: number[];
}
const saidBy = (name: string): Said => JSON.parse(readFileSync(model(`${name}.json`), 'utf8'));

/** The run's network and what its last checkpoint holds. */
function opened(dir: string) {
  const run = openRun(dir);
  const config: PpoConfig = savedSettings(ppoSettings, run.manifest);
  const { id, options } = run.manifest.environment;
  const { observationSpace, actionSpace } = makeEnv(id, options as never);
  const network = networkFor(config, observationSpace, actionSpace);
  const checkpoint = loadCheckpoint(dir)!;
  const start = startOf(checkpoint, run);
  const normalise = normaliserOf(start, config.normaliseObservations, network.observationSize);
  return { run, config, network, weights: start.fit(network.layout), normalise, checkpoint };
}

describe.each<[string, ImportOptions]>([
  ['ppo-cartpole', { format: 'sb3', file: 'ppo-cartpole.zip', env: 'cartpole' }],
  ['ppo-pendulum', { format: 'sb3', file: 'ppo-pendulum.zip', env: 'pendulum', normaliser }],
  ['ppo-switches', { format: 'sb3', file: 'ppo-switches.zip' }],
  ['a2c-pendulum', { format: 'sb3', file: 'a2c-pendulum.zip', env: 'pendulum' }],
  ['agent', { format: 'cleanrl', file: 'agent.cleanrl_model', env: 'pendulum' }],
])('%s', (name, { file, ...options }) => {
  it('acts, judges and values as the original, to 1e-5', async () => {
    const { dir } = await imported(file, options);
    const { network, weights, normalise } = opened(dir);
    const said = saidBy(name);
    const policy = await openPolicy(dir);
    const [actor, critic] = await Promise.all(
      (['actor', 'critic'] as const).map(which => compileNetwork(network, which, 1)),
    );
    for (const part of [actor, critic]) part.setWeights(weights);
    const off = { action: 0, logProb: 0, value: 0 };
    const far = (a: number, b: number): number => Math.abs(a - b) / Math.max(1, Math.abs(b));
    said.observations.forEach((observation, i) => {
      const seen = Float32Array.from(observation);
      normalise?.apply(seen.slice(), seen);
      for (const part of [actor, critic]) {
        part.observations.set(seen);
        part.run();
      }
      const action = policy.act(observation);
      off.action = Math.max(off.action, ...said.actions[i].map((value, k) => far(action[k], value)));
      const logProb = network.distribution.logProb(actor.out, Float32Array.from(said.samples[i]));
      off.logProb = Math.max(off.logProb, far(logProb, said.logProbs[i]));
      off.value = Math.max(off.value, far(critic.out[0], said.values[i]));
    });
    await policy.close();
    for (const part of [actor, critic]) part.dispose();
    expect(said.observations.length).toBeGreaterThanOrEqual(40);
    expect(off.action).toBeLessThan(1e-5);
    expect(off.logProb).toBeLessThan(1e-5);
    expect(off.value).toBeLessThan(1e-5);
    expect(existsSync(join(dir, 'policy.onnx'))).toBe(true);
    expect((await verifyRun(dir)).problems).toEqual([]);
  });
});

describe('a run that was imported', () => {
  it('has the settings that the model was trained with', async () => {
    const { dir, adam, imported: told } = await imported('ppo-pendulum.zip', { env: 'pendulum', normaliser });
    const { run, config } = opened(dir);
    expect(config).toMatchObject({
      ...{ hidden: [12, 8], criticHidden: [16], activation: 'relu', network: 'mlp' },
      ...{
        envs: 2,
        stepsPerRollout: 96,
        minibatchSize: 48,
        epochs: 10,
        gamma: 0.9,
        gaeLambda: 0.95,
        seed: 1,
      },
      ...{
        normaliseObservations: true,
        normaliseRewards: true,
        valueCoef: 0.5,
        gradientClip: 0.5,
        steps: 768,
      },
    });
    // The last rate of a schedule that is not run: nothing was left of it.
    expect(config.learningRate).toBe(1e-3);
    expect(adam).toBe(true);
    expect(told.notes).toEqual([
      expect.stringMatching(/^learning_rate is a function, which is not run: the rate is 0.001,/),
      expect.stringMatching(/^clip_range is a function/),
      'batch_size 50 does not divide a rollout of 192: minibatchSize is 48',
    ]);
    expect(run.status).toBe('finished');
    expect(run.manifest).toMatchObject({
      step: 768,
      imported: {
        from: 'Stable-Baselines3 2.4.1 PPO',
        steps: 768,
        file: model('ppo-pendulum.zip'),
        normaliser,
      },
    });
    const notes = readEvents(dir).items.filter(({ type }) => type === 'note');
    expect(notes[0].message).toMatch(
      /^imported from .*ppo-pendulum.zip \(Stable-Baselines3 2.4.1 PPO, 768 steps\)$/,
    );
  });

  it("has Adam's moments and steps, and what rewards were divided by", async () => {
    const { dir } = await imported('ppo-pendulum.zip', { env: 'pendulum', normaliser });
    const { network, checkpoint } = opened(dir);
    const { m, v, counters, rewardNormaliser } = snapshotFrom(network.layout, checkpoint);
    const zip = openZip(readFileSync(model('ppo-pendulum.zip')), 'it');
    const file = openTorch(zip.read('policy.optimizer.pth'), 'it');
    const state = (file.root as Map<string, Map<number, Map<string, never>>>).get('state')!;
    // Of log_std, which is the first parameter.
    const [first, second] = ['exp_avg', 'exp_avg_sq'].map(
      key => file.tensor(state.get(0)!.get(key), key).data[0],
    );
    expect(network.layout.views(m)['actor.logStd'][0]).toBe(first);
    expect(network.layout.views(v)['actor.logStd'][0] * secondMomentScale()).toBeCloseTo(second, 9);
    // 4 rollouts of 4 minibatches, 10 times over.
    expect(counters).toMatchObject({ iteration: 0, steps: 768, gradientSteps: 160 });
    expect(rewardNormaliser!.moments).toEqual(readNormaliser(normaliser).rewards);
    expect(rewardNormaliser!.moments.count).toBe(768);
  });

  it('goes on: resumed as itself, and as the start of another run, inside the bound', async () => {
    const { dir } = await imported('ppo-pendulum.zip', { env: 'pendulum', normaliser });
    const resumed = await resume(dir, { config: { steps: 1500 } });
    expect(resumed).toMatchObject({ status: 'finished', step: 1536 });
    expect(resumed.lastRow!['train/iteration']).toBe(4);
    expect(resumed.lastRow!['kl/step']).toBeLessThanOrEqual(0.05);
    expect((await verifyRun(dir)).problems).toEqual([]);
    const next = await train({
      env: 'pendulum',
      from: dir,
      root,
      config: { steps: 256, envs: 2, stepsPerRollout: 64, minibatchSize: 64 },
    });
    // Its network comes with it; the settings are Keel's.
    const { config } = opened(next.dir);
    expect(config).toMatchObject({
      hidden: [12, 8],
      criticHidden: [16],
      activation: 'relu',
      normaliseObservations: true,
    });
    expect(next.lastRow!['kl/step']).toBeLessThanOrEqual(config.guard!);
    await expect(train({ env: 'pendulum', from: dir, root, config: { activation: 'tanh' } })).rejects.toThrow(
      /activation tanh is not that of .*: use relu/,
    );
  });

  it('goes back: the tensors of the export are those of the model', async () => {
    const { dir } = await imported('ppo-pendulum.zip', { env: 'pendulum', normaliser });
    const path = join(root, 'policy.safetensors');
    const policy = await openPolicy(dir);
    const exported = await policy.export(path, { format: 'sb3-state-dict' });
    await policy.close();
    const file = decodeSafetensors(readFileSync(path));
    const torch = openTorch(openZip(readFileSync(model('ppo-pendulum.zip')), 'it').read('policy.pth'), 'it');
    const original = stateDict(torch, torch.root, 'it');
    expect(new Set(file.names)).toEqual(new Set(original.keys()));
    for (const [name, { shape, data }] of original) {
      expect(file.info(name).shape).toEqual(shape);
      expect(file.float32(name)).toEqual(data);
    }
    expect(exported).toMatchObject({ kind: 'state-dict', tensors: { 'action_net.weight': [1, 8] } });
    expect(file.metadata).toMatchObject({ net_arch: '{"pi":[12,8],"vf":[16]}', activation_fn: 'ReLU' });
    const { mean, count } = JSON.parse(file.metadata.obs_rms);
    // Two resets, too.
    expect([mean.length, count]).toEqual([3, 770]);
  });

  it('has spaces alone without an environment, and says so where it would be played', async () => {
    const { dir, environment } = await imported('ppo-switches.zip');
    expect(environment).toBe('Spaces-v0');
    const policy = await openPolicy(dir);
    expect(policy.act([0, 0, 0, 0, 0, 0])).toHaveLength(3);
    await policy.export(join(root, 'switches.onnx'));
    await expect(policy.evaluate({ episodes: 1 })).rejects.toThrow(
      /Spaces-v0 has spaces and nothing to play: import/,
    );
    await policy.close();
  });
});

describe('what cannot be taken over is refused by name', () => {
  /** A model with other contents. */
  function changed(change: {
    data?: (data: Record<string, unknown>) => void;
    files?: Record<string, Uint8Array | null>;
  }): string {
    const zip = openZip(readFileSync(model('ppo-cartpole.zip')), 'it');
    const data = JSON.parse(Buffer.from(zip.read('data')).toString());
    change.data?.(data);
    const files = { data: Buffer.from(JSON.stringify(data)), ...change.files };
    const contents = new Map<string, Uint8Array | null>([
      ...zip.names.map(name => [name, zip.read(name)] as const),
      ...Object.entries(files),
    ]);
    const kept = [...contents].flatMap(([name, content]) => (content === null ? [] : [{ name, content }]));
    const path = join(root, `changed-${crc32(Buffer.from(JSON.stringify(data) + Object.keys(files)))}.zip`);
    writeFileSync(path, zipOf(kept));
    return path;
  }
  const packed = (pickle: string) => ({ ':serialized:': Buffer.from(pickle, 'latin1').toString('base64') });
  const options = (inner: string) => packed(`(${inner}d.`);

  it.each<[string, Parameters<typeof changed>[0], RegExp]>([
    [
      'another policy',
      { data: d => (d.policy_class = packed('cmine\nPolicy\n.')) },
      /policy_class is "mine.Policy", only MlpPolicy/,
    ],
    [
      'code that would be run',
      { data: d => (d.policy_kwargs = packed('cos\nsystem\n(Vtouch x\ntR.')) },
      /policy_kwargs is what os.system makes, which is not run, a dict is needed/,
    ],
    [
      'another activation',
      { data: d => (d.policy_kwargs = options('Vactivation_fn\nctorch.nn.modules.activation\nELU\n')) },
      /activation_fn is torch.nn.modules.activation.ELU, Keel has Tanh, ReLU and GELU/,
    ],
    [
      'squashed actions',
      { data: d => (d.policy_kwargs = options('Vsquash_output\nI01\n')) },
      /policy_kwargs has squash_output/,
    ],
    [
      'features of its own',
      { data: d => (d.policy_kwargs = options('Vfeatures_extractor_class\ncmine\nCnn\n')) },
      /features_extractor_class is mine.Cnn, only FlattenExtractor/,
    ],
    ['another algorithm', { data: d => delete d.gae_lambda }, /is no PPO or A2C/],
    [
      'a space that is code',
      { data: d => (d.action_space = packed('cmine\nSpace\n)R.')) },
      /action_space is what mine.Space makes/,
    ],
    ['a space that is missing', { data: d => delete d.observation_space }, /observation_space is missing/],
    [
      'a space of parts',
      { data: d => (d.observation_space = packed('cgymnasium.spaces.dict\nDict\n)R(Vspaces\n(ddb.')) },
      /observation_space is Dict, parts with names or places cannot be taken over/,
    ],
    ['a model without policy', { files: { 'policy.pth': null } }, /has no policy.pth: it is no model of/],
    ['data that is no JSON', { files: { data: Buffer.from('{') } }, /data of .* is not|JSON/],
  ])('%s', async (_, change, message) => {
    await expect(importRun({ format: 'sb3', file: changed(change), root, env: 'cartpole' })).rejects.toThrow(
      message,
    );
  });

  it('but not what nobody needs: a bomb of names in another field', async () => {
    const nested = `${'('.repeat(900)}${'l'.repeat(900)}.`;
    const file = changed({
      data: d => Object.assign(d, { ep_info_buffer: packed(nested), lr_schedule: packed('\xff') }),
    });
    const { adam } = await importRun({ format: 'sb3', file, root, env: 'cartpole' });
    expect(adam).toBe(true);
  });

  it('noise that depends on the state', async () => {
    await expect(imported('sde.zip', { env: 'pendulum' })).rejects.toThrow(/use_sde is true: .*\(gSDE\)/);
  });

  it('other spaces than the environment has', async () => {
    await expect(imported('ppo-cartpole.zip', { env: 'pendulum' })).rejects.toThrow(
      /observations of 4 numbers, the environment 3/,
    );
    await expect(imported('ppo-cartpole.zip', { env: 'cartpole', normaliser })).rejects.toThrow(
      /normalises observations of 3 numbers, here they have 4/,
    );
    await expect(importRun({ format: 'cleanrl', file: model('agent.cleanrl_model'), root })).rejects.toThrow(
      /does not say what it was trained in: name the environment/,
    );
  });

  it('leaves the optimiser behind where it was another one, and says so', async () => {
    const { adam, imported: told } = await imported('a2c-pendulum.zip', { env: 'pendulum' });
    expect(adam).toBe(false);
    expect(told.notes).toContain('the optimiser begins anew: it was not Adam');
    const without = changed({ files: { 'policy.optimizer.pth': null } });
    const { imported: second } = await importRun({ format: 'sb3', file: without, root, env: 'cartpole' });
    expect(second.notes).toContain('the optimiser begins anew: the model was saved without one');
  });
});
