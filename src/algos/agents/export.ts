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

/** Writes the deployable policy. */
export async function savePolicy(
  {
    model,
    actionSpace,
    weights,
    normaliser,
  }: PolicyWeights & { readonly model: ActorCritic; readonly actionSpace: Space },
  path: string,
): Promise<void> {
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
    const seen = normaliser
      ? clip(
          mul(
            sub(observation, g.constant(normaliser.moments.mean, [1, model.observationSize])),
            g.constant(normaliser.scales(), [1, model.observationSize]),
          ),
          -normaliser.clip,
          normaliser.clip,
        )
      : observation;
    const tensors = model.layout.tensors(g.constant(weights, [model.layout.size]));
    const distribution = model.policy(tensors, seen);
    g.output('distribution', distribution);
    g.output('action', bounded(cast(model.distribution.graph.mode(distribution), 'float32'), actionSpace));
    return g;
  };
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
      const parts = space.kind === 'tuple' ? [...space.spaces] : Object.values(space.spaces);
      const pieces = split(
        action,
        parts.map(part => part.flatSize),
        1,
      );
      return concat(
        pieces.map((piece, i) => bounded(piece, parts[i])),
        1,
      );
    }
    case 'discrete':
    case 'multiDiscrete':
    case 'multiBinary':
      return add(action, 0);
    default:
      return space satisfies never;
  }
}
