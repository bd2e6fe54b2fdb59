/**
 * What a routing policy sees: a row for each replica, about this request on that replica, and a few numbers that belong to
 * all of them. Rows mean the same whatever the number of replicas and their order, so one policy serves clusters of any
 * size. Sizes are logarithms around what is usual, so that nothing needs to be normalised; all stay within ±10.
 */
import { box, type DictSpace, type DiscreteSpace, dict, discrete } from '../spaces.ts';
import { type Outlook, outlookFor, type ReplicaCounts } from './outlook.ts';
import type { ReplicaModel } from './replica-model.ts';

/** Columns of a replica's row. */
export const replicaFeatures = [
  'finish', // expected finish of this request here, log of it in units of the reference
  'finishRegret', // how much later than on the best replica
  'added', // what it delays others by
  'total', // finish and added together
  'totalRegret',
  'wait', // until its prefill begins
  'prefill',
  'iteration', // duration of an iteration with it
  'running', // share of the places in the batch
  'waiting',
  'memory', // share of the blocks in use
  'memoryAfter',
  'tokensLeft', // expected to be generated here still
  'meanLeft', // the same for each running request
  'queuedTokens', // prompt tokens to compute before
  'oldestWait',
  'up',
  'floor', // the hardware: an iteration over few tokens, each further token, each token of context, memory
  'perToken',
  'perContext',
  'blocks',
] as const;

/** Numbers that belong to all replicas. */
export const sharedFeatures = [
  'prompt', // tokens of this request
  'decode', // estimated tokens of its answer
  'rate', // arrivals of late, as a share of what the cluster bears
  'rateNow', // the same over the last few
  'outstanding', // requests here for each replica
  'memory', // mean share of the blocks in use
] as const;

export const FEATURES = replicaFeatures.length;
export const SHARED = sharedFeatures.length;
const LIMIT = 10;

/** What policies for so many replicas see and choose from. */
export function clusterSpaces(replicas: number): { observationSpace: DictSpace; actionSpace: DiscreteSpace } {
  return {
    observationSpace: dict({
      items: box({ shape: [replicas, FEATURES], low: -LIMIT, high: LIMIT }),
      shared: box({ shape: [SHARED], low: -LIMIT, high: LIMIT }),
    }),
    actionSpace: discrete(replicas),
  };
}

/** Arrivals of late: running means of the gaps between them. */
export interface Traffic {
  lastS: number;
  gapS: number;
  gapNowS: number;
}

const SLOW = 1 / 64;
const FAST = 1 / 8;

/** Before the first arrival, the rate that is expected. */
export function newTraffic(ratePerS: number): Traffic {
  return { lastS: 0, gapS: 1 / ratePerS, gapNowS: 1 / ratePerS };
}

/** Takes an arrival into account. */
export function noteArrival(traffic: Traffic, atS: number): void {
  const gapS = Math.max(0, atS - traffic.lastS);
  traffic.lastS = atS;
  traffic.gapS += SLOW * (gapS - traffic.gapS);
  traffic.gapNowS += FAST * (gapS - traffic.gapNowS);
}

/** What scales the observations of one cluster. */
export interface ObservationScale {
  /** Seconds that an average request takes on an idle replica. */
  readonly referenceS: number;
  /** Requests a second that the cluster bears. */
  readonly capacityPerS: number;
}

const clamped = (value: number): number => Math.min(LIMIT, Math.max(-LIMIT, value));

/**
 * Writes (replicas, FEATURES) and then (SHARED) numbers. `counts` and `outlooks` are of each replica; the outlooks are
 * filled here.
 */
export function writeObservation(
  parts: {
    readonly models: readonly ReplicaModel[];
    readonly counts: readonly ReplicaCounts[];
    readonly outlooks: readonly Outlook[];
    readonly promptTokens: number;
    readonly estimatedTokens: number;
    readonly traffic: Traffic;
    readonly scale: ObservationScale;
  },
  obs: Float32Array,
): void {
  const { models, counts, outlooks, promptTokens, estimatedTokens, traffic, scale } = parts;
  const { referenceS } = scale;
  let [leastFinish, leastTotal] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  let [outstanding, memory] = [0, 0];
  for (let r = 0; r < models.length; r++) {
    const outlook = outlookFor(models[r], counts[r], promptTokens, estimatedTokens, outlooks[r]);
    outstanding += counts[r].running + counts[r].waiting;
    memory += counts[r].usedBlocks / models[r].totalBlocks;
    if (!counts[r].isUp) continue;
    leastFinish = Math.min(leastFinish, outlook.finishS);
    leastTotal = Math.min(leastTotal, outlook.finishS + outlook.addedS);
  }
  let at = 0;
  for (let r = 0; r < models.length; r++) {
    const [model, count, outlook] = [models[r], counts[r], outlooks[r]];
    const { hardware, maxBatch } = model.spec;
    const total = outlook.finishS + outlook.addedS;
    obs[at++] = clamped(Math.log(outlook.finishS / referenceS));
    obs[at++] = clamped(4 * Math.log1p(Math.max(0, outlook.finishS - leastFinish) / leastFinish));
    obs[at++] = clamped(Math.log1p(outlook.addedS / referenceS));
    obs[at++] = clamped(Math.log(total / referenceS));
    obs[at++] = clamped(4 * Math.log1p(Math.max(0, total - leastTotal) / leastTotal));
    obs[at++] = clamped(Math.log1p((4 * outlook.waitS) / referenceS));
    obs[at++] = clamped(Math.log((10 * outlook.prefillS) / referenceS));
    obs[at++] = clamped(2 * Math.log((100 * outlook.iterationS) / referenceS));
    obs[at++] = count.running / maxBatch;
    obs[at++] = clamped(Math.log1p(count.waiting));
    obs[at++] = count.usedBlocks / model.totalBlocks;
    obs[at++] = outlook.memoryAfter;
    obs[at++] = clamped(Math.log1p((count.runningLeft + count.waitingLeft) / 1000));
    obs[at++] = clamped(Math.log1p(count.running > 0 ? count.runningLeft / count.running / 100 : 0));
    obs[at++] = clamped(Math.log1p(count.queuedTokens / 1000));
    obs[at++] = clamped(Math.log1p((4 * count.oldestWaitS) / referenceS));
    obs[at++] = count.isUp ? 1 : 0;
    obs[at++] = clamped(Math.log(hardware.floorMs / 10));
    obs[at++] = clamped(Math.log(hardware.perTokenMs / 0.05));
    obs[at++] = clamped(Math.log(model.secondsPerContextToken / 2.5e-7));
    obs[at++] = clamped(Math.log(model.totalBlocks / 7000));
  }
  const rate = (gapS: number): number => clamped(1 / Math.max(1e-9, gapS * scale.capacityPerS));
  obs[at++] = clamped(Math.log(promptTokens / 1000));
  obs[at++] = clamped(Math.log(estimatedTokens / 150));
  obs[at++] = rate(traffic.gapS);
  obs[at++] = rate(traffic.gapNowS);
  obs[at++] = clamped(Math.log1p(outstanding / models.length / 10));
  obs[at++] = memory / models.length;
}
