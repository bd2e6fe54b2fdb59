/** How long prompts and answers are. */
import type { Rng } from '../../random/rng.ts';
import { fail } from '../errors.ts';

/** How a number of tokens is drawn. */
export type Lengths =
  | { readonly kind: 'fixed'; readonly tokens: number }
  | { readonly kind: 'uniform'; readonly min: number; readonly max: number }
  /** P(n) falls as n^-theta between the limits. */
  | { readonly kind: 'zipf'; readonly theta: number; readonly min: number; readonly max: number }
  | { readonly kind: 'lognormal'; readonly median: number; readonly sigma: number; readonly max: number }
  /** A distribution by its quantiles, straight lines between them. */
  | { readonly kind: 'quantiles'; readonly shares: readonly number[]; readonly tokens: readonly number[] };

const MAX_TOKENS = 1_000_000;

/** A function that draws from a distribution. */
export function lengthSampler(lengths: Lengths): (rng: Rng) => number {
  checkLengths(lengths);
  switch (lengths.kind) {
    case 'fixed':
      return () => lengths.tokens;
    case 'uniform':
      return rng => lengths.min + rng.integer(lengths.max - lengths.min + 1);
    case 'zipf': {
      const { theta, min, max } = lengths;
      const cumulative = new Float64Array(max - min + 1);
      let sum = 0;
      for (let i = 0; i < cumulative.length; i++) {
        sum += (min + i) ** -theta;
        cumulative[i] = sum;
      }
      return rng => min + firstAbove(cumulative, rng.uniform() * sum);
    }
    case 'lognormal': {
      const { median, sigma, max } = lengths;
      return rng => Math.min(max, Math.max(1, Math.round(median * Math.exp(sigma * rng.normal()))));
    }
    case 'quantiles': {
      const { shares, tokens } = lengths;
      return rng => {
        const u = rng.uniform();
        let i = 1;
        while (i < shares.length - 1 && u > shares[i]) i++;
        const part = (u - shares[i - 1]) / (shares[i] - shares[i - 1]);
        return Math.max(1, Math.round(tokens[i - 1] + part * (tokens[i] - tokens[i - 1])));
      };
    }
    default:
      return lengths satisfies never;
  }
}

/** The first index whose value is above the target. */
function firstAbove(cumulative: Float64Array, target: number): number {
  let [low, high] = [0, cumulative.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (cumulative[middle] > target) high = middle;
    else low = middle + 1;
  }
  return low;
}

function checkLengths(lengths: Lengths): void {
  const tokens = (name: string, value: number): void => {
    if (!Number.isInteger(value) || value < 1 || value > MAX_TOKENS)
      fail(
        'option-invalid',
        `${lengths.kind} lengths: ${name} is ${value}: use a whole number in 1..${MAX_TOKENS}`,
      );
  };
  switch (lengths.kind) {
    case 'fixed':
      tokens('tokens', lengths.tokens);
      return;
    case 'uniform':
    case 'zipf':
      tokens('min', lengths.min);
      tokens('max', lengths.max);
      if (lengths.min > lengths.max)
        fail(
          'option-invalid',
          `${lengths.kind} lengths: min ${lengths.min} is above max ${lengths.max}: exchange them`,
        );
      if (lengths.kind === 'zipf' && !(lengths.theta >= 0 && lengths.theta <= 20))
        fail('option-invalid', `zipf lengths: theta is ${lengths.theta}: use a number in 0..20`);
      return;
    case 'lognormal':
      tokens('max', lengths.max);
      if (!(lengths.median >= 1 && lengths.sigma >= 0 && lengths.sigma <= 10))
        fail(
          'option-invalid',
          `lognormal lengths: median ${lengths.median} and sigma ${lengths.sigma} cannot be: use a median of at least 1 and a sigma in 0..10`,
        );
      return;
    case 'quantiles': {
      const { shares, tokens: values } = lengths;
      const rising = (list: readonly number[]): boolean => list.every((v, i) => i === 0 || v >= list[i - 1]);
      const strict = shares.every((v, i) => i === 0 || v > shares[i - 1]);
      if (
        shares.length < 2 ||
        shares.length !== values.length ||
        !strict ||
        !rising(values) ||
        shares[0] !== 0 ||
        shares.at(-1) !== 1
      )
        fail(
          'option-invalid',
          'quantile lengths: shares must rise from 0 to 1, with as many tokens, which must not fall',
        );
      values.forEach((value, i) => {
        tokens(`tokens[${i}]`, value);
      });
      return;
    }
    default:
      lengths satisfies never;
  }
}
