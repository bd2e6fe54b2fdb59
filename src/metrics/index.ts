/** What is measured, under which names, and where it is written. `registry.ts` alone also runs in a browser. */

export { RunError } from '../base/errors.ts';
export {
  EpisodeStats,
  type EpisodeStatsState,
  explainedVariance,
  MeanAccumulator,
  RunningStats,
  type RunningStatsState,
  weightedMean,
} from './aggregate.ts';
export {
  findMetric,
  headlineMetrics,
  isMetricId,
  type KlBand,
  type KlBandName,
  type KlContract,
  type KlSpec,
  klBand,
  klBands,
  klBandsFor,
  klMarks,
  type Metric,
  type MetricGroup,
  metricGroups,
  metrics,
  requireMetric,
  type Tone,
} from './registry.ts';
export {
  decodeEvent,
  decodeRow,
  encodeEvent,
  encodeRow,
  type LogEvent,
  type Row,
  withoutTimes,
} from './row.ts';
export { csvSink } from './sinks/csv.ts';
export { jsonlSink } from './sinks/jsonl.ts';
export type { Sink } from './sinks/sink.ts';
export { type TensorboardOptions, tensorboardSink } from './sinks/tensorboard.ts';
