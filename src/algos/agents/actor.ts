/** A policy's network as a program, for so many observations at once: the one place that compiles it. */

import { Graph } from '../../engine/graph.ts';
import { compile, type Program } from '../../engine/program.ts';
import type { OptionValues } from '../../envs/options.ts';
import type { Space } from '../../envs/spaces.ts';
import { parameters } from '../../nn/parameters.ts';
import type { Rng } from '../../random/rng.ts';
import type { ObservationNormaliser } from '../../rollout/normalise.ts';
import type { ActorCritic } from './networks/actor-critic.ts';

type Network = 'actor' | 'critic';

/** Where programs run. */
export interface ActorRuntime {
  readonly device?: 'cpu' | 'webgpu' | 'cuda';
  readonly threads?: number;
}

/** One of the two networks on so many observations, from its own weights alone. */
export async function compileNetwork(
  model: ActorCritic,
  which: Network,
  rows: number,
  runtime: ActorRuntime = {},
): Promise<Program> {
  const g = new Graph();
  const layout = parameters(model.layout.specs.filter(({ group }) => group === which));
  const tensors = layout.tensors(g.input('weights', [layout.size]));
  const observations = g.input('observations', [rows, model.observationSize]);
  const network = which === 'actor' ? model.policy : model.value;
  g.output('out', network(tensors, observations));
  return compile(g, { ...runtime, checkFeeds: false });
}

/** Each network's own weights, without copying. */
export function partsOf({ layout }: ActorCritic, weights: Float32Array): Record<Network, Float32Array> {
  const part = (which: Network): Float32Array => {
    const { offset, size } = layout.groups.find(({ name }) => name === which)!;
    return weights.subarray(offset, offset + size);
  };
  return { actor: part('actor'), critic: part('critic') };
}

/** A policy as it is at a moment: the network's weights, and what its observations are normalised by. */
export interface PolicyWeights {
  readonly weights: Float32Array;
  readonly normaliser: ObservationNormaliser | undefined;
}

/** A policy while it is trained, and what it acts in: for whoever looks at it meanwhile. */
export interface LivePolicy {
  readonly env: string;
  readonly options: OptionValues;
  readonly model: ActorCritic;
  /** As it is now. */
  readonly policy: () => PolicyWeights;
}

export interface Actor {
  readonly rows: number;
  /** Writes the distribution of each row (rows, paramSize) for observations as the environment gives them. */
  distribution(policy: PolicyWeights, observations: Float32Array, out: Float32Array): void;
  /** Writes an action within its bounds for each row: the most likely one, or one that `rng` draws. */
  act(policy: PolicyWeights, observations: Float32Array, actions: Float32Array, rng?: Rng): void;
  dispose(): void;
}

/** Compiles a policy for so many observations at once. */
export async function compileActor(
  model: ActorCritic,
  actionSpace: Space,
  rows: number,
  runtime: ActorRuntime = {},
): Promise<Actor> {
  const program = await compileNetwork(model, 'actor', rows, runtime);
  const { distribution, observationSize } = model;
  const { paramSize, noiseSize } = distribution;
  const actionSize = actionSpace.flatSize;
  const seen = new Float32Array(rows * observationSize);
  const params = new Float32Array(rows * paramSize);
  const noise = new Float32Array(rows * noiseSize);
  const actor: Actor = {
    rows,
    distribution({ weights, normaliser }, observations, out) {
      if (normaliser) normaliser.apply(observations, seen);
      else seen.set(observations);
      program.run({ weights: partsOf(model, weights).actor, observations: seen }, { out });
    },
    act(policy, observations, actions, rng) {
      actor.distribution(policy, observations, params);
      if (rng) distribution.fillNoise(rng, noise);
      for (let row = 0; row < rows; row++) {
        const own = params.subarray(row * paramSize, (row + 1) * paramSize);
        const action = actions.subarray(row * actionSize, (row + 1) * actionSize);
        if (rng) distribution.sample(own, noise.subarray(row * noiseSize, (row + 1) * noiseSize), action);
        else distribution.mode(own, action);
        actionSpace.clip(action);
      }
    },
    dispose: () => program.dispose(),
  };
  return actor;
}
