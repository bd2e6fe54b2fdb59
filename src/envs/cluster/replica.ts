/**
 * One replica: a queue, a running batch, key-value memory in blocks, and a scheduler that forms iterations.
 *
 * Every running request gains a token in every decode iteration, so an iteration need not look at them one by one: the
 * batch keeps one counter, each request the count at which it joined, and sixteen sums say how many of them begin a new
 * block at which count. Only joining, finishing and being evicted cost something for a request.
 */
import { fail } from '../errors.ts';
import { BLOCK_TOKENS } from './hardware.ts';
import { IdQueue } from './id-queue.ts';
import { type ReplicaModel, type ReplicaSpec, replicaModel } from './replica-model.ts';
import type { Progress, Workload } from './requests.ts';

/** For numbers modulo a block's tokens, which are a power of two. */
const BLOCK_MASK = BLOCK_TOKENS - 1;

const blocksFor = (tokens: number): number => Math.ceil(tokens / BLOCK_TOKENS);

/** A replica's numbers, as a checkpoint holds them. */
export type ReplicaState = {
  waiting: number[];
  prefilling: number[];
  running: number[];
  counter: number;
  kvTokens: number;
  usedBlocks: number;
  busyUntilS: number;
  decoding: boolean;
  iterationS: number;
  isUp: boolean;
  busySeconds: number;
  blockSeconds: number;
  iterations: number;
  preemptions: number;
  finished: number;
};

export class Replica {
  readonly spec: ReplicaSpec;
  readonly totalBlocks: number;
  readonly watermarkBlocks: number;
  readonly model: ReplicaModel;
  readonly waiting = new IdQueue();
  /** Admitted, with their whole prompt's blocks, and not through their prefill yet; oldest first. */
  readonly prefilling: Int32Array;
  /** Decoding; oldest first. */
  readonly running: Int32Array;
  prefillingCount = 0;
  runningCount = 0;
  /** Tokens with keys and values in memory, of the running requests. */
  kvTokens = 0;
  usedBlocks = 0;
  /** End of the iteration under way; Infinity where there is none. */
  busyUntilS = Number.POSITIVE_INFINITY;
  /** Duration of the iteration under way, else of the last one. */
  iterationS = 0;
  isUp = true;
  busySeconds = 0;
  /** Blocks in use, summed over busy time. */
  blockSeconds = 0;
  iterations = 0;
  preemptions = 0;
  finished = 0;
  /** Decode iterations so far. */
  counter = 0;
  #decoding = false;
  /** The count at which the next running request ends. */
  #nextEnd = Number.POSITIVE_INFINITY;
  /** How many running requests begin a new block in the decode iteration whose count is this, modulo 16. */
  readonly #crossings = new Int32Array(BLOCK_TOKENS);
  readonly #workload: Workload;
  readonly #progress: Progress;

  constructor(spec: ReplicaSpec, workload: Workload, progress: Progress) {
    this.spec = spec;
    this.model = replicaModel(spec);
    this.totalBlocks = this.model.totalBlocks;
    if (this.totalBlocks < 1)
      fail(
        'option-invalid',
        `${spec.hardware.title}: the weights leave no memory for keys and values: use more memory`,
      );
    this.watermarkBlocks = this.model.watermarkBlocks;
    this.prefilling = new Int32Array(spec.maxBatch);
    this.running = new Int32Array(spec.maxBatch);
    this.#workload = workload;
    this.#progress = progress;
  }

  /** Requests here that are not finished. */
  get outstanding(): number {
    return this.waiting.length + this.prefillingCount + this.runningCount;
  }

  /** Tokens generated so far of a running request. */
  generatedOf(id: number): number {
    return this.#progress.generated[id] + this.counter - this.#progress.joinedAt[id];
  }

  /** Puts a request into the queue; an idle replica begins at once. */
  add(id: number, nowS: number): void {
    const progress = this.#progress;
    progress.prefillNeed[id] = this.#workload.promptTokens[id] + progress.generated[id];
    progress.prefillDone[id] = 0;
    this.waiting.push(id);
    if (this.busyUntilS === Number.POSITIVE_INFINITY && this.isUp) this.#begin(nowS);
  }

