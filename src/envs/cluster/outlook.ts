/**
 * What a router can know of a replica when a request arrives: its queue, its batch and its memory, and, through the
 * iteration-time model, how long this request would take there and what it would cost the others. Lengths of answers are
 * the router's estimates, never the true ones. One replica's outlook takes one pass over its requests.
 */
import { BLOCK_TOKENS } from './hardware.ts';
import type { Replica } from './replica.ts';
import type { Cluster } from './simulator.ts';

/** Times in seconds. Reused: read it before the next is filled. */
export interface Outlook {
  waiting: number;
  running: number;
  /** Prompt tokens that are still to be computed, of requests ahead. */
  queuedTokens: number;
  /** Tokens that are expected to be generated here, of all requests. */
  tokensLeft: number;
  /** The same, on average of the running ones. */
  meanLeft: number;
  /** Share of the blocks that are in use. */
  memory: number;
  /** How long the request at the front of the queue has been waiting. */
  oldestWaitS: number;
  /** Until this request's prefill would begin. */
  waitS: number;
  prefillS: number;
  /** An iteration with this request in the batch. */
  iterationS: number;
  /** From now to its last token, at the estimated length. */
  finishS: number;
  /** What it would delay all requests here by, together. */
  addedS: number;
}

export function emptyOutlook(): Outlook {
  return {
    waiting: 0,
    running: 0,
    queuedTokens: 0,
    tokensLeft: 0,
    meanLeft: 0,
    memory: 0,
    oldestWaitS: 0,
    waitS: 0,
    prefillS: 0,
    iterationS: 0,
    finishS: 0,
    addedS: 0,
  };
}

/** A request that has more tokens than estimated is expected to have this share of its estimate left. */
const LEAST_LEFT_SHARE = 0.1;

/** Fills the outlook of one replica for one request. */
export function lookAt(cluster: Cluster, replica: Replica, id: number, out: Outlook): Outlook {
  const { workload, progress, nowS } = cluster;
  const { running, runningCount, prefilling, prefillingCount, waiting, table, spec } = replica;
  const estimates = workload.estimatedTokens;
  let runningLeft = 0;
  for (let i = 0; i < runningCount; i++) {
    const other = running[i]!;
    const estimated = estimates[other]!;
    runningLeft += Math.max(estimated - replica.generatedOf(other), LEAST_LEFT_SHARE * estimated);
  }
  let queuedTokens = 0;
  let queuedLeft = 0;
  // Blocks of those being prefilled are taken already; those of the queue are not.
  let unheldTokens = 0;
  for (let i = 0; i < prefillingCount; i++) {
    const other = prefilling[i]!;
    queuedTokens += progress.prefillNeed[other]! - progress.prefillDone[other]!;
    queuedLeft += Math.max(1, estimates[other]! - progress.generated[other]!);
  }
  for (let i = 0; i < waiting.length; i++) {
    const other = waiting.at(i);
    unheldTokens += progress.prefillNeed[other]!;
    queuedLeft += Math.max(1, estimates[other]! - progress.generated[other]!);
  }
  queuedTokens += unheldTokens;
  const queued = waiting.length + prefillingCount;

  const prompt = workload.promptTokens[id]! + progress.generated[id]!;
  const decode = Math.max(1, estimates[id]! - progress.generated[id]!);
  const perPrefillToken = table.seconds(spec.maxBatchTokens) / spec.maxBatchTokens;
  const prefillS = table.seconds(prompt) + prompt * replica.secondsPerContextToken;
  const batch = Math.min(spec.maxBatch, runningCount + queued + 1);
  const context = replica.kvTokens + queuedTokens + prompt + 0.5 * decode;
  const held = Math.min(context, replica.totalBlocks * BLOCK_TOKENS);
  const iterationS = table.seconds(batch) + held * replica.secondsPerContextToken;
  const meanLeft = runningCount > 0 ? runningLeft / runningCount : 0;

  // Room: what is missing for the queue and this request comes free as the running ones end.
  const freeTokens = (replica.totalBlocks - replica.watermarkBlocks - replica.usedBlocks) * BLOCK_TOKENS;
  const missing = Math.max(0, unheldTokens + prompt - freeTokens);
  const missingPlaces = Math.max(0, runningCount + queued + 1 - spec.maxBatch);
  let roomS = 0;
  if (runningCount > 0 && (missing > 0 || missingPlaces > 0)) {
    const turnoverS = Math.max(meanLeft, 1) * iterationS;
    const byMemory = missing / Math.max(1, replica.kvTokens);
    const byPlaces = missingPlaces / runningCount;
    roomS = Math.max(byMemory, byPlaces) * turnoverS;
  }
  const underWayS = replica.busyUntilS < Number.POSITIVE_INFINITY ? replica.busyUntilS - nowS : 0;
  const waitS = underWayS + Math.max(roomS, queuedTokens * perPrefillToken);

  // Others: those running stand still during its prefill, and every iteration that it shares with them is longer.
  const growthS =
    table.seconds(batch) -
    table.seconds(batch - 1) +
    (prompt + 0.5 * decode) * replica.secondsPerContextToken;
  const others = runningCount + queued;
  const left = others > 0 ? (runningLeft + queuedLeft) / others : 0;
  const shared = Math.min(decode, left);
  const behind = missing > 0 ? queued : 0;

  out.waiting = queued;
  out.running = runningCount;
  out.queuedTokens = queuedTokens;
  out.tokensLeft = runningLeft + queuedLeft;
  out.meanLeft = meanLeft;
  out.memory = replica.usedBlocks / replica.totalBlocks;
  out.oldestWaitS = waiting.length > 0 ? nowS - workload.arrivalS[waiting.at(0)]! : 0;
  out.waitS = waitS;
  out.prefillS = prefillS;
  out.iterationS = iterationS;
  out.finishS = waitS + prefillS + (decode - 1) * iterationS;
  out.addedS =
    others * (prefillS * 0.5 + shared * growthS) + behind * prefillS + runningCount * prefillS * 0.5;
  return out;
}
