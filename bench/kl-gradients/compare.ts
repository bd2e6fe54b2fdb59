/** Each estimator's mean gradient, summed exactly and from samples, beside the gradient that it is to have; and its variance. */
import type { RefKl } from '../../src/algos/grpo/reference-kl.ts';
import { Rng } from '../../src/random/index.ts';
import { type Gradients, grpoGradients, ppoGradients } from './estimators.ts';
import {
  drawTables,
  forwardGradient,
  probabilitiesOf,
  reachOf,
  SIZE,
  sequenceGradient,
  type Table,
  type Tables,
  tokenGradient,
} from './task.ts';

export interface Comparison {
  readonly name: string;
  /** The KL whose exact gradient it is compared with. */
  readonly of: string;
  /** The exact gradient, and the mean over completions that were drawn. */
  readonly exact: Float64Array;
  readonly mean: Float64Array;
  readonly standardError: Float64Array;
  /** Its expectation, a sum over all completions. */
  readonly expected: Float64Array;
  /** |expectation - exact| / |exact|. */
  readonly bias: number;
  /** Root mean square over logits of (mean of the sample - exact) in standard errors: about 1 where there is no bias. */
  readonly standardErrors: number;
  /** Of one completion's gradient, summed over logits, by the square of the exact gradient's length. */
  readonly variance: number;
  /** The bias with completions of an older policy, as in later gradient steps of an update. */
  readonly biasOlder: number;
}

export interface Comparisons {
  readonly tables: Tables;
  readonly samples: number;
  readonly rows: readonly Comparison[];
  /** |expectation of `exact` - exact gradient of the sequence's KL| / |that|: what a gradient by tokens lacks. */
  readonly exactToSequence: number;
}

type Estimator = Exclude<RefKl, 'none'>;

/** Gradients of KLs: of each token's, contexts being those of a sampler, and of the sequence's. */
type Kl = 'token' | 'sequence' | 'other token';
const words: Record<Kl, string> = {
  token: 'KL(policy ‖ reference), token',
  sequence: 'KL(policy ‖ reference), sequence',
  'other token': 'KL(reference ‖ policy), token',
};

/** Each with the KL that it is taken for; k3 also with the one that it has. */
const estimators: readonly (readonly [Estimator, Kl])[] = [
  ['exact', 'token'],
  ['ratio-k3', 'token'],
  ['k2', 'token'],
  ['k3', 'token'],
  ['k3', 'other token'],
  ['exact-sequence', 'sequence'],
  ['k1-advantage', 'sequence'],
];

/** All estimators on the tables of a seed, from so many completions. */
export async function compare(seed: number, samples: number): Promise<Comparisons> {
  const tables = drawTables(seed);
  const { policy, reference, older } = tables;
  const exactOf = (kl: Kl, sampler: Table): Float64Array =>
    kl === 'sequence'
      ? sequenceGradient(policy, reference)
      : kl === 'token'
        ? tokenGradient(policy, reference, reachOf(sampler))
        : forwardGradient(policy, reference, reachOf(sampler));
  const rows: Comparison[] = [];
  const add = async (name: string, kl: Kl, gradients: (sampler: Table) => Promise<Gradients>) => {
    const later = expectation(await gradients(older), older);
    rows.push({
      ...compared(await gradients(policy), policy, exactOf(kl, policy), samples),
      ...{ name, of: words[kl], biasOlder: distance(later, exactOf(kl, older)) },
    });
  };
  for (const [refKl, kl] of estimators)
    await add(`GRPO \`${refKl}\``, kl, sampler => grpoGradients(refKl, tables, sampler));
  await add('PPO `reference`', 'token', sampler => ppoGradients('reference', tables, sampler));
  // An update's penalty is 0 where the update begins, so it is looked at where the policy has left the old one.
  const exact = forwardGradient(policy, older, reachOf(older));
  const ofUpdate = compared(await ppoGradients('klCoef', tables, older), older, exact, samples);
  rows.push({ ...ofUpdate, name: 'PPO `klCoef`', of: 'KL(old ‖ policy), state', biasOlder: ofUpdate.bias });
  return {
    ...{ tables, samples, rows },
    exactToSequence: distance(rows[0].expected, exactOf('sequence', policy)),
  };
}

function compared(
  gradients: Gradients,
  sampler: Table,
  exact: Float64Array,
  samples: number,
): Omit<Comparison, 'name' | 'of' | 'biasOlder'> {
  const expected = expectation(gradients, sampler);
  const drawn = counts(sampler, samples);
  const mean = weighted(
    gradients,
    drawn.map(count => count / samples),
  );
  const chances = probabilitiesOf(sampler);
  const variances = new Float64Array(SIZE);
  gradients.forEach((gradient, i) => {
    gradient.forEach((value, at) => {
      variances[at] += chances[i] * (value - expected[at]) ** 2;
    });
  });
  const standardError = variances.map(value => Math.sqrt(value / samples));
  // Where all completions agree there is rounding alone to see.
  const noisy = Array.from(standardError.keys()).filter(at => standardError[at] > 1e-6);
  const squares = noisy.reduce((sum, at) => sum + ((mean[at] - exact[at]) / standardError[at]) ** 2, 0);
  return {
    ...{ exact, mean, standardError, expected },
    bias: distance(expected, exact),
    standardErrors: Math.sqrt(squares / noisy.length),
    variance: variances.reduce((a, b) => a + b) / length(exact) ** 2,
  };
}

/** How often each completion was drawn. */
export function counts(sampler: Table, samples: number): Float64Array {
  const rng = new Rng(1);
  const chances = probabilitiesOf(sampler);
  const drawn = new Float64Array(chances.length);
  for (let i = 0; i < samples; i++) drawn[rng.categorical(chances)]++;
  return drawn;
}

const expectation = (gradients: Gradients, sampler: Table): Float64Array =>
  weighted(gradients, probabilitiesOf(sampler));

function weighted(gradients: Gradients, weights: Float64Array): Float64Array {
  const sum = new Float64Array(SIZE);
  gradients.forEach((gradient, i) => {
    gradient.forEach((value, at) => {
      sum[at] += weights[i] * value;
    });
  });
  return sum;
}

const length = (values: Float64Array): number => Math.hypot(...values);

/** |a - b| / |b| */
export const distance = (a: Float64Array, b: Float64Array): number =>
  length(a.map((value, i) => value - b[i])) / length(b);