  /** Ends the iteration under way, at `busyUntilS`, and begins the next. Returns how many requests finished. */
  advance(): number {
    const nowS = this.busyUntilS;
    const before = this.finished;
    this.busySeconds += this.iterationS;
    this.blockSeconds += this.usedBlocks * this.iterationS;
    this.iterations++;
    // First, because those whose prefill ends now decode from the next iteration on.
    if (this.#decoding) {
      this.counter++;
      this.kvTokens += this.runningCount;
      if (this.counter >= this.#nextEnd) this.#retire(nowS);
    }
    if (this.prefillingCount > 0) this.#endPrefills(nowS);
    this.#begin(nowS);
    return this.finished - before;
  }

  /**
   * Runs to the end of all that is here, without further arrivals. Finishes are those of `advance` but for rounding;
   * what it sums up over iterations (busy seconds and so on) is not kept.
   */
  drain(): void {
    while (this.busyUntilS < Number.POSITIVE_INFINITY) {
      if (this.#decoding && this.prefillingCount === 0 && !this.#hasRoom()) this.#skipDecodes();
      this.advance();
    }
  }

  /** Takes the replica out of service; what it had comes out, oldest first, with the tokens that users already have. */
  breakDown(): number[] {
    const ids = [
      ...this.running.subarray(0, this.runningCount),
      ...this.prefilling.subarray(0, this.prefillingCount),
      ...this.waiting.toArray(),
    ];
    for (let i = 0; i < this.runningCount; i++) {
      const id = this.running[i];
      this.#progress.generated[id] = this.generatedOf(id);
    }
    this.#empty();
    this.isUp = false;
    return ids;
  }

  recover(): void {
    this.isUp = true;
  }

  /** Becomes what another replica of the same kind is, on other columns of progress, to look ahead. */
  copyFrom(other: Replica): void {
    this.waiting.copyFrom(other.waiting);
    this.prefilling.set(other.prefilling);
    this.running.set(other.running);
    this.prefillingCount = other.prefillingCount;
    this.runningCount = other.runningCount;
    this.kvTokens = other.kvTokens;
    this.usedBlocks = other.usedBlocks;
    this.busyUntilS = other.busyUntilS;
    this.iterationS = other.iterationS;
    this.isUp = other.isUp;
    this.counter = other.counter;
    this.#decoding = other.#decoding;
    this.#nextEnd = other.#nextEnd;
    this.#crossings.set(other.#crossings);
    const [mine, its] = [this.#progress, other.#progress];
    for (let i = 0; i < this.runningCount; i++) mine.copy(this.running[i], its);
    for (let i = 0; i < this.prefillingCount; i++) mine.copy(this.prefilling[i], its);
    for (let i = 0; i < this.waiting.length; i++) mine.copy(this.waiting.at(i), its);
  }

  save(): ReplicaState {
    return {
      waiting: this.waiting.toArray(),
      prefilling: [...this.prefilling.subarray(0, this.prefillingCount)],
      running: [...this.running.subarray(0, this.runningCount)],
      counter: this.counter,
      kvTokens: this.kvTokens,
      usedBlocks: this.usedBlocks,
      busyUntilS: this.busyUntilS,
      decoding: this.#decoding,
      iterationS: this.iterationS,
      isUp: this.isUp,
      busySeconds: this.busySeconds,
      blockSeconds: this.blockSeconds,
      iterations: this.iterations,
      preemptions: this.preemptions,
      finished: this.finished,
    };
  }

  /** Continues from what `save` gave; the progress of its requests must be there already. */
  load(state: ReplicaState): void {
    this.#empty();
    for (const id of state.waiting) this.waiting.push(id);
    this.prefilling.set(state.prefilling);
    this.prefillingCount = state.prefilling.length;
    this.running.set(state.running);
    this.runningCount = state.running.length;
    this.counter = state.counter;
    this.kvTokens = state.kvTokens;
    this.usedBlocks = state.usedBlocks;
    this.busyUntilS = state.busyUntilS;
    this.#decoding = state.decoding;
    this.iterationS = state.iterationS;
    this.isUp = state.isUp;
    this.busySeconds = state.busySeconds;
    this.blockSeconds = state.blockSeconds;
    this.iterations = state.iterations;
    this.preemptions = state.preemptions;
    this.finished = state.finished;
    for (const id of state.running) {
      this.#crossings[this.#crossingOf(id)]++;
      this.#nextEnd = Math.min(this.#nextEnd, this.#endOf(id));
    }
  }

  #empty(): void {
    this.waiting.clear();
    this.prefillingCount = 0;
    this.runningCount = 0;
    this.kvTokens = 0;
    this.usedBlocks = 0;
    this.busyUntilS = Number.POSITIVE_INFINITY;
    this.#decoding = false;
    this.#nextEnd = Number.POSITIVE_INFINITY;
    this.#crossings.fill(0);
  }

  // ---- forming iterations

  #begin(nowS: number): void {
    const tokens = this.spec.scheduler === 'vllm' ? this.#formVllm(nowS) : this.#formSarathi(nowS);
    if (tokens === 0) {
      this.busyUntilS = Number.POSITIVE_INFINITY;
      return;
    }
    const { model } = this;
    const context = this.#decoding ? this.kvTokens + this.runningCount : 0;
    let attentionS = context * model.secondsPerContextToken;
    for (let i = 0; i < this.prefillingCount; i++) {
      const id = this.prefilling[i];
      const chunk = this.#progress.chunk[id];
      if (chunk > 0) attentionS += model.prefillAttentionS(this.#progress.prefillDone[id], chunk);
    }
    this.iterationS = model.seconds(tokens) + attentionS;
    this.busyUntilS = nowS + this.iterationS;
  }

  /** Tokens of the next iteration: prefills if there is room for one, otherwise decoding. */
  #formVllm(nowS: number): number {
    let tokens = 0;
    while (this.#hasRoom()) {
      const need = this.#progress.prefillNeed[this.waiting.at(0)];
      if (tokens > 0 && tokens + need > this.spec.maxBatchTokens) break;
      const id = this.#admit(nowS);
      this.#progress.chunk[id] = need;
      tokens += need;
    }
    this.#decoding = tokens === 0 && this.runningCount > 0;
    if (!this.#decoding) return tokens;
    this.#makeRoom();
    return this.runningCount;
  }

  /** Every running request decodes; what is left of the chunk goes to prefills, the oldest first. */
  #formSarathi(nowS: number): number {
    this.#decoding = this.runningCount > 0;
    if (this.#decoding) this.#makeRoom();
    const progress = this.#progress;
    let tokens = this.runningCount;
    for (let i = 0; i < this.prefillingCount; i++) tokens += this.#giveChunk(this.prefilling[i], tokens);
    while (tokens < this.spec.chunkTokens && this.#hasRoom()) {
      const id = this.#admit(nowS);
      progress.chunk[id] = 0;
      tokens += this.#giveChunk(id, tokens);
    }
    return tokens;
  }

  #giveChunk(id: number, tokens: number): number {
    const progress = this.#progress;
    const left = progress.prefillNeed[id] - progress.prefillDone[id];
    const chunk = Math.max(0, Math.min(left, this.spec.chunkTokens - tokens));
    progress.chunk[id] = chunk;
    return chunk;
  }

  /** Whether the request at the front of the queue can be admitted. */
  #hasRoom(): boolean {
    if (this.waiting.length === 0 || this.runningCount + this.prefillingCount >= this.spec.maxBatch)
      return false;
    const need = blocksFor(this.#progress.prefillNeed[this.waiting.at(0)]);
    return this.totalBlocks - this.usedBlocks - need >= this.watermarkBlocks;
  }

  #admit(nowS: number): number {
    const id = this.waiting.shift();
    const progress = this.#progress;
    this.usedBlocks += blocksFor(progress.prefillNeed[id]);
    this.prefilling[this.prefillingCount++] = id;
    if (Number.isNaN(progress.startS[id])) progress.startS[id] = nowS;
    return id;
  }

