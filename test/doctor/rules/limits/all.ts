/** Every table of limits, and runs on both sides of each. */
import type { AtLimits } from '../support/at-limits.ts';
import { causes } from './causes.ts';
import { critic } from './critic.ts';
import { entropy } from './entropy.ts';
import { judge } from './judge.ts';
import { languageModels } from './language-models.ts';
import { numerics } from './numerics.ts';
import { rewards } from './rewards.ts';
import { settings } from './settings.ts';
import { steps } from './steps.ts';

export const atLimits: readonly AtLimits[] = [
  ...steps,
  ...critic,
  ...entropy,
  ...rewards,
  ...numerics,
  ...settings,
  ...causes,
  ...judge,
  ...languageModels,
];
