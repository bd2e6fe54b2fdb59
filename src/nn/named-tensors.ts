/** A flat vector of weights as tensors with names, and back: how weights go to files and come from them. */
import type { Parameters } from './parameters.ts';
import type { Safetensors, TensorInput } from './safetensors.ts';

/** Each tensor of a flat vector under its name, without copying. */
export function namedTensors(
  layout: Parameters,
  flat: Float32Array,
  prefix = '',
): Record<string, TensorInput> {
  const views = layout.views(flat);
  return Object.fromEntries(
    layout.specs.map(({ name, shape }) => [prefix + name, { shape: [...shape], data: views[name] }]),
  );
}

/** A tensor of a layout that a file has in another shape. */
export interface OtherShape {
  readonly name: string;
  readonly saved: string;
  readonly wanted: string;
}

/** What of a layout files hold; what is missing or has another shape is for the caller to put into words. */
export interface FoundTensors {
  readonly flat: Float32Array;
  readonly missing: readonly string[];
  readonly otherShapes: readonly OtherShape[];
}

/** Gathers a flat vector; `find` gives the file that has a tensor, and its name there. */
export function gatherTensors(
  layout: Parameters,
  find: (name: string) => { readonly file: Safetensors; readonly key: string } | undefined,
): FoundTensors {
  const flat = new Float32Array(layout.size);
  const views = layout.views(flat);
  const missing: string[] = [];
  const otherShapes: OtherShape[] = [];
  for (const { name, shape } of layout.specs) {
    const place = find(name);
    if (place === undefined) {
      missing.push(name);
      continue;
    }
    const saved = place.file.info(place.key).shape;
    if (saved.join() === shape.join()) views[name].set(place.file.float32(place.key));
    else otherShapes.push({ name, saved: `(${saved.join(', ')})`, wanted: `(${shape.join(', ')})` });
  }
  return { flat, missing, otherShapes };
}

/** The same from one file, whose names may have a prefix. */
export function tensorsIn(layout: Parameters, file: Safetensors, prefix = ''): FoundTensors {
  const names = new Set(file.names);
  return gatherTensors(layout, name => (names.has(prefix + name) ? { file, key: prefix + name } : undefined));
}
