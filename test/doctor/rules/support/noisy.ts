import type { Rng } from '../../../../src/random/index.ts';

/** Values of a function of the row, each off by up to half of a share of it. */
export const noisy = (rng: Rng, length: number, at: (i: number) => number, spread: number): number[] =>
  Array.from({ length }, (_, i) => at(i) * (1 + spread * (rng.uniform() - 0.5)));
