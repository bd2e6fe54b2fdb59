/** Requests as columns: what arrives, and what becomes of it. */
import { fail, show } from '../errors.ts';

/** What arrives; nothing here changes while it is simulated. */
export interface Workload {
  readonly count: number;
  /** (count) Seconds, in order. */
  readonly arrivalS: Float64Array;
  /** (count) At least 1. */
  readonly promptTokens: Int32Array;
  /** (count) Tokens that are generated, at least 1: only the simulation knows them. */
  readonly decodeTokens: Int32Array;
  /** (count) What the router is told of that number. */
  readonly estimatedTokens: Int32Array;
}

export const MAX_REQUESTS = 5_000_000;

/** An empty workload to fill. */
export function emptyWorkload(count: number): Workload {
  if (!Number.isSafeInteger(count) || count < 1 || count > MAX_REQUESTS)
    fail('option-invalid', `${show(count)} requests cannot be: use 1 to ${MAX_REQUESTS}`);
  return {
    count,
    arrivalS: new Float64Array(count),
    promptTokens: new Int32Array(count),
    decodeTokens: new Int32Array(count),
    estimatedTokens: new Int32Array(count),
  };
}

/** Throws where a workload cannot be: times that are not in order, lengths below 1. */
export function checkWorkload(workload: Workload): void {
  let before = 0;
  for (let i = 0; i < workload.count; i++) {
    const at = workload.arrivalS[i];
    if (!(at >= 0 && at < Number.POSITIVE_INFINITY))
      fail('option-invalid', `request ${i} arrives at ${at} s: use a time of at least 0`);
    if (at < before)
      fail(
        'option-invalid',
        `request ${i} arrives at ${at} s, before the one ahead of it (${before} s): sort them`,
      );
    before = at;
    for (const name of ['promptTokens', 'decodeTokens', 'estimatedTokens'] as const) {
      if (!(workload[name][i] >= 1))
        fail('option-invalid', `request ${i} has ${workload[name][i]} ${name}: use at least 1`);
    }
  }
}

/** What becomes of requests; a replica writes here. Times are seconds, NaN until they are known. */
export class Progress {
  /** Tokens generated when the request last began decoding; see Replica. */
  readonly generated: Int32Array;
  /** The replica's count of decode iterations at that time. */
  readonly joinedAt: Int32Array;
  /** Tokens whose keys and values must be computed before decoding, and how many have been. */
  readonly prefillNeed: Int32Array;
  readonly prefillDone: Int32Array;
  /** Tokens of its prefill in the iteration under way. */
  readonly chunk: Int32Array;
  readonly preemptions: Int32Array;
  readonly startS: Float64Array;
  readonly firstTokenS: Float64Array;
  readonly finishS: Float64Array;

  constructor(count: number) {
    this.generated = new Int32Array(count);
    this.joinedAt = new Int32Array(count);
    this.prefillNeed = new Int32Array(count);
    this.prefillDone = new Int32Array(count);
    this.chunk = new Int32Array(count);
    this.preemptions = new Int32Array(count);
    this.startS = new Float64Array(count).fill(Number.NaN);
    this.firstTokenS = new Float64Array(count).fill(Number.NaN);
    this.finishS = new Float64Array(count).fill(Number.NaN);
  }

  /** Takes over what another knows of one request. */
  copy(id: number, from: Progress): void {
    this.generated[id] = from.generated[id];
    this.joinedAt[id] = from.joinedAt[id];
    this.prefillNeed[id] = from.prefillNeed[id];
    this.prefillDone[id] = from.prefillDone[id];
    this.chunk[id] = from.chunk[id];
    this.preemptions[id] = from.preemptions[id];
    this.startS[id] = from.startS[id];
    this.firstTokenS[id] = from.firstTokenS[id];
    this.finishS[id] = from.finishS[id];
  }
}
