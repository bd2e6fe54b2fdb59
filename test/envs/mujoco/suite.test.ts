import { readFileSync } from 'node:fs';
import { beforeAll, describe, expect, it } from 'vitest';
import {
  type AnyMakeOptions,
  findEnv,
  type MadeEnv,
  makeEnv,
  prepareEnv,
  type StepResult,
} from '../../../src/envs/index.ts';
import { bits, obsFor } from '../support/contract.ts';
import { suiteIds } from './support/gymnasium.ts';
import { doomed, initial, put } from './support/put.ts';

interface Pinned {
  readonly qpos: number[];
  readonly qvel: number[];
  readonly actions: number[][];
  readonly rows: { step: number; obs: number[]; reward: number; terminated: boolean }[];
}

/** Written by compare.ts from Gymnasium's model files. */
const pinned = JSON.parse(
  readFileSync(new URL('fixtures/gymnasium-suite.json', import.meta.url), 'utf8'),
) as Record<string, Pinned>;

beforeAll(() => Promise.all(suiteIds.map(prepareEnv)));

/** One step from a changed initial state; what the reward's terms are, by name. */
function stepFrom(
  id: string,
  change: (qpos: number[], qvel: number[]) => void,
  action: (index: number) => number = () => 0,
  options: AnyMakeOptions = {},
): { result: StepResult; terms: Record<string, number>; obs: Float32Array; env: MadeEnv } {
  const env = makeEnv(id, options);
  const { qpos, qvel } = initial(id);
  change(qpos, qvel);
  put(env, qpos, qvel);
  const obs = obsFor(env);
  const result = env.step(
    Float32Array.from({ length: env.actionSpace.flatSize }, (_, i) => action(i)),
    obs,
  );
  const terms = Object.fromEntries(env.rewardTerms.map((name, i) => [name, result.rewardTerms[i]]));
  env.close?.();
  return { result, terms, obs, env };
}

/** Humanoid with its feet on the floor, which the initial pose has 11 cm above it. */
const standing = (qpos: number[]): void => {
  qpos[2] = 1.28;
};

