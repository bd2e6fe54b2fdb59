/** Several trainings in one place are as many runs. */
import { join, relative } from 'node:path';
import { describe, expect, it } from 'vitest';
import { toCanonical } from '../../../src/doctor/dialects/translate.ts';
import type { RawRun } from '../../../src/doctor/raw-run.ts';
import { findRuns } from '../../../src/doctor/readers/find.ts';
import { readRun } from '../../../src/doctor/readers/read.ts';
import { sb3Table } from '../support/archives.ts';
import { points, readContent, readOnly, temporaryDirectory, values, writeTree } from '../support/files.ts';
import { scalarFile } from '../support/tensorboard-file.ts';

const list = Array.from({ length: 8 }, (_, i) => i + 1);

async function runsAt(root: string, path = root): Promise<Map<string, RawRun>> {
  const runs = new Map<string, RawRun>();
  for (const candidate of (await findRuns(path)).candidates)
    runs.set(relative(root, candidate.path), await readRun(candidate));
  return runs;
}

/** Tables of one training; `updates` is what the model had counted before. */
const printed = (
  rows: number,
  steps: number,
  extra: Record<string, number> = {},
  updates = 0,
  from = 1,
): string =>
  Array.from({ length: rows }, (_, i) =>
    sb3Table({
      'rollout/ep_rew_mean': from + i,
      'time/iterations': from + i,
      'time/total_timesteps': steps * (from + i),
      ...(i === 0 ? {} : { 'train/n_updates': updates + 10 * (from + i - 1), ...extra }),
    }),
  ).join('');

describe('one output', () => {
  it('of two algorithms has two runs, each with its own columns', async () => {
    const text = `Using cpu device\n${printed(8, 2048, { 'train/approx_kl': 0.01 })}Using cpu device\n${printed(6, 500, { 'train/policy_loss': 0.1 })}`;
    const root = writeTree(temporaryDirectory(), { 'train.log': text });
    const runs = await runsAt(root);
    expect([...runs.keys()]).toEqual(['train.log!/training 1', 'train.log!/training 2']);
    const [first, second] = runs.values();
    expect(values(first, 'time/total_timesteps')).toEqual(list.map(i => 2048 * i));
    expect(values(second, 'time/total_timesteps')).toEqual([500, 1000, 1500, 2000, 2500, 3000]);
    expect(first.series.has('train/policy_loss')).toBe(false);
    expect(second.series.has('train/approx_kl')).toBe(false);
    expect([...first.restarts, ...second.restarts]).toEqual([]);
  });

  it('that goes back to a checkpoint, or whose model goes on, is one run', async () => {
    expect((await readContent(printed(8, 2048) + printed(6, 2048, {}, 0, 5))).restarts).toEqual([9]);
    // learn() begins its steps anew, and the model keeps its count of updates.
    const further = await readContent(printed(8, 2048) + printed(6, 2048, {}, 80));
    expect(further.restarts).toEqual([9]);
  });

  it('of dictionaries whose epoch begins anew has two', async () => {
    const rows = list.map(i => `{'loss': ${i}.0, 'reward': 0.5, 'epoch': ${i / 10}}\n`).join('');
    const root = writeTree(temporaryDirectory(), { 'x.log': rows + rows });
    expect([...(await runsAt(root)).keys()]).toHaveLength(2);
  });

  it('of two behaviours has two, by their names, each with the settings that were printed of it', async () => {
    const settings =
      '[INFO] Hyperparameters for behavior name Walker: \n\ttrainer_type:\tppo\n\thyperparameters:\t\n\t  batch_size:\t2048\n\t  learning_rate:\t0.0003\n\tmax_steps:\t1000000\n';
    const rows = list
      .map(
        i =>
          `[INFO] Walker. Step: ${3000 * i}. Time Elapsed: ${i}.500 s. Mean Reward: ${i}.250. Std of Reward: 1.000. Training.\n` +
          `[INFO] Crawler. Step: ${3000 * i}. Time Elapsed: ${i}.500 s. ${i === 1 ? 'No episode was completed since last summary.' : `Mean Reward: -${i}.000. Std of Reward: 0.000.`} Training. ELO: 1200.5.\n`,
      )
      .join('');
    const root = writeTree(temporaryDirectory(), { 'out.txt': settings + rows });
    const runs = await runsAt(root);
    expect([...runs.keys()]).toEqual(['out.txt!/Crawler', 'out.txt!/Walker']);
    expect(runs.get('out.txt!/Walker')!.config.get('hyperparameters/learning_rate')).toBe(0.0003);
    expect(runs.get('out.txt!/Crawler')!.config.size).toBe(0);
    const walker = toCanonical(runs.get('out.txt!/Walker')!);
    expect(walker.trainer).toBe('ml-agents');
    expect(walker.config).toMatchObject({ learningRate: 0.0003, minibatchSize: 2048, totalSteps: 1_000_000 });
    expect([...walker.series.get('episode/return')!.series.x]).toEqual(list.map(i => 3000 * i));
    expect(points(runs.get('out.txt!/Crawler')!, 'Environment/Cumulative Reward')[0]).toEqual([2, -2]);
  });
});

