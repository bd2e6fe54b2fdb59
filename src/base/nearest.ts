/** What someone meant who wrote a name that does not exist. */

/** Comparing is quadratic in the length, and nobody misspells a word of this length. */
const LONGEST = 200;

/** The candidate closest to a misspelt word, if one is close enough to be meant. */
export function nearest(word: string, candidates: readonly string[]): string | undefined {
  return nearestFew(word, candidates, 1)[0];
}

/** The candidates that may have been meant, closest first: by edit distance, or because one contains the other. */
export function nearestFew(word: string, candidates: readonly string[], atMost: number): string[] {
  if (word.length > LONGEST) return [];
  const wanted = plainName(word);
  const limit = Math.max(2, Math.floor(wanted.length / 3));
  return candidates
    .filter(candidate => candidate.length <= LONGEST)
    .map(candidate => {
      const name = plainName(candidate);
      const contained =
        Math.min(wanted.length, name.length) >= 3 && (name.includes(wanted) || wanted.includes(name));
      const edits = editDistance(wanted, name);
      return { candidate, edits, distance: contained ? Math.min(1, edits) : edits };
    })
    .filter(({ distance }) => distance <= limit)
    .sort((a, b) => a.distance - b.distance || a.edits - b.edits)
    .slice(0, atMost)
    .map(({ candidate }) => candidate);
}

/** "did you mean a, b or c?", or nothing. */
export function didYouMean(word: string, candidates: readonly string[], atMost = 1): string {
  const found = nearestFew(word, candidates, atMost);
  if (found.length === 0) return '';
  const last = found.pop()!;
  return `did you mean ${found.length > 0 ? `${found.join(', ')} or ${last}` : last}?`;
}

/** A name without case and separators, for those who write `cart-pole` for `CartPole`. */
export const plainName = (word: string): string => word.toLowerCase().replaceAll(/[-_\s]/g, '');

function editDistance(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const substitution = previous[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1);
      row.push(Math.min(substitution, previous[j] + 1, row[j - 1] + 1));
    }
    previous = row;
  }
  return previous[b.length];
}
