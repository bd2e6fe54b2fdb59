/** The rules for language models that are tuned on rewards of completions. */
import type { Rule } from '../rule.ts';
import { clipRangeOpen } from './clip-range-open.ts';
import { clipRangeTiny } from './clip-range-tiny.ts';
import { coldSampling } from './cold-sampling.ts';
import { entropyWeight } from './entropy-weight.ts';
import { groupOfOne } from './group-of-one.ts';
import { klInReward } from './kl-in-reward.ts';
import { klSign } from './kl-sign.ts';
import { lengthExplosion } from './length-explosion.ts';
import { manyEpochs } from './many-epochs.ts';
import { mask } from './mask.ts';
import { ratioBiased } from './ratio-biased.ts';
import { referenceOutweighs } from './reference-outweighs.ts';
import { rewardCollapse } from './reward-collapse.ts';
import { rewardHacking } from './reward-hacking.ts';
import { rewardWithoutMeaning } from './reward-without-meaning.ts';
import { standsStill } from './stands-still.ts';
import { truncationZeroesReward } from './truncation-zeroes-reward.ts';
import { usualInGrpo } from './usual-in-grpo.ts';

export const languageModelRules: readonly Rule[] = [
  groupOfOne,
  mask,
  truncationZeroesReward,
  ratioBiased,
  clipRangeTiny,
  clipRangeOpen,
  manyEpochs,
  coldSampling,
  standsStill,
  klSign,
  referenceOutweighs,
  entropyWeight,
  rewardHacking,
  klInReward,
  rewardCollapse,
  lengthExplosion,
  rewardWithoutMeaning,
  usualInGrpo,
];
