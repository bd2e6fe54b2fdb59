/** The cloning of an environment's demonstrators as a run knows it. */

import { loadPreset } from '../../../settings/files.ts';
import { ofTrainingPreset } from '../../../settings/resolve.ts';
import type { Algorithm } from '../../algorithm.ts';
import { type ClonePolicyConfig, clonePolicySettings } from './settings.ts';

export const clonePolicy: Algorithm<ClonePolicyConfig> = {
  name: 'clone',
  verb: 'clone',
  learnsIn: 'env',
  unit: 'demonstrations',
  settings: clonePolicySettings,
  preset: env => ofTrainingPreset(clonePolicySettings, loadPreset(env)),
  open: async opening => (await import('./learner.ts')).openLearner(opening),
  openPolicy: async opening => (await import('../../agents/policy.ts')).agentPolicy(opening),
};
