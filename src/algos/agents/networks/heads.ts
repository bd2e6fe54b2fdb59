/** Which distribution fits which actions. */
import type { Space } from '../../../envs/spaces.ts';
import { bernoulli } from '../../../kl/distributions/bernoulli.ts';
import { categorical } from '../../../kl/distributions/categorical.ts';
import { composite } from '../../../kl/distributions/composite.ts';
import type { Distribution } from '../../../kl/distributions/distribution.ts';
import { gaussian } from '../../../kl/distributions/gaussian.ts';
import { multiCategorical } from '../../../kl/distributions/multi-categorical.ts';
import type { Head } from './actor-critic.ts';

/** The factors of a policy over an action space, in the order of its flat layout. */
export function headsFor(space: Space): Head[] {
  switch (space.kind) {
    case 'box':
      return [{ distribution: gaussian(space.flatSize), logStds: space.flatSize }];
    case 'discrete':
      return [{ distribution: categorical(space.n), logStds: 0 }];
    case 'multiDiscrete':
      return [{ distribution: multiCategorical(space.counts), logStds: 0 }];
    case 'multiBinary':
      return [{ distribution: bernoulli(space.n), logStds: 0 }];
    case 'tuple':
      return space.spaces.flatMap(headsFor);
    case 'dict':
      return Object.values(space.spaces).flatMap(headsFor);
    default:
      return space satisfies never;
  }
}

/** All factors together. */
export function distributionOf(heads: readonly Head[]): Distribution {
  return heads.length === 1 ? heads[0].distribution : composite(heads.map(head => head.distribution));
}
