/** What is said of one thing that is logged. */
import type { KlContract } from './kl-bands.ts';

/** What distinguishes two numbers that are both called "KL"; those that differ in any of it share no threshold. */
export interface KlSpec {
  /** Which policies: before and after an update, policy and reference, or the sampling and the scoring program. */
  readonly pair: 'step' | 'ref' | 'sampler';
  /** The order in the divergence. */
  readonly direction: 'old‖new' | 'new‖ref' | 'sampler‖scorer';
  readonly estimator: 'exact' | 'k1' | 'k2' | 'k3';
  /** What one sample is. */
  readonly per: 'action' | 'token' | 'sequence';
  /** `rollout`: one measurement over all its samples after the update; `minibatches`: mean over those of the update. */
  readonly aggregation: 'rollout' | 'minibatches' | 'p99' | 'max';
}

/** A family of entries on the page and in the documentation. */
export interface MetricGroup {
  readonly id: string;
  readonly title: string;
}

/** One thing that is logged. */
export interface Metric {
  /** As in the log: `loss/value`. In a family the last part is a placeholder: `reward/part/<name>`. */
  readonly id: string;
  /** The id of a {@link MetricGroup}. */
  readonly group: string;
  readonly title: string;
  /** `1` for a pure number, else `nats`, `s`, `steps`, `steps/s`, `reward` … */
  readonly unit: string;
  readonly better: 'lower' | 'higher' | 'none';
  /** What it is, in plain words. */
  readonly doc: string;
  /** What it looks like when all is well, and what it says when not. */
  readonly healthy?: string;
  /** Only for what is a KL. */
  readonly kl?: KlSpec;
  /** What of the run's contract its KL bands follow; only for what has bands. */
  readonly heldTo?: readonly (keyof KlContract)[];
}
