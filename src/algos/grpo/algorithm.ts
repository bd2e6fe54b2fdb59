/** GRPO as a run knows it. */

import { typed } from '../../base/typed.ts';
import { loadPreset } from '../../settings/files.ts';
import type { Algorithm } from '../algorithm.ts';
import { type ModelStart, modelStart } from '../text/model.ts';
import { type GrpoConfig, grpoSettings } from './settings.ts';

export const grpo: Algorithm<GrpoConfig, ModelStart> = {
  name: 'grpo',
  verb: 'train',
  learnsIn: 'task',
  unit: 'completions',
  settings: grpoSettings,
  preset: loadPreset,
  start: modelStart,
  savesBeginning: true,
  remark: ({ started, subject }) =>
    started
      ? undefined
      : `it begins with random weights: ${typed('clone', subject)} makes a model to start --from`,
  preflight: async options => (await import('./preflight.ts')).preflight(options),
  open: async opening => (await import('./learner.ts')).openLearner(opening),
  openPolicy: async opening => (await import('../text/policy.ts')).textPolicy(opening),
  openStart: async (start, subject) => (await import('../text/policy.ts')).startPolicy(start, subject),
};
