/** All rules, in the order in which a person would ask: is it a number, does it move, does it see, does it learn. */
import { clipFractionHigh } from './clip-fraction-high.ts';
import { clipRangeInert } from './clip-range-inert.ts';
import { criticDied, criticFading, criticFlat, criticNegative } from './critic.ts';
import { endsInBurst } from './ends-in-burst.ts';
import { entropyCollapse } from './entropy-collapse.ts';
import { entropyStuck } from './entropy-stuck.ts';
import { gradientExplodes } from './gradient-explodes.ts';
import { guardBusy } from './guard-busy.ts';
import { guardOff } from './guard-off.ts';
import { klCoefRunaway } from './kl-coef-runaway.ts';
import { klHigh } from './kl-high.ts';
import { klImpossible } from './kl-impossible.ts';
import { klSpikes } from './kl-spikes.ts';
import { languageModelRules } from './language-models/all.ts';
import { degenerateGroups } from './language-models/degenerate-groups.ts';
import { malformedOutputs } from './language-models/malformed-outputs.ts';
import { referencePinned } from './language-models/reference-pinned.ts';
import { referenceRunaway } from './language-models/reference-runaway.ts';
import { samplerGap } from './language-models/sampler-gap.ts';
import { tokenEntropy } from './language-models/token-entropy.ts';
import { noReward } from './no-reward.ts';
import { nonFinite } from './non-finite.ts';
import { policyFrozen } from './policy-frozen.ts';
import { ratePinned } from './rate-pinned.ts';
import { restartCriteria } from './restart-criteria.ts';
import { returnCollapse } from './return-collapse.ts';
import { returnFlat } from './return-flat.ts';
import { rewardScale } from './reward-scale.ts';
import { rewardScaleChanged } from './reward-scale-changed.ts';
import type { Rule } from './rule.ts';
import { skippedMinibatches } from './skipped-minibatches.ts';
import { stdGrowing } from './std-growing.ts';
import { targetKlTight } from './target-kl-tight.ts';
import { unusualSettings } from './unusual-settings.ts';

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
  entropyCollapse,
  entropyStuck,
  stdGrowing,
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
  restartCriteria,
  returnFlat,
];
