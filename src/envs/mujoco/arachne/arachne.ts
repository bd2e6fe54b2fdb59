import type { Rng } from '../../../random/rng.ts';
import {
  createEnv,
  defineEnv,
  type EnvDefinition,
  type MadeEnv,
  type MakeOptions,
} from '../../definition.ts';
import type { OptionSchemas } from '../../options.ts';
import { box } from '../../spaces.ts';
import { loadEngine } from '../engine.ts';
import type { Physics } from '../physics.ts';
import { weight } from '../suite/shared.ts';
import { type PhysicsTask, physicsEnv } from '../task.ts';
import { goalAt } from './curriculum.ts';
import { arachnePlan, quadrupedPlan } from './plans.ts';
import { type Posture, REWARD_TERMS, type RewardWeights, writeReward } from './reward.ts';
import { generateRobot, type Robot, type RobotPlan } from './robot.ts';

/** Substeps to an action: at 240 Hz, 24 actions a second. */
const FRAME_SKIP = 10;
/** 5 s. */
const EPISODE_ACTIONS = 120;
/** Below this height, or leaning further than this, the robot has fallen. */
const FALLEN_HEIGHT = 0.1;
const FALLEN_UP_Z = 0.3;
/** Joints start this near to home, in radians. */
const START_SPREAD = 0.05;
/** Share of the smoothed velocity that stays at each action. */
const SMOOTHING = 0.9;
/** A push comes this often and lasts this long, in actions. */
const PUSH_EVERY = 24;
const PUSH_ACTIONS = 6;
/** Numbers of an observation that do not depend on the joints. */
const BODY_NUMBERS = 17;
/** Of the free joint: position and quaternion; linear and angular velocity. */
const BASE_QPOS = 7;
const BASE_QVEL = 6;

/** Options of Arachne-v0 and of the quadruped of the same making; the definition says what each does. */
export type LeggedOptions = RewardWeights & {
  readonly targetSpeed: number;
  readonly targetYawRate: number;
  readonly actionScale: number;
  readonly curriculum: boolean;
};

const options: OptionSchemas<LeggedOptions> = {
  targetSpeed: { default: 0.5, doc: 'forward speed asked for, in m/s', min: 0, max: 2 },
  targetYawRate: { default: 0, doc: 'turning asked for, in rad/s, to the left', min: -3, max: 3 },
  actionScale: { default: 0.5, doc: 'radians from home that an action of 1 asks for', min: 0.05, max: 1 },
  curriculum: {
    default: false,
    doc: 'a third of training each: stand under growing pushes, turn, walk faster and faster',
  },
  velocityWeight: weight(10, 'of exp(-2 ‖v̄ - v*‖²)'),
  yawWeight: weight(0.5, 'of exp(-.01 ‖ω - ω*‖²)'),
  heightWeight: weight(20, 'of -(z - z0)²'),
  postureWeight: weight(0.075, 'of -‖q - home‖²'),
  smoothnessWeight: weight(0.015, 'of -‖change of the action‖²'),
  bounceWeight: weight(0.2, 'of -(vertical speed)²'),
  uprightWeight: weight(0.4, 'of -(1 - up_z)'),
  survivalReward: weight(0.02, 'for each action'),
  fallPenalty: weight(20, 'what a fall costs'),
};

/** What an episode remembers beside the physics. */
type Memory = {
  speedMs: number;
  yawRateRadS: number;
  pushN: number;
  actions: number;
  pushX: number;
  pushY: number;
  /** v̄ */
  velocity: Float64Array; // (3)
  action: Float32Array; // (joints) the last
};

