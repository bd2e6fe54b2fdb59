import { acrobotDefinition } from './classic/acrobot.ts';
import { cartPoleDefinition } from './classic/cart-pole.ts';
import { mountainCarContinuousDefinition } from './classic/mountain-car-continuous.ts';
import { pendulumDefinition } from './classic/pendulum.ts';
import { clusterDefinition } from './cluster/cluster-env.ts';
import { courierDefinition } from './courier/courier.ts';
import type { EnvDefinition } from './definition.ts';
import { arachneDefinition, quadrupedDefinition } from './mujoco/arachne/arachne.ts';
import * as suite from './mujoco/suite/suite.ts';
import { probeDefinitions } from './probe/probes.ts';

/** Keel's own environments, in the order that lists show them. A new one is registered by adding it here. */
export const builtIn: readonly EnvDefinition[] = [
  cartPoleDefinition,
  pendulumDefinition,
  acrobotDefinition,
  mountainCarContinuousDefinition,
  courierDefinition,
  suite.halfCheetahDefinition,
  suite.hopperDefinition,
  suite.walker2dDefinition,
  suite.antDefinition,
  suite.humanoidDefinition,
  suite.swimmerDefinition,
  suite.invertedPendulumDefinition,
  suite.invertedDoublePendulumDefinition,
  suite.reacherDefinition,
  arachneDefinition,
  quadrupedDefinition,
  clusterDefinition,
  ...probeDefinitions,
] as readonly EnvDefinition[];
