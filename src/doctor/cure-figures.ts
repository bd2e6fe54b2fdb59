/** How often the first fix of a rule has cured a run of known fault. Made by `npm run bench -- cures --write`. */
export interface CureFigure {
  /** Sick logs of seeds that nothing was tuned on. */
  readonly runs: number;
  /** Those whose run got well with the fix, trained again from the start. */
  readonly cured: number;
}

/** By the rule's code. */
export const cureFigures: Readonly<Record<string, CureFigure>> = {
  'clip-range-open': { runs: 6, cured: 3 },
  'cold-sampling': { runs: 5, cured: 5 },
  'critic-flat': { runs: 13, cured: 13 },
  'degenerate-groups': { runs: 16, cured: 16 },
  'entropy-collapse': { runs: 10, cured: 10 },
  'entropy-stuck': { runs: 1, cured: 1 },
  'entropy-weight': { runs: 6, cured: 6 },
  'group-of-one': { runs: 4, cured: 4 },
  'kl-high': { runs: 20, cured: 16 },
  'kl-sign': { runs: 12, cured: 12 },
  'length-explosion': { runs: 12, cured: 12 },
  'malformed-outputs': { runs: 4, cured: 4 },
  'mask-counts-padding': { runs: 6, cured: 6 },
  'no-reward': { runs: 15, cured: 15 },
  'non-finite': { runs: 17, cured: 17 },
  'policy-frozen': { runs: 9, cured: 9 },
  'ratio-biased': { runs: 9, cured: 9 },
  'reference-outweighs': { runs: 9, cured: 9 },
  'reference-runaway': { runs: 1, cured: 0 },
  'reward-hacking': { runs: 5, cured: 5 },
  'reward-scale': { runs: 9, cured: 9 },
  'reward-scale-changed': { runs: 9, cured: 9 },
  'sampler-gap': { runs: 12, cured: 12 },
  'target-kl-tight': { runs: 8, cured: 8 },
};
