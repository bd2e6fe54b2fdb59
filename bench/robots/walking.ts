/**
 * From nothing to walking: trains a legged robot with its preset and judges 100 episodes of the policy at its end, the start
 * from rest included. `npm run bench -- robots walking --seeds 1000,1001` prints a JSON object a seed; runs in `--runs` that
 * are whole are read, stopped ones go on. `--set targetKl=0.01` tries another setting than the preset's.
 */
import { join } from 'node:path';
import type { Policy } from '../../src/algos/policy.ts';
import { openPolicy, resume, train } from '../../src/algos/runs.ts';
import { examinePaths, isRead } from '../../src/doctor/index.ts';
import { findEnv, makeVectorEnv } from '../../src/envs/index.ts';
import { judgeWalk, type WalkJudgement } from '../../src/envs/mujoco/arachne/walking.ts';
import { readRows } from '../../src/runs/index.ts';
import { longestStreak, report, round } from '../measure.ts';
import { wholeRun } from '../whole-run.ts';

const ACTIONS_PER_SECOND = 24;
const TOLERANCE_MS = 0.1;
const EVALUATION_SEED = 10_000;
const EPISODES = 100;

/** Plays one episode in each of so many environments with the most likely actions, and judges each. */
async function judgeWalks(env: string, policy: Policy): Promise<WalkJudgement[]> {
  const envs = await makeVectorEnv(env, { envCount: EPISODES });
  const { obsSize, actionSize, spec } = envs;
  const steps = spec?.maxEpisodeSteps ?? 0;
  const targetMs = Number(spec?.options.targetSpeed);
  // Where the body's position along x is in an observation.
  const forward = 4 * actionSize;
  const actions = new Float32Array(EPISODES * actionSize);
  const walks = Array.from({ length: EPISODES }, () => ({
    speedsMs: [] as number[],
    over: false,
    fell: false,
    at: 0,
  }));
  const seenBy = (n: number): Float32Array => envs.observations.slice(n * obsSize, (n + 1) * obsSize);
  try {
    await envs.reset({ seed: EVALUATION_SEED });
    walks.forEach((walk, n) => {
      walk.at = envs.observations[n * obsSize + forward];
    });
    for (let step = 0; step < steps; step++) {
      walks.forEach((_, n) => {
        actions.set(policy.act(seenBy(n)), n * actionSize);
      });
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

/** What the doctor calls a run, and the codes of what it found. */
async function verdictOn(dir: string): Promise<{ verdict: string; findings: readonly string[] }> {
  for await (const outcome of examinePaths([dir])) {
    if (!isRead(outcome)) throw new Error(outcome.error);
    const { verdict, findings } = outcome.diagnosis;
    return { verdict, findings: findings.map(({ code }) => code) };
  }
  throw new Error(`${dir} holds no run`);
}

/** Trains one seed with the robot's preset and some changes, and says how many of 100 episodes walk and what the KL was. */
export async function learnToWalk(
  name: string,
  seed: number,
  { root, changes }: { readonly root: string; readonly changes: Readonly<Record<string, unknown>> },
): Promise<void> {
  const { id } = findEnv(name);
  const differs = Object.entries(changes).map(([key, value]) => `-${key}=${String(value)}`);
  const own = join(root, `${id.toLowerCase()}-${seed}${differs.join('')}`);
  const dir = await wholeRun(own, () => train({ env: id, root: own, config: { ...changes, seed } }), resume);
  const policy = await openPolicy(dir, { checkpoint: 'last' });
  try {
    const walks = await judgeWalks(id, policy);
    const count = (key: 'whole' | 'walked' | 'steady'): number => walks.filter(walk => walk[key]).length;
    const speeds = walks.map(walk => walk.meanSpeedMs);
    const rows = readRows(dir).items;
    const kls = rows.map(row => row['kl/step']);
    const ascending = [...kls].sort((a, b) => a - b);
    const last = rows.at(-1)!;
    report({
      env: id,
      seed,
      ...changes,
      steps: last['train/step'],
      minutes: round((last['time/elapsed_s'] ?? 0) / 60, 2),
      walked: count('walked'),
      steady: count('steady'),
      whole: count('whole'),
      speed_mean: round(speeds.reduce((a, b) => a + b, 0) / speeds.length, 3),
      speed_least: round(Math.min(...speeds), 3),
      speed_most: round(Math.max(...speeds), 3),
      training_return: round(last['episode/return'], 1),
      std: round(last['policy/std'], 3),
      kl_median: round(ascending[Math.floor(ascending.length / 2)], 4),
      kl_share_below_02: round(kls.filter(kl => kl < 0.02).length / kls.length, 3),
      kl_above_03: kls.filter(kl => kl > 0.03).length,
      kl_longest_above_03: longestStreak(kls, kl => kl > 0.03),
      kl_largest: Number(ascending.at(-1)!.toPrecision(3)),
      guard_acted: rows.filter(row => row['guard/retries'] > 0 || row['guard/backtracks'] > 0).length,
      updates: rows.length,
      ...(await verdictOn(dir)),
    });
  } finally {
    await policy.close();
  }
}
