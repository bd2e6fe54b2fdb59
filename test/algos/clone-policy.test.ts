import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type CloneResult, clone } from '../../src/algos/clone-policy.ts';
import { routerOfRun } from '../../src/algos/policy-router.ts';
import { loadPreset } from '../../src/algos/settings-file.ts';
import { fork, openTrained, resume, train } from '../../src/algos/train.ts';
import type { TrainSettings } from '../../src/algos/train-schema.ts';
import { readWeights, requireSameScale, warmStartPreset } from '../../src/algos/warm-start.ts';
import { compile, Graph } from '../../src/engine/index.ts';
import { clusterDemonstrators } from '../../src/envs/cluster/demonstrators.ts';
import {
  Cluster,
  clusterObserver,
  clusterScale,
  clusterSpaces,
  defaultReplica,
  drawWorkload,
  hardwareList,
  makeRouter,
  newTraffic,
  simulate,
  workloads,
} from '../../src/envs/cluster/index.ts';
import { replicaFeatures } from '../../src/envs/cluster/observation.ts';
import { makeVectorEnv } from '../../src/envs/index.ts';
import { Rng } from '../../src/random/index.ts';
import { loadCheckpoint, openRun } from '../../src/runs/index.ts';
import { clusterOf } from '../../src/server/cluster.ts';

const root = mkdtempSync(join(tmpdir(), 'keel-clone-'));
afterAll(() => rmSync(root, { recursive: true }));

const envOptions = { replicas: 'h100,a40', requests: 128 };
const config = {
  envs: 4,
  stepsPerRollout: 32,
  minibatchSize: 32,
  hidden: [16],
  csv: false,
  tensorboard: false,
};
const specs = hardwareList(envOptions.replicas).map(hardware => ({ ...defaultReplica, hardware }));
let cloned: CloneResult;

beforeAll(async () => {
  cloned = await clone({
    env: 'cluster',
    envOptions,
    config: { ...config, steps: 2048, seed: 1 },
    demonstrators: ['least-finish'],
    epochs: 150,
    root,
  });
});

const scale = clusterScale(specs, workloads.conversation);
const requests = () =>
  drawWorkload(workloads.conversation, { count: 400, ratePerS: 0.6 * scale.capacityPerS }, new Rng(4));

/** Share of the requests that a run's policy sends where the rule would. */
async function agreement(dir: string): Promise<number> {
  const router = await routerOfRun(dir, { specs, scale });
  const rule = makeRouter('least-finish', new Rng(0));
  let [same, all] = [0, 0];
  simulate({
    replicas: specs,
    workload: requests(),
    router: {
      name: 'both',
      choose(cluster, id) {
        const chosen = router.choose(cluster, id);
        all++;
        if (chosen === rule.choose(cluster, id)) same++;
        return chosen;
      },
    },
  });
  router.dispose();
  return same / all;
}

describe('clone', () => {
  it('acts as its demonstrator almost always, and is a run that can be opened', async () => {
    expect(cloned.accuracy).toBeGreaterThan(0.9);
    expect(cloned.demonstrators.map(({ name }) => name)).toEqual(['least-finish']);
    const { manifest } = openRun(cloned.dir);
    expect([manifest.algorithm, manifest.status]).toEqual(['clone', 'finished']);
    const trained = await openTrained(cloned.dir);
    expect(trained.trainer.params.length).toBe(trained.trainer.model.layout.size);
    await trained.close();
  });

  it('cannot be resumed or forked, only trained from', async () => {
    await expect(resume(cloned.dir)).rejects.toThrow(/was cloned, not trained.*keel train --from/);
    await expect(fork(cloned.dir)).rejects.toThrow(/was cloned, not trained/);
  });

  it.each([
    [{ env: 'cluster', demonstrators: ['least-finsh'] }, /no demonstrator "least-finsh": .*least-finish/],
    [{ env: 'cluster', demonstrators: [] }, /no demonstrator is named/],
    [{ env: 'cartpole' }, /CartPole-v1 has no demonstrators to clone/],
    [{ env: 'cluster', epochs: 0 }, /epochs 0 is not a whole number of at least 1/],
  ])('refuses %j', async (options, message) => {
    await expect(clone({ ...options, root })).rejects.toThrow(message);
  });
});

