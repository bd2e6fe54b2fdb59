import { Rng } from '../../random/rng.ts';

/** Trials of a study at the most, for samplers: what is left of a seed's 53 bits beside a word. */
const MAX_TRIALS = 2 ** 21;

/** The random stream of one trial: a function of the search's seed and the trial's number alone, whatever was drawn before. */
export function streamOf(searchSeed: number, trial: number): Rng {
  if (!Number.isInteger(trial) || trial < 0 || trial >= MAX_TRIALS)
    throw new RangeError(
      `trial ${trial} is not an integer in 0..${MAX_TRIALS - 1}: numbers of trials count from 0`,
    );
  return new Rng(trial * 2 ** 32 + new Rng(searchSeed).nextUint32());
}
