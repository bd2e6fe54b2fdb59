/** All rules, in the order in which a person would ask: is it a number, does it move, does it see, does it learn. */

import { criticDied } from './critic/critic-died.ts';
import { criticFading } from './critic/critic-fading.ts';
import { criticFlat } from './critic/critic-flat.ts';
import { criticNegative } from './critic/critic-negative.ts';
import { overEstimation } from './critic/over-estimation.ts';
import { rewardScale } from './critic/reward-scale.ts';
import { timeLimits } from './critic/time-limits.ts';
import { actionsSaturated } from './entropy/actions-saturated.ts';
import { entropyCollapse } from './entropy/entropy-collapse.ts';
import { entropyExplodes } from './entropy/entropy-explodes.ts';
import { entropyStuck } from './entropy/entropy-stuck.ts';
import { stdGrowing } from './entropy/std-growing.ts';
import { languageModelRules } from './language-models/all.ts';
import { degenerateGroups } from './language-models/degenerate-groups.ts';
import { malformedOutputs } from './language-models/malformed-outputs.ts';
import { referencePinned } from './language-models/reference-pinned.ts';
import { referenceRunaway } from './language-models/reference-runaway.ts';
import { samplerGap } from './language-models/sampler-gap.ts';
import { tokenEntropy } from './language-models/token-entropy.ts';
import { endsInBurst } from './numerics/ends-in-burst.ts';
import { gradientExplodes } from './numerics/gradient-explodes.ts';
import { klImpossible } from './numerics/kl-impossible.ts';
import { metricImpossible } from './numerics/metric-impossible.ts';
import { nonFinite } from './numerics/non-finite.ts';
import { skippedMinibatches } from './numerics/skipped-minibatches.ts';
import { unitsDead } from './numerics/units-dead.ts';
import { usualInPpo } from './numerics/usual-in-ppo.ts';
import { noReward } from './rewards/no-reward.ts';
import { returnCollapse } from './rewards/return-collapse.ts';
import { returnFlat } from './rewards/return-flat.ts';
import { rewardScaleChanged } from './rewards/reward-scale-changed.ts';
import { stateLost } from './rewards/state-lost.ts';
import type { Rule } from './rule.ts';
import { inertSetting } from './settings/inert-setting.ts';
import { restartCriteria } from './settings/restart-criteria.ts';
import { unusualSettings } from './settings/unusual-settings.ts';
import { clipFractionHigh } from './steps/clip-fraction-high.ts';
import { clipRangeInert } from './steps/clip-range-inert.ts';
import { guardBusy } from './steps/guard-busy.ts';
import { guardOff } from './steps/guard-off.ts';
import { klCoefRunaway } from './steps/kl-coef-runaway.ts';
import { klHigh } from './steps/kl-high.ts';
import { klSpikes } from './steps/kl-spikes.ts';
import { policyFrozen } from './steps/policy-frozen.ts';
import { ratePinned } from './steps/rate-pinned.ts';
import { targetKlTight } from './steps/target-kl-tight.ts';

export type { Rule, RuleText } from './rule.ts';
export { type Signals, signalsOf } from './signals.ts';

/** Every rule, in the order in which they are tried. */
export const rules: readonly Rule[] = [
  nonFinite,
  skippedMinibatches,
  endsInBurst,
  klImpossible,
  samplerGap,
  noReward,
  rewardScaleChanged,
  stateLost,
  rewardScale,
  targetKlTight,
  policyFrozen,
  klHigh,
  klSpikes,
  clipRangeInert,
  clipFractionHigh,
  criticFlat,
  criticDied,
  criticFading,
  criticNegative,
  overEstimation,
  timeLimits,
  entropyCollapse,
  entropyStuck,
  stdGrowing,
  entropyExplodes,
  actionsSaturated,
  unitsDead,
  returnCollapse,
  ratePinned,
  klCoefRunaway,
  guardBusy,
  guardOff,
  gradientExplodes,
  malformedOutputs,
  degenerateGroups,
  referenceRunaway,
  referencePinned,
  tokenEntropy,
  ...languageModelRules,
  unusualSettings,
  inertSetting,
  metricImpossible,
  usualInPpo,
  restartCriteria,
  returnFlat,
];
