import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MAX_SEED, Rng, type RngState } from '../../src/random/index.ts';

const take = <T>(n: number, draw: () => T): T[] => Array.from({ length: n }, draw);

/** xoshiro128** once more, in arithmetic modulo 2^32 on BigInt: shares no code and no number type with the real one. */
function* referenceStream(words: readonly number[]): Generator<number> {
  const mask = 0xffffffffn;
  const rotl = (x: bigint, k: bigint) => ((x << k) | (x >> (32n - k))) & mask;
  let [a, b, c, d] = words.map(BigInt) as [bigint, bigint, bigint, bigint];
  for (;;) {
    yield Number((rotl((b * 5n) & mask, 7n) * 9n) & mask);
    const t = (b << 9n) & mask;
    c ^= a;
    d ^= b;
    b ^= c;
    a ^= d;
    c ^= t;
    d = rotl(d, 11n);
  }
}

const withWords = (words: readonly number[]): Rng =>
  Rng.fromState({ version: 1, algorithm: 'xoshiro128**', words });
const arbitraryWords = fc
  .array(fc.integer({ min: 0, max: 0xffffffff }), { minLength: 4, maxLength: 4 })
  .filter(words => words.some(word => word !== 0));
const arbitrarySeed = fc.integer({ min: 0, max: MAX_SEED });

describe('xoshiro128**', () => {
  it('gives the published vector', () => {
    // From xoshiro128starstar.c v1.1, as rand_xoshiro's test records it.
    const published = [
      11520, 0, 5927040, 70819200, 2031721883, 1637235492, 1287239034, 3734860849, 3729100597, 4258142804,
    ];
    const rng = withWords([1, 2, 3, 4]);
    expect(take(10, () => rng.nextUint32())).toEqual(published);
  });

  it('agrees with an implementation in BigInt from any state', () => {
    fc.assert(
      fc.property(arbitraryWords, words => {
        const rng = withWords(words);
        const reference = referenceStream(words);
        for (let i = 0; i < 50; i++) expect(rng.nextUint32()).toBe(reference.next().value);
      }),
    );
  });
});

describe('seeds', () => {
  it('same seed, same bits; pinned for ever', () => {
    // A change here breaks every recorded run: it needs a new state version.
    const rng = new Rng(42);
    expect(rng.state().words).toEqual(GOLDEN.words);
    expect(take(4, () => rng.nextUint32())).toEqual(GOLDEN.uint32);
    expect(take(3, () => rng.uniform())).toEqual(GOLDEN.uniform);
    expect(take(4, () => rng.normal())).toEqual(GOLDEN.normal);
    expect(take(6, () => rng.integer(10))).toEqual(GOLDEN.integer);
    expect([...rng.permutation(8)]).toEqual(GOLDEN.permutation);
    expect(rng.split(2).map(child => child.nextUint32())).toEqual(GOLDEN.split);
    expect(rng.nextUint32()).toBe(GOLDEN.after);
  });

  it('different seeds, different states, also where only the high bits differ', () => {
    const seeds = [
      ...take(
        5000,
        (
          i => () =>
            i++
        )(0),
      ),
      2 ** 32,
      2 ** 32 + 1,
      2 ** 33,
      2 ** 52,
      MAX_SEED - 1,
      MAX_SEED,
    ];
    const states = new Set(seeds.map(seed => new Rng(seed).state().words.join()));
    expect(states.size).toBe(seeds.length);
  });

  it('neighbouring seeds are uncorrelated', () => {
    for (let seed = 0; seed < 20; seed++) expectUncorrelated(new Rng(seed), new Rng(seed + 1));
    expectUncorrelated(new Rng(0), new Rng(2 ** 32));
  });

  it.each([-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, MAX_SEED + 1, '7' as unknown as number])(
    'refuses %s',
    seed => {
      expect(() => new Rng(seed)).toThrow(
        /^seed .+ is not an integer in 0\.\.9007199254740991: use one, such as 0$/,
      );
    },
  );
});

