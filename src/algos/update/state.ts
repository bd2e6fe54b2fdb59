/** Weights and Adam's moments of them, which a gradient step changes: as arrays, and in a graph that steps. */
import { TrainError } from '../../base/errors.ts';
import type { Graph, Tensor } from '../../engine/graph.ts';
import type { AdamState } from '../../nn/adam.ts';

/** A network's weights, and Adam's moments of them. */
export interface OptimiserState {
  weights: Float32Array;
  m: Float32Array;
  v: Float32Array;
}

/** All of a snapshot that is a tensor. */
export interface SavedTensors extends Readonly<OptimiserState> {
  readonly reference: Float32Array | undefined;
}

/** Before the first step. */
export const newState = (weights: Float32Array): OptimiserState => ({
  weights,
  m: new Float32Array(weights.length),
  v: new Float32Array(weights.length),
});

export const copyOf = ({ weights, m, v }: Readonly<OptimiserState>): OptimiserState => ({
  weights: weights.slice(),
  m: m.slice(),
  v: v.slice(),
});

/** The state that a graph steps from, under its own names. */
export function stateInputs(g: Graph, size: number): AdamState {
  const [weights, m, v] = ['weights', 'm', 'v'].map(name => g.input(name, [size]));
  return { weights, m, v };
}

/** The state that a graph arrives at, and whatever else it says. */
export function outputState(g: Graph, { weights, m, v }: AdamState, others: Record<string, Tensor>): void {
  outputAll(g, { newWeights: weights, newM: m, newV: v, ...others });
}

/** The same as the program gave it. */
export const stateFrom = (out: Readonly<Record<string, Float32Array>>): OptimiserState => ({
  weights: out.newWeights,
  m: out.newM,
  v: out.newV,
});

/** Tensors as a graph's outputs, by their names. */
export function outputAll(g: Graph, tensors: Record<string, Tensor>): void {
  for (const [name, tensor] of Object.entries(tensors)) g.output(name, tensor);
}

/** Refuses what a checkpoint held if it is of another network. */
export function refuseOtherSizes(
  saved: Readonly<Record<string, Float32Array | undefined>>,
  size: number,
  what: 'network' | 'model',
): void {
  for (const [name, tensor] of Object.entries(saved)) {
    if (tensor && tensor.length !== size) {
      throw new TrainError(
        `the checkpoint's ${name} has ${tensor.length} values, this ${what} ${size}: use the config it was trained with`,
      );
    }
  }
}
