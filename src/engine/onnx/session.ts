/**
 * The one place that talks to ONNX Runtime.
 *
 * It uses the native binding of onnxruntime-node directly: the public `InferenceSession.run` wraps the same blocking call in
 * a promise and a turn of the event loop, which costs a third more on a small network and makes every loop asynchronous
 * for nothing. The binding's version is pinned for that reason (docs/decisions/0001-engine.md).
 */
import type { DType, TypedArray } from '../dtype.ts';
import { EngineError } from '../errors.ts';
import type { Shape } from '../shape.ts';
import { NativeTensor, nativeBinding, ONNX_RUNTIME_VERSION } from './native.ts';

/** ONNX Runtime's view of an array. */
export interface OrtTensor {
  readonly data: TypedArray;
}

export interface OrtSession {
  readonly inputNames: readonly string[];
  tensor(dtype: DType, data: TypedArray, shape: Shape): OrtTensor;
  run(feeds: Record<string, OrtTensor>, fetches: Record<string, OrtTensor | null>): Record<string, OrtTensor>;
  dispose(): void;
}

/** Loads a model into a new session; an absent device is an error that says how to get it. */
export async function openSession(
  model: Uint8Array,
  options: { device: string; threads: number; planMemory: boolean },
): Promise<OrtSession> {
  const { InferenceSession } = nativeBinding();
  const session = new InferenceSession();
  try {
    session.loadModel(model.buffer, model.byteOffset, model.byteLength, {
      executionProviders: [options.device],
      intraOpNumThreads: options.threads,
      interOpNumThreads: 1,
      executionMode: 'sequential',
      enableMemPattern: options.planMemory,
      graphOptimizationLevel: 'all',
      logSeverityLevel: 4,
      // Each session has threads of its own. After a run they would go on spinning and take the cores from the next program's.
      extra: { session: { force_spinning_stop: '1' } },
    });
  } catch (error) {
    const reason = reasonOf(error);
    if (options.device === 'cpu') throw new EngineError(`compile: ONNX Runtime refused the graph: ${reason}`);
    throw new EngineError(
      `device '${options.device}' cannot be used here: ${remedies[options.device]} (${reason})`,
    );
  }
  return {
    inputNames: session.inputMetadata.map(({ name }) => name),
    tensor: (dtype, data, shape) => new NativeTensor(dtype, data, shape),
    run: (feeds, fetches) =>
      session.run(feeds as Record<string, NativeTensor>, fetches as Record<string, NativeTensor>, {}),
    dispose: () => session.dispose(),
  };
}

/** The first line of what ONNX Runtime says, without the place in its source where a condition failed. */
function reasonOf(error: unknown): string {
  const [line] = (error instanceof Error ? error.message : String(error)).split('\n');
  return line.trim().replace(/^\S*onnxruntime_src\S* .* was false\. /, '');
}

const remedies: Record<string, string> = {
  webgpu:
    "install the GPU's Vulkan, Metal or Direct3D 12 driver (on Linux also libvulkan1), or use device 'cpu'",
  cuda: `install NVIDIA's driver, CUDA 12 and cuDNN 9, then 'npm install onnxruntime-node@${ONNX_RUNTIME_VERSION}' and 'npm rebuild onnxruntime-node --ignore-scripts=false', or use device 'cpu'`,
};
