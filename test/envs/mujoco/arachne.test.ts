import { beforeAll, describe, expect, it } from 'vitest';
import { arachne, type MadeEnv, makeEnv, makeVectorEnv, quadruped } from '../../../src/envs/index.ts';
import { goalAt, MAX_PUSH_N, TURN_RAD_S } from '../../../src/envs/mujoco/arachne/curriculum.ts';
import { arachnePlan, quadrupedPlan } from '../../../src/envs/mujoco/arachne/plans.ts';
import { type Posture, REWARD_TERMS, writeReward } from '../../../src/envs/mujoco/arachne/reward.ts';
import { generateRobot } from '../../../src/envs/mujoco/arachne/robot.ts';
import { judgeWalk } from '../../../src/envs/mujoco/arachne/walking.ts';
import { loadEngine } from '../../../src/envs/mujoco/engine.ts';
import { openModel } from '../../../src/envs/mujoco/physics.ts';
import { Rng } from '../../../src/random/index.ts';
import { bits, obsFor, walk } from '../support/contract.ts';

beforeAll(loadEngine);

/** Where things are in Arachne's observation. */
const at = {
  velocity: 18,
  cos: 36,
  sin: 54,
  position: 72,
  quaternion: 75,
  linear: 79,
  spin: 82,
  target: 85,
  yaw: 88,
};
const HOME = new Float32Array(18);

type SavedRobot = {
  env: {
    env: { progress: number; state: { physics: Record<string, unknown>; memory: Record<string, unknown> } };
  };
};

/** An environment that goes on from its own state, changed. */
function changed(env: MadeEnv, change: (robot: SavedRobot['env']['env']) => void): void {
  const state = JSON.parse(JSON.stringify(env.state())) as SavedRobot;
  change(state.env.env);
  env.restore(state);
}

/** The numbers of an array in a saved state, which are changed in place. */
function saved(robot: SavedRobot['env']['env'], name: string): number[] {
  const json = robot.state.physics[name] as Record<string, unknown>;
  const numbers = Array.isArray(json) ? json : Object.values(json).find(Array.isArray);
  if (!numbers) throw new Error(`${name} is saved as ${JSON.stringify(json).slice(0, 80)}`);
  return numbers as number[];
}

