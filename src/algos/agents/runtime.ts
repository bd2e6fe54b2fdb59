/** Where networks are computed. */
import type { Graph } from '../../engine/graph.ts';
import { compile, type Device, type Program } from '../../engine/program.ts';
import {
  compileWasm,
  tryCompileWasm,
  type WasmOptions,
  type WasmProgram,
  wasmRefusal,
} from '../../engine/wasm/program.ts';
import type { ActorCritic } from './networks/actor-critic.ts';

export interface Runtime {
  readonly device?: Device;
  /** Threads that one operator of ONNX Runtime may use. */
  readonly threads?: number;
}

/** As a config says it. */
export const runtimeOf = ({
  device,
  threads,
}: {
  readonly device: Device;
  readonly threads: number | 'auto';
}): Runtime => ({ device, threads: threads === 'auto' ? 1 : threads });

/**
 * Networks up to these widths are WebAssembly programs, which cost nothing to call and nothing a node. Wider ones are faster
 * in ONNX Runtime, whose products use vectors twice as long: for the policy to learn from a minibatch of 64 took it 2.35 times
 * as long at 64 units, 1.3 times at 128 and .8 times at 256 (best of ten each, in turns, on a busy AMD EPYC). To act, the
 * call alone costs it some 25 µs.
 */
export const widestInWasm = { act: 256, learn: 128 } as const;

/** What a program is for. */
export type Purpose = keyof typeof widestInWasm;

/** Whether a model's programs are WebAssembly: by its shape alone, so that a run computes the same bits wherever it is. */
export function isForWasm(
  { layout, observationSize }: ActorCritic,
  purpose: Purpose,
  { device = 'cpu' }: Runtime = {},
): boolean {
  const widest = widestInWasm[purpose];
  const widths = layout.specs.filter(({ shape }) => shape.length > 1).map(({ shape }) => shape[1]);
  // The first layer's products count as well, and are as long as an observation.
  return device === 'cpu' && Math.max(...widths) <= widest && observationSize <= 4 * widest;
}

/** Compiles a program of a model for where it suits best. */
export async function compileFor(
  model: ActorCritic,
  purpose: Purpose,
  graph: Graph,
  runtime: Runtime,
  options: WasmOptions = {},
): Promise<Program | WasmProgram> {
  const program = isForWasm(model, purpose, runtime) ? tryCompileWasm(graph, options) : undefined;
  if (program) return program;
  // What is not finite is for the graph to leave out and count.
  return compile(graph, { ...runtime, checkFeeds: false });
}

export const isWasm = (program: Program): program is WasmProgram => 'execute' in program;

/** A program that may never run: as WebAssembly it is compiled at its first use, which takes no waiting. */
export async function compileWhenAsked(
  model: ActorCritic,
  purpose: Purpose,
  graph: () => Graph,
  runtime: Runtime,
): Promise<{ readonly program: () => Program; dispose(): void }> {
  let made: Program | undefined;
  if (!isForWasm(model, purpose, runtime) || wasmRefusal(graph()))
    made = await compileFor(model, purpose, graph(), runtime);
  return {
    program() {
      made ??= compileWasm(graph());
      return made;
    },
    dispose: () => made?.dispose(),
  };
}
