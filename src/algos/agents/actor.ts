/** A policy's network as a program, for so many observations at once: the one place that compiles it. */

import { Graph } from '../../engine/graph.ts';
import type { OptionValues } from '../../envs/options.ts';
import type { Space } from '../../envs/spaces.ts';
import { type Parameters, parameters } from '../../nn/parameters.ts';
import type { Rng } from '../../random/rng.ts';
import type { Network } from '../../rollout/collect.ts';
import type { ObservationNormaliser } from '../../rollout/normalise.ts';
import type { ActorCritic } from './networks/actor-critic.ts';
import { compileFor, isWasm, type Runtime } from './runtime.ts';

/** Which of the two networks. */
export type NetworkName = 'actor' | 'critic';

/** The parameters of one network alone. */
export const layoutOf = ({ layout }: ActorCritic, which: NetworkName): Parameters =>
  parameters(layout.specs.filter(({ group }) => group === which));

/** A network that is ready to run, with weights of its own. */
export interface CompiledNetwork extends Network {
  /** The weights of both networks, flat; those of this one are copied. */
  setWeights(weights: Float32Array): void;
  dispose(): void;
}

/** One of the two networks on so many observations. */
export async function compileNetwork(
  model: ActorCritic,
  which: NetworkName,
  rows: number,
  runtime: Runtime = {},
): Promise<CompiledNetwork> {
  const g = new Graph();
  const layout = layoutOf(model, which);
  const tensors = layout.tensors(g.input('weights', [layout.size]));
  const network = which === 'actor' ? model.policy : model.value;
  g.output('out', network(tensors, g.input('observations', [rows, model.observationSize])));
  const program = await compileFor(model, 'act', g, runtime);
  const dispose = (): void => program.dispose();
  const setPart = (weights: Float32Array, own: Float32Array): void => own.set(partsOf(model, weights)[which]);
  if (isWasm(program)) {
    const [observations, out, own] = ['observations', 'out', 'weights'].map(program.values);
    const setWeights = (weights: Float32Array): void => setPart(weights, own);
    return { rows, observations, out, setWeights, run: program.execute, dispose };
  }
  const feeds = {
    weights: new Float32Array(layout.size),
    observations: new Float32Array(rows * model.observationSize),
  };
  const into = { out: new Float32Array(program.outputs[0].shape[0] * program.outputs[0].shape[1]) };
  return {
    rows,
    observations: feeds.observations,
    out: into.out,
    setWeights: weights => setPart(weights, feeds.weights),
    run: () => {
      program.run(feeds, into);
    },
    dispose,
  };
}

/** Each network's own weights, without copying. */
export function partsOf({ layout }: ActorCritic, weights: Float32Array): Record<NetworkName, Float32Array> {
  const part = (which: NetworkName): Float32Array => {
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
  runtime: Runtime = {},
): Promise<Actor> {
  const network = await compileNetwork(model, 'actor', rows, runtime);
  let current: Float32Array | undefined;
  const { distribution } = model;
  const { paramSize, noiseSize } = distribution;
  const actionSize = actionSpace.flatSize;
  const params = new Float32Array(rows * paramSize);
  const noise = new Float32Array(rows * noiseSize);
  const actor: Actor = {
    rows,
    distribution({ weights, normaliser }, observations, out) {
      if (normaliser) normaliser.apply(observations, network.observations);
      else network.observations.set(observations);
      // Weights are never changed in place: other ones are another array.
      if (current !== weights) network.setWeights(weights);
      current = weights;
      network.run();
      out.set(network.out);
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
    dispose: () => network.dispose(),
  };
  return actor;
}
