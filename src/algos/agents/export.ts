/** The deployable policy: observation normalisation, network and distribution in one `.onnx` file. */

import { Graph, type Tensor } from '../../engine/graph.ts';
import type { RowsGraph } from '../../engine/onnx/any-rows.ts';
import { add, cast, clip, max, min, mul, sub } from '../../engine/ops/elementwise.ts';
import { concat, split } from '../../engine/ops/shape.ts';
import { saveOnnx } from '../../engine/save.ts';
import type { Space } from '../../envs/spaces.ts';
import type { ObservationNormaliser } from '../../rollout/normalise.ts';
import type { PolicyWeights } from './actor.ts';
import type { ActorCritic } from './networks/actor-critic.ts';

/** A policy with all that acting with it takes. */
interface WholePolicy extends PolicyWeights {
  readonly model: ActorCritic;
  readonly actionSpace: Space;
}

/** Writes the deployable policy. */
export async function savePolicy(policy: WholePolicy, path: string): Promise<void> {
  const { model, weights, actionSpace, normaliser } = policy;
  await saveOnnx(policyGraph(model, weights, actionSpace, normaliser), path);
}

/**
 * Observations in, as the environment gives them (`observation`, (rows, size)); out come, row by row, the distribution's
 * parameters (`distribution`) and the most likely action within the environment's bounds (`action`).
 *
 * The graph for a number of rows; saved as it is, the file takes any number.
 */
export function policyGraph(
  model: ActorCritic,
  weights: Float32Array,
  actionSpace: Space,
  normaliser: ObservationNormaliser | undefined,
): RowsGraph {
  return rows => {
    const g = new Graph();
    const observation = g.input('observation', [rows, model.observationSize]);
    const seen = normaliser ? normalised(observation, normaliser) : observation;
    const tensors = model.layout.tensors(g.constant(weights, [model.layout.size]));
    const distribution = model.policy(tensors, seen);
    g.output('distribution', distribution);
    g.output('action', bounded(cast(model.distribution.graph.mode(distribution), 'float32'), actionSpace));
    return g;
  };
}

/** As `ObservationNormaliser.apply` does. */
function normalised(observation: Tensor, normaliser: ObservationNormaliser): Tensor {
  const { graph } = observation.node;
  const shape = [1, observation.shape[1]];
  const centred = sub(observation, graph.constant(normaliser.moments.mean, shape));
  const scaled = mul(centred, graph.constant(normaliser.scales(), shape));
  return clip(scaled, -normaliser.clip, normaliser.clip);
}

/** An action within its space, part by part. */
function bounded(action: Tensor, space: Space): Tensor {
  switch (space.kind) {
    case 'box': {
      const { graph } = action.node;
      const finite = (values: readonly number[], fallback: number): number[] =>
        values.map(v => (Number.isFinite(v) ? v : fallback));
      const low = graph.constant(finite(space.low, -3e38), [1, space.flatSize]);
      const high = graph.constant(finite(space.high, 3e38), [1, space.flatSize]);
      return min(max(action, low), high);
    }
    case 'tuple':
    case 'dict': {
      const parts: readonly Space[] = Object.values(space.spaces);
      const sizes = parts.map(part => part.flatSize);
      const pieces = split(action, sizes, 1).map((piece, i) => bounded(piece, parts[i]));
      return concat(pieces, 1);
    }
    case 'discrete':
    case 'multiDiscrete':
    case 'multiBinary':
      return add(action, 0);
    default:
      return space satisfies never;
  }
}
