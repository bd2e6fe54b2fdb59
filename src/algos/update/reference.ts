/** A reference that follows the policy, for PPO and GRPO alike. */
import type { TrainEvent } from '../events.ts';

/** After so many iterations: the reference stays, becomes the policy, or moves a little towards it. Written in place. */
export function moveReference(
  config: {
    readonly reference: 'none' | 'frozen' | 'refreshed' | 'averaged';
    readonly referenceEvery: number;
    readonly referenceDecay: number;
  },
  iteration: number,
  reference: Float32Array,
  weights: Float32Array,
  /** To the reference, where it was measured. */
  kl: number | undefined,
  events: TrainEvent[],
): void {
  switch (config.reference) {
    case 'none':
    case 'frozen':
      return;
    case 'refreshed':
      if (iteration % config.referenceEvery !== 0) return;
      events.push({ type: 'reference', ...(kl === undefined ? {} : { kl }) });
      reference.set(weights);
      return;
    case 'averaged': {
      const keep = config.referenceDecay;
      for (let i = 0; i < reference.length; i++) reference[i] = keep * reference[i] + (1 - keep) * weights[i];
      return;
    }
    default:
      config.reference satisfies never;
  }
}
