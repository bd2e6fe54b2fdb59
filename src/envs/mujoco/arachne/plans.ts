/** The two robots. Masses, joint limits, effort and speed are Arachne's published figures; lengths are chosen here. */
import type { RobotPlan } from './robot.ts';

/** A hexapod of 2.41 kg. */
export const arachnePlan: RobotPlan = {
  name: 'arachne',
  base: { massKg: 1.108, halfSizeM: [0.17, 0.09, 0.03] },
  pairs: [
    { name: 'front', forwardM: 0.15, outM: 0.09, fanRad: 0.35 },
    { name: 'middle', forwardM: 0, outM: 0.09, fanRad: 0 },
    { name: 'rear', forwardM: -0.15, outM: 0.09, fanRad: -0.35 },
  ],
  hip: { lengthM: 0.06, radiusM: 0.02, massKg: 0.0839, limitsRad: [-0.52, 0.52], homeRad: 0 },
  femur: { lengthM: 0.12, radiusM: 0.015, massKg: 0.0352, limitsRad: [-1.22, 0.96], homeRad: -0.2 },
  tibia: { lengthM: 0.24, radiusM: 0.011, massKg: 0.0986, limitsRad: [-1.22, 0], homeRad: -0.4 },
  footRadiusM: 0.014,
  motor: { effortNm: 10, velocityRadS: 6, stiffnessNmRad: 15 },
  footFriction: 1,
  substepSeconds: 1 / 240,
};

/** The same legs, two pairs of them, under the same body: 1.98 kg. */
export const quadrupedPlan: RobotPlan = {
  ...arachnePlan,
  name: 'quadruped',
  pairs: [
    { name: 'front', forwardM: 0.15, outM: 0.09, fanRad: 0.35 },
    { name: 'rear', forwardM: -0.15, outM: 0.09, fanRad: -0.35 },
  ],
};