describe('state', () => {
  // Every kind of draw, so that a snapshot falls between any two of them.
  const draws: ((rng: Rng) => unknown)[] = [
    rng => rng.nextUint32(),
    rng => rng.uniform(),
    rng => rng.normal(),
    rng => rng.integer(1000),
    rng => rng.categorical([0.25, 0.5, 0.25]),
    rng => [...rng.permutation(5)],
    rng => rng.split(2).map(child => child.nextUint32()),
    rng => {
      const out = new Float32Array(3);
      rng.fillNormal(out);
      return [...out];
    },
    rng => {
      const out = new Float32Array(3);
      rng.fillUniform(out);
      return [...out];
    },
  ];
  const arbitraryDraws = fc.array(fc.nat(draws.length - 1), { maxLength: 40 });

  it('continues bit for bit after a trip through JSON at any moment', () => {
    fc.assert(
      fc.property(arbitrarySeed, arbitraryDraws, arbitraryDraws, (seed, before, after) => {
        const rng = new Rng(seed);
        for (const i of before) draws[i](rng);
        const copy = Rng.fromState(JSON.parse(JSON.stringify(rng.state())));
        expect(copy.state()).toEqual(rng.state());
        for (const i of after) expect(draws[i](copy)).toEqual(draws[i](rng));
        for (let i = 0; i < 3; i++) expect(copy.normal()).toBe(rng.normal());
      }),
    );
  });

  it('is a copy: later draws do not change it', () => {
    const rng = new Rng(1);
    const state = rng.state();
    const before = JSON.stringify(state);
    rng.nextUint32();
    expect(JSON.stringify(state)).toBe(before);
  });

  const good: RngState = new Rng(3).state();
  it.each<[string, unknown, RegExp]>([
    ['null', null, /state is null, not an object: pass what Rng\.state\(\) returned/],
    ['a number', 5, /state is 5, not an object/],
    ['undefined', undefined, /state is undefined, not an object/],
    ['nothing', {}, /version undefined, this Keel reads version 1/],
    [
      'a later version',
      { ...good, version: 2 },
      /version 2, this Keel reads version 1: resume with the Keel that wrote it/,
    ],
    ['a version as text', { ...good, version: '1' }, /version "1"/],
    ['another algorithm', { ...good, algorithm: 'mt19937' }, /algorithm "mt19937", not "xoshiro128\*\*"/],
    ['no words', { ...good, words: undefined }, /words undefined, not an array of four integers/],
    ['three words', { ...good, words: [1, 2, 3] }, /words \[1,2,3\], not an array of four/],
    ['a word as text', { ...good, words: [1, 2, 3, '4'] }, /the word "4", not an integer in 0\.\.4294967295/],
    ['a fraction', { ...good, words: [1, 2, 3, 0.5] }, /the word 0\.5/],
    ['a negative word', { ...good, words: [1, 2, 3, -1] }, /the word -1/],
    ['a word too large', { ...good, words: [1, 2, 3, 2 ** 32] }, /the word 4294967296/],
    ['a missing word', { ...good, words: [1, 2, 3, null] }, /the word null/],
    ['all zero', { ...good, words: [0, 0, 0, 0] }, /all zero, from which only zeros follow/],
  ])('refuses %s', (_, state, message) => {
    expect(() => Rng.fromState(state)).toThrow(message);
    expect(() => Rng.fromState(state)).toThrow(/^[^\n]{1,160}$/);
  });
});

describe('split', () => {
  it('a child does not depend on how many siblings it has', () => {
    const three = new Rng(9).split(3).map(rng => rng.state());
    const five = new Rng(9).split(5).map(rng => rng.state());
    expect(five.slice(0, 3)).toEqual(three);
  });

  it('advances the parent: the next split gives others', () => {
    const rng = new Rng(9);
    const states = [...rng.split(10), ...rng.split(10), rng].map(r => r.state().words.join());
    expect(new Set(states).size).toBe(21);
  });

  it('children, grandchildren and parent are uncorrelated', () => {
    const rng = new Rng(123);
    const children = rng.split(4);
    const family = [...children, ...children.slice(0, 2).flatMap(child => child.split(3)), rng];
    for (let i = 0; i < family.length; i++) {
      for (let j = 0; j < i; j++) {
        // Copies: every pair compares the same stretch of both streams, at offsets 0 and 1.
        expectUncorrelated(Rng.fromState(family[i].state()), Rng.fromState(family[j].state()));
        const shifted = Rng.fromState(family[j].state());
        shifted.uniform();
        expectUncorrelated(Rng.fromState(family[i].state()), shifted);
      }
    }
  });

  it('first draws over many children are uniform', () => {
    const draws = new Rng(5).split(20_000).map(child => child.uniform());
    expect(kolmogorovSmirnov(draws, x => x)).toBeLessThan(1.95); // p > .001
  });

  it.each([0, -1, 1.5, Number.NaN])('refuses a count of %s', count => {
    expect(() => new Rng(0).split(count)).toThrow(
      /^split\(.+\): the count must be an integer of at least 1, try split\(2\)$/,
    );
  });
});

