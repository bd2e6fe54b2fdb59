/** Every table of limits, and runs on both sides of each. */
import type { AtLimits } from '../support/at-limits.ts';
import { causes } from './causes.ts';
import { completions } from './completions.ts';
import { course } from './course.ts';
import { critic } from './critic.ts';
import { earlyStops } from './early-stops.ts';
import { entropy } from './entropy.ts';
import { entropyStuck } from './entropy-stuck.ts';
import { guard } from './guard.ts';
import { judge } from './judge.ts';
import { languageModels } from './language-models.ts';
import { notFinite } from './non-finite.ts';
import { numerics } from './numerics.ts';
import { lostReturns } from './returns.ts';
import { rewardScale } from './reward-scale.ts';
import { rewards } from './rewards.ts';
import { samplerGap } from './sampler-gap.ts';
import { settings } from './settings.ts';
import { steps } from './steps.ts';

export const atLimits: readonly AtLimits[] = [
  ...steps,
  ...earlyStops,
  ...guard,
  ...critic,
  ...entropy,
  ...entropyStuck,
  ...rewards,
  ...rewardScale,
  ...lostReturns,
  ...numerics,
  ...notFinite,
  ...settings,
  ...causes,
  ...judge,
  ...course,
  ...languageModels,
  ...completions,
  ...samplerGap,
];
