/**
 * What a router can know of a replica when a request arrives: its queue, its batch and its memory, and, through the
 * iteration-time model, how long this request would take there and what it would cost the others. Lengths of answers are
 * the router's estimates, never the true ones.
 *
 * In two steps, so that a service can use it as well: `countsOf` sums up a simulated replica, `outlookFor` makes an outlook
 * of such sums, wherever they come from.
 */
import { BLOCK_TOKENS } from './hardware.ts';
import type { Replica } from './replica.ts';
import type { ReplicaModel } from './replica-model.ts';
import type { Cluster } from './simulator.ts';

/** A replica in numbers that it can report. */
export interface ReplicaCounts {
  running: number;
  /** Tokens that the running requests are expected to generate still, together. */
  runningLeft: number;
  /** Tokens in the contexts of the running requests. */
  contextTokens: number;
  /** Requests that are not through their prefill. */
  waiting: number;
  /** Prompt tokens of those that are still to be computed. */
  queuedTokens: number;
  /** Those of them that have no memory yet. */
  unheldTokens: number;
  /** Tokens that the waiting requests are expected to generate, together. */
  waitingLeft: number;
  usedBlocks: number;
  /** Until the iteration under way ends. */
  underWayS: number;
  /** How long the request at the front of the queue has been waiting. */
  oldestWaitS: number;
  isUp: boolean;
}

/** One request on one replica. Times in seconds. */
export interface Outlook {
  /** Until its prefill would begin. */
  waitS: number;
  prefillS: number;
  /** An iteration with it in the batch. */
  iterationS: number;
  /** From now to its last token, at the estimated length. */
  finishS: number;
  /** What it would delay all other requests there by, together. */
  addedS: number;
  /** Share of the blocks in use with its prompt. */
  memoryAfter: number;
}

/** Counts to be filled by {@link countsOf}. */
export function emptyCounts(): ReplicaCounts {
  return {
    running: 0,
    runningLeft: 0,
    contextTokens: 0,
    waiting: 0,
    queuedTokens: 0,
    unheldTokens: 0,
    waitingLeft: 0,
    usedBlocks: 0,
    underWayS: 0,
    oldestWaitS: 0,
    isUp: true,
  };
}

/** An outlook to be filled by {@link outlookFor}. */
export function emptyOutlook(): Outlook {
  return { waitS: 0, prefillS: 0, iterationS: 0, finishS: 0, addedS: 0, memoryAfter: 0 };
}

/** A request that has more tokens than estimated is expected to have this share of its estimate left. */
const LEAST_LEFT_SHARE = 0.1;

/** Sums up a simulated replica in one pass over its requests. */
export function countsOf(cluster: Cluster, replica: Replica, out: ReplicaCounts): ReplicaCounts {
  const { workload, progress, nowS } = cluster;
  const { running, runningCount, prefilling, prefillingCount, waiting } = replica;
  const estimates = workload.estimatedTokens;
  let runningLeft = 0;
  for (let i = 0; i < runningCount; i++) {
    const id = running[i];
    const estimated = estimates[id];
    runningLeft += Math.max(estimated - replica.generatedOf(id), LEAST_LEFT_SHARE * estimated);
  }
  let [queuedTokens, unheldTokens, waitingLeft] = [0, 0, 0];
  for (let i = 0; i < prefillingCount; i++) {
    const id = prefilling[i];
    queuedTokens += progress.prefillNeed[id] - progress.prefillDone[id];
    waitingLeft += Math.max(1, estimates[id] - progress.generated[id]);
  }
  for (let i = 0; i < waiting.length; i++) {
    const id = waiting.at(i);
    unheldTokens += progress.prefillNeed[id];
    waitingLeft += Math.max(1, estimates[id] - progress.generated[id]);
  }
  out.running = runningCount;
  out.runningLeft = runningLeft;
  out.contextTokens = replica.kvTokens;
  out.waiting = waiting.length + prefillingCount;
  out.queuedTokens = queuedTokens + unheldTokens;
  out.unheldTokens = unheldTokens;
  out.waitingLeft = waitingLeft;
  out.usedBlocks = replica.usedBlocks;
  out.underWayS = replica.busyUntilS < Number.POSITIVE_INFINITY ? replica.busyUntilS - nowS : 0;
  out.oldestWaitS = waiting.length > 0 ? nowS - workload.arrivalS[waiting.at(0)] : 0;
  out.isUp = replica.isUp;
  return out;
}

/** Fills the outlook of a request with this prompt and this estimate of its answer. */
export function outlookFor(
  model: ReplicaModel,
  counts: ReplicaCounts,
  promptTokens: number,
  estimatedTokens: number,
  out: Outlook,
): Outlook {
  const { spec, totalBlocks, secondsPerContextToken } = model;
  const { running, waiting, queuedTokens, unheldTokens } = counts;
  const prefillS = model.seconds(promptTokens) + model.prefillAttentionS(0, promptTokens);
  const batch = Math.min(spec.maxBatch, running + waiting + 1);
  const ownContext = promptTokens + 0.5 * estimatedTokens;
  const context = Math.min(counts.contextTokens + queuedTokens + ownContext, totalBlocks * BLOCK_TOKENS);
  const iterationS = model.seconds(batch) + context * secondsPerContextToken;

  // Room: what is missing for the queue and this request comes free as the running ones end.
  const freeTokens = (totalBlocks - model.watermarkBlocks - counts.usedBlocks) * BLOCK_TOKENS;
  const missingTokens = Math.max(0, unheldTokens + promptTokens - freeTokens);
  const missingPlaces = Math.max(0, running + waiting + 1 - spec.maxBatch);
  let roomS = 0;
  if (running > 0 && (missingTokens > 0 || missingPlaces > 0)) {
    const turnoverS = Math.max(counts.runningLeft / running, 1) * iterationS;
    roomS = turnoverS * Math.max(missingTokens / Math.max(1, counts.contextTokens), missingPlaces / running);
  }
  const prefillsS = (queuedTokens * model.seconds(spec.maxBatchTokens)) / spec.maxBatchTokens;
  const waitS = counts.underWayS + Math.max(roomS, prefillsS);

  // Others stand still during its prefill, and every iteration that they share with it is longer.
  const others = running + waiting;
  const meanLeft = others > 0 ? (counts.runningLeft + counts.waitingLeft) / others : 0;
  const growthS = model.seconds(batch) - model.seconds(batch - 1) + ownContext * secondsPerContextToken;
  out.waitS = waitS;
  out.prefillS = prefillS;
  out.iterationS = iterationS;
  out.finishS = waitS + prefillS + (estimatedTokens - 1) * iterationS;
  out.addedS = others * (prefillS + Math.min(estimatedTokens, meanLeft) * growthS);
  out.memoryAfter = Math.min(
    2,
    (counts.usedBlocks + (unheldTokens + promptTokens) / BLOCK_TOKENS) / totalBlocks,
  );
  return out;
}