describe('uniform', () => {
  const n = 200_000;

  it('is uniform on [0, 1): moments and Kolmogorov-Smirnov', () => {
    const rng = new Rng(11);
    const draws = take(n, () => rng.uniform());
    expect(Math.min(...draws.slice(0, 50_000))).toBeGreaterThanOrEqual(0);
    expect(Math.max(...draws.slice(0, 50_000))).toBeLessThan(1);
    // Mean of x^k is 1/(k+1), with variance 1/(2k+1) - 1/(k+1)^2 per draw.
    for (let k = 1; k <= 4; k++) {
      const sigma = Math.sqrt((1 / (2 * k + 1) - 1 / (k + 1) ** 2) / n);
      expect(Math.abs(mean(draws.map(x => x ** k)) - 1 / (k + 1))).toBeLessThan(4 * sigma);
    }
    expect(kolmogorovSmirnov(draws, x => x)).toBeLessThan(1.95);
    expectSeriallyUncorrelated(draws.map(x => (x - 0.5) * Math.sqrt(12)));
  });

  it('has 53 bits, the lowest as random as the highest', () => {
    const rng = new Rng(12);
    const ones = new Array<number>(53).fill(0);
    for (let i = 0; i < 20_000; i++) {
      let bits = rng.uniform() * 2 ** 53;
      expect(Number.isInteger(bits)).toBe(true);
      for (let b = 0; b < 53; b++) {
        ones[b] += bits % 2;
        bits = Math.floor(bits / 2);
      }
    }
    for (const count of ones) expect(Math.abs(count - 10_000)).toBeLessThan(4.5 * Math.sqrt(5000));
  });

  it('fillUniform in float64 gives the draws of uniform()', () => {
    const out = new Float64Array(100);
    new Rng(13).fillUniform(out);
    const rng = new Rng(13);
    expect([...out]).toEqual(take(100, () => rng.uniform()));
  });

  it('fillUniform in float32 is uniform and never reaches 1, even from the highest word', () => {
    const out = new Float32Array(n);
    new Rng(14).fillUniform(out);
    expect(kolmogorovSmirnov([...out], x => x)).toBeLessThan(1.95);
    const rng = withWords([1, WORD_OF_HIGHEST_DRAW, 3, 4]);
    expect(Rng.fromState(rng.state()).nextUint32()).toBe(0xffffffff);
    const one = new Float32Array(1);
    rng.fillUniform(one);
    expect(one[0]).toBe(1 - 2 ** -24);
  });
});

