/**
 * How a graph is computed in one block of memory: which nodes share a loop, what is a view of something else, and which
 * tensors take turns in the same bytes.
 *
 * - Nodes that work value by value join the latest loop of their shape that has all they need.
 * - A reshape is the same bytes; so are the pieces of a split along the first axis. The parts of a concat along it are
 *   computed in their place.
 * - A carried value that a loop's last reader replaces value by value is replaced where it stands.
 * - Bytes are used again when the last reader is done.
 */
import { constantOp, type Graph, inputOp, type Node, type Operator, type Tensor } from '../graph.ts';
import { type Live, liveFrom } from '../live.ts';
import { expandOp, stopGradientOp } from '../ops/elementwise.ts';
import { captures, isLoop, type LoopAttrs } from '../ops/loop.ts';
import { linearOp, type MatmulAttrs, matmulOp } from '../ops/matmul.ts';
import { type ReduceAttrs, reduceMaxOp, reduceSumOp } from '../ops/reduce.ts';
import { concatOp, reshapeOp, sliceOp, splitOp } from '../ops/shape.ts';
import { type Shape, sizeOf, stridesOf } from '../shape.ts';
import { isElementwise, onlyValue } from './elementwise.ts';
import { kernelFor } from './kernels.ts';
import { bytesPer } from './views.ts';

/** Bytes of one tensor, or of several that lie in it. */
export interface Storage {
  readonly bytes: number;
  /** What it is a part of. */
  within?: { readonly storage: Storage; readonly offset: number };
  /** The first and last moment at which it is touched. */
  first: number;
  last: number;
  address: number;
}

export interface FusedStep {
  readonly kind: 'fused';
  readonly key: string;
  readonly shape: Shape;
  readonly nodes: Node[];
  kept: Tensor[];
}
export interface KernelStep {
  readonly kind: 'kernel';
  readonly node: Node;
  /** Room for a transposed right side. */
  readonly scratch?: Storage;
}
export interface LoopStep {
  readonly kind: 'loop';
  readonly node: Node<LoopAttrs>;
  readonly steps: Step[];
  /** Positions of the scans that somebody reads. */
  readonly scans: readonly number[];
  /** Room for carried values that change places. */
  readonly spare: Map<number, Storage>;
  /** Room for the condition to go on, which may be a carried value that is replaced before it is asked. */
  readonly condition: Storage | undefined;
}
export type Step = FusedStep | KernelStep | LoopStep;

export interface Plan {
  readonly steps: readonly Step[];
  readonly constants: readonly Tensor[];
  readonly inputs: readonly Tensor[];
  /** Bytes of memory. */
  readonly size: number;
  readonly live: Live;
  /** The node of a fused loop that computes a tensor, seen through reshapes that change nothing there. */
  sourceIn(step: FusedStep, tensor: Tensor): Tensor | undefined;
  addressOf(tensor: Tensor): number;
  addressOfStorage(storage: Storage): number;
}

/** Nodes of one loop at most: each has a value of its own in it, and the processor holds sixteen of them. */
const MOST_FUSED = 48;

const bytesOf = (t: Tensor): number => sizeOf(t.shape) * bytesPer[t.dtype];
const withoutOnes = (shape: Shape): Shape => shape.filter(n => n !== 1);

/** Why a graph cannot be computed here; undefined where it can. */
export function refusal(graph: Graph): string | undefined {
  const live = liveFrom(graph.outputs.values());
  const find = (within: Graph): string | undefined => {
    for (const node of live.nodesOf(within)) {
      const found = isLoop(node) ? find(node.attrs.body) : refusalOf(node);
      if (found) return found;
    }
    return undefined;
  };
  return find(graph);
}