function leggedTask(robot: Robot, options: LeggedOptions): PhysicsTask<Memory> {
  const { joints, standingHeightM } = robot;
  const count = joints.length;
  const home = Float64Array.from(joints, joint => joint.homeRad);
  const task = { speedMs: options.targetSpeed, yawRateRadS: options.targetYawRate };
  const spin = new Float64Array(3);
  const seen: { -readonly [K in keyof Posture]: Posture[K] } = {
    velocityError2: 0,
    turnError2: 0,
    heightError: 0,
    posture2: 0,
    actionChange2: 0,
    verticalSpeed: 0,
    upZ: 1,
    fell: false,
  };
  return {
    model: robot.model,
    frameSkip: FRAME_SKIP,
    observationSize: 4 * count + BODY_NUMBERS,
    actionSpace: box({ shape: [count], low: -1, high: 1 }),
    rewardTerms: REWARD_TERMS,
    measures: ['speed'],
    growsHarder: options.curriculum,

    start({ arrays }, rng, progress) {
      const { qpos, ctrl } = arrays;
      qpos[2] = standingHeightM;
      for (let i = 0; i < count; i++) {
        qpos[BASE_QPOS + i] = home[i] + START_SPREAD * (2 * rng.uniform() - 1);
        ctrl[i] = home[i];
      }
      const goal = options.curriculum ? goalAt(progress, task) : { ...task, pushN: 0 };
      return {
        speedMs: goal.speedMs,
        yawRateRadS: goal.yawRateRadS,
        pushN: goal.pushN,
        actions: 0,
        pushX: 0,
        pushY: 0,
        velocity: new Float64Array(3),
        action: new Float32Array(count),
      };
    },

    control({ arrays }, action, memory, rng) {
      // Targets beyond a joint's limits are cut by the actuators' control ranges.
      for (let i = 0; i < count; i++) arrays.ctrl[i] = home[i] + options.actionScale * action[i];
      push(arrays.xfrc_applied, memory, rng);
    },

    score(physics, action, memory, result) {
      const { qpos, qvel } = physics.arrays;
      memory.actions++;
      const { velocity, speedMs } = memory;
      const heading = headingOf(physics, memory);
      seen.velocityError2 = 0;
      for (let i = 0; i < 3; i++) {
        velocity[i] = SMOOTHING * velocity[i] + (1 - SMOOTHING) * qvel[i];
        const target = i === 0 ? speedMs * Math.cos(heading) : i === 1 ? speedMs * Math.sin(heading) : 0;
        seen.velocityError2 += (velocity[i] - target) ** 2;
      }
      writeSpin(qpos, qvel, spin);
      seen.turnError2 = spin[0] ** 2 + spin[1] ** 2 + (spin[2] - memory.yawRateRadS) ** 2;
      seen.posture2 = 0;
      seen.actionChange2 = 0;
      for (let i = 0; i < count; i++) {
        seen.posture2 += (qpos[BASE_QPOS + i] - home[i]) ** 2;
        seen.actionChange2 += (action[i] - memory.action[i]) ** 2;
      }
      memory.action.set(action);
      seen.heightError = qpos[2] - standingHeightM;
      seen.verticalSpeed = qvel[2];
      seen.upZ = upZ(qpos);
      seen.fell = qpos[2] < FALLEN_HEIGHT || seen.upZ < FALLEN_UP_Z;
      writeReward(seen, options, result.rewardTerms);
      // Along the way asked for.
      result.measures![0] = qvel[0] * Math.cos(heading) + qvel[1] * Math.sin(heading);
      result.terminated = seen.fell;
    },

    observe(physics, memory, obs) {
      const { qpos, qvel } = physics.arrays;
      for (let i = 0; i < count; i++) {
        const angle = qpos[BASE_QPOS + i];
        obs[i] = angle;
        obs[count + i] = qvel[BASE_QVEL + i];
        obs[2 * count + i] = Math.cos(angle);
        obs[3 * count + i] = Math.sin(angle);
      }
      let at = 4 * count;
      for (let i = 0; i < BASE_QPOS; i++) obs[at++] = qpos[i];
      for (let i = 0; i < 3; i++) obs[at++] = qvel[i];
      writeSpin(qpos, qvel, spin);
      for (let i = 0; i < 3; i++) obs[at++] = spin[i];
      const heading = headingOf(physics, memory);
      obs[at++] = memory.speedMs * Math.cos(heading);
      obs[at++] = memory.speedMs * Math.sin(heading);
      obs[at++] = 0;
      obs[at] = memory.yawRateRadS;
    },
  };
}

/** Where the target velocity points: forward at first, then turning at the rate asked for. */
function headingOf(physics: Physics, memory: Memory): number {
  return memory.yawRateRadS === 0 ? 0 : memory.yawRateRadS * physics.timeSeconds;
}

/** Pushes the body sideways for some actions, once in each `PUSH_EVERY`, in a direction of its own. */
function push(forces: Float64Array, memory: Memory, rng: Rng): void {
  if (memory.pushN === 0) return;
  const phase = memory.actions % PUSH_EVERY;
  if (phase === 0) {
    const direction = 2 * Math.PI * rng.uniform();
    const force = memory.pushN * rng.uniform();
    memory.pushX = force * Math.cos(direction);
    memory.pushY = force * Math.sin(direction);
  }
  const pushed = phase < PUSH_ACTIONS;
  // Six numbers a body, force first; the world is body 0 and the robot's base body 1.
  forces[6] = pushed ? memory.pushX : 0;
  forces[7] = pushed ? memory.pushY : 0;
}

