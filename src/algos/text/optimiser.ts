/**
 * A language model's weights and Adam's moments of them, twice: as they stand, and as a draft that an update is made in.
 * A step whose loss or gradient is not finite changes nothing and is counted.
 */

import type { LanguageModel } from '../../lm/model.ts';
import { adamW } from '../../nn/adamw.ts';
import { norm } from '../../nn/vector-kernels.ts';
import { copyOf, newState, type OptimiserState, refuseOtherSizes } from '../update/state.ts';

/** The settings of a step. */
export interface StepConfig {
  readonly gradientClip: number | null;
  readonly adamBeta1: number;
  readonly adamBeta2: number;
  readonly adamEpsilon: number;
  readonly weightDecay: number;
}

const NAMES = ['weights', 'm', 'v'] as const;

export class TextOptimiser {
  /** Where the gradient of the next step is written. */
  readonly gradient: Float32Array;
  /** Of the draft: steps that were taken, those that were not finite, and how many of those in a row by now. */
  taken = 0;
  skipped = 0;
  streak = 0;
  readonly #model: LanguageModel;
  #state: OptimiserState;
  #draft: OptimiserState;

  constructor(model: LanguageModel) {
    this.#model = model;
    this.gradient = new Float32Array(model.layout.size);
    this.#state = newState(model.weights);
    this.#draft = copyOf(this.#state);
  }

  /** As it stands. */
  get state(): Readonly<OptimiserState> {
    return this.#state;
  }

  /** Of the draft, for whoever made an attempt in it. */
  get counts(): { taken: number; skipped: number; streak: number } {
    const { taken, skipped, streak } = this;
    return { taken, skipped, streak };
  }

  /** The weights that the update under way has come to. */
  get draft(): Float32Array {
    return this.#draft.weights;
  }

  /** Begins an update from what stands, after so many steps in a row that were not finite. */
  begin(streak: number): void {
    for (const name of NAMES) this.#draft[name].set(this.#state[name]);
    [this.taken, this.skipped, this.streak] = [0, 0, streak];
  }

  /** Steps along the gradient, after so many steps of the run; gives the gradient's norm, or undefined where it was left out. */
  step(loss: number, learningRate: number, stepsBefore: number, config: StepConfig): number | undefined {
    const length = norm(this.gradient);
    if (!Number.isFinite(length) || !Number.isFinite(loss)) {
      this.skipped++;
      this.streak++;
      return undefined;
    }
    this.streak = 0;
    const { gradientClip } = config;
    adamW(this.#model.layout, this.#draft, {
      gradient: this.gradient,
      gradientScale: gradientClip === null ? 1 : gradientClip / Math.max(length, gradientClip),
      learningRate,
      step: stepsBefore + this.taken + 1,
      beta1: config.adamBeta1,
      beta2: config.adamBeta2,
      epsilon: config.adamEpsilon,
      weightDecay: config.weightDecay,
    });
    this.taken++;
    return length;
  }

  /** Whether a step overflowed what was finite before it. */
  get draftIsFinite(): boolean {
    return Number.isFinite(norm(this.#draft.weights));
  }

  /** The draft stands, with other weights where the guard stepped back. */
  adopt(weights = this.#draft.weights): void {
    this.#draft.weights = weights;
    [this.#state, this.#draft] = [this.#draft, this.#state];
    this.#model.weights = this.#state.weights;
  }

  /** What a checkpoint held, if it is of this model. */
  restore({ weights, m, v }: Readonly<OptimiserState>): void {
    refuseOtherSizes({ weights, m, v }, this.#model.layout.size, 'model');
    this.#state = copyOf({ weights, m, v });
    this.#model.weights = this.#state.weights;
  }
}
