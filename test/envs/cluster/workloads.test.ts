import { describe, expect, it } from 'vitest';
import { fillArrivals, gammaOfMeanOne } from '../../../src/envs/cluster/arrivals.ts';
import {
  type Arrivals,
  atRate,
  drawWorkload,
  type Lengths,
  parseArrivals,
  parseLengths,
  parseTrace,
  workloads,
} from '../../../src/envs/cluster/index.ts';
import { lengthSampler } from '../../../src/envs/cluster/lengths.ts';
import { Rng } from '../../../src/random/index.ts';

const mean = (values: ArrayLike<number>): number =>
  Array.from(values).reduce((a, b) => a + b, 0) / values.length;
const quantile = (values: ArrayLike<number>, share: number): number =>
  Array.from(values).sort((a, b) => a - b)[Math.floor(share * values.length)];

describe('arrivals', () => {
  it.each([
    [{ kind: 'poisson' }, 1],
    [{ kind: 'static' }, 0],
    [{ kind: 'gamma', cv: 0.5 }, 0.5],
    [{ kind: 'gamma', cv: 3 }, 3],
  ] as [Arrivals, number][])('%j: the rate asked for, and gaps of cv %d', (arrivals, cv) => {
    const times = new Float64Array(50_000);
    fillArrivals(arrivals, 4, new Rng(2), times);
    const gaps = times.map((t, i) => t - (times[i - 1] ?? 0));
    const average = mean(gaps);
    const std = Math.sqrt(mean(gaps.map(gap => (gap - average) ** 2)));
    expect(average).toBeCloseTo(0.25, 1.3);
    expect(std / average).toBeCloseTo(cv, 0.7);
  });

  it('bursts: the mean rate asked for, most of the time silent', () => {
    const times = new Float64Array(60_000);
    fillArrivals({ kind: 'bursts', onS: 10, offS: 30, cv: 1 }, 5, new Rng(2), times);
    expect(times.length / times.at(-1)!).toBeGreaterThan(4.3);
    expect(times.length / times.at(-1)!).toBeLessThan(5.7);
    const gaps = times.map((t, i) => t - (times[i - 1] ?? 0));
    const silence = gaps.filter(gap => gap > 2).reduce((a, b) => a + b, 0);
    expect(silence / times.at(-1)!).toBeGreaterThan(0.6);
  });

  it('gamma of mean 1: the variance is 1 / shape, below and above 1', () => {
    for (const shape of [0.2, 0.8, 2, 9]) {
      const rng = new Rng(3);
      const drawn = Float64Array.from({ length: 60_000 }, () => gammaOfMeanOne(rng, shape));
      expect(mean(drawn)).toBeCloseTo(1, 1);
      expect(mean(drawn.map(x => (x - 1) ** 2)) * shape).toBeCloseTo(1, 0.8);
    }
  });

  it.each(['gamma', 'gamma:x', 'bursts:3', 'poisson:2', 'often'])('refuses %j', text => {
    expect(() => parseArrivals(text)).toThrow(/cannot be read: write poisson/);
  });

  it.each([0, -2, Number.POSITIVE_INFINITY])('refuses a rate of %d', rate => {
    expect(() => fillArrivals({ kind: 'poisson' }, rate, new Rng(0), new Float64Array(1))).toThrow(
      /use a rate above 0/,
    );
  });
});

describe('lengths', () => {
  const drawn = (lengths: Lengths): Int32Array => {
    const [rng, sample] = [new Rng(4), lengthSampler(lengths)];
    return Int32Array.from({ length: 20_000 }, () => sample(rng));
  };

  it('fixed, uniform, Zipf and log-normal are what they say', () => {
    expect(new Set(drawn(parseLengths('fixed:7')))).toEqual(new Set([7]));
    const uniform = drawn(parseLengths('uniform:10-20'));
    expect([Math.min(...uniform), Math.max(...uniform)]).toEqual([10, 20]);
    const zipf = drawn(parseLengths('zipf:1/1-100'));
    // P(1) / P(2) = 2.
    const count = (n: number): number => zipf.filter(x => x === n).length;
    expect(count(1) / count(2)).toBeCloseTo(2, 0.7);
    const lognormal = drawn(parseLengths('lognormal:200/0.5/4000'));
    expect(quantile(lognormal, 0.5) / 200).toBeCloseTo(1, 1);
    expect(quantile(lognormal, 0.8413) / 200).toBeCloseTo(Math.exp(0.5), 0.9);
  });

  it.each(['fixed:0', 'uniform:9-3', 'uniform:9', 'zipf:1-3', 'lognormal:0/1/5', 'long', 'fixed:1.5'])(
    'refuses %j',
    text => {
      expect(() => lengthSampler(parseLengths(text))).toThrow(/lengths/);
    },
  );
});

