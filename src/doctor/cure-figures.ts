/** How often the first fix of a rule has cured a run of known fault. Made by `npm run bench -- cures --write`. */
export interface CureFigure {
  /** Sick logs of seeds that nothing was tuned on. */
  readonly runs: number;
  /** Those whose run got well with the fix, trained again from the start. */
  readonly cured: number;
}

/** By the rule's code. */
export const cureFigures: Readonly<Record<string, CureFigure>> = {
  'critic-flat': { runs: 13, cured: 13 },
  'entropy-collapse': { runs: 10, cured: 10 },
  'entropy-stuck': { runs: 3, cured: 3 },
  'kl-high': { runs: 15, cured: 15 },
  'no-reward': { runs: 9, cured: 9 },
  'non-finite': { runs: 11, cured: 11 },
  'policy-frozen': { runs: 9, cured: 9 },
  'reward-scale': { runs: 9, cured: 9 },
  'reward-scale-changed': { runs: 9, cured: 9 },
  'target-kl-tight': { runs: 8, cured: 8 },
};
