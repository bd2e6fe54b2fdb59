/**
 * Compares the suite with Gymnasium's model files in the same MuJoCo, and writes the trajectories that suite.test.ts pins:
 *
 *     npx tsx test/envs/mujoco/compare.ts <Gymnasium>/gymnasium/envs/mujoco/assets
 *
 * Prints the largest differences over five walks of 100 steps; exits with 1 where one is above 1e-6.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import loadMujoco from '@mujoco/mujoco';
import { makeEnv, prepareEnv } from '../../../src/envs/index.ts';
import { Rng } from '../../../src/random/index.ts';
import { GymnasiumTask, modelFile, suiteIds } from './support/gymnasium.ts';
import { put } from './support/put.ts';

const assets = process.argv[2];
if (assets === undefined) throw new Error("pass the folder of Gymnasium's MuJoCo model files");
const mujoco = await loadMujoco();

const WALKS = 5;
const STEPS = 100;
const PINNED = [1, 10, 30, 100];

/** Keeps the poles up for long; other bodies move at random. */
const GAINS: Readonly<Record<string, readonly number[]>> = {
  'InvertedPendulum-v5': [0.3, 8, 0.4, 1],
  'InvertedDoublePendulum-v5': [0.11, 0.78, -5.21, 0, 0, -0.42, -1.25, -1.07, 0],
};

const pins: Record<string, unknown> = {};
let worst = 0;
for (const id of suiteIds) {
  await prepareEnv(id);
  const gymnasium = new GymnasiumTask(mujoco, id, readFileSync(join(assets, modelFile(id)), 'utf8'));
  const falls = ['Hopper-v5', 'Walker2d-v5', 'Ant-v5', 'Humanoid-v5'].includes(id);
  // Ours would refuse to be stepped after a fall.
  const env = makeEnv(id, { maxEpisodeSteps: null, ...(falls ? { terminateWhenUnhealthy: false } : {}) });
  const obs = new Float32Array(env.observationSpace.flatSize);
  const rng = new Rng(17);
  const difference = { obs: 0, reward: 0 };
  let steps = 0;
  for (let walk = 0; walk < WALKS; walk++) {
    const noisy = (value: number): number => value + 0.01 * rng.normal();
    const qpos = gymnasium.startQpos.map(noisy);
    const qvel = Array.from({ length: gymnasium.model.nv }, () => noisy(0));
    let seen = gymnasium.reset(qpos, qvel);
    put(env, qpos, qvel);
    const actions: number[][] = [];
    const rows: unknown[] = [];
    for (let step = 1; step <= STEPS; step++, steps++) {
      const action = new Float32Array(env.actionSpace.flatSize);
      env.actionSpace.sample(rng, action);
      const gains = GAINS[id];
      if (gains) {
        action[0] = 0.02 * action[0] + gains.reduce((sum, gain, i) => sum + gain * seen[i], 0);
        env.actionSpace.clip(action);
      }
      const theirs = gymnasium.step([...action]);
      const ours = env.step(action, obs);
      if (theirs.obs.length !== obs.length)
        throw new Error(`${id}: ${obs.length} numbers, not ${theirs.obs.length}`);
      seen = theirs.obs;
      seen.forEach((value, i) => {
        difference.obs = Math.max(difference.obs, Math.abs(Math.fround(value) - obs[i]));
      });
      difference.reward = Math.max(difference.reward, Math.abs(theirs.reward - ours.reward));
      if (!falls && ours.terminated !== theirs.terminated) throw new Error(`${id}: one ends at step ${step}`);
      actions.push([...action]);
      if (PINNED.includes(step)) rows.push({ step, ...theirs, obs: seen.map(Math.fround) });
      if (ours.terminated) break;
    }
    if (walk === 0) pins[id] = { qpos, qvel, actions, rows };
  }
  worst = Math.max(worst, difference.obs, difference.reward);
  console.log(JSON.stringify({ id, steps, ...difference }));
}
writeFileSync(new URL('fixtures/gymnasium-suite.json', import.meta.url), `${JSON.stringify(pins)}\n`);
process.exitCode = worst <= 1e-6 ? 0 : 1;
