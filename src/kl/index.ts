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
