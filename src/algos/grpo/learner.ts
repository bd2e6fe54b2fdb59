/** GRPO's trainer on the task of a run. */

import { CompletionLog } from '../../runs/completions.ts';
import type { Opening } from '../algorithm.ts';
import { openTextLearner } from '../text/learner.ts';
import type { ModelStart } from '../text/start.ts';
import { snapshotFrom } from './checkpoint.ts';
import { countersGoingOn } from './control.ts';
import { createGrpoTrainer } from './iteration.ts';
import { type GrpoConfig, grpoSettings } from './settings.ts';

/** Makes the task and the model, and the trainer on them. */
export const openLearner = (opening: Opening<GrpoConfig, ModelStart>) =>
  openTextLearner(opening, {
    settings: grpoSettings,
    create: createGrpoTrainer,
    snapshotFrom,
    countersGoingOn,
    besideLog(trainer, runDir, iteration) {
      const log = new CompletionLog(runDir, iteration);
      return () => log.add(trainer.records);
    },
  });
