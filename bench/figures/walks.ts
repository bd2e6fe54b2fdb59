/** How a legged robot walks: episodes with the most likely actions, the start from rest included. */
import type { Policy } from '../../src/algos/policy.ts';
import { makeVectorEnv } from '../../src/envs/index.ts';
import { judgeWalk, type WalkJudgement } from '../../src/envs/mujoco/arachne/walking.ts';
import { round } from '../measure.ts';
import type { WalkRecord } from './record.ts';

const ACTIONS_PER_SECOND = 24;
const TOLERANCE_MS = 0.1;

/** Plays one episode in each of so many environments. */
export async function judgeWalks(
  env: string,
  policy: Policy,
  episodes: number,
  seed: number,
): Promise<{ evaluated: number; walks: WalkRecord }> {
  const envs = await makeVectorEnv(env, { envCount: episodes });
  const { obsSize, actionSize, spec } = envs;
  const steps = spec?.maxEpisodeSteps ?? 0;
  const targetMs = Number(spec?.options.targetSpeed);
  // Where the body's position along x is in an observation.
  const forward = 4 * actionSize;
  const actions = new Float32Array(episodes * actionSize);
  const episodesNow = Array.from({ length: episodes }, () => ({
    speedsMs: [] as number[],
    over: false,
    fell: false,
    at: 0,
    earned: 0,
  }));
  const seenBy = (n: number): Float32Array => envs.observations.slice(n * obsSize, (n + 1) * obsSize);
  try {
    await envs.reset({ seed });
    episodesNow.forEach((walk, n) => {
      walk.at = envs.observations[n * obsSize + forward];
    });
    for (let step = 0; step < steps; step++) {
      episodesNow.forEach((_, n) => {
        actions.set(policy.act(seenBy(n)), n * actionSize);
      });
      await envs.step(actions);
      episodesNow.forEach((walk, n) => {
        if (walk.over) return;
        walk.over = envs.terminated[n] === 1 || envs.truncated[n] === 1;
        walk.fell = envs.terminated[n] === 1;
        if (walk.over) walk.earned = envs.episodeReturns[n];
        const at = (walk.over ? envs.finalObservations : envs.observations)[n * obsSize + forward];
        walk.speedsMs.push((at - walk.at) * ACTIONS_PER_SECOND);
        walk.at = at;
      });
    }
  } finally {
    await envs.close();
  }
  const judged = episodesNow.map(({ speedsMs, fell }) =>
    judgeWalk({
      speedsMs,
      fell,
      targetMs,
      toleranceMs: TOLERANCE_MS,
      actions: steps,
      actionsPerSecond: ACTIONS_PER_SECOND,
    }),
  );
  const mean = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0) / values.length;
  return {
    evaluated: round(mean(episodesNow.map(({ earned }) => earned)), 1),
    walks: summaryOf(judged),
  };
}

function summaryOf(judged: readonly WalkJudgement[]): WalkRecord {
  const count = (key: 'whole' | 'walked' | 'steady'): number => judged.filter(walk => walk[key]).length;
  const speeds = judged.map(walk => walk.meanSpeedMs);
  return {
    walked: count('walked'),
    steady: count('steady'),
    whole: count('whole'),
    speedMean: round(speeds.reduce((a, b) => a + b, 0) / speeds.length, 3),
    speedLeast: round(Math.min(...speeds), 3),
    speedMost: round(Math.max(...speeds), 3),
  };
}
