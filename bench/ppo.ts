/** PPO end to end, with its log on disk: environment steps a second, and where the time goes. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TrainSettings, train } from '../src/algos/index.ts';
import { machine, median, report, round } from './measure.ts';

/** What Stable-Baselines3 does in the same settings on a machine of this kind (torch 1.13, one thread). */
const cases: { name: string; env: string; config: TrainSettings; sb3: [number, number] }[] = [
  {
    name: 'CartPole, 8 envs x 256 steps, batch 256, 10 epochs, 64-64',
    env: 'CartPole-v1',
    config: { envs: 8, stepsPerRollout: 256, minibatchSize: 256, epochs: 10, steps: 2048 * 60 },
    sb3: [3600, 4700],
  },
  {
    name: 'Pendulum, 1 env x 2048 steps, batch 64, 10 epochs, 64-64',
    env: 'Pendulum-v1',
    config: { envs: 1, stepsPerRollout: 2048, minibatchSize: 64, epochs: 10, steps: 2048 * 40 },
    sb3: [900, 1200],
  },
];

export async function run(): Promise<void> {
  report({ bench: 'ppo', ...machine() });
  for (const { name, env, config, sb3 } of cases) {
    const root = mkdtempSync(join(tmpdir(), 'keel-bench-'));
    try {
      const rows: Readonly<Record<string, number>>[] = [];
      const start = performance.now();
      await train({ env, config, preset: {}, root, onRow: row => rows.push(row) });
      const seconds = (performance.now() - start) / 1000;
      // The first iterations warm up.
      const steady = rows.slice(5);
      const mid = (key: string): number => median(steady.map(row => row[key] ?? 0));
      const [collect, update, guard, log] = ['collect', 'update', 'guard', 'log'].map(part =>
        mid(`time/${part}_s`),
      );
      const iteration = collect + update + guard + log;
      const perSecond = (config.envs! * config.stepsPerRollout!) / iteration;
      report({
        name,
        steps_per_second: Math.round(perSecond),
        ratio_to_sb3: [round(perSecond / sb3[1], 1), round(perSecond / sb3[0], 1)],
        collect_ms: round(collect * 1000, 1),
        update_ms: round(update * 1000, 1),
        guard_ms: round(guard * 1000, 2),
        log_ms: round(log * 1000, 2),
        guard_share: round(guard / iteration, 4),
        target_guard_share: 0.05,
        whole_run_steps_per_second: Math.round(config.steps! / seconds),
      });
    } finally {
      rmSync(root, { recursive: true, force: true });
    }
  }
}
