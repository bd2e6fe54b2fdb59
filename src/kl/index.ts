/** KL between policies: distributions with exact KL, estimators, the guard that bounds an update, and what adapts to it. */
export {
  COEFFICIENT_MAX,
  COEFFICIENT_MIN,
  type CoefficientRule,
  nextCoefficient,
} from './controllers/coefficient.ts';
export {
  fittingCut,
  isWorthAnotherAttempt,
  type Moved,
  regainedFactor,
  slowerFactor,
} from './controllers/guarded-rate.ts';
export { type AdaptiveRate, nextRate } from './controllers/learning-rate.ts';
export { bernoulli } from './distributions/bernoulli.ts';
export { categorical, MASKED_LOGIT } from './distributions/categorical.ts';
export { composite } from './distributions/composite.ts';
export type {
  Distribution,
  DistributionGraph,
  DistributionKind,
  MutableVector,
  Vector,
} from './distributions/distribution.ts';
export { gaussian, LOG_STD_MAX, LOG_STD_MIN } from './distributions/gaussian.ts';
export { multiCategorical } from './distributions/multi-categorical.ts';
export {
  estimateKl,
  type KlEstimator,
  k1,
  k1Graph,
  k2,
  k2Graph,
  k3,
  k3Graph,
  klEstimators,
  LOG_RATIO_LIMIT,
} from './estimators.ts';
export { GUARD_MARGIN, GUARD_ROUNDING, type Guarded, guard, MAX_BACKTRACKS } from './guard.ts';
export { type GuardFound, guardSearch } from './guard-search.ts';
