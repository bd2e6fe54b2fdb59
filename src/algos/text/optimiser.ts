/**
 * A language model's weights and Adam's moments of them, twice: as they stand, and as a draft that an update is made in.
 * A step whose loss or gradient is not finite changes nothing and is counted; what the others say is summed.
 */

import type { LanguageModel } from '../../lm/model.ts';
import { adamW } from '../../nn/adamw.ts';
import { norm } from '../../nn/vector-kernels.ts';
import { copyOf, newState, type OptimiserState, refuseOtherSizes } from '../update/state.ts';
import type { Minibatch, TextPrograms } from './programs.ts';

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
  /** Of the draft: steps that were taken, those that were not finite, and how many of those in a row by now. */
  taken = 0;
  skipped = 0;
  streak = 0;
  /** Sums over the steps that were taken: the loss's diagnostics, and `gradNorm`. */
  sums: Record<string, number> = {};
  readonly #programs: TextPrograms;
  readonly #gradient: Float32Array;
  readonly #model: LanguageModel;
  #state: OptimiserState;
  #draft: OptimiserState;

  constructor(model: LanguageModel, programs: TextPrograms) {
    this.#model = model;
    this.#programs = programs;
    this.#gradient = new Float32Array(model.layout.size);
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
    [this.taken, this.skipped, this.streak, this.sums] = [0, 0, streak, {}];
  }

  /**
   * Steps along the gradient of a minibatch, after so many steps of the run; false where it was left out because something was
   * not finite.
   */
  async step(
    minibatch: Minibatch,
    { learningRate, stepsDone }: { readonly learningRate: number; readonly stepsDone: number },
    config: StepConfig,
  ): Promise<boolean> {
    const found = await this.#programs.gradient(this.draft, minibatch, this.#gradient);
    const gradNorm = norm(this.#gradient);
    if (!Number.isFinite(gradNorm) || !Number.isFinite(found.loss)) {
      this.skipped++;
      this.streak++;
      return false;
    }
    this.streak = 0;
    const { gradientClip } = config;
    adamW(this.#model.layout, this.#draft, {
      gradient: this.#gradient,
      gradientScale: gradientClip === null ? 1 : gradientClip / Math.max(gradNorm, gradientClip),
      learningRate,
      step: stepsDone + this.taken + 1,
      beta1: config.adamBeta1,
      beta2: config.adamBeta2,
      epsilon: config.adamEpsilon,
      weightDecay: config.weightDecay,
    });
    this.taken++;
    for (const [name, value] of Object.entries({ ...found, gradNorm }))
      this.sums[name] = (this.sums[name] ?? 0) + value;
    return true;
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
