/** A policy's network as PyTorch keeps it, layer by layer, in the layout of Keel's. */
import { show } from '../../base/errors.ts';
import type { Parameters } from '../../nn/parameters.ts';
import type { TorchTensor } from '../../pickle/torch.ts';
import { PickleError } from '../../pickle/values.ts';
import { transposed } from '../agents/sb3-state-dict.ts';
import type { Settings } from '../algorithm.ts';

/** A linear layer; its weight is (outputs, inputs), as in PyTorch. */
export interface Layer {
  readonly inputs: number;
  readonly outputs: number;
  readonly weight: Float32Array;
  readonly bias: Float32Array;
}

/** Actor and critic, each with its last, linear layer. */
export interface TorchNetwork {
  readonly actor: readonly Layer[];
  readonly critic: readonly Layer[];
  /** Of continuous actions. */
  readonly logStd: Float32Array | undefined;
}

/** Tensors by name, of which each is taken once; what is left is of another network. */
export class NamedTensors {
  readonly #tensors: Map<string, TorchTensor>;
  readonly #left: Set<string>;
  readonly #source: string;

  constructor(tensors: Map<string, TorchTensor>, source: string) {
    this.#tensors = tensors;
    this.#left = new Set(tensors.keys());
    this.#source = source;
  }

  has(name: string): boolean {
    return this.#tensors.has(name);
  }

  take(name: string): TorchTensor {
    const tensor = this.#tensors.get(name);
    if (tensor === undefined)
      throw new PickleError(`${this.#source} has no ${name}: it is no policy with an MLP`);
    this.#left.delete(name);
    const at = tensor.data.findIndex(value => !Number.isFinite(value));
    if (at >= 0)
      throw new PickleError(
        `${name} of ${this.#source} has ${tensor.data[at]} at place ${at}: take a checkpoint from before it broke`,
      );
    return tensor;
  }

  /** One linear layer. */
  layer(name: string): Layer {
    const [weight, bias] = [this.take(`${name}.weight`), this.take(`${name}.bias`)];
    const [outputs, inputs] = weight.shape;
    if (weight.shape.length !== 2 || bias.shape.length !== 1 || bias.shape[0] !== outputs)
      throw new PickleError(
        `${name} of ${this.#source} has a weight (${weight.shape.join(', ')}) and a bias (${bias.shape.join(', ')}): only linear layers can be taken over`,
      );
    return { inputs, outputs, weight: weight.data, bias: bias.data };
  }

  /** The linear layers of a `Sequential`, between which activations stand. */
  layers(name: string): Layer[] {
    const pattern = new RegExp(`^${name.replaceAll('.', '\\.')}\\.(\\d{1,4})\\.weight$`);
    const places = [...this.#tensors.keys()].flatMap(key => pattern.exec(key)?.[1] ?? []).map(Number);
    return places.sort((a, b) => a - b).map(place => this.layer(`${name}.${place}`));
  }

  /** Refuses what nobody has taken: its effect would be lost. */
  refuseRest(what: string): void {
    const [name] = this.#left;
    if (name !== undefined)
      throw new PickleError(
        `${this.#source} has ${show(name)}, which ${what} does not have: it cannot be taken over`,
      );
  }
}

/** What the layers say of the network; they must follow one another. */
export function networkSettings({ actor, critic, logStd }: TorchNetwork, source: string): Settings {
  for (const [name, layers] of Object.entries({ actor, critic })) {
    if (layers.length < 2)
      throw new PickleError(
        `the ${name} of ${source} has ${layers.length === 1 ? 'no hidden layer' : 'no layers'}: at least one hidden layer is needed (net_arch)`,
      );
    layers.slice(1).forEach((layer, i) => {
      if (layer.inputs !== layers[i].outputs)
        throw new PickleError(
          `layer ${i + 1} of the ${name} of ${source} takes ${layer.inputs} values, the one before gives ${layers[i].outputs}: it is no chain of layers`,
        );
    });
  }
  if (actor[0].inputs !== critic[0].inputs)
    throw new PickleError(
      `actor and critic of ${source} see ${actor[0].inputs} and ${critic[0].inputs} values: both must see the same`,
    );
  const [hidden, criticHidden] = [actor, critic].map(layers =>
    layers.slice(0, -1).map(({ outputs }) => outputs),
  );
  const [least, most] = [Math.min(...(logStd ?? [0])), Math.max(...(logStd ?? [0]))];
  if (least < -20 || most > 20)
    throw new PickleError(
      `the log of a std of ${source} is ${least < -20 ? least : most}, -20 to 20 can be taken over: is it one?`,
    );
  return {
    network: 'mlp',
    hidden,
    criticHidden: hidden.join() === criticHidden.join() ? null : criticHidden,
    // Keel holds it within these; the policy must not change by that.
    ...(least < -5 && { logStdMin: -20 }),
    ...(most > 2 && { logStdMax: 20 }),
  };
}

/** All values in the layout of Keel's network, whose weights are (inputs, outputs). */
export function flattened(layout: Parameters, network: TorchNetwork, source: string): Float32Array {
  const flat = new Float32Array(layout.size);
  const views = layout.views(flat);
  for (const { name, shape } of layout.specs) {
    const values = named(network, name);
    if (values === undefined || values.length !== views[name].length)
      throw new PickleError(
        `${source} has ${values?.length ?? 'no'} values for ${name}, the spaces need ${views[name].length} (${shape.join(', ')}): use the environment that it was trained in`,
      );
    views[name].set(values);
  }
  return flat;
}

function named({ actor, critic, logStd }: TorchNetwork, name: string): Float32Array | undefined {
  if (name === 'actor.logStd') return logStd;
  const [, part, place, kind] = /^(actor|critic)\.(\d+)\.(weight|bias)$/.exec(name) ?? [];
  const layer = (part === 'actor' ? actor : critic)[Number(place)];
  if (layer === undefined) return undefined;
  return kind === 'bias' ? layer.bias : transposed(layer.weight, layer.outputs, layer.inputs);
}