function refusalOf(node: Node): string | undefined {
  const { op, inputs, outputs } = node;
  if (op === (inputOp as Operator) || op === (constantOp as Operator) || isElementwise(node))
    return undefined;
  if (isView(node)) return undefined;
  if (op === (matmulOp as Operator) || op === (linearOp as Operator)) {
    const isFlat = inputs.slice(0, 2).every(t => t.shape.length === 2 && !t.shape.includes(0));
    return isFlat ? undefined : `${op.name} of other than two axes`;
  }
  if ([...inputs, ...outputs].some(t => t.shape.includes(0))) return `${op.name} of nothing`;
  return kernelFor(node) ? undefined : op.name;
}

/** Whether a node's outputs are (or may be) bytes of its first input. */
function isView({ op, attrs, inputs, outputs }: Node): boolean {
  if (op === (reshapeOp as Operator) || op === (stopGradientOp as Operator)) return true;
  if (op === (expandOp as Operator)) return sizeOf(inputs[0].shape) === sizeOf(outputs[0].shape);
  if (op === (splitOp as Operator)) {
    const { axis } = attrs as { axis: number };
    return sizeOf(inputs[0].shape.slice(0, axis)) === 1;
  }
  if (op === (sliceOp as Operator)) {
    const { axes } = attrs as { axes: readonly number[] };
    return axes.length === 1 && sizeOf(inputs[0].shape.slice(0, axes[0])) === 1;
  }
  if (op === (reduceSumOp as Operator) || op === (reduceMaxOp as Operator))
    return (attrs as ReduceAttrs).axes.every(axis => inputs[0].shape[axis] === 1);
  return false;
}

/** How many values after the beginning of its input a view begins. */
function offsetOf({ node, index }: Tensor): number {
  const { op, attrs, inputs, outputs } = node;
  if (op === (splitOp as Operator))
    return outputs.slice(0, index).reduce((sum, t) => sum + sizeOf(t.shape), 0);
  if (op === (sliceOp as Operator)) {
    const { axes, starts } = attrs as { axes: readonly number[]; starts: readonly number[] };
    return starts[0] * stridesOf(inputs[0].shape)[axes[0]];
  }
  return 0;
}

