import type { Rng } from '../../../random/rng.ts';
import { createEnv, defineEnv, type MadeEnv, type MakeOptions } from '../../definition.ts';
import { loadEngine } from '../engine.ts';
import { type Element, element, toXml } from '../mjcf.ts';
import type { PhysicsArrays } from '../physics.ts';
import { physicsEnv } from '../task.ts';
import { addUniform, COLOURS, motors, squareSum, weight } from './shared.ts';

const TARGET_RADIUS_M = 0.2;
/** Places in `xpos`: the world, two links, then these bodies. */
const FINGERTIP = 3 * 3;
const TARGET = 3 * 4;

/** A link of the arm, 0.1 m along x. */
function link(name: string): Element {
  return element('geom', {
    name,
    type: 'capsule',
    fromto: [0, 0, 0, 0.1, 0, 0],
    size: 0.01,
    rgba: COLOURS.trunk,
  });
}

function ball(name: string, size: number, rgba: readonly number[]): Element {
  return element('geom', { name, type: 'sphere', size, contype: 0, conaffinity: 0, rgba });
}

/** Moves the target; what it reads is its place in the world. */
function slide(name: string, axis: readonly number[], ref: number): Element {
  const still = { armature: 0, damping: 0, stiffness: 0 };
  return element('joint', { name, type: 'slide', axis, ref, range: [-0.27, 0.27], ...still });
}

/** The body as MJCF. */
export const reacherModel = toXml(
  element('mujoco', { model: 'reacher' }, [
    element('compiler', { angle: 'radian', inertiafromgeom: true }),
    element('option', { integrator: 'RK4', timestep: 0.01 }),
    element('default', {}, [
      element('joint', { limited: true, armature: 1, damping: 1 }),
      element('geom', { contype: 0, friction: [1, 0.1, 0.1] }),
    ]),
    element('worldbody', {}, [
      element('geom', {
        name: 'ground',
        type: 'plane',
        size: [0.3, 0.3, 1],
        conaffinity: 0,
        rgba: COLOURS.ground,
      }),
      element('body', { name: 'body0', pos: [0, 0, 0.01] }, [
        link('link0'),
        element('joint', { name: 'joint0', type: 'hinge', axis: [0, 0, 1], limited: false }),
        element('body', { name: 'body1', pos: [0.1, 0, 0] }, [
          link('link1'),
          element('joint', { name: 'joint1', type: 'hinge', axis: [0, 0, 1], range: [-3, 3] }),
          element('body', { name: 'fingertip', pos: [0.11, 0, 0] }, [
            ball('fingertip', 0.01, COLOURS.otherLimb),
          ]),
        ]),
      ]),
      element('body', { name: 'target', pos: [0.1, -0.1, 0.01] }, [
        slide('target_x', [1, 0, 0], 0.1),
        slide('target_y', [0, 1, 0], -0.1),
        ball('target', 0.009, COLOURS.limb),
      ]),
    ]),
    motors([
      ['joint0', 200],
      ['joint1', 200],
    ]),
  ]),
);

/** Options of Reacher-v5, Gymnasium's under the same names. */
export type ReacherOptions = {
  readonly rewardDistWeight: number;
  readonly rewardControlWeight: number;
};

/**
 * Reacher-v5: a flat arm of two links brings its fingertip to a target that is elsewhere in every episode.
 *
 * **Actions** `Box(2)` in ±1: torques on the first joint and on the second, as parts of 200 N m.
 *
 * **Observations** `Box(10)`:
 *
 * | # | what | unit |
 * |---|---|---|
 * | 0, 1 | cosines of the two joints' angles | 1 |
 * | 2, 3 | their sines | 1 |
 * | 4, 5 | x and y of the target | m |
 * | 6, 7 | velocities of the joints | rad/s |
 * | 8, 9 | x and y of the fingertip less those of the target | m |
 *
 * **Reward** `distance`, minus the distance between fingertip and target in m, plus `control`, -‖action‖². The weight of
 * the latter is 1, as in Gymnasium's code of v4 and v5; the documentation of v5 says 0.1.
 *
 * **Start** the arm stretched along x with uniform noise of ±0.1 rad and ±0.005 rad/s, the target uniform in a disc of 0.2 m
 * and at rest.
 *
 * **End** never terminated; truncated at 50 steps.
 *
 * **Dynamics** 2 substeps of 0.01 s an action (0.02 s), fourth-order Runge-Kutta. As in Gymnasium the fingertip's place is
 * that of the last substep's start.
 *
 * **Versions** v5 is Gymnasium's v5: from the same state and actions the same trajectory.
 */
export const reacherDefinition = defineEnv<ReacherOptions>({
  id: 'Reacher-v5',
  description: 'A two-link arm brings its fingertip to a target.',
  options: {
    rewardDistWeight: weight(1, 'cost of a distance of 1 m'),
    rewardControlWeight: weight(1, 'cost of the squared action'),
  },
  maxEpisodeSteps: 50,
  rewardThreshold: -3.75,
  prepare: loadEngine,
  slow: true,
  make: ({ rewardDistWeight, rewardControlWeight }) =>
    physicsEnv({
      model: reacherModel,
      frameSkip: 2,
      observationSize: 10,
      rewardTerms: ['distance', 'control'],
      start({ arrays: { qpos, qvel } }, rng) {
        addUniform(qpos, rng, 0.1);
        placeTarget(qpos, rng);
        addUniform(qvel, rng, 0.005);
        qvel.fill(0, 2);
        return {};
      },
      score({ arrays }, action, _memory, result) {
        const distanceM = Math.hypot(gap(arrays, 0), gap(arrays, 1), gap(arrays, 2));
        result.rewardTerms[0] = -rewardDistWeight * distanceM;
        result.rewardTerms[1] = -rewardControlWeight * squareSum(action);
      },
      observe({ arrays }, _memory, obs) {
        const { qpos, qvel } = arrays;
        for (let i = 0; i < 2; i++) {
          obs[i] = Math.cos(qpos[i]);
          obs[2 + i] = Math.sin(qpos[i]);
          obs[4 + i] = qpos[2 + i];
          obs[6 + i] = qvel[i];
          obs[8 + i] = gap(arrays, i);
        }
      },
    }),
});

/** {@link reacherDefinition} */
export function reacher(options: MakeOptions<ReacherOptions> = {}): MadeEnv {
  return createEnv(reacherDefinition, options);
}

/** From the target to the fingertip, along one axis. */
function gap({ xpos }: PhysicsArrays, axis: number): number {
  return xpos[FINGERTIP + axis] - xpos[TARGET + axis];
}

function placeTarget(qpos: Float64Array, rng: Rng): void {
  do {
    for (let i = 2; i < 4; i++) qpos[i] = TARGET_RADIUS_M * (2 * rng.uniform() - 1);
  } while (Math.hypot(qpos[2], qpos[3]) >= TARGET_RADIUS_M);
}
