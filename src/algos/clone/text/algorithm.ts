/** The cloning of a task's demonstrations as a run knows it. */

import { loadPreset } from '../../../settings/files.ts';
import type { Algorithm } from '../../algorithm.ts';
import { type ModelStart, modelStart } from '../../text/start.ts';
import { type CloneTextConfig, cloneTextSettings } from './settings.ts';

export const cloneText: Algorithm<CloneTextConfig, ModelStart> = {
  name: 'clone-text',
  verb: 'clone',
  learnsIn: 'task',
  unit: 'demonstrations',
  settings: cloneTextSettings,
  preset: task => loadPreset(`${task}-clone`),
  start: modelStart,
  savesBeginning: true,
  open: async opening => (await import('./learner.ts')).openLearner(opening),
  openPolicy: async opening => (await import('../../text/policy.ts')).textPolicy(opening),
  openStart: async (start, subject) => (await import('../../text/policy.ts')).startPolicy(start, subject),
};