/** Vertical part of the body's up axis. */
function upZ(qpos: Float64Array): number {
  return 1 - 2 * (qpos[4] ** 2 + qpos[5] ** 2);
}

/** The angular velocity in the world's frame; MuJoCo has it in the body's. */
function writeSpin(qpos: Float64Array, qvel: Float64Array, spin: Float64Array): void {
  const [w, x, y, z] = [qpos[3], qpos[4], qpos[5], qpos[6]];
  const [a, b, c] = [qvel[3], qvel[4], qvel[5]];
  // v + 2 w (u × v) + 2 u × (u × v), u the quaternion's vector part
  const tx = 2 * (y * c - z * b);
  const ty = 2 * (z * a - x * c);
  const tz = 2 * (x * b - y * a);
  spin[0] = a + w * tx + y * tz - z * ty;
  spin[1] = b + w * ty + z * tx - x * tz;
  spin[2] = c + w * tz + x * ty - y * tx;
}

function definitionOf(plan: RobotPlan, id: string, description: string): EnvDefinition<LeggedOptions> {
  const robot = generateRobot(plan);
  return defineEnv<LeggedOptions>({
    id,
    description,
    options,
    maxEpisodeSteps: EPISODE_ACTIONS,
    slow: true,
    prepare: loadEngine,
    make: values => physicsEnv(leggedTask(robot, values)),
  });
}

/**
 * Arachne-v0: a hexapod learns to walk. Six legs of hip, femur and tibia: 18 joints, driven by position targets at 24 Hz.
 *
 * **Actions** `Box(18)` in ±1: a joint's target is its home plus `actionScale` times the action, cut to its limits.
 *
 * **Observations** `Box(89)`:
 *
 * | # | what |
 * |---|---|
 * | 0..17 | joint angles (rad), leg by leg: left and right front, middle, rear; hip, femur, tibia |
 * | 18..35 | joint velocities (rad/s) |
 * | 36..53, 54..71 | cos and sin of the angles |
 * | 72..74, 75..78 | position of the body (m), its quaternion (w first) |
 * | 79..81, 82..84 | linear (m/s) and angular velocity (rad/s), in the world's frame |
 * | 85..87, 88 | target velocity and yaw rate |
 *
 * **Reward**, the sum of terms that are reported apart; the weights are options:
 *
 * | term | reward |
 * |---|---|
 * | `velocity` | 10 exp(-2 ‖v̄ - v*‖²), v̄ = .9 v̄ + .1 v |
 * | `yaw` | .5 exp(-.01 ‖ω - ω*‖²) |
 * | `height` | -20 (z - z0)² |
 * | `posture` | -.075 ‖q - home‖² |
 * | `smoothness` | -.015 ‖a - a before‖² |
 * | `bounce` | -.2 v_z² |
 * | `upright` | -.4 (1 - up_z) |
 * | `survival` | .02 |
 * | `fall` | -20 for a fall |
 *
 * **Measure** `env/speed`: the speed along the way asked for, in m/s.
 *
 * **Start** standing, each joint within .05 rad of home.
 *
 * **End** terminated by a fall: below .1 m, or up_z below .3. Truncated at 120 actions, 5 s.
 *
 * **Versions** v0.
 */
export const arachneDefinition = definitionOf(
  arachnePlan,
  'Arachne-v0',
  'A hexapod with 18 joints learns to walk at a given speed (MuJoCo).',
);

/** Quadruped-v0: {@link arachneDefinition} with four of the legs: 12 joints, 65 numbers of observation. */
export const quadrupedDefinition = definitionOf(
  quadrupedPlan,
  'Quadruped-v0',
  "Arachne's body on four of its legs, 12 joints, learns to walk (MuJoCo).",
);

/** {@link arachneDefinition} */
export function arachne(options: MakeOptions<LeggedOptions> = {}): MadeEnv {
  return createEnv(arachneDefinition, options);
}

/** {@link quadrupedDefinition} */
export function quadruped(options: MakeOptions<LeggedOptions> = {}): MadeEnv {
  return createEnv(quadrupedDefinition, options);
}
