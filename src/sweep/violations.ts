/** Why a trial cannot win: what its runs were to keep to, and did not. */
import { number } from '../base/numbers.ts';
import type { RunOutcome, Study, Trial } from '../studies/schema.ts';

export function violationsOf({ constraints }: Study, { outcomes }: Pick<Trial, 'outcomes'>): string[] {
  const { healthy, klMax } = constraints;
  const seedsOf = (which: (outcome: RunOutcome) => boolean): string | undefined => {
    const seeds = outcomes.filter(which).map(({ seed }) => seed);
    if (seeds.length === 0) return undefined;
    return seeds.length === 1 ? `seed ${seeds[0]}` : `seeds ${seeds.join(', ')}`;
  };
  const sick = healthy ? seedsOf(({ verdict }) => verdict === 'sick') : undefined;
  const large =
    klMax === null ? undefined : seedsOf(({ klLargest }) => klLargest !== null && klLargest > klMax);
  return [
    ...(sick === undefined ? [] : [`the doctor calls ${sick} sick`]),
    ...(large === undefined ? [] : [`${large} had an update with a KL above ${number(klMax!)}`]),
  ];
}