  /** Gives every running request the block that its next token may need; evicts the newest while there are too few. */
  #makeRoom(): void {
    for (;;) {
      const need = this.#crossings[this.counter & BLOCK_MASK];
      if (this.usedBlocks + need <= this.totalBlocks) {
        this.usedBlocks += need;
        return;
      }
      this.#evict();
    }
  }

  /** The newest goes back to the front of the queue and must compute its keys and values again. */
  #evict(): void {
    const progress = this.#progress;
    let id: number;
    if (this.prefillingCount > 0) {
      id = this.prefilling[--this.prefillingCount];
      this.usedBlocks -= blocksFor(progress.prefillNeed[id]);
    } else {
      id = this.running[--this.runningCount];
      this.#crossings[this.#crossingOf(id)]--;
      const generated = this.generatedOf(id);
      const context = this.#workload.promptTokens[id] + generated - 1;
      this.usedBlocks -= blocksFor(context);
      this.kvTokens -= context;
      progress.generated[id] = generated;
      this.#findNextEnd();
    }
    progress.prefillNeed[id] = this.#workload.promptTokens[id] + progress.generated[id];
    progress.prefillDone[id] = 0;
    progress.preemptions[id]++;
    this.preemptions++;
    this.waiting.unshift(id);
  }

  /**
   * Goes on to the decode iteration that the next request ends in. Until then the batch stays as it is, since memory only
   * fills up, and each iteration takes longer than the one before by the same time; unless the memory runs out.
   */
  #skipDecodes(): void {
    const [batch, skipped] = [this.runningCount, this.#nextEnd - this.counter - 1];
    let blocks = Math.floor(skipped / BLOCK_TOKENS) * batch;
    for (let i = skipped & BLOCK_MASK; i > 0; i--) blocks += this.#crossings[(this.counter + i) & BLOCK_MASK];
    if (skipped < 1 || this.usedBlocks + blocks > this.totalBlocks) return;
    const contexts = skipped * (this.kvTokens + batch) + (batch * skipped * (skipped + 1)) / 2;
    this.busyUntilS += skipped * this.model.seconds(batch) + contexts * this.model.secondsPerContextToken;
    this.usedBlocks += blocks;
    this.counter += skipped;
    this.kvTokens += skipped * batch;
  }

  // ---- ending iterations

  /** Prefills move on by their chunk; those that are through have a token, and run. */
  #endPrefills(nowS: number): void {
    const progress = this.#progress;
    let kept = 0;
    for (let i = 0; i < this.prefillingCount; i++) {
      const id = this.prefilling[i];
      const done = progress.prefillDone[id] + progress.chunk[id];
      progress.prefillDone[id] = done;
      progress.chunk[id] = 0;
      if (done < progress.prefillNeed[id]) {
        this.prefilling[kept++] = id;
        continue;
      }
      progress.generated[id]++;
      if (Number.isNaN(progress.firstTokenS[id])) progress.firstTokenS[id] = nowS;
      if (progress.generated[id] >= this.#workload.decodeTokens[id]) {
        this.usedBlocks -= blocksFor(done);
        progress.finishS[id] = nowS;
        this.finished++;
        continue;
      }
      progress.joinedAt[id] = this.counter;
      this.running[this.runningCount++] = id;
      this.kvTokens += done;
      this.#crossings[this.#crossingOf(id)]++;
      this.#nextEnd = Math.min(this.#nextEnd, this.#endOf(id));
    }
    this.prefillingCount = kept;
  }

  /** Takes those that have all their tokens out of the batch. */
  #retire(nowS: number): void {
    const progress = this.#progress;
    let [kept, next] = [0, Number.POSITIVE_INFINITY];
    for (let i = 0; i < this.runningCount; i++) {
      const id = this.running[i];
      const end = this.#endOf(id);
      if (end > this.counter) {
        this.running[kept++] = id;
        if (end < next) next = end;
        continue;
      }
      const context = this.#workload.promptTokens[id] + this.#workload.decodeTokens[id] - 1;
      this.usedBlocks -= blocksFor(context);
      this.kvTokens -= context;
      this.#crossings[this.#crossingOf(id)]--;
      progress.generated[id] = this.#workload.decodeTokens[id];
      progress.finishS[id] = nowS;
      this.finished++;
    }
    this.runningCount = kept;
    this.#nextEnd = next;
  }

  #findNextEnd(): void {
    let next = Number.POSITIVE_INFINITY;
    for (let i = 0; i < this.runningCount; i++) next = Math.min(next, this.#endOf(this.running[i]));
    this.#nextEnd = next;
  }

  /** The count at which a running request has all its tokens. */
  #endOf(id: number): number {
    const progress = this.#progress;
    return progress.joinedAt[id] + this.#workload.decodeTokens[id] - progress.generated[id];
  }

  /** Counts, modulo 16, whose decode iteration begins a new block for a running request. */
  #crossingOf(id: number): number {
    const progress = this.#progress;
    const context = this.#workload.promptTokens[id] + progress.generated[id] - 1;
    return (progress.joinedAt[id] - context) & BLOCK_MASK;
  }
}