describe('the generator', () => {
  const hexapod = generateRobot(arachnePlan);
  const four = generateRobot(quadrupedPlan);

  it('has the published figures: joints, masses, limits, effort and speed', () => {
    expect(hexapod.joints.length).toBe(18);
    expect(four.joints.length).toBe(12);
    expect(hexapod.totalMassKg).toBeCloseTo(1.108 + 6 * (0.0839 + 0.0352 + 0.0986), 12);
    for (const robot of [hexapod, four]) {
      const physics = openModel(robot.model);
      const { model } = physics;
      const masses = Array.from(model.body_mass as Float64Array);
      expect(masses.reduce((a, b) => a + b)).toBeCloseTo(robot.totalMassKg, 12);
      expect(masses[physics.indexOf('body', 'base')]).toBeCloseTo(1.108, 12);
      const parts = { hip: [0.0839, -0.52, 0.52], femur: [0.0352, -1.22, 0.96], tibia: [0.0986, -1.22, 0] };
      robot.joints.forEach((joint, i) => {
        // Joint 0 is the free one; the order of joints is that of actions.
        expect(physics.indexOf('joint', joint.name)).toBe(i + 1);
        expect(physics.indexOf('actuator', joint.name)).toBe(i);
        const [mass, low, high] = parts[joint.part] as [number, number, number];
        expect(masses[physics.indexOf('body', joint.name)]).toBeCloseTo(mass, 12);
        const mirrored = joint.side === 'left' && joint.part !== 'hip';
        const limits = mirrored ? [-high, -low] : [low, high];
        const range = (model.jnt_range as Float64Array).slice(2 * i + 2, 2 * i + 4);
        for (const k of [0, 1]) {
          expect(range[k]).toBeCloseTo(limits[k], 12);
          expect(physics.ctrlRange[2 * i + k]).toBeCloseTo(limits[k], 12);
        }
        expect(joint.homeRad).toBeGreaterThan(limits[0]);
        expect(joint.homeRad).toBeLessThan(limits[1]);
      });
      expect(new Set(model.actuator_forcerange as Float64Array)).toEqual(new Set([-10, 10]));
      // At full effort the damping balances it at 6 rad/s.
      expect((model.dof_damping as Float64Array)[6]).toBeCloseTo(10 / 6, 12);
      expect(physics.substepSeconds).toBe(1 / 240);
      physics.close();
    }
  });

  it('mirrors left and right, and stands at the height it says', () => {
    for (const robot of [hexapod, four]) {
      const physics = openModel(robot.model);
      const { qpos } = physics.arrays;
      qpos[2] = robot.standingHeightM;
      robot.joints.forEach((joint, i) => {
        qpos[7 + i] = joint.homeRad;
      });
      physics.forward();
      const feet = new Map<string, number[]>();
      const places = engineGeoms(physics);
      for (const { leg } of robot.joints) {
        const i = physics.indexOf('geom', `${leg}_foot`);
        feet.set(leg, [...places.slice(3 * i, 3 * i + 3)]);
      }
      for (const [leg, [x, y, z]] of feet) {
        expect(z).toBeCloseTo(arachnePlan.footRadiusM, 12);
        if (!leg.startsWith('left')) continue;
        const [rightX, rightY] = feet.get(leg.replace('left', 'right'))!;
        expect(y).toBeGreaterThan(0.2);
        expect(rightX).toBeCloseTo(x, 12);
        expect(rightY).toBeCloseTo(-y, 12);
      }
      expect(robot.standingHeightM).toBeGreaterThan(0.15);
      physics.close();
    }
  });

  function engineGeoms(physics: ReturnType<typeof openModel>): Float64Array {
    // Bodies' frames are enough to know where a foot is: the tibia's frame, and its length along its own -z.
    const out = new Float64Array(3 * (physics.model.ngeom as number));
    const { xpos, xquat } = physics.arrays;
    for (let i = 0; i < physics.model.ngeom; i++) {
      const body = (physics.model.geom_bodyid as Int32Array)[i];
      const pos = (physics.model.geom_pos as Float64Array).slice(3 * i, 3 * i + 3);
      const [w, x, y, z] = xquat.slice(4 * body, 4 * body + 4) as unknown as [number, number, number, number];
      // The rotation matrix of the quaternion.
      const r = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
      ];
      for (let k = 0; k < 3; k++)
        out[3 * i + k] = xpos[3 * body + k] + r[k].reduce((sum, value, j) => sum + value * pos[j], 0);
    }
    return out;
  }
});

describe('the reward', () => {
  const weights = {
    velocityWeight: 2,
    yawWeight: 0.5,
    heightWeight: 20,
    postureWeight: 0.075,
    smoothnessWeight: 0.015,
    bounceWeight: 0.2,
    uprightWeight: 0.4,
    survivalReward: 0.02,
    fallPenalty: 20,
  };
  const calm: Posture = {
    velocityError2: 0,
    turnError2: 0,
    heightError: 0,
    posture2: 0,
    actionChange2: 0,
    verticalSpeed: 0,
    upZ: 1,
    fell: false,
  };
  const terms = (change: Partial<Posture>): Record<string, number> => {
    const out = new Float64Array(REWARD_TERMS.length);
    writeReward({ ...calm, ...change }, weights, out);
    return Object.fromEntries(REWARD_TERMS.map((name, i) => [name, out[i] + 0]));
  };

  it('of a robot that does all as asked is what pays, and nothing costs', () => {
    expect(terms({})).toEqual({
      velocity: 2,
      yaw: 0.5,
      height: 0,
      posture: 0,
      smoothness: 0,
      bounce: 0,
      upright: 0,
      survival: 0.02,
      fall: 0,
    });
  });

  it.each<[string, Partial<Posture>, number]>([
    ['velocity', { velocityError2: 0.25 }, 2 * Math.exp(-0.5)],
    ['yaw', { turnError2: 4 }, 0.5 * Math.exp(-0.04)],
    ['height', { heightError: -0.1 }, -0.2],
    ['posture', { posture2: 2 }, -0.15],
    ['smoothness', { actionChange2: 4 }, -0.06],
    ['bounce', { verticalSpeed: -0.5 }, -0.05],
    ['upright', { upZ: 0.5 }, -0.2],
    ['fall', { fell: true }, -20],
  ])('%s gets worse by itself, in its own term', (name, change, value) => {
    const [good, bad] = [terms({}), terms(change)];
    expect(bad[name]).toBeCloseTo(value, 12);
    expect(bad[name]).toBeLessThan(good[name]);
    expect({ ...bad, [name]: 0 }).toEqual({ ...good, [name]: 0 });
  });
});

