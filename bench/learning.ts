/**
 * Does it learn, and does the bound hold: four classic tasks with their presets, five seeds each; then the same with the
 * learning rate 30 times too high, with the guard and without, as the presets have it (falling to 0) and held constant.
 *
 * All policies of a task are evaluated in the same episodes: in Pendulum the start alone decides over 100 points, and the
 * mean of 100 other episodes is off by 9.
 */
import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { evaluatePolicy } from '../src/algos/agents/evaluate.ts';
import { createPpoTrainer } from '../src/algos/ppo/iteration.ts';
import { ppoSettings } from '../src/algos/ppo/settings.ts';
import { makeVectorEnv } from '../src/envs/index.ts';
import { resolveSettings } from '../src/settings/resolve.ts';
import { machine, report, round } from './measure.ts';

const tasks = [
  { env: 'CartPole-v1', target: 475 },
  { env: 'Pendulum-v1', target: -200 },
  { env: 'Acrobot-v1', target: -90 },
  { env: 'MountainCarContinuous-v0', target: 85 },
] as const;
const seeds = [0, 1, 2, 3, 4];
const EPISODES = 200;
const EVALUATION_SEED = 10_000;

export async function run(): Promise<void> {
  report({ bench: 'learning', ...machine(), episodes: EPISODES });
  // A name after `learning` picks the tasks that contain it.
  const picked = tasks.filter(({ env }) => env.toLowerCase().includes((process.argv[3] ?? '').toLowerCase()));
  for (const task of picked) await learn(task.env, task.target, {});
  for (const task of picked.filter(({ env }) => ['CartPole-v1', 'Pendulum-v1'].includes(env))) {
    const { learningRate } = preset(task.env) as { learningRate: number };
    const tooHigh = learningRate * 30;
    for (const schedule of [{}, { learningRateSchedule: 'constant', clipRangeSchedule: 'constant' }]) {
      await learn(task.env, undefined, { ...schedule, learningRate: tooHigh });
      await learn(task.env, undefined, { ...schedule, learningRate: tooHigh, guard: null });
    }
  }
}

function preset(env: string): Record<string, unknown> {
  const path = new URL(`../configs/${env.toLowerCase()}.yaml`, import.meta.url);
  return parse(readFileSync(path, 'utf8')) as Record<string, unknown>;
}

async function learn(
  env: string,
  target: number | undefined,
  changes: Record<string, unknown>,
): Promise<void> {
  const config = resolveSettings(ppoSettings, { preset: preset(env), given: changes });
  const returns: number[] = [];
  let [largestKl, largestRaw, rows, seconds, guarded] = [0, 0, 0, 0, 0];
  for (const seed of seeds) {
    const envs = await makeVectorEnv(env, { envCount: config.envs });
    const trainer = await createPpoTrainer({ envs, config: { ...config, seed } });
    const start = performance.now();
    await trainer.start();
    while (trainer.counters.steps < config.steps) {
      const { row } = await trainer.iterate();
      rows++;
      largestKl = Math.max(largestKl, row['kl/step']);
      largestRaw = Math.max(largestRaw, row['kl/step_raw']);
      if (row['guard/retries'] > 0 || row['guard/backtracks'] > 0) guarded++;
    }
    seconds += (performance.now() - start) / 1000;
    const { model, weights, observationNormaliser: normaliser } = trainer;
    const { mean } = await evaluatePolicy({
      env,
      model,
      weights,
      normaliser,
      episodes: EPISODES,
      seed: EVALUATION_SEED,
    });
    returns.push(mean);
    trainer.dispose();
    await envs.close();
  }
  report({
    env,
    steps: config.steps,
    ...changes,
    guard: config.guard,
    returns: returns.map(r => round(r, 1)),
    mean: round(returns.reduce((a, b) => a + b, 0) / returns.length, 1),
    worst: round(Math.min(...returns), 1),
    ...(target === undefined ? {} : { target, reached: returns.every(r => r >= target) }),
    largest_kl_step: Number(largestKl.toPrecision(4)),
    largest_kl_before_guard: Number(largestRaw.toPrecision(4)),
    updates: rows,
    updates_guarded: guarded,
    seconds_per_seed: round(seconds / seeds.length, 1),
  });
}
