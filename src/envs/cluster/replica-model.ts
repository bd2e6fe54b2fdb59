/** What a replica is, whatever it does: its hardware, its scheduler and their limits. */
import {
  attentionSecondsPerToken,
  blocksOf,
  type Hardware,
  iterationTable,
  prefillAttentionSeconds,
} from './hardware.ts';

/**
 * `vllm`: prefills first, each whole, together up to a number of tokens; otherwise every running request decodes.
 * `sarathi`: every iteration decodes, and fills up to its chunk with pieces of prefills (Agrawal et al. 2023).
 */
export type SchedulerKind = 'vllm' | 'sarathi';

/** One replica: its machine, and how it forms batches. */
export interface ReplicaSpec {
  readonly hardware: Hardware;
  readonly scheduler: SchedulerKind;
  /** Most requests in the batch. */
  readonly maxBatch: number;
  /** Most tokens of a prefill iteration (vllm); a longer prompt goes alone. */
  readonly maxBatchTokens: number;
  /** Most tokens of an iteration that prefills may fill up to (sarathi). */
  readonly chunkTokens: number;
  /** Share of the blocks that admitting a request leaves free, for the running ones to grow into. */
  readonly watermark: number;
}

/** How a replica forms batches unless told otherwise. */
export const defaultReplica: Omit<ReplicaSpec, 'hardware'> = {
  scheduler: 'vllm',
  maxBatch: 128,
  maxBatchTokens: 4096,
  chunkTokens: 512,
  watermark: 0.01,
};

/** What a replica is, without what it does: looked up once. */
export interface ReplicaModel {
  readonly spec: ReplicaSpec;
  readonly totalBlocks: number;
  readonly watermarkBlocks: number;
  readonly secondsPerContextToken: number;
  /** Seconds of an iteration over so many tokens, attention left out. */
  seconds(tokens: number): number;
  /** Seconds of attention for a prefill's piece after so many tokens that are there already. */
  prefillAttentionS(cachedTokens: number, tokens: number): number;
}

/** Looks up what a replica of this kind can do. */
export function replicaModel(spec: ReplicaSpec): ReplicaModel {
  const table = iterationTable(spec.hardware);
  const totalBlocks = blocksOf(spec.hardware);
  return {
    spec,
    totalBlocks,
    watermarkBlocks: Math.ceil(totalBlocks * spec.watermark),
    secondsPerContextToken: attentionSecondsPerToken(spec.hardware),
    seconds: tokens => table.seconds(tokens),
    prefillAttentionS: (cachedTokens, tokens) => prefillAttentionSeconds(spec.hardware, cachedTokens, tokens),
  };
}