describe("the same body as Gymnasium's", () => {
  it.each(suiteIds)('%s: 100 steps from the same state', id => {
    const { qpos, qvel, actions, rows } = pinned[id];
    const falls = 'terminateWhenUnhealthy' in findEnv(id).options;
    const env = makeEnv(id, { maxEpisodeSteps: null, ...(falls ? { terminateWhenUnhealthy: false } : {}) });
    put(env, qpos, qvel);
    const obs = obsFor(env);
    const expected = new Map(rows.map(row => [row.step, row]));
    actions.forEach((action, i) => {
      const { reward, terminated } = env.step(Float32Array.from(action), obs);
      const row = expected.get(i + 1);
      if (!row) return;
      expect(Math.abs(reward - row.reward)).toBeLessThanOrEqual(1e-9);
      if (!falls) expect(terminated).toBe(row.terminated);
      expect(obs.length).toBe(row.obs.length);
      row.obs.forEach((value, k) => {
        expect(Math.abs(obs[k] - value), `number ${k} at step ${i + 1}`).toBeLessThanOrEqual(
          1e-6 * Math.max(1, Math.abs(value)),
        );
      });
    });
    expect(rows.at(-1)!.step).toBe(100);
    env.close?.();
  });

  it.each([
    ['HalfCheetah-v5', 17, 6, 1, 1000, 4800],
    ['Hopper-v5', 11, 3, 1, 1000, 3800],
    ['Walker2d-v5', 17, 6, 1, 1000, null],
    ['Ant-v5', 105, 8, 1, 1000, 6000],
    ['Humanoid-v5', 348, 17, Math.fround(0.4), 1000, null],
    ['Swimmer-v5', 8, 2, 1, 1000, 360],
    ['InvertedPendulum-v5', 4, 1, 3, 1000, 950],
    ['InvertedDoublePendulum-v5', 9, 1, 1, 1000, 9100],
    ['Reacher-v5', 10, 2, 1, 50, -3.75],
  ])('%s: sizes and limits', (id, observations, actions, limit, maxEpisodeSteps, rewardThreshold) => {
    const env = makeEnv(id);
    expect(env.observationSpace.flatSize).toBe(observations);
    expect(env.actionSpace.flatSize).toBe(actions);
    if (env.actionSpace.kind !== 'box') throw new Error('not a box');
    expect([...env.actionSpace.low, ...env.actionSpace.high].map(Math.abs)).toEqual(
      Array(2 * actions).fill(limit),
    );
    expect(env.spec).toMatchObject({ maxEpisodeSteps, rewardThreshold });
    env.close?.();
  });

  it.each([
    ['half-cheetah', 18],
    ['hopper', 12],
    ['walker2d', 18],
    ['ant', 107],
    ['humanoid', 350],
    ['swimmer', 10],
  ])('%s shows how far it has come if asked', (name, size) => {
    const { obs } = stepFrom(findEnv(name).id, qpos => (qpos[0] = 7), undefined, {
      excludeCurrentPositionsFromObservation: false,
    });
    expect(obs.length).toBe(size);
    expect(obs[0]).toBeCloseTo(7, 1);
  });

  it('Ant leaves contact forces out if asked', () => {
    const still = (): void => undefined;
    const { obs } = stepFrom('Ant-v5', still, undefined, { includeCfrcExtInObservation: false });
    expect(obs).toEqual(stepFrom('Ant-v5', still).obs.slice(0, 27));
  });

  it.each([
    ['includeCinertInObservation', 45, 130],
    ['includeCvelInObservation', 175, 78],
    ['includeQfrcActuatorInObservation', 253, 17],
    ['includeCfrcExtInObservation', 270, 78],
  ])('Humanoid without %s sees the rest', (option, start, size) => {
    const effort = (i: number): number => 0.02 * i - 0.2;
    const whole = [...stepFrom('Humanoid-v5', standing, effort).obs];
    expect(whole.splice(start, size).some(value => value !== 0)).toBe(true);
    expect([...stepFrom('Humanoid-v5', standing, effort, { [option]: false }).obs]).toEqual(whole);
  });

  it("Humanoid sees each body's mass and the motors' torques", () => {
    const { obs } = stepFrom(
      'Humanoid-v5',
      () => undefined,
      i => (i === 6 || i === 16 ? 0.25 : 0),
    );
    const masses = Array.from({ length: 13 }, (_, i) => obs[45 + 10 * i + 9]);
    // The right thigh: a capsule of water of radius .06 m about a line of .34 m and a bit.
    const length = Math.hypot(0.01, 0.34);
    expect(masses[3]).toBeCloseTo(1000 * Math.PI * 0.06 ** 2 * (length + 0.08), 5);
    expect(masses.reduce((sum, mass) => sum + mass)).toBeGreaterThan(40);
    // The right knee is the seventh joint as it is the seventh motor; the left elbow is the last of both.
    expect([...obs.slice(253, 270)]).toEqual(
      Array.from({ length: 17 }, (_, i) => (i === 6 ? 50 : i === 16 ? 6.25 : 0)),
    );
  });
});

describe('starts', () => {
  it.each([
    // Number of the observation, and its limits; for a normal one, its deviation.
    ['HalfCheetah-v5', 0, [-0.1, 0.1], null],
    ['HalfCheetah-v5', 8, null, 0.1],
    ['Hopper-v5', 0, [1.245, 1.255], null],
    ['Hopper-v5', 10, [-0.005, 0.005], null],
    ['Walker2d-v5', 16, [-0.005, 0.005], null],
    ['Ant-v5', 0, [0.65, 0.85], null],
    ['Ant-v5', 26, null, 0.1],
    ['Humanoid-v5', 0, [1.39, 1.41], null],
    ['Humanoid-v5', 21, [-0.01, 0.01], null],
    ['Humanoid-v5', 44, [-0.01, 0.01], null],
    ['Swimmer-v5', 7, [-0.1, 0.1], null],
    ['InvertedPendulum-v5', 1, [-0.01, 0.01], null],
    ['InvertedDoublePendulum-v5', 0, [-0.1, 0.1], null],
    ['InvertedDoublePendulum-v5', 5, null, 0.1],
    ['Reacher-v5', 2, [-0.0999, 0.0999], null],
    ['Reacher-v5', 7, [-0.005, 0.005], null],
  ] as [string, number, [number, number] | null, number | null][])(
    '%s number %i as in Gymnasium',
    (id, number, limits, deviation) => {
      const env = makeEnv(id);
      const obs = obsFor(env);
      const values = Array.from({ length: 1_000 }, () => {
        env.reset({}, obs);
        return obs[number];
      });
      env.close?.();
      const mean = values.reduce((a, b) => a + b) / values.length;
      if (limits) {
        const [low, high] = limits;
        const width = high - low;
        expect(Math.min(...values)).toBeGreaterThanOrEqual(low - 1e-4 * width);
        expect(Math.max(...values)).toBeLessThanOrEqual(high + 1e-4 * width);
        expect(Math.max(...values) - Math.min(...values)).toBeGreaterThan(0.97 * width);
        expect(Math.abs(mean - (low + high) / 2)).toBeLessThan(0.04 * width);
      } else {
        const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length;
        expect(Math.abs(Math.sqrt(variance) / deviation! - 1)).toBeLessThan(0.1);
        expect(Math.max(...values)).toBeGreaterThan(2 * deviation!);
      }
    },
  );

  it("Reacher's targets fill a disc of 0.2 m", () => {
    const env = makeEnv('reacher');
    const obs = obsFor(env);
    const radii = Array.from({ length: 1_000 }, () => {
      env.reset({}, obs);
      return Math.hypot(obs[4], obs[5]);
    });
    env.close?.();
    expect(Math.max(...radii)).toBeLessThan(0.2 + 1e-7);
    // Uniform in the disc: a quarter is within half of the radius.
    expect(radii.filter(radius => radius < 0.1).length / 1_000).toBeCloseTo(0.25, 1);
  });

  it('without noise every episode starts the same', () => {
    const env = makeEnv('half-cheetah', { resetNoiseScale: 0 });
    const obs = obsFor(env);
    env.reset({ seed: 1 }, obs);
    expect([...obs]).toEqual(Array(17).fill(0));
    env.close?.();
  });
});