describe('Arachne', () => {
  it('shows 89 numbers: joints, body, targets', () => {
    const env = arachne({ targetSpeed: 0.7, targetYawRate: 0.3 });
    const obs = obsFor(env);
    expect(obs.length).toBe(89);
    expect(env.actionSpace.flatSize).toBe(18);
    env.reset({ seed: 1 }, obs);
    const { joints, standingHeightM } = generateRobot(arachnePlan);
    joints.forEach(({ homeRad }, i) => {
      expect(Math.abs(obs[i] - homeRad)).toBeLessThanOrEqual(0.0501);
      expect(obs[at.cos + i]).toBeCloseTo(Math.cos(obs[i]), 6);
      expect(obs[at.sin + i]).toBeCloseTo(Math.sin(obs[i]), 6);
    });
    expect(obs[at.position + 2]).toBeCloseTo(standingHeightM, 6);
    expect([...obs.slice(at.quaternion, at.quaternion + 4)]).toEqual([1, 0, 0, 0]);
    expect([...obs.slice(at.target)]).toEqual([0.7, 0, 0, 0.3].map(Math.fround));
    for (let i = 0; i < 24; i++) env.step(HOME, obs);
    // After a second the target points where the yaw rate has turned it.
    expect(obs[at.target]).toBeCloseTo(0.7 * Math.cos(0.3), 6);
    expect(obs[at.target + 1]).toBeCloseTo(0.7 * Math.sin(0.3), 6);
    env.close?.();
    const four = quadruped();
    expect([four.observationSpace.flatSize, four.actionSpace.flatSize]).toEqual([65, 12]);
    four.close?.();
  });

  it('shows the angular velocity in the frame of the world', () => {
    const env = arachne();
    const obs = obsFor(env);
    env.reset({ seed: 1 }, obs);
    changed(env, robot => {
      // Rolled by 90° to the left, spinning about its own z: about -y of the world.
      const qpos = saved(robot, 'qpos');
      qpos[2] = 1;
      [qpos[3], qpos[4]] = [Math.SQRT1_2, Math.SQRT1_2];
      saved(robot, 'qvel')[5] = 2;
    });
    // One short look: the state that was loaded is that of the last observation, so take the mean of a step.
    env.step(HOME, obs);
    expect(obs[at.spin + 1]).toBeLessThan(-1);
    expect(Math.abs(obs[at.spin + 2])).toBeLessThan(0.5);
    env.close?.();
  });

  it('stands for the whole 5 s with all joints at home, and is then truncated', () => {
    for (const env of [arachne(), quadruped()]) {
      const obs = obsFor(env);
      const action = new Float32Array(env.actionSpace.flatSize);
      env.reset({ seed: 3 }, obs);
      for (let i = 1; i <= 120; i++) {
        const result = env.step(action, obs);
        expect([result.terminated, result.truncated]).toEqual([false, i === 120]);
        expect(result.rewardTerms[REWARD_TERMS.indexOf('fall')]).toBeCloseTo(0, 12);
      }
      env.close?.();
    }
  });

  it('walks where it should: a tripod gait goes forward, and the terms say so', () => {
    const env = arachne();
    const obs = obsFor(env);
    env.reset({ seed: 3 }, obs);
    const action = new Float32Array(18);
    let [velocity, speed] = [0, 0];
    for (let i = 0; i < 120; i++) {
      for (let leg = 0; leg < 6; leg++) {
        const out = leg % 2 === 0 ? 1 : -1;
        const phase = (2 * Math.PI * 1.6 * i) / 24 + Math.PI * ((leg + Math.floor(leg / 2)) % 2);
        action[3 * leg] = 0.8 * out * Math.sin(phase);
        action[3 * leg + 1] = out * Math.max(0, -Math.cos(phase));
      }
      const result = env.step(action, obs);
      velocity = result.rewardTerms[0];
      speed += result.measures![0] / 120;
      expect(result.measures![0]).toBeCloseTo(obs[at.linear], 5);
    }
    expect(env.measures).toEqual(['speed']);
    // What is measured is the way that was made, but for what lies between two actions.
    expect(Math.abs(speed - obs[at.position] / 5)).toBeLessThan(0.05);
    expect(obs[at.position]).toBeGreaterThan(2);
    expect(velocity).toBeGreaterThan(0.9 * 10);
    env.close?.();
  });

  it.each<[string, (qpos: number[]) => void]>([
    [
      'too low',
      qpos => {
        qpos[2] = 0.08;
        for (let leg = 0; leg < 6; leg++) qpos[7 + 3 * leg + 1] = leg % 2 === 0 ? 1.2 : -1.2;
      },
    ],
    [
      'leaning too far',
      qpos => {
        [qpos[2], qpos[3], qpos[4]] = [0.4, Math.cos(0.7), Math.sin(0.7)];
      },
    ],
  ])('a fall ends the episode and costs 20: %s', (_, place) => {
    const env = arachne();
    const obs = obsFor(env);
    env.reset({ seed: 3 }, obs);
    const before = env.step(HOME, obs).reward;
    changed(env, robot => place(saved(robot, 'qpos')));
    // All femurs up, so that no foot lifts the body again.
    const lifted = HOME.map((_, i) => (i % 3 !== 1 ? 0 : i % 6 === 1 ? 1 : -1));
    const { reward, terminated, truncated, rewardTerms } = env.step(lifted, obs);
    expect([terminated, truncated]).toEqual([true, false]);
    expect(rewardTerms[REWARD_TERMS.indexOf('fall')]).toBe(-20);
    expect(reward).toBeLessThan(before - 19);
    env.close?.();
  });

  it('takes its weights from its options', () => {
    const [plain, weighed] = [
      arachne(),
      arachne({ velocityWeight: 50, postureWeight: 0, survivalReward: 1 }),
    ];
    const [obs, other] = [obsFor(plain), obsFor(weighed)];
    plain.reset({ seed: 3 }, obs);
    weighed.reset({ seed: 3 }, other);
    const action = new Float32Array(18).fill(0.3);
    const a = plain.step(action, obs).rewardTerms.slice();
    const b = weighed.step(action, other).rewardTerms.slice();
    expect(obs).toEqual(other);
    expect(b[0]).toBeCloseTo(5 * a[0], 12);
    expect(a[3]).toBeLessThan(0);
    expect(b[3]).toBeCloseTo(0, 12);
    expect(b[7]).toBe(1);
    expect(() => arachne({ fallPenalty: -20 })).toThrow(/fallPenalty is -20, below its least value 0/);
    plain.close?.();
    weighed.close?.();
  });

  it('ends an episode whose physics blows up, and shows nothing of it', () => {
    const env = arachne();
    const obs = obsFor(env);
    env.reset({ seed: 3 }, obs);
    changed(env, robot => {
      saved(robot, 'qvel')[8] = 9e9;
    });
    const { terminated, blownUp, reward } = env.step(HOME, obs);
    expect([terminated, blownUp, reward]).toEqual([true, true, 0]);
    expect(obs.every(Number.isFinite)).toBe(true);
    env.reset({}, obs);
    expect(env.step(HOME, obs).blownUp).toBe(false);
    env.close?.();
  });
});