describe('the two traces, by their statistics', () => {
  // Published means, medians and 99th percentiles.
  it.each([
    ['conversation', [1155, 1020, 4142], [211, 129, 601]],
    ['code', [2048, 1469, 7436], [28, 13, 251]],
  ] as const)('%s', (name, prompt, decode) => {
    const drawnRequests = drawWorkload(workloads[name], { count: 60_000, ratePerS: 5 }, new Rng(1));
    for (const [values, wanted] of [
      [drawnRequests.promptTokens, prompt],
      [drawnRequests.decodeTokens, decode],
    ] as const) {
      expect(Math.abs(mean(values) / wanted[0] - 1)).toBeLessThan(0.08);
      // Of short answers the median is a small whole number.
      expect(Math.abs(quantile(values, 0.5) - wanted[1])).toBeLessThanOrEqual(Math.max(1, 0.05 * wanted[1]));
      expect(Math.abs(quantile(values, 0.99) / wanted[2] - 1)).toBeLessThan(0.12);
    }
  });

  it('estimates: right on average of their logarithm, off by the error asked for', () => {
    const w = drawWorkload(
      workloads.conversation,
      { count: 20_000, ratePerS: 5, lengthError: 0.5 },
      new Rng(1),
    );
    const logs = Float64Array.from(w.estimatedTokens, (tokens, i) => Math.log(tokens / w.decodeTokens[i]));
    expect(mean(logs)).toBeCloseTo(0, 1);
    expect(Math.sqrt(mean(logs.map(x => x * x)))).toBeCloseTo(0.5, 1);
  });
});

describe('traces', () => {
  it('reads the three headers, dates as well as seconds', () => {
    const published =
      'TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,374,44\n2023-11-16 18:15:50.9951690,396,109\n';
    const passedOn = 'arrived_at,num_prefill_tokens,num_decode_tokens\r\n0.0,374,44\r\n4.314579,396,109\r\n';
    const burst =
      'Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,ChatGPT,374,44,418,x\n6,ChatGPT,20,0,20,x\n9.314579,GPT-4,396,109,505,x\n';
    for (const text of [published, passedOn, burst]) {
      const w = parseTrace(text, 'trace.csv');
      expect([...w.promptTokens]).toEqual([374, 396]);
      expect([...w.decodeTokens]).toEqual([44, 109]);
      expect(w.arrivalS[0]).toBe(0);
      expect(w.arrivalS[1]).toBeCloseTo(4.314579, 5);
    }
  });

  const head = 'arrived_at,num_prefill_tokens,num_decode_tokens';
  it.each([
    ['', /has no requests/],
    [`${head}\n`, /has no requests/],
    ['a,b,c\n1,2,3', /has no column for the arrival time: its header is "a,b,c"/],
    ['arrived_at,num_prefill_tokens\n1,2', /has no column for the decode tokens/],
    [`${head}\n5,1,1\n4,1,1`, /t\.csv:3: the time 4 is before that of the line above: sort/],
    [`${head}\n-1,1,1`, /t\.csv:2: the time -1 is negative/],
    [`${head}\n0,1`, /t\.csv:2: "" is no number of generated tokens/],
    [`${head}\n0,x,1`, /"x" is no number of prompt tokens/],
    [`${head}\nsoon,1,1`, /the time "soon" is neither a number of seconds nor a date/],
    [`${head}\n0,1,0`, /no request with tokens/],
  ])('refuses %j', (text, message) => {
    expect(() => parseTrace(text, 't.csv')).toThrow(message);
  });

  it('at another rate', () => {
    const w = parseTrace(`${head}\n0,1,1\n1,1,1\n4,1,1`, 't.csv');
    expect([...atRate(w, 1).arrivalS]).toEqual([0, 0.5, 2]);
    expect(() => atRate(parseTrace(`${head}\n0,1,1\n0,1,1`, 't.csv'), 1)).toThrow(/arrive at once/);
  });
});