describe('reward terms', () => {
  const forward = (speed: number) => (_qpos: number[], qvel: number[]) => {
    qvel[0] = speed;
  };

  it.each([
    ['HalfCheetah-v5', 0.1],
    ['Hopper-v5', 1e-3],
    ['Walker2d-v5', 1e-3],
    ['Ant-v5', 0.5],
    ['Humanoid-v5', 0.1],
    ['Swimmer-v5', 1e-4],
  ])('%s pays for moving along x and takes for effort', (id, weight) => {
    expect(stepFrom(id, forward(1)).terms.forward).toBeGreaterThan(0.3);
    expect(stepFrom(id, forward(-1)).terms.forward).toBeLessThan(-0.3);
    const { terms, env } = stepFrom(id, forward(0), () => -0.25);
    expect(terms.control).toBeCloseTo(-weight * 0.25 ** 2 * env.actionSpace.flatSize, 12);
    const free = stepFrom(id, forward(1), () => 0.25, { ctrlCostWeight: 0, forwardRewardWeight: 3 });
    const paid = stepFrom(id, forward(1), () => 0.25, { forwardRewardWeight: 1 });
    expect(free.terms.control).toBeCloseTo(0, 15);
    expect(free.terms.forward).toBeCloseTo(3 * paid.terms.forward, 12);
  });

  it('a speed is what a flying body covers in a step', () => {
    const { terms } = stepFrom('HalfCheetah-v5', (qpos, qvel) => {
      qpos[1] = 5;
      qvel[0] = 2;
    });
    expect(terms.forward).toBeCloseTo(2, 1);
  });

  it("Humanoid's speed is that of all its mass, and counts 1.25 times", () => {
    const { terms } = stepFrom('Humanoid-v5', (qpos, qvel) => {
      qpos[2] = 5;
      qvel[0] = 2;
    });
    expect(terms.forward).toBeCloseTo(2.5, 2);
    // The arms swing and nothing else touches it: the trunk moves, its centre of mass cannot.
    const swinging = stepFrom(
      'Humanoid-v5',
      qpos => (qpos[2] = 5),
      i => (i === 11 ? 0.4 : i === 14 ? -0.4 : 0),
    );
    expect(Math.abs(swinging.obs[22])).toBeGreaterThan(0.01);
    expect(swinging.terms.forward).toBeCloseTo(0, 3);
  });

  it.each([
    ['Hopper-v5', 1],
    ['Walker2d-v5', 1],
    ['Ant-v5', 1],
    ['Humanoid-v5', 5],
  ])('%s pays for being up, and not for lying', (id, survive) => {
    const lying = (qpos: number[]): void => {
      const height = ['Ant-v5', 'Humanoid-v5'].includes(id) ? 2 : 1;
      qpos[height] = 3;
      if (id === 'Hopper-v5') qpos[2] = 1;
    };
    expect(stepFrom(id, forward(0)).terms.survive).toBe(survive);
    expect(stepFrom(id, forward(0), undefined, { healthyReward: 4 }).terms.survive).toBe(4);
    const fallen = stepFrom(id, lying, undefined, { terminateWhenUnhealthy: false });
    expect(fallen.terms.survive).toBe(0);
    expect(fallen.result.terminated).toBe(false);
    expect(stepFrom(id, lying).result.terminated).toBe(true);
  });

  it('Ant pays for contacts, at most 1 a number', () => {
    const onGround = (qpos: number[], qvel: number[]): void => {
      qpos[2] = 0.5;
      qvel[2] = -5;
    };
    const { terms, obs } = stepFrom('Ant-v5', onGround);
    expect(terms.contact).toBeLessThan(0);
    expect(terms.contact).toBeGreaterThanOrEqual(-5e-4 * 14 * 6);
    const forces = [...obs.slice(27)];
    expect(Math.max(...forces.map(Math.abs))).toBe(1);
    // MuJoCo counts none for the world, which is not shown.
    expect(terms.contact).toBeCloseTo(-5e-4 * forces.reduce((sum, force) => sum + force * force, 0), 6);
    expect(stepFrom('Ant-v5', qpos => (qpos[2] = 0.95)).terms.contact).toBeCloseTo(0, 15);
  });

  it('Humanoid pays for contacts, at most 10', () => {
    const { terms, obs } = stepFrom('Humanoid-v5', standing);
    const shown = [...obs.slice(270)].reduce((sum, force) => sum + force * force, 0);
    expect(shown).toBeGreaterThan(1e4);
    expect(terms.contact).toBeCloseTo(-5e-7 * shown, 6);
    const heavy = stepFrom('Humanoid-v5', standing, undefined, { contactCostWeight: 1 });
    expect(heavy.terms.contact).toBe(-10);
    const twice = stepFrom('Humanoid-v5', standing, undefined, { contactCostWeight: 1e-6 });
    expect(twice.terms.contact).toBeCloseTo(2 * terms.contact, 12);
    expect(stepFrom('Humanoid-v5', qpos => (qpos[2] = 1.9)).terms.contact).toBeCloseTo(0, 15);
  });

  it('InvertedPendulum pays 1 while the pole is up', () => {
    expect(stepFrom('InvertedPendulum-v5', () => undefined).result.reward).toBe(1);
    expect(stepFrom('InvertedPendulum-v5', qpos => (qpos[1] = 0.3)).result.reward).toBe(0);
  });

  it('InvertedDoublePendulum takes for the distance of its tip and for turning', () => {
    const up = stepFrom('InvertedDoublePendulum-v5', () => undefined);
    expect(up.terms.survive).toBe(10);
    expect(up.terms.distance).toBeCloseTo(-0.64, 3);
    expect(up.terms.velocity).toBeCloseTo(0, 6);
    const aside = stepFrom('InvertedDoublePendulum-v5', qpos => (qpos[0] = 0.9));
    expect(aside.terms.distance - up.terms.distance).toBeCloseTo(-0.01 * 0.81, 4);
    const turning = stepFrom('InvertedDoublePendulum-v5', (_qpos, qvel) => (qvel[2] = 4));
    expect(turning.terms.velocity).toBeLessThan(-0.02);
  });

  it('Reacher takes for distance and for effort', () => {
    // The arm lies along x, 0.21 m long: here the target is 0.1 m before its tip.
    const near = stepFrom(
      'Reacher-v5',
      qpos => qpos.splice(2, 2, 0.11, 0),
      i => (i ? -0.5 : 0.5),
    );
    expect(near.terms.distance).toBeCloseTo(-0.1, 2);
    expect(near.terms.control).toBeCloseTo(-0.5, 12);
    expect(near.obs[8]).toBeCloseTo(0.1, 2);
    const far = stepFrom('Reacher-v5', qpos => qpos.splice(2, 2, -0.19, 0));
    expect(far.terms.distance).toBeCloseTo(-0.4, 2);
  });
});

