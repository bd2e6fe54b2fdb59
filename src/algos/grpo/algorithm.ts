/** GRPO as a run knows it. */

import { typed } from '../../base/typed.ts';
import { loadPreset } from '../../settings/files.ts';
import type { Algorithm } from '../algorithm.ts';
import { type ModelStart, modelStart } from '../text/start.ts';
import { type GrpoConfig, grpoSettings } from './settings.ts';

/** That a gradient is right for the first step of an update alone, where there are more. */
function laterSteps({
  klRefEstimator,
  reference,
  epochs,
  minibatchSize,
  ...config
}: GrpoConfig): string | undefined {
  const batch = config.promptsPerIteration * config.groupSize;
  const steps = epochs * Math.ceil(batch / (minibatchSize ?? batch));
  if (reference === 'none' || steps === 1 || !rightAtFirst.includes(klRefEstimator)) return undefined;
  return `klRefEstimator ${klRefEstimator} has the right gradient in the first of an update's ${steps} steps alone: exact and ratio-k3 have it in all`;
}

/** See docs/kl.md: which gradient a penalty has. */
const rightAtFirst: readonly string[] = ['k2', 'k1-advantage', 'exact-sequence'];

export const grpo: Algorithm<GrpoConfig, ModelStart> = {
  name: 'grpo',
  verb: 'train',
  learnsIn: 'task',
  unit: 'completions',
  settings: grpoSettings,
  preset: loadPreset,
  start: modelStart,
  savesBeginning: true,
  remark: ({ config, started, subject }) =>
    [
      started
        ? undefined
        : `it begins with random weights: ${typed('clone', subject)} makes a model to start --from`,
      laterSteps(config),
    ]
      .filter(text => text !== undefined)
      .join('; ') || undefined,
  preflight: async options => (await import('./preflight.ts')).preflight(options),
  open: async opening => (await import('./learner.ts')).openLearner(opening),
  openPolicy: async opening => (await import('../text/policy.ts')).textPolicy(opening),
  openStart: async (start, subject) => (await import('../text/policy.ts')).startPolicy(start, subject),
};
