/** What a plot is about. */
export interface PlotInfo {
  readonly metric: string;
  readonly title: string;
  readonly unit: string;
  readonly doc: string;
  readonly healthy: string | null;
  /** The name in the log, where it is another. */
  readonly theirs: string;
  /** Whether the bands of `kl/step` hold for it. */
  readonly banded: boolean;
  /** What the file of an exported plot is called after. */
  readonly of: string;
}