describe('train from a clone', () => {
  it('begins with its weights, and holds them as a frozen reference', async () => {
    const { dir } = await train({
      env: 'cluster',
      envOptions,
      config: { ...config, steps: 256, klRefCoefInitial: 0.5, keepEvery: 1 },
      from: cloned.dir,
      root,
    });
    const { manifest } = openRun(dir);
    expect(manifest.parent).toEqual({ id: cloned.id, step: cloned.step });
    expect(manifest.config.reference).toBe('frozen');
    const trained = await openTrained(dir, 'last');
    const start = readWeights(cloned.dir).fit(trained.trainer.model.layout);
    const first = readWeights(dir, 0).fit(trained.trainer.model.layout);
    expect(first).toEqual(start);
    const { reference } = (await trained.trainer.snapshot()).tensors;
    expect(reference).toEqual(start);
    expect(trained.trainer.params).not.toEqual(start);
    await trained.close();
    expect(loadCheckpoint(dir, 'last')!.index.step).toBe(256);
  });

  it('without a reference where the user says so', async () => {
    const { dir } = await train({
      env: 'cluster',
      envOptions,
      config: { ...config, steps: 128, reference: 'none' },
      from: cloned.dir,
      root,
    });
    expect(openRun(dir).manifest.config.reference).toBe('none');
  });

  it('leaves a recording of what it routes, with the decisions that it was trained for', async () => {
    let shownIn: string | undefined;
    const { dir } = await train({
      onStart: ({ recorded }) => {
        shownIn = recorded;
      },
      env: 'cluster',
      envOptions,
      config: { ...config, steps: 256 },
      from: cloned.dir,
      root,
    });
    const { timeline, problem } = clusterOf(dir);
    expect(problem).toBeNull();
    expect(timeline).toMatchObject({ step: 256, replicas: ['h100', 'a40'] });
    expect(timeline!.routed.flat().reduce((a, b) => a + b, 0)).toBe(envOptions.requests);
    expect(shownIn).toBe('cluster');
    const silent = await train({
      env: 'cluster',
      envOptions,
      config: { ...config, steps: 128, record: false },
      root,
    });
    expect(clusterOf(silent.dir)).toEqual({ timeline: null, problem: null });
  });

  // A fault that was here: weights went on without what their observations had been normalised by.
  it('goes on with what normalised the observations; refuses to go on without', async () => {
    const normalised = { ...config, network: 'mlp', normaliseObservations: true } as const;
    const own = await clone({
      env: 'cluster',
      envOptions,
      config: { ...normalised, steps: 2048, seed: 1 },
      demonstrators: ['least-finish'],
      epochs: 150,
      root,
    });
    expect(own.accuracy).toBeGreaterThan(0.85);
    const begin = (from: string, settings: TrainSettings) =>
      train({ env: 'cluster', envOptions, config: { ...settings, steps: 128 }, from, root });
    const { dir } = await begin(own.dir, { ...normalised, keepEvery: 1 });
    const moments = readWeights(own.dir).observationMoments!;
    expect(moments.count).toBe(2048);
    expect(readWeights(dir, 0).observationMoments).toEqual(moments);
    expect(readWeights(dir, 128).observationMoments!.count).toBe(2048 + 128);
    await expect(begin(own.dir, { ...config, network: 'mlp' })).rejects.toThrow(
      /was trained with normaliseObservations: set it to true/,
    );
    // Another network comes before another scale, whose remedy would not help.
    await expect(begin(cloned.dir, normalised)).rejects.toThrow(
      /of Cluster-v0\).*use the same environment, network and hidden layers/,
    );
    expect(await agreement(own.dir)).toBeGreaterThan(0.8);
    // The weights' file alone has what normalised beside it.
    const file = join(own.dir, 'checkpoints', String(own.step), 'policy.safetensors');
    expect(readWeights(file).observationMoments).toEqual(moments);
    await expect(begin(file, { ...config, network: 'mlp' })).rejects.toThrow(
      /trained with normaliseObservations/,
    );
  });

  it.each([
    ['the preset', {}, { klRefDecaySteps: 1045, warmupShare: 5 / 49 }],
    ['a short run', { steps: 20_000 }, { klRefDecaySteps: 107, warmupShare: 0.5 }],
    ['a long one', { steps: 2_000_000 }, { klRefDecaySteps: 10_432, warmupShare: 0.1 }],
  ])('lets the reference go in time, with small first steps: %s', (_, given, expected) => {
    const preset = loadPreset('Cluster-v0');
    expect(warmStartPreset(preset, given)).toMatchObject({ ...expected, reference: 'frozen' });
    expect(warmStartPreset({ ...preset, warmupShare: 0.3 }, given).warmupShare).toBe(0.3);
  });

  it('refuses moments of other observations', () => {
    const weights = {
      parent: undefined,
      observationMoments: { count: 1, mean: [0, 0], m2: [1, 1] },
      fit: () => new Float32Array(),
    };
    expect(() => requireSameScale(weights, 'it', true, 2)).not.toThrow();
    expect(() => requireSameScale(weights, 'it', true, 3)).toThrow(
      /is for 2 values, observations here have 3/,
    );
  });

  it('refuses another network, and what is not there', async () => {
    const begin = (from: string, hidden: number[]) =>
      train({ env: 'cluster', envOptions, config: { ...config, hidden, steps: 128 }, from, root });
    await expect(begin(cloned.dir, [8])).rejects.toThrow(
      /is \(\d+, 16\), this network's \(\d+, 8\): use the same environment, network/,
    );
    await expect(begin(cloned.dir, [16, 16])).rejects.toThrow(/its network is another one|this network's/);
    await expect(begin(join(root, 'nothing.safetensors'), [16])).rejects.toThrow(
      /is not there: check the path/,
    );
    await expect(begin(join(root, 'nothing'), [16])).rejects.toThrow(/does not exist/);
  });
});