describe('normal', () => {
  const n = 1_000_000;
  const draws = new Float64Array(n);
  new Rng(21).fillNormal(draws);

  it('has the moments of a standard normal', () => {
    // E[z^k] and the variance of z^k: (2k-1)!! - E[z^k]^2.
    const doubleFactorial = (m: number): number => (m <= 1 ? 1 : m * doubleFactorial(m - 2));
    for (let k = 1; k <= 8; k++) {
      const expected = k % 2 ? 0 : doubleFactorial(k - 1);
      const sigma = Math.sqrt((doubleFactorial(2 * k - 1) - expected ** 2) / n);
      let sum = 0;
      for (const z of draws) sum += z ** k;
      expect(Math.abs(sum / n - expected)).toBeLessThan(4 * sigma);
    }
  });

  it('passes Kolmogorov-Smirnov', () => {
    expect(kolmogorovSmirnov(draws, normalCdf)).toBeLessThan(1.95);
  });

  it('has the right mass in each layer of the body and far into both tails', () => {
    // 3.654 is where the ziggurat's base layer hands over to its tail sampler.
    for (const edge of [0.05, 0.2, 0.5, 1, 1.5, 2, 2.5, 3, 3.5, 3.6541528853610088, 3.8, 4, 4.3]) {
      const p = 1 - normalCdf(edge);
      let above = 0;
      let below = 0;
      for (const z of draws) {
        if (z > edge) above++;
        if (z < -edge) below++;
      }
      const sigma = Math.sqrt(n * p * (1 - p));
      expect(Math.abs(above - n * p), `above ${edge}`).toBeLessThan(4 * sigma + 1);
      expect(Math.abs(below - n * p), `below ${-edge}`).toBeLessThan(4 * sigma + 1);
    }
  });

  it('follows the density beyond the ziggurat, where another sampler takes over', () => {
    const edge = 3.6541528853610088;
    const tail: number[] = [];
    const rng = new Rng(23);
    const total = 20_000_000;
    for (let i = 0; i < total; i++) {
      const z = rng.normal();
      if (z > edge || z < -edge) tail.push(Math.abs(z));
    }
    const p = 2 * normalCdf(-edge);
    expect(Math.abs(tail.length - total * p)).toBeLessThan(4 * Math.sqrt(total * p));
    expect(kolmogorovSmirnov(tail, x => 1 - (2 * normalCdf(-x)) / p)).toBeLessThan(1.95);
  });

  it('is serially uncorrelated, in value and in size', () => {
    const some = [...draws.subarray(0, 200_000)];
    expectSeriallyUncorrelated(some);
    expectSeriallyUncorrelated(some.map(z => (z * z - 1) / Math.SQRT2));
  });

  it('fillNormal gives the draws of normal(), rounded in float32', () => {
    const out = new Float32Array(1000);
    new Rng(22).fillNormal(out);
    const rng = new Rng(22);
    for (const z of out) expect(z).toBe(Math.fround(rng.normal()));
  });
});

describe('integer', () => {
  it.each([2, 3, 7, 10, 64, 100, 1000])('is uniform over 0..%i-1 (chi-square)', n => {
    const rng = new Rng(31 + n);
    const counts = new Array<number>(n).fill(0);
    const total = 200 * Math.max(n, 100);
    for (let i = 0; i < total; i++) counts[rng.integer(n)]++;
    expectChiSquare(counts, new Array<number>(n).fill(total / n));
  });

  it('has no modulo bias where it would be largest', () => {
    // n = 3 * 2^30: folding 2^32 draws would make the lowest third twice as likely.
    const n = 3 * 2 ** 30;
    const rng = new Rng(32);
    const thirds = [0, 0, 0];
    for (let i = 0; i < 60_000; i++) thirds[Math.floor(rng.integer(n) / 2 ** 30)]++;
    expectChiSquare(thirds, [20_000, 20_000, 20_000]);
  });

  it('stays in range for any n, and reaches both ends', () => {
    fc.assert(
      fc.property(arbitrarySeed, fc.integer({ min: 1, max: 2 ** 32 }), (seed, n) => {
        const rng = new Rng(seed);
        for (let i = 0; i < 20; i++) {
          const value = rng.integer(n);
          expect(Number.isInteger(value) && value >= 0 && value < n).toBe(true);
        }
      }),
    );
    const rng = new Rng(33);
    expect(new Set(take(200, () => rng.integer(5)))).toEqual(new Set([0, 1, 2, 3, 4]));
    expect(take(5, () => rng.integer(1))).toEqual([0, 0, 0, 0, 0]);
    const full = take(1000, () => rng.integer(2 ** 32));
    expect(Math.max(...full)).toBeGreaterThan(2 ** 31);
  });

  it.each([0, -1, 2.5, 2 ** 32 + 1, Number.NaN])('refuses n = %s', n => {
    expect(() => new Rng(0).integer(n)).toThrow(
      /^integer\(.+\): n must be an integer in 1\.\.4294967296; results are 0\.\.n-1$/,
    );
  });
});

