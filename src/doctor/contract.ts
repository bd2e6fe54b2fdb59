/** What the bands of a KL are measured with in a run of any trainer: its contract, and whether they hold at all. */
import type { KlContract } from '../metrics/registry.ts';
import type { CanonicalRun, KlMeaning } from './canonical.ts';

/** A run's target and guard, where its settings are known. */
export function contractOfRun({
  config: { targetKl, guard },
  kind,
}: Pick<CanonicalRun, 'config' | 'kind'>): KlContract {
  return {
    // What tuners of language models call so is mostly the KL to the reference, or does nothing by itself.
    target: kind === 'classic' ? (targetKl ?? null) : null,
    ...(guard === undefined ? {} : { guard: Number.isFinite(guard) ? guard : null }),
  };
}

/**
 * Whether a KL is one that the bands hold for: of an update, per action or token. A sum over a sequence has other sizes,
 * and k1 scatters around 0, so that one row of it says nothing.
 */
export function isBanded(kl: Pick<KlMeaning, 'pair' | 'per' | 'estimator'> | undefined): boolean {
  return kl === undefined || (kl.pair === 'step' && kl.per !== 'sequence' && kl.estimator !== 'k1');
}