describe('a policy as a router', () => {
  it('routes more replicas than it was trained on, as the rule that it was cloned from mostly would', async () => {
    expect(await agreement(cloned.dir)).toBeGreaterThan(0.8);
    const more = hardwareList('2*h100,3*a40').map(hardware => ({ ...defaultReplica, hardware }));
    const wider = await routerOfRun(cloned.dir, {
      specs: more,
      scale: clusterScale(more, workloads.conversation),
    });
    const report = simulate({ replicas: more, workload: requests(), router: wider });
    wider.dispose();
    expect(report.replicas.reduce((sum, replica) => sum + replica.requests, 0)).toBe(400);
  });

  it('refuses a run of another environment', async () => {
    const { dir } = await train({ env: 'cartpole', config: { ...config, steps: 128 }, preset: {}, root });
    await expect(routerOfRun(dir, { specs, scale })).rejects.toThrow(
      /trained in CartPole-v1, which routes nothing/,
    );
  });
});

describe('demonstrators with odds', () => {
  it('are cloned with them: a policy that is unsure of near-ties', async () => {
    const trained = await openTrained(cloned.dir);
    const { model, params } = trained.trainer;
    const envs = await makeVectorEnv('Cluster-v0', { envCount: 1, options: envOptions });
    await envs.reset({ seed: 3 });
    const g = new Graph();
    const observations = g.input('observations', [1, envs.obsSize]);
    g.output(
      'logits',
      model.policy(model.layout.tensors(g.input('params', [model.layout.size])), observations),
    );
    const program = await compile(g);
    const odds = clusterDemonstrators['least-finish']!.logits!({} as never);
    const [wanted, action] = [new Float32Array(2), new Float32Array(1)];
    const play = clusterDemonstrators['least-finish']!.make({} as never, new Rng(0));
    const chance = ([a, b]: Float32Array): number => 1 / (1 + Math.exp(b! - a!));
    let gap = 0;
    for (let t = 0; t < 100; t++) {
      odds(envs.observations, wanted);
      play(envs.observations, action);
      expect(wanted[action[0]!]).toBe(Math.max(...wanted));
      const { logits } = program.run<{ logits: Float32Array }>({ params, observations: envs.observations });
      gap += Math.abs(chance(logits) - chance(wanted)) / 100;
      await envs.step(action);
    }
    expect(gap).toBeLessThan(0.05);
    program.dispose();
    await envs.close();
    await trained.close();
  });

  it('never choose a replica that is down', () => {
    const obs = new Float32Array(clusterSpaces(2).observationSpace.flatSize);
    obs[replicaFeatures.indexOf('up')] = 1;
    const logits = new Float32Array(2);
    for (const name of ['least-finish', 'least-requests', 'least-tokens', 'least-added']) {
      clusterDemonstrators[name]!.logits!({} as never)(obs, logits);
      expect([...logits], name).toEqual([expect.closeTo(0), -30]);
    }
  });
});

describe('demonstrators', () => {
  it('choose from the observation what the rules choose from the cluster', () => {
    const four = hardwareList('h100,2*a100,a40').map(hardware => ({ ...defaultReplica, hardware }));
    const scale = clusterScale(four, workloads.conversation);
    const observe = clusterObserver(four, scale);
    const workload = drawWorkload(
      workloads.conversation,
      { count: 300, ratePerS: scale.capacityPerS },
      new Rng(9),
    );
    const obs = new Float32Array(clusterSpaces(4).observationSpace.flatSize);
    for (const name of ['least-finish', 'least-requests', 'least-added', 'round-robin']) {
      const cluster = new Cluster(four, workload);
      const rule = makeRouter(name, new Rng(0));
      const act = clusterDemonstrators[name]!.make({} as never, new Rng(0));
      const action = new Float32Array(1);
      let same = 0;
      for (let id = cluster.nextDecision(); id !== -1; id = cluster.nextDecision()) {
        observe(cluster, id, newTraffic(1), obs);
        act(obs, action);
        const chosen = rule.choose(cluster, id);
        if (chosen === action[0]) same++;
        cluster.route(chosen);
      }
      // Two that are alike to single precision may change places.
      expect(same / 300, name).toBeGreaterThan(0.99);
    }
  });
});
