/** Whether requests can run at all: their keys and values must fit into a replica's memory. */
import { fail } from '../errors.ts';
import { BLOCK_TOKENS } from './hardware.ts';
import type { ReplicaModel } from './replica-model.ts';
import type { Workload } from './requests.ts';

/** Whether a request of these lengths can ever run there. */
function fits(
  { totalBlocks, watermarkBlocks }: ReplicaModel,
  promptTokens: number,
  decodeTokens: number,
): boolean {
  return Math.ceil((promptTokens + decodeTokens - 1) / BLOCK_TOKENS) <= totalBlocks - watermarkBlocks;
}

/** Refuses requests that a replica cannot hold: a router may choose any of them. */
export function checkFits(
  models: readonly ReplicaModel[],
  workload: Workload,
  nameOf: (id: number) => string = id => `request ${id}`,
): void {
  for (let id = 0; id < workload.count; id++) {
    const [prompt, decode] = [workload.promptTokens[id], workload.decodeTokens[id]];
    const small = models.findIndex(model => !fits(model, prompt, decode));
    if (small === -1) continue;
    const { totalBlocks, watermarkBlocks, spec } = models[small];
    const nowhere = models.every(model => !fits(model, prompt, decode));
    fail(
      'option-invalid',
      `${nameOf(id)} needs the keys and values of ${prompt + decode - 1} tokens, ${nowhere ? 'which fit no replica' : `which do not fit replica ${small}`} (${spec.hardware.name} holds ${(totalBlocks - watermarkBlocks) * BLOCK_TOKENS}): shorten it, or use replicas with more memory`,
    );
  }
}