describe('categorical', () => {
  it('draws with the given probabilities (chi-square)', () => {
    const rng = new Rng(41);
    for (const probs of [[0.5, 0.5], [0.1, 0.2, 0.3, 0.4], [0.7, 0.001, 0.299], take(50, () => 0.02)]) {
      const total = 100_000;
      const counts = probs.map(() => 0);
      for (let i = 0; i < total; i++) counts[rng.categorical(probs)]++;
      expectChiSquare(
        counts,
        probs.map(p => p * total),
      );
    }
  });

  it('never returns an index of probability 0', () => {
    fc.assert(
      fc.property(
        arbitrarySeed,
        fc.array(fc.oneof(fc.constant(0), fc.double({ min: 0, max: 1, noNaN: true })), {
          minLength: 1,
          maxLength: 8,
        }),
        (seed, weights) => {
          const sum = weights.reduce((a, b) => a + b, 0);
          fc.pre(sum > 1e-300);
          const probs = weights.map(w => w / sum);
          const rng = new Rng(seed);
          for (let i = 0; i < 20; i++) expect(probs[rng.categorical(probs)]).toBeGreaterThan(0);
        },
      ),
    );
  });

  it('takes the last possible index for the largest draw there is', () => {
    // Two draws of 2^32 - 1 in a row: with s0 = s2, the second word stays the same for one step.
    const words = [1, WORD_OF_HIGHEST_DRAW, 1, 4];
    expect(withWords(words).uniform()).toBe(1 - 2 ** -53);
    expect(withWords(words).categorical([0, 0.5, 0.5, 0])).toBe(2);
    expect(withWords(words).categorical([0.1, 0.2, 0.3, 0.3999, 0])).toBe(3);
  });

  it('takes float32 probabilities, whose sum is a little off 1', () => {
    const probs = Float32Array.from([1 / 3, 1 / 3, 1 / 3, 0]);
    const rng = new Rng(42);
    for (let i = 0; i < 1000; i++) expect(rng.categorical(probs)).toBeLessThan(3);
  });

  it.each<[string, number[], RegExp]>([
    [
      'a negative',
      [1.5, -0.5],
      /^categorical: probability -0\.5 at index 1 is not a number in 0\.\.1: pass softmax output/,
    ],
    ['NaN', [Number.NaN, 1], /probability NaN at index 0/],
    ['an infinity', [0, Number.POSITIVE_INFINITY], /probability Infinity at index 1/],
    [
      'a wrong sum',
      [0.5, 0.4],
      /^categorical: the 2 probabilities sum to 0\.9, not to 1 within 0\.001: divide them/,
    ],
    ['nothing', [], /the 0 probabilities sum to 0/],
  ])('refuses %s', (_, probs, message) => {
    expect(() => new Rng(0).categorical(probs)).toThrow(message);
  });
});

describe('permutation and shuffle', () => {
  it('is a permutation of 0..n-1, in out where given', () => {
    fc.assert(
      fc.property(arbitrarySeed, fc.integer({ min: 0, max: 200 }), (seed, n) => {
        const out = new Int32Array(n);
        const order = new Rng(seed).permutation(n, out);
        expect(order).toBe(out);
        expect([...order].sort((a, b) => a - b)).toEqual(
          take(
            n,
            (
              i => () =>
                i++
            )(0),
          ),
        );
        expect(new Rng(seed).permutation(n)).toEqual(out);
      }),
    );
  });

  it('gives each of the 24 orders of four equally often (chi-square)', () => {
    const rng = new Rng(51);
    const counts = new Map<string, number>();
    const out = new Int32Array(4);
    for (let i = 0; i < 48_000; i++) {
      const key = rng.permutation(4, out).join('');
      counts.set(key, (counts.get(key) ?? 0) + 1);
    }
    expect(counts.size).toBe(24);
    expectChiSquare(
      [...counts.values()],
      take(24, () => 2000),
    );
  });

  it('shuffles values in place', () => {
    const values = [5, 6, 7, 8, 9];
    new Rng(52).shuffle(values);
    expect([...values].sort()).toEqual([5, 6, 7, 8, 9]);
    expect(values).not.toEqual([5, 6, 7, 8, 9]);
  });

  it('refuses a wrong n and an out of another length', () => {
    expect(() => new Rng(0).permutation(-1)).toThrow(
      /^permutation\(-1\): n must be an integer in 0\.\.2147483647/,
    );
    expect(() => new Rng(0).permutation(4, new Int32Array(3))).toThrow(
      'permutation(4): out has 3 numbers, not 4: pass an Int32Array of 4, or none',
    );
  });
});