describe('the curriculum', () => {
  const task = { speedMs: 0.5, yawRateRadS: 0 };

  it('is a third each: pushes grow, then turning, then speed; at the end it is the task', () => {
    expect(goalAt(0, task)).toEqual({ stage: 'stand', speedMs: 0, yawRateRadS: 0, pushN: 0 });
    expect(goalAt(1 / 6, task)).toEqual({
      stage: 'stand',
      speedMs: 0,
      yawRateRadS: 0,
      pushN: MAX_PUSH_N / 2,
    });
    expect(goalAt(0.5, task)).toMatchObject({ stage: 'turn', speedMs: 0, pushN: 0 });
    expect(goalAt(0.5, task).yawRateRadS).toBeCloseTo(TURN_RAD_S / 2, 12);
    expect(goalAt(0.5, { ...task, yawRateRadS: -1 }).yawRateRadS).toBeCloseTo(-0.5, 12);
    expect(goalAt(0.7, task).stage).toBe('walk');
    const speeds = [0.67, 0.75, 0.85, 0.95, 1].map(progress => goalAt(progress, task).speedMs);
    expect(speeds).toEqual([...speeds].sort((a, b) => a - b));
    // From a fifth of the speed on.
    expect(goalAt(2 / 3, task).speedMs).toBeCloseTo(0.1, 12);
    expect(goalAt(5 / 6, task).speedMs).toBeCloseTo(0.3, 12);
    expect(goalAt(1, { speedMs: 0.8, yawRateRadS: 0.2 })).toEqual({
      stage: 'walk',
      speedMs: 0.8,
      yawRateRadS: 0.2,
      pushN: 0,
    });
  });

  it('follows training; who evaluates gets the task itself', () => {
    const env = arachne({ curriculum: true });
    const obs = obsFor(env);
    env.reset({ seed: 1 }, obs);
    expect(obs[at.target]).toBeCloseTo(0.5, 6);
    const displaced = (progress: number): number => {
      env.setProgress?.(progress);
      env.reset({ seed: 1 }, obs);
      expect(obs[at.target]).toBe(0);
      let far = 0;
      for (let i = 0; i < 30; i++) {
        env.step(HOME, obs);
        far = Math.max(far, Math.hypot(obs[at.linear], obs[at.linear + 1]));
      }
      return far;
    };
    const [weak, strong] = [displaced(0), displaced(0.33)];
    expect(strong).toBeGreaterThan(weak + 0.01);
    env.setProgress?.(0.5);
    env.reset({}, obs);
    expect(obs[at.yaw]).toBeCloseTo(TURN_RAD_S / 2, 6);
    expect(() => env.setProgress?.(1.5)).toThrow(/progress 1.5 is not in 0..1/);
    expect(arachne().setProgress).toBeUndefined();
    env.close?.();
  });

  it('goes on from a saved state to the bit, pushes and stage included', () => {
    const [env, other] = [arachne({ curriculum: true }), arachne({ curriculum: true })];
    const obs = obsFor(env);
    env.setProgress?.(0.3);
    env.reset({ seed: 2 }, obs);
    walk(env, 100, 1, obs);
    other.restore(JSON.parse(JSON.stringify(env.state())));
    const again = obs.slice();
    expect(walk(other, 60, 2, again)).toEqual(walk(env, 60, 2, obs));
    expect(bits(again)).toBe(bits(obs));
    env.close?.();
    other.close?.();
  });

  it('comes through worker threads', async () => {
    const envs = await makeVectorEnv('arachne', { envCount: 2, workers: 1, options: { curriculum: true } });
    envs.setProgress(0.5);
    await envs.reset({ seed: 1 });
    expect(envs.observations[at.yaw]).toBeCloseTo(TURN_RAD_S / 2, 6);
    await envs.close();
  });
});

