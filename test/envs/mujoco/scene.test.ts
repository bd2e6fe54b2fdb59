import { beforeAll, describe, expect, test } from 'vitest';
import { createEnv, makeEnv, prepareEnv } from '../../../src/envs/index.ts';
import { engine, loadEngine } from '../../../src/envs/mujoco/engine.ts';
import { openModel } from '../../../src/envs/mujoco/physics.ts';
import { sceneOf, viewOf } from '../../../src/envs/mujoco/scene.ts';
import { parseScene } from '../../../src/view/scene.ts';
import crawler from '../../view/fixtures/crawler.ts';

beforeAll(loadEngine);

/** Two links that hang from a rail, beside a ball that is free; some geoms that are not to be seen. */
const model = `<mujoco>
  <compiler angle="radian"/>
  <asset><material name="gold" rgba=".9 .7 .1 1"/></asset>
  <worldbody>
    <geom name="rail" type="cylinder" size=".02 1" euler="0 1.5707963 0" pos="0 0 2"/>
    <geom name="floor" type="plane" size="0 0 1"/>
    <geom name="hidden" type="box" size="1 1 1" group="3"/>
    <geom name="clear" type="box" size="1 1 1" rgba="1 1 1 0"/>
    <body name="upper" pos="0 0 2">
      <joint name="swing" type="hinge" axis="0 1 0" range="-2 2" limited="true"/>
      <geom type="capsule" fromto="0 0 0 0 0 -.5" size=".05" material="gold"/>
      <body name="lower" pos="0 0 -.5">
        <joint name="reach" type="slide" axis="0 0 -1"/>
        <geom type="ellipsoid" size=".1 .2 .3" rgba="0 1 0 1"/>
      </body>
    </body>
    <body name="ball" pos="3 0 1"><freejoint name="loose"/><geom type="sphere" size=".25"/></body>
  </worldbody>
</mujoco>`;

describe('a scene from a model', () => {
  test('has its bodies, its visible shapes, its joints, and the body that gets about', () => {
    const physics = openModel(model);
    const scene = sceneOf(engine(), physics.model);
    expect(scene.bodies.map(({ name }) => name)).toEqual(['upper', 'lower', 'ball']);
    expect(scene.shapes.map(({ kind, body }) => [kind, body])).toEqual([
      ['cylinder', -1],
      ['plane', -1],
      ['capsule', 0],
      ['ellipsoid', 1],
      ['sphere', 2],
    ]);
    const capsule = scene.shapes[2];
    expect(capsule.size.slice(0, 2)).toEqual([0.05, 0.25]);
    expect(capsule.position[2]).toBeCloseTo(-0.25, 12);
    // The material's colour, as the geom has none of its own.
    expect(capsule.colour[0]).toBeCloseTo(0.9, 6);
    expect(scene.joints).toEqual([
      { name: 'swing', kind: 'hinge', range: [-2, 2] },
      { name: 'reach', kind: 'slide', range: null },
    ]);
    expect(scene.root).toBe(2);
    expect(parseScene(JSON.parse(JSON.stringify(scene)))).toEqual(scene);
    physics.close();
  });

  test('in motion: bodies are where closed forms say', () => {
    const physics = openModel(model);
    const view = viewOf(engine(), physics.model, 0.04, () => physics.arrays);
    const [angle, slide] = [0.3, 0.2];
    physics.reset();
    physics.arrays.qpos.set([angle, slide]);
    physics.forward();
    const pose = new Float32Array(3 * 7);
    view.writePose(pose);
    expect([...pose.subarray(0, 3)]).toEqual([0, 0, 2]);
    expect(pose[3]).toBeCloseTo(Math.cos(angle / 2), 6);
    expect(pose[5]).toBeCloseTo(Math.sin(angle / 2), 6);
    // .5 m down the turned link, and the slide further.
    expect(pose[7]).toBeCloseTo(-(0.5 + slide) * Math.sin(angle), 6);
    expect(pose[9]).toBeCloseTo(2 - (0.5 + slide) * Math.cos(angle), 6);
    expect([...pose.subarray(14, 17)]).toEqual([3, 0, 1]);
    const joints = new Float32Array(2);
    view.writeJoints(joints);
    expect([...joints]).toEqual([Math.fround(angle), Math.fround(slide)]);
    expect(view.stepSeconds).toBe(0.04);
    physics.close();
  });
});

describe('what makeEnv returns', () => {
  test('can be drawn through time limit and checks, with and without a limit', () => {
    for (const maxEpisodeSteps of [5, null]) {
      const env = createEnv(crawler, { maxEpisodeSteps });
      const view = env.view!();
      env.reset({ seed: 3 }, new Float32Array(29));
      const pose = new Float32Array(view.scene.bodies.length * 7);
      view.writePose(pose);
      expect(pose[2]).toBeCloseTo(0.38, 6);
      expect(view.scene.joints).toHaveLength(8);
      expect(view.stepSeconds).toBeCloseTo(0.04, 12);
      const before = pose.slice();
      env.step(new Float32Array(8).fill(1), new Float32Array(29));
      view.writePose(pose);
      expect(pose).not.toEqual(before);
      env.close!();
    }
  });

  test('has no view where there is no body', async () => {
    await prepareEnv('CartPole-v1');
    expect(makeEnv('CartPole-v1').view).toBeUndefined();
  });

  test('a view that is no function is refused', () => {
    expect(() =>
      createEnv({ ...crawler, make: () => ({ ...makeEnv('CartPole-v1'), ...plain(), view: 5 as never }) }),
    ).toThrow(/view is 5, not a function/);
  });
});

/** The parts of an environment that a spread of a class instance loses. */
function plain() {
  const env = makeEnv('CartPole-v1');
  return {
    reset: env.reset.bind(env),
    step: env.step.bind(env),
    state: env.state.bind(env),
    restore: env.restore.bind(env),
  };
}