function mean(values: readonly number[]): number {
  return values.reduce((a, b) => a + b, 0) / values.length;
}

/** sqrt(n) times the largest distance between the empirical and the given distribution; 1.95 is exceeded once in 1000. */
function kolmogorovSmirnov(values: ArrayLike<number>, cdf: (x: number) => number): number {
  const sorted = Float64Array.from(values).sort();
  const n = sorted.length;
  let worst = 0;
  for (let i = 0; i < n; i++) {
    const c = cdf(sorted[i]);
    worst = Math.max(worst, c - i / n, (i + 1) / n - c);
  }
  return worst * Math.sqrt(n);
}

/** Chi-square by its normal approximation (Wilson-Hilferty): within 4 sigma on the high side, 4 on the low. */
function expectChiSquare(counts: readonly number[], expected: readonly number[]): void {
  const statistic = counts.reduce((sum, count, i) => sum + (count - expected[i]) ** 2 / expected[i], 0);
  const k = counts.length - 1;
  const z = (Math.cbrt(statistic / k) - (1 - 2 / (9 * k))) / Math.sqrt(2 / (9 * k));
  expect(Math.abs(z)).toBeLessThan(4);
}

function expectUncorrelated(a: Rng, b: Rng): void {
  const n = 2000;
  let sum = 0;
  for (let i = 0; i < n; i++) sum += (a.uniform() - 0.5) * (b.uniform() - 0.5) * 12;
  expect(Math.abs(sum) / Math.sqrt(n)).toBeLessThan(4.5);
}

/** Lags 1 to 5 of values with mean 0 and variance 1. */
function expectSeriallyUncorrelated(values: readonly number[]): void {
  for (let lag = 1; lag <= 5; lag++) {
    let sum = 0;
    for (let i = lag; i < values.length; i++) sum += values[i] * values[i - lag];
    expect(Math.abs(sum) / Math.sqrt(values.length)).toBeLessThan(4.5);
  }
}

/** Phi by its Taylor series in the body and a continued fraction in the tails: independent of the sampler. */
function normalCdf(x: number): number {
  const density = Math.exp(-0.5 * x * x) / Math.sqrt(2 * Math.PI);
  if (Math.abs(x) < 3) {
    let term = x;
    let sum = x;
    for (let k = 3; Math.abs(term) > 1e-18; k += 2) {
      term *= (x * x) / k;
      sum += term;
    }
    return 0.5 + density * sum;
  }
  let fraction = 0;
  for (let k = 60; k >= 1; k--) fraction = k / (Math.abs(x) + fraction);
  const tail = density / (Math.abs(x) + fraction);
  return x < 0 ? tail : 1 - tail;
}

const rotr = (x: number, k: number): number => (x >>> k) | (x << (32 - k));

/** The inverse of an odd number modulo 2^32, by Newton's iteration. */
function inverse32(odd: number): number {
  let x = odd;
  for (let i = 0; i < 5; i++) x = Math.imul(x, 2 - Math.imul(odd, x));
  return x;
}

/** The first output from state [_, s1, _, _] is rotl(s1 * 5, 7) * 9: this s1 makes it 2^32 - 1. */
const WORD_OF_HIGHEST_DRAW = Math.imul(rotr(Math.imul(-1, inverse32(9)), 7), inverse32(5)) >>> 0;

const GOLDEN = {
  words: [1827058012, 3062889846, 4052127497, 2498963507],
  uint32: [2814828936, 2460391253, 2345812955, 2146984579],
  uniform: [0.8626234831689009, 0.2217654134361967, 0.975359640512899],
  normal: [0.2955985237182712, 1.452923108305255, 0.22428493060852353, 1.0614572546126726],
  integer: [9, 8, 9, 7, 7, 2],
  permutation: [5, 7, 1, 6, 4, 0, 2, 3],
  split: [395146210, 3276973928],
  after: 825805970,
};
