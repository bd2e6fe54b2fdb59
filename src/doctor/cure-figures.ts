/** How often the first fix of a rule has cured a run of known fault. Made by `npm run bench -- cures --write`. */
export interface CureFigure {
  /** Sick logs of seeds that nothing was tuned on. */
  readonly runs: number;
  /** Those whose run got well with the fix, trained again from the start. */
  readonly cured: number;
}

/** By the rule's code. */
export const cureFigures: Readonly<Record<string, CureFigure>> = {
  'clip-range-open': { runs: 30, cured: 15 },
  'cold-sampling': { runs: 11, cured: 11 },
  'critic-flat': { runs: 13, cured: 13 },
  'degenerate-groups': { runs: 33, cured: 33 },
  'entropy-collapse': { runs: 10, cured: 10 },
  'entropy-stuck': { runs: 1, cured: 1 },
  'entropy-weight': { runs: 24, cured: 24 },
  'group-of-one': { runs: 10, cured: 10 },
  'kl-high': { runs: 30, cured: 30 },
  'kl-sign': { runs: 30, cured: 30 },
  'length-explosion': { runs: 27, cured: 27 },
  'malformed-outputs': { runs: 20, cured: 20 },
  'many-epochs': { runs: 9, cured: 9 },
  'mask-counts-padding': { runs: 10, cured: 10 },
  'no-reward': { runs: 24, cured: 24 },
  'non-finite': { runs: 41, cured: 41 },
  'policy-frozen': { runs: 9, cured: 9 },
  'ratio-biased': { runs: 26, cured: 26 },
  'reference-outweighs': { runs: 30, cured: 30 },
  'reference-runaway': { runs: 7, cured: 7 },
  'reward-hacking': { runs: 13, cured: 13 },
  'reward-scale': { runs: 9, cured: 9 },
  'reward-scale-changed': { runs: 9, cured: 9 },
  'sampler-gap': { runs: 27, cured: 27 },
  'target-kl-tight': { runs: 8, cured: 8 },
  'truncation-zeroes-reward': { runs: 9, cured: 9 },
};
