/**
 * ONNX Runtime's native binding: where it is, and what of it Keel calls.
 *
 * It comes with Keel as one small package a platform (tools/platform-packages.ts), without an install script and without the
 * binaries of other platforms. Where onnxruntime-node of the same version is installed, its binding is used instead: a
 * checkout has it, and its install script is the way to CUDA.
 */

import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isMainThread } from 'node:worker_threads';
import { jsonOf } from '../../base/json.ts';
import { VERSION } from '../../base/version.ts';
import type { DType, TypedArray } from '../dtype.ts';
import { EngineError } from '../errors.ts';
import type { Shape } from '../shape.ts';

/** The version whose binding this is written against. */
export const ONNX_RUNTIME_VERSION = '1.30.0';

/** Where ONNX Runtime has binaries for Node. */
export const platforms = ['darwin-arm64', 'linux-arm64', 'linux-x64', 'win32-arm64', 'win32-x64'] as const;
/** One of {@link platforms}. */
export type Platform = (typeof platforms)[number];

/** The package with a platform's binding. */
export const platformPackage = (platform: Platform): string => `@keel/onnxruntime-${platform}`;

/** A tensor as the binding reads and makes it: it looks at these properties and at nothing else. */
export class NativeTensor {
  readonly type: DType;
  readonly data: TypedArray;
  readonly dims: Shape;
  readonly location = 'cpu';

  constructor(type: DType, data: TypedArray, dims: Shape) {
    this.type = type;
    this.data = data;
    this.dims = dims;
  }
}

/** A session of the binding. */
export interface NativeSession {
  readonly inputMetadata: readonly { readonly name: string }[];
  loadModel(buffer: ArrayBufferLike, offset: number, length: number, options: object): void;
  run(
    feeds: Readonly<Record<string, NativeTensor>>,
    fetches: Readonly<Record<string, NativeTensor | null>>,
    options: object,
  ): Record<string, NativeTensor>;
  dispose(): void;
}

interface Binding {
  readonly InferenceSession: new () => NativeSession;
  /** How much it prints (4: what is fatal), and what it makes outputs with. Once a thread. */
  initOrtOnce(logLevel: number, tensor: typeof NativeTensor, mainThread: boolean): void;
}

const require = createRequire(import.meta.url);
const file = 'onnxruntime_binding.node';
let loaded: Binding | undefined;

/** The binding, loaded on first use: 20 to 50 MB of native code that most of Keel's commands do not need. */
export function nativeBinding(): Binding {
  if (loaded !== undefined) return loaded;
  const path = findBinding();
  if (path === undefined) throw new EngineError(missingText());
  try {
    const binding = require(path) as Binding;
    // What goes wrong comes back as an error; ONNX Runtime would print it, too.
    binding.initOrtOnce(4, NativeTensor, isMainThread);
    loaded = binding;
    return binding;
  } catch (error) {
    const [reason] = (error instanceof Error ? error.message : String(error)).split('\n');
    throw new EngineError(
      `ONNX Runtime cannot be loaded on ${here}: it has binaries for Linux with glibc, macOS on Apple silicon and Windows (${reason})`,
    );
  }
}

const here = `${process.platform}-${process.arch}`;

/** The file of this platform's binding; undefined where there is none. */
export function findBinding(): string | undefined {
  const platform = platforms.find(name => name === here);
  if (platform === undefined) return undefined;
  const node = directoryOf('onnxruntime-node', ONNX_RUNTIME_VERSION);
  const own = directoryOf(platformPackage(platform), VERSION);
  const places = [
    node && join(node, 'bin/napi-v6', process.platform, process.arch),
    own,
    // `npm pack` in a checkout puts the binding of its machine inside of the package.
    fileURLToPath(new URL(`../../../native/${platform}`, import.meta.url)),
  ];
  return places.flatMap(place => (place ? [join(place, file)] : [])).find(path => existsSync(path));
}

/** Where a package is, if it is there in that version. */
function directoryOf(name: string, version: string): string | undefined {
  try {
    const manifest = require.resolve(`${name}/package.json`);
    const found = jsonOf(readFileSync(manifest, 'utf8')) as { readonly version?: unknown };
    return found.version === version ? dirname(manifest) : undefined;
  } catch {
    return undefined;
  }
}

function missingText(): string {
  const platform = platforms.find(name => name === here);
  if (platform === undefined)
    return `ONNX Runtime has no binary for ${here}: networks that are too large for WebAssembly and language models need ${platforms.join(', ')}`;
  return `ONNX Runtime is not installed, which networks that are too large for WebAssembly and language models need: npm install onnxruntime-node@${ONNX_RUNTIME_VERSION} --ignore-scripts, or install Keel without --omit=optional`;
}
