import type { KlContract } from '../../src/metrics/registry.ts';

/** What a plot is about. */
export interface PlotInfo {
  readonly metric: string;
  readonly title: string;
  readonly unit: string;
  readonly doc: string;
  readonly healthy: string | null;
  /** The name in the log, where it is another. */
  readonly theirs: string;
  /** What the bands of `kl/step` follow, where they hold for it; else null. */
  readonly contract: KlContract | null;
  /** Whether a schedule had ended at its last value. */
  readonly atRest: boolean;
  /** What the file of an exported plot is called after. */
  readonly of: string;
}
