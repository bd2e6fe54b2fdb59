import type { CanonicalRun } from '../../canonical.ts';
import type { Fix } from '../../fixes.ts';
import { change } from '../words.ts';

/** What is advised for a critic that does not follow. */
export const OWN_RATE = 'give the critic a learning rate of its own, 3 times that of the policy';
export const OWN_NETWORK = 'give the critic its own network and a learning rate 3 times that of the policy';
export const moreWeight = (run: CanonicalRun): Fix | undefined =>
  change(run, { valueCoef: 1 }, 'give the value loss a weight of 1');
