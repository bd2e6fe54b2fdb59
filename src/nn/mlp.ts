/** Fully connected networks. */

import type { Tensor } from '../engine/graph.ts';
import { gelu, relu, tanh } from '../engine/ops/elementwise.ts';
import { linear } from '../engine/ops/matmul.ts';
import { orthogonal, zeros } from './initialise.ts';
import { type ParameterSpec, parameterNamed } from './parameters.ts';

const activations = { tanh, relu, gelu } as const;
/** What stands between two layers. */
export type Activation = keyof typeof activations;

/** Sizes and initialisation of an {@link mlp}. */
export interface MlpOptions {
  /** Prefix of the parameters' names, and their group unless one is given. */
  name: string;
  /** Inputs, hidden layers, outputs: `[27, 64, 64, 8]`. */
  sizes: readonly number[];
  /** Between layers; the last one is linear. */
  activation?: Activation;
  /** Gain of the orthogonal initialisation of hidden layers. */
  hiddenGain?: number;
  /** The same of the last layer: .01 for a policy, so that it starts undecided. */
  outputGain?: number;
  group?: string;
}

/** A multilayer perceptron as a graph function of its parameters. */
export interface Mlp {
  readonly specs: readonly ParameterSpec[];
  /** (rows, inputs) to (rows, outputs); `weights` are the tensors of this network's specs by name. */
  forward(weights: Record<string, Tensor>, x: Tensor): Tensor;
}

/** A network of linear layers with an activation between them. */
export function mlp(options: MlpOptions): Mlp {
  const { name, sizes, activation = 'tanh', hiddenGain = Math.SQRT2, outputGain = 1, group = name } = options;
  if (sizes.length < 2 || sizes.some(n => !Number.isInteger(n) || n < 1)) {
    throw new RangeError(
      `mlp '${name}': sizes [${sizes.join(', ')}] are not possible: give at least two whole numbers above 0`,
    );
  }
  if (!Object.hasOwn(activations, activation)) {
    throw new RangeError(
      `mlp '${name}': activation '${activation}' is unknown: use ${Object.keys(activations).join(', ')}`,
    );
  }
  const activate = activations[activation];
  const layers = sizes.length - 1;
  const specs: ParameterSpec[] = [];
  for (let i = 0; i < layers; i++) {
    const gain = i === layers - 1 ? outputGain : hiddenGain;
    specs.push({
      name: `${name}.${i}.weight`,
      shape: [sizes[i], sizes[i + 1]],
      init: orthogonal(gain),
      group,
    });
    specs.push({ name: `${name}.${i}.bias`, shape: [sizes[i + 1]], init: zeros, group });
  }
  return {
    specs,
    forward(weights, x) {
      let h = x;
      for (let i = 0; i < layers; i++) {
        h = linear(
          h,
          parameterNamed(weights, `${name}.${i}.weight`),
          parameterNamed(weights, `${name}.${i}.bias`),
        );
        if (i < layers - 1) h = activate(h);
      }
      return h;
    },
  };
}
