/** The noise that actions are sampled with. */
import type { Distribution } from '../kl/distributions/distribution.ts';
import type { Rng } from '../random/rng.ts';

/**
 * Noise that may remember: with a correlation ρ, each number is ρ times the one before it plus fresh noise, so that
 * exploration pushes in one direction for some 1/(1-ρ) steps. By itself every number is still standard normal, so that
 * actions have the policy's distribution and are scored by it (Hollenstein et al. 2024, arXiv 2312.11091).
 */
export class ActionNoise {
  readonly #distribution: Distribution;
  readonly #correlation: number;
  readonly #last: Float32Array;
  #fresh = true;

  constructor(distribution: Distribution, envs: number, correlation: number) {
    if (correlation > 0 && distribution.kind !== 'gaussian') {
      throw new RangeError(
        `noiseCorrelation ${correlation} has no effect on ${distribution.name}: only continuous actions remember their noise; remove it`,
      );
    }
    this.#distribution = distribution;
    this.#correlation = correlation;
    this.#last = new Float32Array(envs * distribution.noiseSize);
  }

  /** (envs, noiseSize) */
  fill(rng: Rng, out: Float32Array): void {
    this.#distribution.fillNoise(rng, out);
    if (this.#correlation === 0) return;
    const keep = this.#fresh ? 0 : this.#correlation;
    const add = Math.sqrt(1 - keep * keep);
    for (let i = 0; i < out.length; i++) out[i] = keep * this.#last[i] + add * out[i];
    this.#last.set(out);
    this.#fresh = false;
  }

  state(): number[] | null {
    return this.#fresh ? null : [...this.#last];
  }

  restore(state: readonly number[] | null): void {
    if (state && state.length !== this.#last.length) {
      throw new RangeError(
        `action noise: the state has ${state.length} numbers, ${this.#last.length} are needed`,
      );
    }
    this.#fresh = state === null;
    if (state) this.#last.set(state);
  }
}
