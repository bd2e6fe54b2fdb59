/**
 * Which seeds a preset may be tuned on, and which may judge it. The two are apart by number; and as a preset that is changed
 * after its figures were seen has been tuned on their seeds, too, it is judged on the next block.
 */
import { refuse } from '../refuse.ts';

export const TUNING_SEEDS = { first: 0, last: 9 } as const;
const FIRST_FRESH = 1000;
const BLOCK = 100;

/** That a preset of an environment was seen with a seed. */
export interface Seen {
  readonly env: string;
  /** The preset's hash. */
  readonly preset: string;
  readonly seed: number;
}

export const tunes = (seed: number): boolean => seed >= TUNING_SEEDS.first && seed <= TUNING_SEEDS.last;
const blockOf = (seed: number): number => Math.floor((seed - FIRST_FRESH) / BLOCK);

/** The first seeds that may judge this preset: of the lowest block in which no other preset of its environment was seen. */
export function freshSeeds(seen: readonly Seen[], env: string, preset: string, count: number): number[] {
  const spent = new Set(
    seen
      .filter(one => one.env === env && one.preset !== preset && one.seed >= FIRST_FRESH)
      .map(({ seed }) => blockOf(seed)),
  );
  let block = 0;
  while (spent.has(block)) block++;
  return Array.from({ length: count }, (_, i) => FIRST_FRESH + block * BLOCK + i);
}

/** Why a seed may not judge a preset; undefined if it may. */
export function refusal(
  seen: readonly Seen[],
  env: string,
  preset: string,
  seed: number,
): string | undefined {
  if (seed < FIRST_FRESH) return notFresh(seed);
  const other = seen.find(
    one =>
      one.env === env &&
      one.preset !== preset &&
      one.seed >= FIRST_FRESH &&
      blockOf(one.seed) === blockOf(seed),
  );
  if (!other) return undefined;
  const [next] = freshSeeds(seen, env, preset, 1);
  return `seed ${seed} is in a block that another preset of ${env} was judged on (${other.preset}, seed ${other.seed}): this one (${preset}) begins at ${next}`;
}

const MOST_SEEDS = 1000;

/** `1000..1004` or `1000,1003`; each once. */
export function seedsOf(text: string): number[] {
  const wrong = (): never => refuse(`--seeds ${text} names no seeds: write 1000..1004 or 1000,1003`);
  const range = /^(\d{1,9})\.\.(\d{1,9})$/.exec(text);
  if (!range)
    return [...new Set(text.split(',').map(part => (/^\d{1,9}$/.test(part) ? Number(part) : wrong())))];
  const [first, last] = [Number(range[1]), Number(range[2])];
  if (last < first) wrong();
  if (last - first >= MOST_SEEDS)
    refuse(`--seeds ${text} are ${last - first + 1}, at most ${MOST_SEEDS}: take fewer`);
  return Array.from({ length: last - first + 1 }, (_, i) => first + i);
}

/** The same of seeds that judge: those that tune, and those that belong to neither, are refused. */
export function freshSeedsOf(text: string): number[] {
  const seeds = seedsOf(text);
  const wrong = seeds.find(seed => seed < FIRST_FRESH);
  if (wrong !== undefined) refuse(notFresh(wrong));
  return seeds;
}

const notFresh = (seed: number): string =>
  tunes(seed)
    ? `seed ${seed} tunes (${TUNING_SEEDS.first} to ${TUNING_SEEDS.last}), it cannot judge: leave out --seeds, or use ${FIRST_FRESH} and up`
    : `seed ${seed} is neither one that tunes (${TUNING_SEEDS.first} to ${TUNING_SEEDS.last}) nor a fresh one: use ${FIRST_FRESH} and up`;
