export { MAX_INTEGER_RANGE, MAX_SEED, Rng, type RngState } from './rng.ts';
