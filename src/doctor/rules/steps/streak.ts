/** Updates in a row that move the policy far: what is sustained, as opposed to a spike. Shared by the rules that ask. */
import { klMarks } from '../../../metrics/registry.ts';
import type { CanonicalRun } from '../../canonical.ts';
import { say } from '../../judge/facts.ts';
import { type Stretch, stretchesAbove } from '../../statistics/stretches.ts';
import { limitsOf } from '../limits.ts';
import type { StepKl } from '../signals.ts';
import type { Track } from '../track.ts';
import type { Said } from '../words.ts';

/** The marks that the rules measure a step KL with, whatever the run's own contract. */
export const [SMALL_KL, HEALTHY_KL, OK_KL, WARNING_KL, PROBLEM_KL] = klMarks;

export const streakLimits = limitsOf('streak', {
  /** So many in a row above {@link WARNING_KL} are no chance. In the healthy runs of the matrix it is two at most. */
  rows: 5,
  /** A token's KL is so many times an action's before it does harm, and is mostly logged with k1 or k2. */
  token: 4,
});

/** What the marks are multiplied with in a run. */
export const scaleOf = ({ kind }: Pick<CanonicalRun, 'kind'>): number =>
  kind === 'language-model' ? streakLimits.token : 1;

/** The stretches of so many rows and more above the mark; of a KL that scatters around 0 a single row says nothing. */
export function streaksOf(kl: StepKl | undefined): readonly Stretch[] {
  if (kl === undefined || kl.signed) return [];
  return stretchesAbove(kl.track.v, WARNING_KL).filter(({ length }) => length >= streakLimits.rows);
}

/** What a row of a series is: an update where one is written for each, else only a row, which may stand for several. */
export function rowWord(
  { trainer }: Pick<CanonicalRun, 'trainer'>,
  { merged }: Pick<Track, 'merged'>,
): string {
  return trainer === 'keel' && !merged ? 'updates' : 'rows';
}

/** `12 updates in a row`. */
export function inARow(length: Said, word: string): Said {
  return word === 'rows' ? say`${length} rows on end` : say`${length} ${word} in a row`;
}
