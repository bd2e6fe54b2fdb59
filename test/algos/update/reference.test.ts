/** A reference that follows the policy: when, how far, and what is told. */
import { expect, it } from 'vitest';
import type { TrainEvent } from '../../../src/algos/events.ts';
import { moveReference } from '../../../src/algos/update/reference.ts';

function moved(reference: 'none' | 'frozen' | 'refreshed' | 'averaged', iteration: number, kl?: number) {
  const own = Float32Array.of(0, 4);
  const events: TrainEvent[] = [];
  const config = { reference, referenceEvery: 3, referenceDecay: 0.75 };
  moveReference(config, iteration, own, Float32Array.of(8, 0), kl, events);
  return { own: [...own], events };
}

it('stays where it is frozen', () => {
  for (const kind of ['none', 'frozen'] as const) expect(moved(kind, 3)).toEqual({ own: [0, 4], events: [] });
});

it('becomes the policy each so many iterations, which is told with the KL to it', () => {
  for (const iteration of [1, 2, 4])
    expect(moved('refreshed', iteration)).toEqual({ own: [0, 4], events: [] });
  expect(moved('refreshed', 3, 0.2)).toEqual({ own: [8, 0], events: [{ type: 'reference', kl: 0.2 }] });
  expect(moved('refreshed', 6)).toEqual({ own: [8, 0], events: [{ type: 'reference' }] });
});

it('keeps the larger share of itself where it is averaged', () => {
  expect(moved('averaged', 1)).toEqual({ own: [2, 3], events: [] });
});
