/** Drawing a token: temperature, top-k and top-p, and the log-probability of the distribution that was drawn from. */
import { fail } from './errors.ts';

/** How a token is drawn from logits. */
export interface SamplingOptions {
  /** Logits are divided by it; 0 takes the most likely token. */
  readonly temperature: number;
  /** Only so many of the most likely tokens; 0 is all. */
  readonly topK: number;
  /** Only the most likely tokens that together have this probability; 1 is all. */
  readonly topP: number;
}

/** A token that was drawn, and how likely it was. */
export interface Draw {
  token: number;
  /** Of the distribution that was drawn from: after temperature and truncation. */
  logProb: number;
  /** Log of the probability, at this temperature, that truncation kept; 0 where it kept all. */
  logKept: number;
}

/** Draws from rows of logits; keeps its working memory. */
export class TokenDrawer {
  readonly #vocabulary: number;
  readonly #weights: Float64Array;
  readonly #sorted: Float64Array;
  readonly #order: Int32Array;
  readonly draw: Draw = { token: 0, logProb: 0, logKept: 0 };

  constructor(vocabulary: number) {
    this.#vocabulary = vocabulary;
    this.#weights = new Float64Array(vocabulary);
    this.#sorted = new Float64Array(vocabulary);
    this.#order = new Int32Array(vocabulary);
  }

  /** Draws with a uniform number from [0, 1) out of the logits at `at`; the result is `draw`, anew at each call. */
  from(logits: Float32Array, at: number, options: SamplingOptions, uniform: number): Draw {
    const { temperature, topK, topP } = options;
    const n = this.#vocabulary;
    const weights = this.#weights;
    let top = 0;
    for (let i = 1; i < n; i++) if (logits[at + i] > logits[at + top]) top = i;
    const { draw } = this;
    if (temperature === 0) {
      draw.token = top;
      draw.logProb = 0;
      draw.logKept = 0;
      return draw;
    }
    const largest = logits[at + top];
    let total = 0;
    for (let i = 0; i < n; i++) {
      weights[i] = Math.exp((logits[at + i] - largest) / temperature);
      total += weights[i];
    }
    if (!(total > 0 && total < Number.POSITIVE_INFINITY))
      fail(
        'the model gave logits that are not finite: its weights are damaged; go back to an earlier checkpoint',
      );
    const least = this.#leastKept(topK, topP, total);
    let kept = total;
    if (least > 0) {
      kept = 0;
      for (let i = 0; i < n; i++) if (weights[i] >= least) kept += weights[i];
    }
    const target = uniform * kept;
    let sum = 0;
    let token = top;
    for (let i = 0; i < n; i++) {
      if (weights[i] < least || weights[i] === 0) continue;
      token = i;
      sum += weights[i];
      if (sum > target) break;
    }
    draw.token = token;
    draw.logProb = Math.log(weights[token] / kept);
    draw.logKept = least > 0 ? Math.log(kept / total) : 0;
    return draw;
  }

  /** The smallest weight that truncation keeps; equal ones are kept together. */
  #leastKept(topK: number, topP: number, total: number): number {
    const n = this.#vocabulary;
    let least = 0;
    let mass = total;
    if (topK > 0 && topK < n) {
      this.#sorted.set(this.#weights);
      least = kthLargest(this.#sorted, topK);
      mass = 0;
      for (let i = 0; i < n; i++) if (this.#weights[i] >= least) mass += this.#weights[i];
    }
    if (topP < 1) {
      // Tokens below this share cannot, all together, have what may be left out: only the others are sorted.
      const floor = Math.max(least, (mass * (1 - topP)) / n);
      let count = 0;
      for (let i = 0; i < n; i++) if (this.#weights[i] >= floor) this.#order[count++] = i;
      const candidates = this.#sorted.subarray(0, count);
      for (let i = 0; i < count; i++) candidates[i] = this.#weights[this.#order[i]];
      candidates.sort();
      let sum = 0;
      for (let i = count - 1; i >= 0; i--) {
        sum += candidates[i];
        least = candidates[i];
        if (sum >= topP * mass) break;
      }
    }
    return least;
  }
}

/** The k-th largest value, by quickselect; reorders the values. */
function kthLargest(values: Float64Array, k: number): number {
  let [low, high] = [0, values.length - 1];
  const target = values.length - k;
  while (low < high) {
    const pivot = values[(low + high) >> 1];
    let [i, j] = [low, high];
    while (i <= j) {
      while (values[i] < pivot) i++;
      while (values[j] > pivot) j--;
      if (i <= j) {
        const swap = values[i];
        values[i++] = values[j];
        values[j--] = swap;
      }
    }
    if (target <= j) high = j;
    else if (target >= i) low = i;
    else return values[target];
  }
  return values[target];
}
