import { writeFileAtomic } from '../base/files.ts';
import type { Graph } from './graph.ts';
import type { RowsGraph } from './onnx/any-rows.ts';
import { toOnnx } from './onnx/serialise.ts';

/**
 * Writes a graph, or one for any number of rows (see {@link toOnnx}), as an `.onnx` file that appears whole: any reader
 * sees the old file or the new one.
 */
export async function saveOnnx(graph: Graph | RowsGraph, path: string): Promise<void> {
  writeFileAtomic(path, toOnnx(graph).bytes);
}