/** Lays a graph out. */
export function plan(graph: Graph): Plan {
  const live = liveFrom(graph.outputs.values());
  const storages = new Map<Tensor, Storage>();
  const all: Storage[] = [];
  const stored = (bytes: number): Storage => {
    const storage = { bytes, first: Number.POSITIVE_INFINITY, last: -1, address: -1 };
    all.push(storage);
    return storage;
  };
  /** What a tensor is a view of, and how many bytes after its beginning. */
  const baseOf = (t: Tensor): { tensor: Tensor; offset: number } => {
    if (!isView(t.node)) return { tensor: t, offset: 0 };
    const { tensor, offset } = baseOf(t.node.inputs[0]);
    return { tensor, offset: offset + offsetOf(t) * bytesPer[t.dtype] };
  };
  const storageOf = (t: Tensor): Storage => {
    const { tensor } = baseOf(t);
    const known = storages.get(tensor);
    if (known) return known;
    const made = stored(bytesOf(tensor));
    storages.set(tensor, made);
    return made;
  };
  const stepOf = new Map<Tensor, Step>(); // what computes a tensor that is no view
  const constants: Tensor[] = [];

  // ---- which nodes share a loop
  const region = (within: Graph): Step[] => {
    const steps: Step[] = [];
    const position = new Map<Step, number>();
    const insert = (step: Step, at = steps.length): void => {
      steps.splice(at, 0, step);
      for (let i = at; i < steps.length; i++) position.set(steps[i], i);
    };
    const readyAfter = (t: Tensor): number => {
      const step = stepOf.get(baseOf(t).tensor);
      return step ? (position.get(step) ?? -1) : -1;
    };
    for (const node of live.nodesOf(within)) {
      if (node.op === (inputOp as Operator)) continue;
      if (node.op === (constantOp as Operator)) {
        if (onlyValue(node.outputs[0]) === undefined || isRead(node.outputs[0]))
          constants.push(node.outputs[0]);
        continue;
      }
      if (isLoop(node)) {
        const { attrs } = node;
        const step: LoopStep = {
          kind: 'loop',
          node,
          steps: [],
          scans: live.scansOf(node),
          spare: new Map(),
          condition: attrs.goOn ? stored(bytesPer.bool) : undefined,
        };
        for (const t of [attrs.iteration, ...attrs.carriedIn]) storageOf(t);
        step.steps.push(...region(attrs.body));
        // What a loop leaves of a carried value is where it was carried.
        node.outputs.forEach((t, i) => {
          if (i < attrs.carriedIn.length) storages.set(t, storageOf(attrs.carriedIn[i]));
          else storageOf(t);
          stepOf.set(t, step);
        });
        insert(step);
        continue;
      }
      if (isView(node)) continue;
      if (!isElementwise(node)) {
        const step: KernelStep = { kind: 'kernel', node, ...scratchFor(node) };
        for (const t of node.outputs) stepOf.set(t, step);
        insert(step);
        continue;
      }
      const [out] = node.outputs;
      const key = withoutOnes(out.shape).join();
      const joins = (step: Step): step is FusedStep =>
        step.kind === 'fused' &&
        step.key === key &&
        step.nodes.length < MOST_FUSED &&
        node.inputs.every(t => sourceIn(step, t) || readyAfter(t) < position.get(step)!);
      const found = steps.findLast(joins);
      const step: FusedStep = found ?? { kind: 'fused', key, shape: out.shape, nodes: [], kept: [] };
      step.nodes.push(node);
      stepOf.set(out, step);
      // Single numbers come as early as they can, so that the long loops that wait for them can be one.
      if (!found) insert(step, key === '' ? 1 + Math.max(-1, ...node.inputs.map(readyAfter)) : steps.length);
    }
    return steps;
  };
  const sourceIn = (step: FusedStep, t: Tensor): Tensor | undefined => {
    if (stepOf.get(t) === step) return withoutOnes(t.shape).join() === step.key ? t : undefined;
    const sameOrder =
      isView(t.node) &&
      t.node.op !== (splitOp as Operator) &&
      t.node.op !== (sliceOp as Operator) &&
      withoutOnes(t.shape).join() === withoutOnes(t.node.inputs[0].shape).join();
    return sameOrder ? sourceIn(step, t.node.inputs[0]) : undefined;
  };
  const scratchFor = ({ op, attrs, inputs }: Node): { scratch?: Storage } => {
    const turned =
      op === (matmulOp as Operator)
        ? (attrs as MatmulAttrs).transposeB
        : op === (linearOp as Operator) && (attrs as { transposeW: boolean }).transposeW;
    return turned ? { scratch: stored(bytesOf(inputs[1])) } : {};
  };

  // ---- who reads what
  const readers = new Map<Tensor, Set<Node | 'outside'>>();
  const read = (t: Tensor, by: Node | 'outside'): void => {
    for (let at = t; ; at = at.node.inputs[0]) {
      if (!readers.has(at)) readers.set(at, new Set());
      readers.get(at)!.add(by);
      if (!isView(at.node)) return;
    }
  };
  const isRead = (t: Tensor): boolean => readers.has(t);
  const findReaders = (within: Graph): void => {
    for (const node of live.nodesOf(within)) {
      if (isLoop(node)) {
        const { carriedOut, goOn, scans, body } = node.attrs;
        for (const t of node.inputs) read(t, 'outside');
        for (const t of [...carriedOut, ...(goOn ? [goOn] : []), ...live.scansOf(node).map(i => scans[i])])
          read(t, 'outside');
        findReaders(body);
      } else if (!isView(node)) {
        for (const t of node.inputs) {
          // A single number is part of the instructions of a loop over values.
          if (!(isElementwise(node) && onlyValue(t) !== undefined)) read(t, node);
        }
      }
    }
  };
  findReaders(graph);
  for (const t of graph.outputs.values()) read(t, 'outside');

  const steps = region(graph);
  const eachStep = (list: readonly Step[], visit: (step: Step) => void): void => {
    for (const step of list) {
      visit(step);
      if (step.kind === 'loop') eachStep(step.steps, visit);
    }
  };
  eachStep(steps, step => {
    if (step.kind !== 'fused') return;
    step.kept = step.nodes
      .map(node => node.outputs[0])
      .filter(t =>
        [...(readers.get(t) ?? [])].some(
          by =>
            by === 'outside' ||
            stepOf.get(by.outputs[0]) !== step ||
            !by.inputs.some(i => sourceIn(step, i) === t),
        ),
      );
  });

  // ---- parts of a concat are computed in their place
  const rootOf = (storage: Storage): Storage => (storage.within ? rootOf(storage.within.storage) : storage);
  eachStep(steps, step => {
    if (step.kind !== 'kernel' || step.node.op !== (concatOp as Operator)) return;
    const { node } = step;
    const { axis } = node.attrs as { axis: number };
    const [out] = node.outputs;
    if (sizeOf(out.shape.slice(0, axis)) !== 1) return;
    let offset = 0;
    for (const t of node.inputs) {
      const { tensor } = baseOf(t);
      const made = stepOf.get(tensor);
      const storage = storageOf(tensor);
      const isOwn =
        made !== undefined &&
        made.kind !== 'loop' &&
        tensor.node.graph === node.graph &&
        bytesOf(tensor) === bytesOf(t) &&
        !storage.within;
      if (isOwn) storage.within = { storage: storageOf(out), offset };
      offset += bytesOf(t);
    }
  });

  // ---- carried values that are replaced where they stand
  eachStep(steps, step => {
    if (step.kind === 'loop') replaceInPlace(step);
  });
  function replaceInPlace({ node, steps: inner }: LoopStep): void {
    const { carriedIn, carriedOut, scans, goOn } = node.attrs;
    const taken = new Set<Storage>();
    carriedIn.forEach((old, i) => {
      const { tensor, offset } = baseOf(carriedOut[i]);
      const made = stepOf.get(tensor);
      const storage = storages.get(tensor);
      if (made?.kind !== 'fused' || offset !== 0 || !inner.includes(made) || !made.kept.includes(tensor))
        return;
      if (bytesOf(tensor) !== bytesOf(old)) return;
      const target = storageOf(tensor);
      if (storage?.within || target.within || taken.has(target)) return;
      const isOld = (t: Tensor): boolean => baseOf(t).tensor === old;
      const readsOld = (s: Step): boolean => {
        if (s.kind === 'fused') return s.nodes.some(n => n.inputs.some(isOld));
        if (s.kind === 'kernel') return s.node.inputs.some(isOld);
        return s.node.inputs.some(isOld) || captures(s.node).some(isOld) || s.steps.some(readsOld);
      };
      const last = inner.findLastIndex(readsOld);
      const here = inner.indexOf(made);
      if (last > here) return;
      // In the loop itself every read is at the place that is written.
      const alike = made.nodes.every(n =>
        n.inputs.every(t => !isOld(t) || withoutOnes(t.shape).join() === made.key),
      );
      const others = [...carriedOut.filter((_, k) => k !== i), ...scans, ...(goOn ? [goOn] : [])];
      if (!alike || others.some(t => isOld(t))) return;
      target.within = { storage: storageOf(old), offset: 0 };
      taken.add(target);
    });
  }

  // ---- when each is in use
  let now = 0;
  const touch = (storage: Storage, moment: number): void => {
    const root = rootOf(storage);
    root.first = Math.min(root.first, moment);
    root.last = Math.max(root.last, moment);
  };
  const touchAll = (tensors: readonly Tensor[]): void => {
    for (const t of tensors)
      if (onlyValue(baseOf(t).tensor) === undefined || isRead(t)) touch(storageOf(t), now);
  };
  const inputs = graph.inputs.filter(t => live.tensors.has(t));
  for (const t of inputs) {
    touch(storageOf(t), -1);
    touch(storageOf(t), Number.POSITIVE_INFINITY);
  }
  for (const t of constants) {
    touch(storageOf(t), -1);
    touch(storageOf(t), Number.POSITIVE_INFINITY);
  }
  const schedule = (list: readonly Step[]): void => {
    for (const step of list) {
      now++;
      if (step.kind === 'fused') {
        touchAll(
          step.nodes.flatMap(n => n.inputs.filter(t => !sourceIn(step, t) && onlyValue(t) === undefined)),
        );
        touchAll(step.kept);
      } else if (step.kind === 'kernel') {
        touchAll([...step.node.inputs, ...step.node.outputs.filter(t => live.tensors.has(t))]);
        if (step.scratch) touch(step.scratch, now);
      } else {
        const { iteration, carriedIn, carriedOut, goOn, scans } = step.node.attrs;
        const begin = now;
        if (step.condition) touch(step.condition, begin);
        touchAll([...step.node.inputs, iteration, ...carriedIn]);
        touchAll(step.node.outputs.filter((_, i) => i <= carriedIn.length));
        touchAll(step.scans.map(i => step.node.outputs[carriedIn.length + 1 + i]));
        schedule(step.steps);
        now++;
        touchAll([...carriedOut, ...(goOn ? [goOn] : []), ...step.scans.map(i => scans[i])]);
        if (step.condition) touch(step.condition, now);
        carriedOut.forEach((t, i) => {
          const from = rootOf(storageOf(t));
          const isOther = carriedIn.some((c, k) => k !== i && rootOf(storageOf(c)) === from);
          if (!isOther || sizeOf(t.shape) === 0) return;
          const spare = stored(bytesOf(t));
          step.spare.set(i, spare);
          touch(spare, now);
        });
        touchAll([iteration, ...carriedIn]);
        touchAll(step.scans.map(i => step.node.outputs[carriedIn.length + 1 + i]));
        // What was there before the loop began is there for each of its turns.
        for (const storage of all) {
          if (!storage.within && storage.first < begin && storage.last >= begin)
            storage.last = Math.max(storage.last, now);
        }
      }
    }
  };
  schedule(steps);
  for (const t of graph.outputs.values()) {
    touch(storageOf(t), Math.max(0, rootOf(storageOf(t)).first));
    touch(storageOf(t), Number.POSITIVE_INFINITY);
  }

  const size = allocate(all.filter(storage => !storage.within && storage.last >= storage.first));
  const addressOfStorage = (storage: Storage): number =>
    storage.within ? addressOfStorage(storage.within.storage) + storage.within.offset : storage.address;
  return {
    steps,
    constants,
    inputs,
    size,
    live,
    sourceIn,
    addressOfStorage,
    addressOf(t) {
      const { offset } = baseOf(t);
      return addressOfStorage(storageOf(t)) + offset;
    },
  };
}

/** Vectors are read whole: so many bytes beyond the last value may be read, and belong to nobody. */
const SLACK = 64;
const ALIGNMENT = 64;

/** Gives each storage the lowest bytes that nobody else has in its time. */
function allocate(storages: readonly Storage[]): number {
  const placed: Storage[] = [];
  let size = 0;
  const rounded = (bytes: number): number => Math.ceil(Math.max(bytes, 1) / ALIGNMENT) * ALIGNMENT;
  for (const storage of [...storages].sort((a, b) => a.first - b.first || b.bytes - a.bytes)) {
    const beside = placed
      .filter(other => other.first <= storage.last && storage.first <= other.last)
      .sort((a, b) => a.address - b.address);
    let address = ALIGNMENT; // address 0 would hide a mistake
    for (const other of beside) {
      if (address + rounded(storage.bytes) <= other.address) break;
      address = Math.max(address, other.address + rounded(other.bytes));
    }
    storage.address = address;
    placed.push(storage);
    size = Math.max(size, address + rounded(storage.bytes));
  }
  return size + SLACK;
}
