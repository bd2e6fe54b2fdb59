import { describe, expect, it } from 'vitest';
import { points, readContent, values } from '../support/files.ts';

const sb3 = `Using cpu device
-----------------------------
| time/              |      |
|    fps             | 1204 |
|    iterations      | 1    |
|    total_timesteps | 2048 |
-----------------------------
------------------------------------------
| rollout/                |              |
|    ep_len_mean          | 23.1         |
|    ep_rew_mean          | nan          |
| time/                   |              |
|    iterations           | 2            |
|    total_timesteps      | 4096         |
| train/                  |              |
|    approx_kl            | 0.0085       |
|    explained_variance   | -0.00123     |
------------------------------------------
Eval num_timesteps=5000, episode_reward=10.00 +/- 1.00
`;

describe("Stable-Baselines3's printed tables", () => {
  it('are rows; groups are joined to names', async () => {
    const run = await readContent(sb3);
    expect(run.format).toBe('console');
    expect(points(run, 'time/total_timesteps')).toEqual([
      [1, 2048],
      [2, 4096],
    ]);
    expect(points(run, 'train/approx_kl')).toEqual([[2, 0.0085]]);
    expect(points(run, 'rollout/ep_rew_mean')).toEqual([[2, Number.NaN]]);
    expect(run.unfinished).toBe(false);
  });

  it('a table that is still being printed is unfinished and not a row', async () => {
    const run = await readContent(sb3.slice(0, sb3.indexOf('|    approx_kl')));
    expect(values(run, 'time/total_timesteps')).toEqual([2048]);
    expect(run.unfinished).toBe(true);
  });

  it('of baselines have no groups', async () => {
    const run = await readContent(
      '----------------------\n| EpLenMean | 577.4  |\n| loss_kl   | 8.4e-3 |\n----------------------\n',
    );
    expect(values(run, 'loss_kl')).toEqual([0.0084]);
  });
});

describe("Hugging Face's printed rows", () => {
  it('are found between progress bars, with numbers or texts of numbers', async () => {
    const text = [
      '  0%|          | 0/100 [00:00<?, ?it/s]\r  1%|▏         | 1/100 [00:01<01:50,  1.1s/it]',
      "\r                                   \r{'loss': 0.1, 'grad_norm': nan, 'reward': 0.5, 'kl': None, 'epoch': 0.01}",
      "{'loss': '0.2', 'grad_norm': '1.5', 'reward': np.float64(0.75), 'epoch': '0.02'}",
      "{'config': 'not a row'}",
      'some text',
      '',
    ].join('\n');
    const run = await readContent(text);
    expect(run.format).toBe('console');
    expect(values(run, 'loss')).toEqual([0.1, 0.2]);
    expect(values(run, 'grad_norm')).toEqual([Number.NaN, 1.5]);
    expect(values(run, 'reward')).toEqual([0.5, 0.75]);
    expect(run.series.has('kl')).toBe(false);
  });

  it('come with the error that ended them', async () => {
    const run = await readContent(
      "{'loss': 0.1, 'epoch': 1}\nTraceback (most recent call last):\n  File \"x.py\", line 1, in <module>\nValueError: Expected parameter logits\n",
    );
    expect(run.texts.get('error')).toBe('ValueError: Expected parameter logits');
  });
});

describe("verl's printed lines", () => {
  it('with colours, prefixes of Ray and NumPy numbers', async () => {
    const text = [
      'some banner',
      '\x1b[36m(TaskRunner pid=4711)\x1b[0m step:1 - actor/ppo_kl:0.001 - critic/score/mean:np.float64(0.25) - actor/lr:0.000',
      '(main_task pid=12, ip=10.0.0.3) step:2 - actor/ppo_kl:np.float64(nan) - critic/score/mean:0.5 - val-core/openai/gsm8k/reward/mean@1:0.75',
      '',
    ].join('\n');
    const run = await readContent(text);
    expect(run.format).toBe('verl-console');
    expect(values(run, 'step')).toEqual([1, 2]);
    expect(values(run, 'actor/ppo_kl')).toEqual([0.001, Number.NaN]);
    expect(values(run, 'critic/score/mean')).toEqual([0.25, 0.5]);
    expect(points(run, 'val-core/openai/gsm8k/reward/mean@1')).toEqual([[2, 0.75]]);
  });

  it('a line that was cut at 4,096 characters loses its last, perhaps halved, number', async () => {
    const cells = Array.from({ length: 300 }, (_, i) => `m/metric_${i}:${i}.25`).join(' - ');
    const line = `step:7 - ${cells}`.slice(0, 4096);
    const run = await readContent(`step:6 - m/metric_0:1\n${line}\nstep:8 - m/metric_0:2\n`);
    expect(values(run, 'step')).toEqual([6, 7, 8]);
    for (const [name, series] of run.series) {
      const index = Number(/metric_(\d+)/.exec(name)?.[1] ?? -1);
      if (index > 0) expect(series.values[0]).toBe(index + 0.25);
    }
    expect(run.notes.join()).toMatch(/1 lines were cut at 4,096/);
  });

  it('a step that is repeated after a restart replaces', async () => {
    const line = (step: number, v: number): string => `step:${step} - actor/pg_loss:${v} - actor/kl_loss:0.1`;
    const first = Array.from({ length: 10 }, (_, i) => line(i + 1, 1));
    const run = await readContent([...first, line(6, 2), line(7, 2), ''].join('\n'));
    expect(values(run, 'actor/pg_loss')).toEqual([1, 1, 1, 1, 1, 2, 2]);
    expect(run.restarts).toEqual([11]);
  });
});