describe('one directory', () => {
  const events = (wall: number, from: number, value: number): Buffer =>
    scalarFile(
      list.map(i => ({ step: from + i, wallTime: wall + i, values: { 'train/loss': value, reward: i } })),
      wall,
    );

  it('of many event files has a run for each that begins anew', async () => {
    const files = Object.fromEntries(
      Array.from({ length: 22 }, (_, i) => [`events.${i}`, events(1e9 + 1000 * i, 0, i + 1)]),
    );
    const root = writeTree(temporaryDirectory(), {
      ...files,
      'progress.csv': 'step,train/loss\n1,22\n2,22\n3,22\n',
    });
    const { candidates } = await findRuns(root);
    expect(candidates).toHaveLength(22);
    // What is there once is of the newest.
    expect(candidates.filter(one => one.format === 'csv').map(one => relative(root, one.path))).toEqual(['']);
  });

  it("of a trainer's states and 22 trainings has those, and the state stands for what led to it", async () => {
    const state = JSON.stringify({
      global_step: 16,
      log_history: list.map(i => ({ step: 2 * i, loss: i, reward: 1 })),
    });
    const older = Object.fromEntries(
      Array.from({ length: 20 }, (_, i) => [
        `out/runs/day${i}/events.${i}`,
        events(1e9 + 1000 * i, 0, i + 1),
      ]),
    );
    const root = writeTree(temporaryDirectory(), {
      ...older,
      'out/checkpoint-16/trainer_state.json': state,
      'out/runs/last1/events.1': events(2e9, 0, 100),
      'out/runs/last2/events.1': events(2e9 + 5000, 8, 100),
    });
    const paths = [...(await runsAt(root)).keys()];
    expect(paths).toHaveLength(21);
    expect(paths).toContain('out');
    expect(paths.some(path => path.includes('last'))).toBe(false);
  });

  it('of monitors that began at other times has a run for each', async () => {
    const monitor = (t: number): string => `#{"t_start": ${t}, "env_id": "E"}\nr,l,t\n1,1,1\n3,1,3\n5,1,5\n`;
    const root = writeTree(temporaryDirectory(), {
      '0.monitor.csv': monitor(1_700_000_000),
      '1.monitor.csv': monitor(1_700_000_002),
      'a.monitor.csv': monitor(1_700_005_000),
      'b.monitor.csv': monitor(1_700_010_000),
    });
    const runs = await runsAt(root);
    expect([...runs.values()].map(run => run.series.get('r')!.length).sort()).toEqual([3, 3, 6]);
  });

  it("of W&B's has no run for what it keeps of pictures and tables", async () => {
    const table = JSON.stringify({ columns: ['step', 'reward', 'loss'], data: list.map(i => [i, i, i]) });
    const root = writeTree(temporaryDirectory(), {
      'files/media/table/samples_1.table.json': table,
      'files/samples_2.table.json': table,
      'files/log.csv': 'step,reward\n1,2\n2,3\n',
    });
    expect([...(await runsAt(root)).keys()]).toEqual(['files']);
  });

  it('of ML-Agents has a run for each behaviour, with its own settings, and nothing else', async () => {
    const tags = (i: number): Record<string, number> => ({
      'Environment/Cumulative Reward': i,
      'Environment/Episode Length': 100,
      'Losses/Policy Loss': 0.02,
      'Losses/Value Loss': 1 / i,
      'Policy/Entropy': 1.4 - 0.01 * i,
      'Policy/Learning Rate': 3e-4,
      'Policy/Epsilon': 0.2,
      'Policy/Beta': 0.005,
    });
    const log = scalarFile(list.map(i => ({ step: 10_000 * i, values: tags(i) })));
    const own = (rate: number): string =>
      `    trainer_type: ppo\n    hyperparameters:\n      batch_size: 64\n      buffer_size: 12000\n      learning_rate: ${rate}\n      num_epoch: 3\n    reward_signals:\n      extrinsic:\n        gamma: 0.99\n    max_steps: 500000\n`;
    const checkpoints = list.map(i => ({ steps: i, file_path: 'x', reward: i, creation_time: 1.6e9 }));
    const root = writeTree(temporaryDirectory(), {
      'results/run1/A/events.out.tfevents.1': log,
      'results/run1/B/events.out.tfevents.1': log,
      'results/run1/configuration.yaml': `default_settings: null\nbehaviors:\n  A:\n${own(0.0003)}  B:\n${own(0.001)}`,
      'results/run1/run_logs/timers.json':
        '{"name": "root", "gauges": {"A.Policy.Entropy.mean": {"value": 1.4, "count": 3}}, "children": {}}',
      'results/run1/run_logs/training_status.json': JSON.stringify({ A: { checkpoints } }),
    });
    const runs = await runsAt(root);
    expect([...runs.keys()]).toEqual(['results/run1/A', 'results/run1/B']);
    const [a, b] = [...runs.values()].map(run => toCanonical(run));
    expect(a.trainer).toBe('ml-agents');
    expect(a.config).toMatchObject({
      learningRate: 0.0003,
      epochs: 3,
      gamma: 0.99,
      samplesPerUpdate: 12_000,
      task: 'A',
    });
    expect(b.config.learningRate).toBe(0.001);
    expect(a.series.get('episode/return')!.theirs).toBe('Environment/Cumulative Reward');
    expect(a.unknown).toEqual([]);
  });

  it('that was a run of ours and has lost its manifest is one thing that cannot be read', async () => {
    const files = {
      'metrics.jsonl': list
        .map(i => `{"train/iteration":${i},"train/step":${i * 100},"kl/step":0.01}\n`)
        .join(''),
      'events.jsonl': '{"type":"note","iteration":1,"step":1,"message":"m","text":"t"}\n',
      'checkpoints/100/state.json': '{"step": 100, "a/b": 1}',
      'checkpoints/200/log.csv': 'step,loss/value\n1,2\n2,3\n',
    };
    for (const manifest of [undefined, '', '{"kind": "keel-', '[]']) {
      const root = writeTree(
        temporaryDirectory(),
        Object.fromEntries(Object.entries(files).map(([name, text]) => [`one/${name}`, text])),
      );
      if (manifest !== undefined) writeTree(root, { 'one/manifest.json': manifest });
      const { candidates } = await findRuns(root);
      expect(candidates.map(one => relative(root, one.path))).toEqual(['one']);
      await expect(readRun(candidates[0])).rejects.toThrow(
        /manifest\.json is (?:missing|damaged).*give its metrics\.jsonl/,
      );
      // As that says.
      expect((await readOnly(join(root, 'one/metrics.jsonl'))).series.get('train/step')!.length).toBe(8);
    }
  });
});

