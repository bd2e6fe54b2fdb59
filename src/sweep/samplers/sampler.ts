/** What proposes the settings of the next trial. */
import type { Params, Trial } from '../../studies/schema.ts';

/** What a sampler sees of the trials so far. A trial that violates a constraint is worse than any that does not. */
export type Seen = Pick<Trial, 'number' | 'state' | 'params' | 'value' | 'rungs' | 'violations'>;

export interface Sampler {
  /**
   * The settings of trial `number`; undefined where there is nothing left to try. All randomness is of the study's own seed
   * and that number, so that a study that was killed asks for the same again where it has seen the same.
   */
  ask(number: number, seen: readonly Seen[]): Params | undefined;
}
