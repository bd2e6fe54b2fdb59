/** What all charts of a study share: the trial that is lit, those within the brushes, the colour of each. */
export interface TrialChart {
  /** Null for a trial that has no result that counts. */
  readonly color: (number: number) => string | null;
  readonly lit: number | null;
  readonly within: ReadonlySet<number>;
  readonly onLight: (number: number | null) => void;
  /** A click: the trial stays lit. */
  readonly onPick: (number: number | null) => void;
}
