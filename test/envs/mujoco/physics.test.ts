import { beforeAll, describe, expect, it } from 'vitest';
import { stepResult } from '../../../src/envs/env.ts';
import { loadEngine } from '../../../src/envs/mujoco/engine.ts';
import { element, toXml } from '../../../src/envs/mujoco/mjcf.ts';
import { openModel, type Physics } from '../../../src/envs/mujoco/physics.ts';
import { type PhysicsTask, physicsEnv } from '../../../src/envs/mujoco/task.ts';

beforeAll(loadEngine);

/** A ball that falls, and one motor that lifts it. */
const ball = toXml(
  element('mujoco', {}, [
    element('option', { timestep: 0.01 }),
    element('worldbody', {}, [
      element('body', { name: 'ball', pos: [0, 0, 5] }, [
        element('joint', { name: 'lift', type: 'slide', axis: [0, 0, 1] }),
        element('geom', { type: 'sphere', size: 0.1, mass: 2 }),
      ]),
    ]),
    element('actuator', {}, [element('motor', { joint: 'lift', ctrlrange: [-100, 100], ctrllimited: true })]),
  ]),
);

const task: PhysicsTask<{ kicks: number }> = {
  model: ball,
  frameSkip: 5,
  observationSize: 2,
  rewardTerms: ['height', 'effort'],
  start(physics, rng) {
    physics.arrays.qpos[0] = rng.uniform();
    return { kicks: 0 };
  },
  score({ arrays }, action, memory, result) {
    memory.kicks++;
    result.rewardTerms[0] = arrays.qpos[0];
    result.rewardTerms[1] = -0.01 * Math.abs(action[0]);
  },
  observe({ arrays }, memory, obs) {
    obs[0] = arrays.qpos[0];
    obs[1] = memory.kicks;
  },
};

describe('a model', () => {
  it('falls as Newton says', () => {
    const physics = openModel(ball);
    physics.step(100);
    // Semi-implicit Euler: v = -g n h, x = -g h² n (n + 1) / 2.
    expect(physics.arrays.qvel[0]).toBeCloseTo(-9.81, 10);
    expect(physics.arrays.qpos[0]).toBeCloseTo((-9.81 * 1e-4 * 100 * 101) / 2, 10);
    expect(physics.timeSeconds).toBeCloseTo(1, 12);
    physics.close();
  });

  it('keeps its arrays when the memory of the engine grows', () => {
    const physics = openModel(ball);
    const before = physics.arrays.qpos;
    physics.arrays.qpos[0] = 3;
    const others: Physics[] = [];
    while (before.length > 0 && others.length < 200) others.push(openModel(ball));
    expect(before.length).toBe(0); // the memory has moved
    expect(physics.arrays.qpos[0]).toBe(3);
    for (const other of others) other.close();
    physics.close();
  });

  it('gives its memory back', () => {
    const used = (): number => {
      const physics = openModel(ball);
      const { byteLength } = physics.arrays.qpos.buffer;
      physics.close();
      return byteLength;
    };
    const first = used();
    for (let i = 0; i < 200; i++) used();
    expect(used()).toBe(first);
  });

  it('names what it refuses', () => {
    expect(() => openModel('<mujoco><wheel/></mujoco>')).toThrow(/MuJoCo refuses the model: .*wheel/);
    const physics = openModel(ball);
    expect(() => physics.indexOf('body', 'cube')).toThrow('the model has no body "cube"');
    expect(physics.indexOf('body', 'ball')).toBe(1);
    physics.close();
  });
});

describe('an environment of it', () => {
  it('sums the terms of the reward', () => {
    const env = physicsEnv(task);
    const obs = new Float32Array(2);
    env.reset({ seed: 3 }, obs);
    const result = env.step(Float32Array.of(50), obs);
    expect(result.reward).toBe(result.rewardTerms[0] + result.rewardTerms[1]);
    expect(result.rewardTerms[1]).toBe(-0.5);
    env.close?.();
  });

  it('goes on from a saved state to the bit', () => {
    const [env, other] = [physicsEnv(task), physicsEnv(task)];
    const obs = new Float32Array(2);
    const again = new Float32Array(2);
    env.reset({ seed: 4 }, obs);
    for (let i = 0; i < 7; i++) env.step(Float32Array.of(13 * i - 40), obs);
    const saved = JSON.parse(JSON.stringify(env.state()));
    other.restore(saved);
    for (let i = 0; i < 20; i++) {
      const reward = env.step(Float32Array.of(5 * i - 40), obs).reward;
      expect(other.step(Float32Array.of(5 * i - 40), again).reward).toBe(reward);
      expect(again).toEqual(obs);
    }
    expect(() => other.restore({ ...saved, state: { ...saved.state, physics: {} } })).toThrow(
      /time is undefined/,
    );
    expect(() => other.restore({ ...saved, state: { ...saved.state, memory: { kicks: 'x' } } })).toThrow(
      /kicks/,
    );
    env.close?.();
    other.close?.();
  });

  it('ends the episode where the physics blows up, and shows nothing of it', () => {
    let poison = false;
    const env = physicsEnv({
      ...task,
      control({ arrays }, action) {
        arrays.ctrl.set(action);
        if (poison) arrays.qvel[0] = Number.NaN;
      },
    });
    const obs = new Float32Array(2);
    env.reset({ seed: 5 }, obs);
    env.step(Float32Array.of(1), obs);
    const before = obs.slice();
    poison = true;
    expect(env.step(Float32Array.of(1), obs)).toEqual({
      ...stepResult(2),
      terminated: true,
      blownUp: true,
    });
    expect(obs).toEqual(before);
    poison = false;
    env.reset({}, obs);
    expect(env.step(Float32Array.of(1), obs).blownUp).toBe(false);
    expect(obs.every(Number.isFinite)).toBe(true);
    env.close?.();
  });
});

describe('MJCF text', () => {
  it('writes numbers so that they read back as the same, and escapes text', () => {
    expect(toXml(element('a', { x: [0.1, -2e-7], y: undefined, z: 'a<"b"' }, [element('b')]))).toBe(
      '<a x="0.1 -2e-7" z="a&lt;&quot;b&quot;">\n  <b/>\n</a>\n',
    );
    expect(() => toXml(element('a', { x: Number.NaN }))).toThrow('a: x is NaN, not finite');
    expect(() => toXml(element('a b'))).toThrow('not the name of an MJCF element');
  });
});
