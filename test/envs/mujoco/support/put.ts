import type { MadeEnv } from '../../../../src/envs/index.ts';
import { MORE_ARRAYS, openModel } from '../../../../src/envs/mujoco/physics.ts';
import { antModel } from '../../../../src/envs/mujoco/suite/ant.ts';
import { halfCheetahModel } from '../../../../src/envs/mujoco/suite/half-cheetah.ts';
import { hopperModel } from '../../../../src/envs/mujoco/suite/hopper.ts';
import { humanoidModel } from '../../../../src/envs/mujoco/suite/humanoid.ts';
import { invertedDoublePendulumModel } from '../../../../src/envs/mujoco/suite/inverted-double-pendulum.ts';
import { invertedPendulumModel } from '../../../../src/envs/mujoco/suite/inverted-pendulum.ts';
import { reacherModel } from '../../../../src/envs/mujoco/suite/reacher.ts';
import { swimmerModel } from '../../../../src/envs/mujoco/suite/swimmer.ts';
import { walker2dModel } from '../../../../src/envs/mujoco/suite/walker2d.ts';
import { fromJson, toJson } from '../../../../src/envs/plain-data.ts';

const MODELS: Readonly<Record<string, string>> = {
  'HalfCheetah-v5': halfCheetahModel,
  'Hopper-v5': hopperModel,
  'Walker2d-v5': walker2dModel,
  'Ant-v5': antModel,
  'Humanoid-v5': humanoidModel,
  'Swimmer-v5': swimmerModel,
  'InvertedPendulum-v5': invertedPendulumModel,
  'InvertedDoublePendulum-v5': invertedDoublePendulumModel,
  'Reacher-v5': reacherModel,
};

interface Nested {
  env?: Nested;
  state?: Nested;
  physics?: unknown;
}

/** Starts an episode of one of the suite's tasks in that state. */
export function put(env: MadeEnv, qpos: readonly number[], qvel: readonly number[]): void {
  const physics = openModel(MODELS[env.spec.id], MORE_ARRAYS);
  physics.arrays.qpos.set(qpos);
  physics.arrays.qvel.set(qvel);
  physics.forward();
  const saved = toJson(physics.save(), 'physics');
  physics.close();
  env.reset({ seed: 0 }, new Float32Array(env.observationSpace.flatSize));
  env.restore(withPhysics(env, () => saved));
}

/** The state of an environment, but with velocities that no step survives. */
export function doomed(env: MadeEnv): unknown {
  return withPhysics(env, physics => {
    const arrays = fromJson(physics, 'physics') as { readonly qvel: Float64Array };
    return toJson({ ...arrays, qvel: arrays.qvel.map(() => 9e9) }, 'physics');
  });
}

/** Its state with another one of the physics, from the one that it has. */
function withPhysics(env: MadeEnv, other: (physics: unknown) => unknown): unknown {
  const whole = JSON.parse(JSON.stringify(env.state())) as Nested;
  let inner: Nested = whole;
  while (inner.physics === undefined) inner = (inner.env ?? inner.state)!;
  inner.physics = other(inner.physics);
  return whole;
}

/** Positions and velocities of one of the suite's models before noise. */
export function initial(id: string): { qpos: number[]; qvel: number[] } {
  const physics = openModel(MODELS[id]);
  const state = { qpos: [...physics.arrays.qpos], qvel: [...physics.arrays.qvel] };
  physics.close();
  return state;
}
