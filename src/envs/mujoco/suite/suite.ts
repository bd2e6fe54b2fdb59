/** Gymnasium's MuJoCo tasks, with bodies written here from their published figures. */
export { type AntOptions, ant, antDefinition } from './ant.ts';
export { type HalfCheetahOptions, halfCheetah, halfCheetahDefinition } from './half-cheetah.ts';
export { type HopperOptions, hopper, hopperDefinition } from './hopper.ts';
export { type HumanoidOptions, humanoid, humanoidDefinition } from './humanoid.ts';
export {
  type InvertedDoublePendulumOptions,
  invertedDoublePendulum,
  invertedDoublePendulumDefinition,
} from './inverted-double-pendulum.ts';
export {
  type InvertedPendulumOptions,
  invertedPendulum,
  invertedPendulumDefinition,
} from './inverted-pendulum.ts';
export { type ReacherOptions, reacher, reacherDefinition } from './reacher.ts';
export { type SwimmerOptions, swimmer, swimmerDefinition } from './swimmer.ts';
export { type Walker2dOptions, walker2d, walker2dDefinition } from './walker2d.ts';
