import { open, rename, rm } from 'node:fs/promises';
import { threadId } from 'node:worker_threads';
import type { Graph } from './graph.ts';
import { toOnnx } from './onnx/serialise.ts';

/** Two saves at once, even to one path, write to files of their own. */
let nextTemporary = 0;

/** Writes a graph as an `.onnx` file that appears whole: any reader sees the old file or the new one. */
export async function saveOnnx(graph: Graph, path: string): Promise<void> {
  const { bytes } = toOnnx(graph);
  const temporary = `${path}.${process.pid}-${threadId}-${nextTemporary++}.tmp`;
  try {
    const file = await open(temporary, 'w');
    try {
      await file.writeFile(bytes);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}
