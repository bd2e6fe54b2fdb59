/**
 * From nothing to walking: trains a legged robot with its preset and judges 100 episodes of the policy, the start from rest
 * included. `npm run bench -- robots walking --seeds 1,2,3` prints a JSON object each time it has judged.
 */
import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { compileActor, type PolicyWeights } from '../../src/algos/agents/actor.ts';
import type { ActorCritic } from '../../src/algos/agents/networks/actor-critic.ts';
import { createPpoTrainer } from '../../src/algos/ppo/iteration.ts';
import { ppoSettings } from '../../src/algos/ppo/settings.ts';
import { findEnv, makeVectorEnv, type OptionValues } from '../../src/envs/index.ts';
import { judgeWalk, type WalkJudgement } from '../../src/envs/mujoco/arachne/walking.ts';
import { resolveSettings } from '../../src/settings/resolve.ts';
import { report, round } from '../measure.ts';

const ACTIONS_PER_SECOND = 24;
const TOLERANCE_MS = 0.1;
const EVALUATION_SEED = 10_000;
const JUDGE_EVERY = 50_000;

export interface WalkOptions extends PolicyWeights {
  readonly env: string;
  readonly envOptions?: OptionValues;
  readonly model: ActorCritic;
  readonly episodes: number;
  readonly seed?: number;
}

/** Plays one episode in each of so many environments with the most likely actions, and judges each. */
async function judgeWalks(options: WalkOptions): Promise<WalkJudgement[]> {
  const { episodes } = options;
  const envs = await makeVectorEnv(options.env, { envCount: episodes, options: options.envOptions ?? {} });
  const { obsSize, actionSize, spec } = envs;
  const steps = spec?.maxEpisodeSteps ?? 0;
  const targetMs = Number(spec?.options.targetSpeed);
  // Where the body's position along x is in an observation.
  const forward = 4 * actionSize;
  const actor = await compileActor(options.model, envs.actionSpace, episodes);
  const actions = new Float32Array(episodes * actionSize);
  const walks = Array.from({ length: episodes }, () => ({
    speedsMs: [] as number[],
    over: false,
    fell: false,
    at: 0,
  }));
  try {
    await envs.reset({ seed: options.seed ?? EVALUATION_SEED });
    walks.forEach((walk, n) => {
      walk.at = envs.observations[n * obsSize + forward];
    });
    for (let step = 0; step < steps; step++) {
      actor.act(options, envs.observations, actions);
      await envs.step(actions);
      walks.forEach((walk, n) => {
        if (walk.over) return;
        walk.over = envs.terminated[n] === 1 || envs.truncated[n] === 1;
        walk.fell = envs.terminated[n] === 1;
        const at = (walk.over ? envs.finalObservations : envs.observations)[n * obsSize + forward];
        walk.speedsMs.push((at - walk.at) * ACTIONS_PER_SECOND);
        walk.at = at;
      });
    }
  } finally {
    actor.dispose();
    await envs.close();
  }
  return walks.map(({ speedsMs, fell }) =>
    judgeWalk({
      speedsMs,
      fell,
      targetMs,
      toleranceMs: TOLERANCE_MS,
      actions: steps,
      actionsPerSecond: ACTIONS_PER_SECOND,
    }),
  );
}

/** Trains one seed with the robot's preset, and says now and then how many of 100 episodes walk. */
export async function learnToWalk(name: string, seed: number): Promise<void> {
  const { id } = findEnv(name);
  const path = new URL(`../../configs/${id.toLowerCase()}.yaml`, import.meta.url);
  const config = resolveSettings(ppoSettings, { preset: parse(readFileSync(path, 'utf8')) as object });
  const { envs: envCount, workers, steps } = config;
  const envs = await makeVectorEnv(id, { envCount, workers });
  const trainer = await createPpoTrainer({ envs, config: { ...config, seed } });
  let [trainSeconds, collectSeconds, largestKl, judged] = [0, 0, 0, 0];
  let row: Record<string, number> = {};
  const judge = async (): Promise<void> => {
    const { model, weights, observationNormaliser: normaliser, counters } = trainer;
    const walks = await judgeWalks({ env: id, model, weights, normaliser, episodes: 100 });
    const count = (key: 'whole' | 'walked' | 'steady'): number => walks.filter(walk => walk[key]).length;
    const speeds = walks.map(walk => walk.meanSpeedMs);
    report({
      env: id,
      seed,
      steps: counters.steps,
      minutes: round(trainSeconds / 60, 2),
      walked: count('walked'),
      steady: count('steady'),
      whole: count('whole'),
      speed_mean: round(speeds.reduce((a, b) => a + b, 0) / speeds.length, 3),
      speed_least: round(Math.min(...speeds), 3),
      speed_most: round(Math.max(...speeds), 3),
      training_speed: round(row['env/speed'], 3),
      training_return: round(row['episode/return'], 1),
      std: round(row['policy/std'], 3),
      largest_kl_step: Number(largestKl.toPrecision(3)),
      steps_per_second: Math.round(counters.steps / trainSeconds),
      collect_share: round(collectSeconds / trainSeconds, 2),
    });
  };
  try {
    await trainer.start();
    while (trainer.counters.steps < steps) {
      const start = performance.now();
      ({ row } = await trainer.iterate());
      trainSeconds += (performance.now() - start) / 1000;
      collectSeconds += row['time/collect_s'];
      largestKl = Math.max(largestKl, row['kl/step']);
      if (Math.floor(trainer.counters.steps / JUDGE_EVERY) > judged) {
        judged = Math.floor(trainer.counters.steps / JUDGE_EVERY);
        if (trainer.counters.steps < steps) await judge();
      }
    }
    await judge();
  } finally {
    trainer.dispose();
    await envs.close();
  }
}
