/** Keel: policies trained inside a KL bound. Each part is also a subpath of the package, e.g. `keel/engine`. */
export * as engine from './engine/index.ts';
export * as kl from './kl/index.ts';
export * as nn from './nn/index.ts';
export { Rng, type RngState } from './random/index.ts';
