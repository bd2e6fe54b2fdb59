/**
 * All parameters of a model as one flat vector with named views.
 *
 * One vector makes Adam, clipping, snapshots, rollback and averaging a handful of nodes each instead of a handful per
 * tensor. In a graph the layers come out of it by one `split`, whose derivative is one `concat`.
 */

import type { Tensor } from '../engine/graph.ts';
import { reshape, split } from '../engine/ops/shape.ts';
import { checkShape, sizeOf } from '../engine/shape.ts';
import type { Rng } from '../random/rng.ts';
import type { Initialiser } from './initialise.ts';

/** One tensor of a network: its name, shape and starting values. */
export interface ParameterSpec {
  readonly name: string;
  readonly shape: readonly number[];
  readonly init: Initialiser;
  /** Parameters of one group share a learning rate, e.g. `actor` and `critic`. */
  readonly group: string;
}

/** A range of the flat vector whose parameters share a learning rate. */
export interface ParameterGroup {
  readonly name: string;
  readonly offset: number;
  readonly size: number;
}

/** Where each of a network's tensors lies in one flat vector. */
export interface Parameters {
  readonly size: number;
  readonly specs: readonly (ParameterSpec & { readonly offset: number })[];
  /** Contiguous ranges of the vector, in its order. */
  readonly groups: readonly ParameterGroup[];
  /** Fresh starting values. */
  initialise(rng: Rng): Float32Array;
  /** Each tensor's part of a vector, without copying. */
  views(flat: Float32Array): Record<string, Float32Array>;
  /** Each tensor out of a vector (size) in a graph. */
  tensors(flat: Tensor): Record<string, Tensor>;
}

/** Lays parameters out in a flat vector, in the order given; a group must not be interrupted by another. */
export function parameters(specs: readonly ParameterSpec[]): Parameters {
  if (specs.length === 0) throw new RangeError('parameters: there are none: give at least one');
  const placed: (ParameterSpec & { offset: number })[] = [];
  const groups: ParameterGroup[] = [];
  const names = new Set<string>();
  let size = 0;
  for (const spec of specs) {
    if (names.has(spec.name))
      throw new RangeError(`parameters: '${spec.name}' is there twice: rename one of them`);
    names.add(spec.name);
    checkShape(`parameters: '${spec.name}'`, spec.shape);
    const count = sizeOf(spec.shape);
    const last = groups.at(-1);
    if (last?.name === spec.group) {
      groups[groups.length - 1] = { ...last, size: last.size + count };
    } else {
      if (groups.some(group => group.name === spec.group)) {
        throw new RangeError(
          `parameters: '${spec.name}' comes after another group than its own '${spec.group}': keep groups together`,
        );
      }
      groups.push({ name: spec.group, offset: size, size: count });
    }
    placed.push({ ...spec, offset: size });
    size += count;
  }
  const views = (flat: Float32Array): Record<string, Float32Array> => {
    if (flat.length !== size)
      throw new RangeError(`parameters: the vector has ${flat.length} values, the layout ${size}`);
    return Object.fromEntries(placed.map(s => [s.name, flat.subarray(s.offset, s.offset + sizeOf(s.shape))]));
  };
  return {
    size,
    specs: placed,
    groups,
    views,
    initialise(rng) {
      const flat = new Float32Array(size);
      const parts = views(flat);
      for (const spec of placed) spec.init(rng, spec.shape, parts[spec.name]);
      return flat;
    },
    tensors(flat) {
      const parts = split(
        flat,
        placed.map(spec => sizeOf(spec.shape)),
        0,
      );
      return Object.fromEntries(placed.map((spec, i) => [spec.name, reshape(parts[i], spec.shape)]));
    },
  };
}

/** A network's parameter by name, or an error that names it. */
export function parameterNamed(weights: Readonly<Record<string, Tensor>>, name: string): Tensor {
  const found = Object.hasOwn(weights, name) ? weights[name] : undefined;
  if (!found)
    throw new RangeError(`parameter '${name}' is missing: give the tensors of all of the network's specs`);
  return found;
}
