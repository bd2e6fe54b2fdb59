/** How strongly a token is coloured, and in which of two colours: what stands out at a glance in a completion. */
import type { Completion, CompletionGroup } from '../../src/server/api.ts';

export const heatKinds = ['kl', 'advantage', 'surprise'] as const;
export type HeatKind = (typeof heatKinds)[number];

/** The KL at one token that has the full colour: a round number that the largest of these groups reaches, in 0.01 … 1 nat. */
export function fullKlOf(groups: readonly CompletionGroup[]): number {
  let most = 0;
  for (const { completions } of groups)
    for (const { kl } of completions) for (const value of kl ?? []) most = Math.max(most, value ?? 0);
  return [0.01, 0.03, 0.1, 0.3].find(full => most <= full) ?? 1;
}

/** Of each token -1 … 1: the size is the strength of its colour, below 0 is the other colour. 0 where nothing is known. */
export function heatOf(
  kind: HeatKind,
  completion: Completion,
  group: CompletionGroup,
  fullKl: number,
): number[] {
  switch (kind) {
    case 'kl':
      // By the root: most tokens are near 0, and a tenth of the way is worth seeing.
      return completion.tokens.map((_, i) =>
        bounded(Math.sqrt(Math.max(0, completion.kl?.[i] ?? 0) / fullKl)),
      );
    case 'surprise':
      return completion.logProbs.map(logProb => (logProb === null ? 0 : bounded(1 - Math.exp(logProb))));
    case 'advantage': {
      const most = Math.max(...group.completions.map(({ advantage }) => Math.abs(advantage ?? 0)));
      const share = most === 0 ? 0 : bounded((completion.advantage ?? 0) / most);
      return completion.tokens.map(() => share);
    }
    default:
      return kind satisfies never;
  }
}

const bounded = (value: number): number => Math.min(1, Math.max(-1, value));

/** A token as something to see: line ends and what has no shape by itself. */
export const visible = (token: string): string => token.replaceAll('\n', '⏎\n').replaceAll('\t', '⇥\t');

export interface GroupFacts {
  /** Null where nothing could be graded. */
  readonly mean: number | null;
  /** Whether no completion is better than another, penalties included, so that nothing can be learnt from the group. */
  readonly flat: boolean;
  readonly parsed: number;
}

export function factsOf(group: CompletionGroup): GroupFacts {
  const rewards = group.completions.flatMap(({ reward }) => (reward === null ? [] : [reward]));
  return {
    mean: rewards.length === 0 ? null : rewards.reduce((sum, reward) => sum + reward, 0) / rewards.length,
    flat:
      rewards.length > 1 &&
      rewards.every(reward => reward === rewards[0]) &&
      group.completions.every(({ advantage }) => !advantage),
    parsed: group.completions.filter(({ parsed }) => parsed).length,
  };
}

/** Parts or metrics of a group that any of its completions has: others are columns of nothing. */
export function namesIn(group: CompletionGroup, field: 'parts' | 'metrics'): string[] {
  const names = new Set<string>();
  for (const completion of group.completions)
    for (const [name, value] of Object.entries(completion[field]))
      if (value !== null && (field === 'metrics' || value !== 0)) names.add(name);
  return [...names];
}

const endings: Readonly<Record<string, string>> = {
  end: 'ended by itself',
  stop: 'ended at a stop string',
  length: 'cut off: no token was left',
  kl: 'cut off: too far from the reference',
};

export const endingOf = (ended: string): string => endings[ended] ?? ended;
