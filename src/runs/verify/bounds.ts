import { isEvent, type Manifest, type StoredEvent } from '../schema.ts';
import type { Numbered } from './evidence.ts';

/** The settings that bound an update's KL, by the metric that each is on. */
export const boundsByMetric = {
  'kl/step': 'guard',
  'kl/step_p99': 'guardP99',
  'kl/step_max': 'guardMax',
} as const;

/**
 * The bound of `key` that held in each iteration: as configured, as written for a resume, as changed by hand; null where
 * there was none. A resume counts for what it wrote, which are the iterations after its checkpoint.
 */
export function boundsOf(
  { config }: Manifest,
  events: readonly Numbered<StoredEvent>[],
  key: (typeof boundsByMetric)[keyof typeof boundsByMetric] = 'guard',
): (iteration: number) => number | null {
  const changes: { readonly from: number; readonly bound: number | null }[] = [];
  let first: number | null | undefined;
  for (const { item: event } of events) {
    if (isEvent(event, 'resumed')) {
      const { written = {}, before = {} } = event;
      if (!Object.hasOwn(written, key)) continue;
      // What it was before anyone wrote another one.
      if (first === undefined) first = numberOf(before[key]);
      changes.push({ from: event.iteration + 1, bound: numberOf(written[key]) });
    } else if (isEvent(event, 'act') && event.key === key) {
      changes.push({ from: event.iteration, bound: event.value ?? null });
    }
  }
  const begun = first === undefined ? numberOf(config[key]) : first;
  return iteration =>
    changes.reduce((bound, change) => (change.from <= iteration ? change.bound : bound), begun);
}

const numberOf = (value: unknown): number | null => (typeof value === 'number' ? value : null);
