/**
 * Does it learn, and does the bound hold: four classic tasks with their presets, with the guard and without; then two of them
 * with the learning rate 30 times too high, with the guard and without, as the presets have it (falling to 0) and held
 * constant. `npm run bench -- learning cartpole --seeds 1000..1039 --part presets` takes a task, seeds and one of both parts
 * (presets, wild). Seeds from 1000 on are the ones that nothing was tuned on.
 *
 * All policies of a task are evaluated in the same episodes: in Pendulum the start alone decides over 100 points, and the
 * mean of 100 other episodes is off by 9.
 */
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { parse } from 'yaml';
import { evaluatePolicy } from '../src/algos/agents/evaluate.ts';
import { createPpoTrainer } from '../src/algos/ppo/iteration.ts';
import { ppoSettings } from '../src/algos/ppo/settings.ts';
import { makeVectorEnv } from '../src/envs/index.ts';
import { resolveSettings } from '../src/settings/resolve.ts';
import { longestStreak, machine, report, round } from './measure.ts';

const tasks = [
  { env: 'CartPole-v1', target: 475 },
  { env: 'Pendulum-v1', target: -200 },
  { env: 'Acrobot-v1', target: -90 },
  { env: 'MountainCarContinuous-v0', target: 85 },
] as const;
const EPISODES = 200;
const EVALUATION_SEED = 10_000;

export async function run(): Promise<void> {
  const { values, positionals } = parseArgs({
    args: process.argv.slice(3),
    allowPositionals: true,
    options: { seeds: { type: 'string', default: '1000..1004' }, part: { type: 'string', default: 'both' } },
  });
  const seeds = seedsOf(values.seeds);
  const [name = ''] = positionals;
  report({ bench: 'learning', ...machine(), seeds, episodes: EPISODES });
  const picked = tasks.filter(({ env }) => env.toLowerCase().includes(name.toLowerCase()));
  if (values.part !== 'wild')
    for (const { env, target } of picked) {
      const guarded = await learn(env, seeds, target, {});
      const free = await learn(env, seeds, target, { guard: null });
      // What the guard has cost: seeds that reach the target without it alone.
      report({ env, lost_by_the_guard: seeds.filter((_, i) => guarded[i] < target && free[i] >= target) });
    }
  if (values.part === 'presets') return;
  for (const { env } of picked.filter(({ env }) => ['CartPole-v1', 'Pendulum-v1'].includes(env))) {
    const { learningRate } = preset(env) as { learningRate: number };
    const tooHigh = learningRate * 30;
    for (const schedule of [{}, { learningRateSchedule: 'constant', clipRangeSchedule: 'constant' }]) {
      await learn(env, seeds, undefined, { ...schedule, learningRate: tooHigh });
      await learn(env, seeds, undefined, { ...schedule, learningRate: tooHigh, guard: null });
    }
  }
}

/** `1000..1004` or `1000,1003`. */
function seedsOf(text: string): number[] {
  const [first, last] = text.split('..').map(Number);
  if (last === undefined) return text.split(',').map(Number);
  return Array.from({ length: last - first + 1 }, (_, i) => first + i);
}

function preset(env: string): Record<string, unknown> {
  const path = new URL(`../configs/${env.toLowerCase()}.yaml`, import.meta.url);
  return parse(readFileSync(path, 'utf8')) as Record<string, unknown>;
}

/** Trains and evaluates each seed, reports them together, and gives the return of each. */
async function learn(
  env: string,
  seeds: readonly number[],
  target: number | undefined,
  changes: Record<string, unknown>,
): Promise<number[]> {
  const config = resolveSettings(ppoSettings, { preset: preset(env), given: changes });
  const returns: number[] = [];
  let [largestKl, largestRaw, rows, seconds, guarded, longest] = [0, 0, 0, 0, 0, 0];
  for (const seed of seeds) {
    const envs = await makeVectorEnv(env, { envCount: config.envs });
    const trainer = await createPpoTrainer({ envs, config: { ...config, seed } });
    const start = performance.now();
    await trainer.start();
    const kls: number[] = [];
    while (trainer.counters.steps < config.steps) {
      const { row } = await trainer.iterate();
      rows++;
      kls.push(row['kl/step']);
      largestKl = Math.max(largestKl, row['kl/step']);
      largestRaw = Math.max(largestRaw, row['kl/step_raw']);
      if (row['guard/retries'] > 0 || row['guard/backtracks'] > 0) guarded++;
    }
    longest = Math.max(
      longest,
      longestStreak(kls, kl => kl > 0.03),
    );
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
    ...(target === undefined ? {} : { target, reached: returns.filter(r => r >= target).length }),
    largest_kl_step: Number(largestKl.toPrecision(4)),
    largest_kl_before_guard: Number(largestRaw.toPrecision(4)),
    longest_above_03: longest,
    updates: rows,
    updates_guarded: guarded,
    seconds_per_seed: round(seconds / seeds.length, 1),
  });
  return returns;
}