describe('a long table', () => {
  it('has a series for each metric, and a run for each name', async () => {
    const rows = ['a', 'b'].flatMap(run =>
      list.flatMap(i => [`${run},${100 * i},reward,${run === 'a' ? i : -i}`, `${run},${100 * i},kl,0.0${i}`]),
    );
    const root = writeTree(temporaryDirectory(), { 'x.csv': `run,step,metric,value\n${rows.join('\n')}\n` });
    const runs = await runsAt(root);
    expect([...runs.keys()]).toEqual(['x.csv!/a', 'x.csv!/b']);
    expect(points(runs.get('x.csv!/b')!, 'reward')).toEqual(list.map(i => [100 * i, -i]));
  });

  it('without a column for runs is one, with its times, damage and an end that is being written', async () => {
    const rows = list.map(i => `${1.7e9 + i};${i};train/kl;0.${i}`);
    const run = await readContent(
      `wall_time;step;tag;value\n${rows.join('\n')}\nbroken\n1;2;x;y\n1700000009;9;train/kl;0.`,
    );
    expect(points(run, 'train/kl')).toEqual(list.map(i => [i, i / 10]));
    expect(run.series.get('train/kl')!.wallTime[0]).toBe(1_700_000_001);
    expect(run.unfinished).toBe(true);
    expect(run.damage?.join()).toMatch(/1 rows do not have.*1 rows are not a step/s);
  });

  it('is not every table with a column called value', async () => {
    const run = await readContent(`step,name,value,loss\n${list.map(i => `${i},${i},1,2`).join('\n')}\n`);
    expect([...run.series.keys()]).toEqual(['step', 'name', 'value', 'loss']);
  });
});
