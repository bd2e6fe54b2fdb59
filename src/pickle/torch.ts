/** Files that `torch.save` writes since PyTorch 1.6: a zip archive with a pickle, `data.pkl`, and each storage's bytes beside it. */
import { endianness } from 'node:os';
import { show } from '../base/errors.ts';
import { readPickle } from './pickle.ts';
import {
  callOf,
  describe,
  dictOf,
  globalName,
  PickleError,
  type PickleValue,
  persistentIdOf,
} from './values.ts';
import { looksLikeZip, openZip } from './zip.ts';

/** A tensor's numbers, row-major. */
export interface TorchTensor {
  readonly shape: readonly number[];
  readonly data: Float32Array;
}

/** A file that was read; its tensors are looked at when they are asked for. */
export interface TorchFile {
  readonly root: PickleValue;
  isTensor(value: PickleValue | undefined): boolean;
  /** A tensor; anything else is refused by the name of the field that it stands in. */
  tensor(value: PickleValue | undefined, field: string): TorchTensor;
}

const storages: Readonly<
  Record<string, readonly [bytes: number, read: (view: DataView, at: number) => number]>
> = {
  'torch.FloatStorage': [4, (view, at) => view.getFloat32(at, true)],
  'torch.DoubleStorage': [8, (view, at) => view.getFloat64(at, true)],
  'torch.LongStorage': [8, (view, at) => Number(view.getBigInt64(at, true))],
  'torch.IntStorage': [4, (view, at) => view.getInt32(at, true)],
};

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) >= 0;

/** Checks a file in memory; `source` names it in errors. */
export function openTorch(bytes: Uint8Array, source: string): TorchFile {
  if (!looksLikeZip(bytes))
    throw new PickleError(
      `${source} is no file of torch.save since PyTorch 1.6, which is a zip archive: load it in Python and save it again`,
    );
  if (endianness() !== 'LE')
    throw new PickleError(`${source}: its numbers are little-endian and this machine is not`);
  const zip = openZip(bytes, source);
  const pickles = zip.names.filter(name => /^[^/]+\/data\.pkl$/.test(name));
  if (pickles.length !== 1)
    throw new PickleError(
      `${source} has ${pickles.length} data.pkl, one is needed: is it a file of torch.save?`,
    );
  const [pickle] = pickles;
  const prefix = pickle.slice(0, -'data.pkl'.length);
  if (zip.has(`${prefix}byteorder`)) {
    const order = Buffer.from(zip.read(`${prefix}byteorder`))
      .toString('latin1')
      .slice(0, 20);
    if (order !== 'little')
      throw new PickleError(`${source} is ${show(order)}-endian: save it on an x64 or arm64 machine`);
  }
  const root = readPickle(zip.read(pickle), `${source}, ${pickle}`);

  function tensor(value: PickleValue | undefined, field: string): TorchTensor {
    const refuse = (problem: string): never => {
      throw new PickleError(`${source}: ${field} ${problem}`);
    };
    const call = callOf(value);
    if (call?.name === 'torch._utils._rebuild_parameter')
      return tensor(notItself(call.args[0], value), field);
    if (call?.name !== 'torch._utils._rebuild_tensor_v2')
      return refuse(`is ${describe(value)}, a tensor is needed`);
    const [storage, offset, shape, stride] = call.args;
    const id = persistentIdOf(storage);
    const [kind, type, key, , length] = Array.isArray(id) ? id : [];
    const typeName = globalName(type);
    if (kind !== 'storage' || typeof key !== 'string' || typeName === undefined)
      return refuse(`has no storage that can be read`);
    const known = Object.hasOwn(storages, typeName) ? storages[typeName] : undefined;
    if (known === undefined)
      return refuse(`is of ${typeName}, float32 and float64 are read: save it as float32 (module.float())`);
    const [size, read] = known;
    const [axes, steps] = [shape, stride];
    if (
      !isCount(offset) ||
      !Array.isArray(axes) ||
      !Array.isArray(steps) ||
      axes.length !== steps.length ||
      axes.length > 16 ||
      ![...axes, ...steps].every(isCount)
    )
      return refuse('has a shape that cannot be');
    const stored = zip.read(`${prefix}data/${key}`);
    const count = (axes as number[]).reduce((product, axis) => product * axis, 1);
    const last = (axes as number[]).reduce((sum, axis, i) => sum + (axis - 1) * (steps[i] as number), offset);
    if (!isCount(length) || stored.length < length * size) return refuse('is cut: its storage is too short');
    if (count > length || (count > 0 && last >= length))
      return refuse(`has ${count} numbers in a storage of ${length}: it is damaged`);
    const view = new DataView(stored.buffer, stored.byteOffset, stored.byteLength);
    const data = new Float32Array(count);
    const index = new Array<number>(axes.length).fill(0);
    let at = offset;
    for (let i = 0; i < count; i++) {
      data[i] = read(view, at * size);
      for (let axis = axes.length - 1; axis >= 0; axis--) {
        at += steps[axis] as number;
        if (++index[axis] < (axes[axis] as number)) break;
        at -= (steps[axis] as number) * (axes[axis] as number);
        index[axis] = 0;
      }
    }
    return { shape: axes as number[], data };
  }

  return {
    root,
    isTensor: value => /^torch\._utils\._rebuild_(tensor_v2|parameter)$/.test(callOf(value)?.name ?? ''),
    tensor,
  };
}

/** A parameter's tensor; one that is inside of itself would never end. */
function notItself(inner: PickleValue | undefined, outer: PickleValue | undefined): PickleValue | undefined {
  return callOf(inner)?.name === callOf(outer)?.name ? undefined : inner;
}

/** The tensors of a state dict by name, in its order, which is that of the module's parameters. */
export function stateDict(
  file: TorchFile,
  value: PickleValue | undefined,
  source: string,
): Map<string, TorchTensor> {
  const dict = dictOf(value);
  if (dict === undefined)
    throw new PickleError(
      `${source} is ${describe(value)}, a state dict is needed: torch.save(agent.state_dict(), path) writes one`,
    );
  const tensors = new Map<string, TorchTensor>();
  for (const [name, tensor] of dict) {
    if (typeof name !== 'string')
      throw new PickleError(`${source}: the name of a tensor is ${describe(name)}`);
    tensors.set(name, file.tensor(tensor, show(name)));
  }
  return tensors;
}
