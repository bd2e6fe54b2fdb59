/** The columns of the overview that it can be ordered by, and which way each is ordered first. */
import type { SortKey } from './view-state.ts';

export const sortColumns: readonly {
  readonly key: SortKey | null;
  readonly title: string;
  readonly class: string;
  readonly down: boolean;
}[] = [
  { key: 'name', title: 'Run', class: 'name', down: false },
  { key: 'state', title: 'State', class: 'state', down: false },
  { key: 'environment', title: 'Environment', class: 'env', down: false },
  { key: 'step', title: 'Progress', class: 'steps', down: true },
  { key: 'return', title: 'Return', class: 'num return', down: true },
  { key: null, title: 'Return over the run', class: 'spark', down: false },
  { key: 'kl', title: 'KL of the update', class: 'num kl', down: true },
  { key: 'verdict', title: 'Verdict', class: 'verdict', down: true },
  { key: 'updated', title: 'Updated', class: 'num age', down: true },
];
