/** The cloning of a task's demonstrations, on the task of a run. */
import type { Opening } from '../../algorithm.ts';
import { openTextLearner } from '../../text/learner.ts';
import type { ModelStart } from '../../text/start.ts';
import { continuedCounters } from '../../update/guarded.ts';
import { snapshotFrom } from './checkpoint.ts';
import { createCloneTextTrainer } from './iteration.ts';
import { type CloneTextConfig, cloneTextSettings } from './settings.ts';

/** Makes the task and the model, and the trainer on them. */
export const openLearner = (opening: Opening<CloneTextConfig, ModelStart>) =>
  openTextLearner(opening, {
    settings: cloneTextSettings,
    create: createCloneTextTrainer,
    snapshotFrom,
    countersGoingOn: continuedCounters,
  });
