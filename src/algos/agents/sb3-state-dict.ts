/** A policy under the names that Stable-Baselines3's `ActorCriticPolicy` has for its parameters, for `load_state_dict`. */
import { TrainError } from '../../base/errors.ts';
import type { Space } from '../../envs/spaces.ts';
import type { TensorInput } from '../../nn/safetensors.ts';
import type { ObservationNormaliser } from '../../rollout/normalise.ts';
import type { PolicyWeights } from './actor.ts';
import type { ActorCritic } from './networks/actor-critic.ts';
import type { NetworkConfig } from './networks/network.ts';

interface Policy extends PolicyWeights {
  readonly model: ActorCritic;
  readonly config: NetworkConfig;
  readonly actionSpace: Space;
}

/**
 * The tensors, weights (outputs, inputs) as PyTorch has them, and what else Python needs to know, as text: the layers and
 * the activation to make the same policy with, and what observations are normalised by.
 */
export function sb3StateDict({ model, config, actionSpace, weights, normaliser }: Policy): {
  tensors: Record<string, TensorInput>;
  metadata: Record<string, string>;
} {
  const { network, hidden, criticHidden, activation, logStdMin, logStdMax } = config;
  if (network !== 'mlp')
    throw new TrainError(`network ${network} is none that Stable-Baselines3 has: export it as ONNX`);
  if (actionSpace.kind === 'dict' || actionSpace.kind === 'tuple')
    throw new TrainError(
      `Stable-Baselines3 has no policy for the actions ${actionSpace.describe()}: export it as ONNX`,
    );
  const critic = criticHidden ?? hidden;
  const views = model.layout.views(weights);
  const tensors: Record<string, TensorInput> = {};
  for (const { name, shape } of model.layout.specs) {
    const data = views[name];
    if (name === 'actor.logStd') {
      // As it acts: within its bounds.
      tensors.log_std = { shape, data: data.map(value => Math.min(logStdMax, Math.max(logStdMin, value))) };
      continue;
    }
    const [part, place, kind] = name.split('.');
    const layers = part === 'actor' ? hidden.length : critic.length;
    const [inner, last] = part === 'actor' ? ['policy_net', 'action_net'] : ['value_net', 'value_net'];
    // Between two linear layers a Sequential has an activation.
    const module = Number(place) === layers ? last : `mlp_extractor.${inner}.${2 * Number(place)}`;
    const [inputs, outputs] = shape;
    tensors[`${module}.${kind}`] =
      kind === 'weight'
        ? { shape: [outputs, inputs], data: transposed(data, inputs, outputs) }
        : { shape, data };
  }
  return {
    tensors,
    metadata: {
      net_arch: JSON.stringify({ pi: hidden, vf: critic }),
      activation_fn: { tanh: 'Tanh', relu: 'ReLU', gelu: 'GELU' }[activation],
      ...(normaliser && { obs_rms: JSON.stringify(runningMoments(normaliser)) }),
    },
  };
}

/** As a `RunningMeanStd` has them. */
function runningMoments({ moments, clip }: ObservationNormaliser): object {
  const { count, mean } = moments;
  return { mean: [...mean], var: Array.from(mean, (_, i) => moments.variance(i)), count, clip_obs: clip };
}

/** (rows, columns) to (columns, rows). */
export function transposed(values: Float32Array, rows: number, columns: number): Float32Array {
  return Float32Array.from(values, (_, i) => values[(i % rows) * columns + Math.floor(i / rows)]);
}