describe('ends', () => {
  // Poses that touch nothing, so that a height stays what it is over one step.
  const crouch = [-2.58, -2.3, -2.29];
  const squat = [-0.81, -0.58, -2.26, -1.12, -0.32, -2.24];
  const planar =
    (height: number, pitch: number, joints: number[] = []) =>
    (qpos: number[]) => {
      qpos.splice(1, 2, height, pitch);
      qpos.splice(3, joints.length, ...joints);
    };
  const onItsBack = (height: number) => (qpos: number[]) => {
    qpos.splice(2, 5, height, Math.SQRT1_2, 0, -Math.SQRT1_2, 0);
  };
  it.each([
    ['Hopper-v5', 'low', planar(0.69, 0, crouch), planar(0.71, 0, crouch)],
    ['Hopper-v5', 'leaning back', planar(3, -0.21), planar(3, -0.19)],
    ['Hopper-v5', 'leaning forward', planar(3, 0.21), planar(3, 0.19)],
    [
      'Hopper-v5',
      'too fast',
      (_qpos: number[], qvel: number[]) => (qvel[0] = 101),
      (_qpos: number[], qvel: number[]) => (qvel[0] = 50),
    ],
    ['Walker2d-v5', 'low', planar(0.79, 0, squat), planar(0.81, 0, squat)],
    ['Walker2d-v5', 'high', planar(2.01, 0), planar(1.99, 0)],
    ['Walker2d-v5', 'leaning back', planar(1.9, -1.01), planar(1.9, -0.99)],
    ['Walker2d-v5', 'leaning forward', planar(1.9, 1.01), planar(1.9, 0.99)],
    [
      'Ant-v5',
      'thrown down',
      (qpos: number[], qvel: number[]) => {
        qpos[2] = 0.8;
        qvel[2] = -15;
      },
      (qpos: number[]) => (qpos[2] = 0.8),
    ],
    ['Ant-v5', 'high', (qpos: number[]) => (qpos[2] = 1.1), (qpos: number[]) => (qpos[2] = 0.9)],
    ['Humanoid-v5', 'low', onItsBack(0.99), onItsBack(1.01)],
    ['Humanoid-v5', 'high', (qpos: number[]) => (qpos[2] = 2.01), (qpos: number[]) => (qpos[2] = 1.99)],
    [
      'InvertedPendulum-v5',
      'tilted',
      (qpos: number[]) => (qpos[1] = 0.22),
      (qpos: number[]) => (qpos[1] = 0.17),
    ],
    [
      'InvertedPendulum-v5',
      'tilted back',
      (qpos: number[]) => (qpos[1] = -0.22),
      (qpos: number[]) => (qpos[1] = -0.17),
    ],
    [
      'InvertedDoublePendulum-v5',
      'tip low',
      (qpos: number[]) => (qpos[1] = 0.6),
      (qpos: number[]) => (qpos[1] = 0.3),
    ],
  ])('%s ends when %s', (id, _why, ended, goesOn) => {
    expect(stepFrom(id, ended).result).toMatchObject({ terminated: true, truncated: false });
    expect(stepFrom(id, ended).result.blownUp).toBe(false);
    expect(stepFrom(id, goesOn).result.terminated).toBe(false);
  });

  it.each(['HalfCheetah-v5', 'Swimmer-v5', 'Reacher-v5'])('%s only ends in time', id => {
    const { result } = stepFrom(id, qpos => (qpos[id === 'HalfCheetah-v5' ? 2 : 1] = 3));
    expect(result.terminated).toBe(false);
  });

  it.each(suiteIds)('%s: a state that blows up ends the episode, and nothing of it is seen', id => {
    const env = makeEnv(id);
    const { qpos, qvel } = initial(id);
    put(env, qpos, qvel.fill(9e9));
    const obs = obsFor(env);
    const result = env.step(new Float32Array(env.actionSpace.flatSize), obs);
    expect(result).toMatchObject({ terminated: true, truncated: false, blownUp: true, reward: 0 });
    expect(obs.every(Number.isFinite)).toBe(true);
    // It can be saved, restored and started anew.
    env.restore(JSON.parse(JSON.stringify(env.state())));
    env.reset({ seed: 2 }, obs);
    const again = obs.slice();
    expect(env.step(new Float32Array(env.actionSpace.flatSize), obs).blownUp).toBe(false);
    const fresh = makeEnv(id);
    fresh.reset({ seed: 2 }, obs);
    expect(bits(again)).toBe(bits(obs));
    env.close?.();
    fresh.close?.();
  });

  it.each([
    // From where on the observation is not made of positions and velocities, and from where on of contact forces.
    ['Ant-v5', 27, 27],
    ['Humanoid-v5', 45, 270],
  ])('%s: what was seen last is restored, forces and all', (id, start, forces) => {
    const env = makeEnv(id);
    const obs = obsFor(env);
    env.reset({ seed: 4 }, obs);
    const action = new Float32Array(env.actionSpace.flatSize).fill(0.2);
    for (let i = 0; i < 15; i++) env.step(action, obs);
    expect(obs.slice(forces).some(value => value !== 0)).toBe(true);
    const seen = obs.slice(start);
    env.restore(doomed(env));
    expect(env.step(action, obs).blownUp).toBe(true);
    expect(bits(obs.slice(start))).toBe(bits(seen));
    env.close?.();
  });
});
