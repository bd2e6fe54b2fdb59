/** The networks that a config asks for, on the spaces of a task. */

import { TrainError } from '../../../base/errors.ts';
import type { Space } from '../../../envs/spaces.ts';
import { type ActorCritic, actorCritic } from './actor-critic.ts';
import { distributionOf, headsFor } from './heads.ts';
import { setActorCritic, setLayoutOf } from './set-network.ts';

/** The settings that decide what a network is; every algorithm that trains policies has them. */
export interface NetworkConfig {
  readonly network: 'mlp' | 'set';
  readonly hidden: readonly number[];
  /** Of the critic, where they are others. */
  readonly criticHidden?: readonly number[] | null;
  readonly activation: 'tanh' | 'relu' | 'gelu';
  readonly logStdInitial: number;
  readonly logStdMin: number;
  readonly logStdMax: number;
}

/** Actor and critic for these observations and actions. */
export function networkFor(config: NetworkConfig, observationSpace: Space, actionSpace: Space): ActorCritic {
  const heads = headsFor(actionSpace);
  const distribution = distributionOf(heads);
  switch (config.network) {
    case 'mlp':
      return actorCritic({ ...config, observationSize: observationSpace.flatSize, heads, distribution });
    case 'set': {
      const layout = setLayoutOf(observationSpace, actionSpace);
      if (layout === undefined)
        throw new TrainError(
          `network set needs observations Dict(items: Box(N x features), shared: Box(size)) and actions Discrete(N), not ${observationSpace.describe()} and ${actionSpace.describe()}: use network mlp`,
        );
      return setActorCritic({ ...config, layout, distribution });
    }
    default:
      return config.network satisfies never;
  }
}
