export { blockMedians, jitter } from './blocks.ts';
export { type AbruptStep, abruptStep, type ChangePoint, changePoint } from './change-point.ts';
export { median, type Numbers, quantile, quantileOfSorted, share, sorted, spread } from './order.ts';
export { type Spike, type SpikeLimits, spikes } from './spikes.ts';
export { longestAbove, type Stretch, stretchesAbove } from './stretches.ts';
export { type Trend, theilSen, trend } from './trend.ts';