describe('a walk', () => {
  const task = { fell: false, targetMs: 0.5, toleranceMs: 0.1, actions: 120, actionsPerSecond: 24 };
  const speeds = (of: (i: number) => number): number[] => Array.from({ length: 120 }, (_, i) => of(i));

  it('is whole, at the speed asked for', () => {
    expect(judgeWalk({ ...task, speedsMs: speeds(() => 0.45) })).toMatchObject({
      walked: true,
      steady: true,
    });
    expect(judgeWalk({ ...task, speedsMs: speeds(() => 0.39) }).walked).toBe(false);
    expect(judgeWalk({ ...task, speedsMs: speeds(() => 0.61) }).walked).toBe(false);
    expect(judgeWalk({ ...task, speedsMs: speeds(() => 0.5), fell: true }).walked).toBe(false);
    expect(judgeWalk({ ...task, speedsMs: speeds(() => 0.5).slice(1) }).walked).toBe(false);
    expect(judgeWalk({ ...task, speedsMs: [] })).toMatchObject({ meanSpeedMs: 0, walked: false });
  });

  it('is steady where no second after the first is off', () => {
    // Starts from rest, and within a stride the speed swings.
    const swinging = speeds(i => (i < 12 ? 0 : 0.5 + 0.4 * Math.sin(i)));
    expect(judgeWalk({ ...task, speedsMs: swinging })).toMatchObject({ walked: true, steady: true });
    const leap = speeds(i => (i < 96 ? 0.42 : 0.8));
    expect(judgeWalk({ ...task, speedsMs: leap })).toMatchObject({ walked: true, steady: false });
  });
});

describe('both robots', () => {
  it.each(['arachne', 'quadruped'])('%s: random actions give finite numbers, whatever the seed', name => {
    const env = makeEnv(name);
    const obs = obsFor(env);
    const action = new Float32Array(env.actionSpace.flatSize);
    const rng = new Rng(5);
    for (let episode = 0; episode < 5; episode++) {
      env.reset({ seed: episode }, obs);
      for (let over = false; !over; ) {
        env.actionSpace.sample(rng, action);
        const { terminated, truncated } = env.step(action, obs);
        over = terminated || truncated;
      }
    }
    env.close?.();
  });
});
