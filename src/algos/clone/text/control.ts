/** The learning rate of cloning. There is no policy before to stay near, so nothing bounds its updates. */
import type { UpdateCounters } from '../../update/guarded.ts';
import { rateFactor } from '../../update/schedule.ts';
import type { CloneTextConfig } from './settings.ts';

/** The rate when this share of the run is done. */
export const rateAt = (config: CloneTextConfig, counters: UpdateCounters, progress: number): number =>
  config.learningRate * counters.recoveryFactor * rateFactor(config, progress);
