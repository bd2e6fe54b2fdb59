/**
 * The guard: whatever an update was, what it keeps is within the bound. The KL is computed here again, in float64 loops
 * that share nothing with the graph but the layout of the parameters.
 */
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  compile,
  concat,
  expand,
  Graph,
  matmul,
  type Program,
  reduceMean,
  reshape,
  split,
} from '../../src/engine/index.ts';
import { guard, heldLimit } from '../../src/kl/guard.ts';
import { categorical, composite, type Distribution, gaussian } from '../../src/kl/index.ts';
import { Rng } from '../../src/random/index.ts';
import { seed } from '../engine/support/check.ts';

fc.configureGlobal({ seed });

const [rows, inputs] = [64, 3];

/** A linear policy: `outputs` of each observation, and `spreads` log-stds that are parameters of their own. */
interface Kind {
  name: string;
  distribution: Distribution;
  outputs: number;
  spreads: number;
  /** KL(p‖q) of one sample's parameters, by the textbook. */
  kl(p: readonly number[], q: readonly number[]): number;
}

function klOfNormals(p: readonly number[], q: readonly number[]): number {
  const n = p.length / 2;
  let sum = 0;
  for (let i = 0; i < n; i++) {
    const d = p[n + i] - q[n + i];
    // As e^2d - 1 - 2d, whose digits expm1 keeps: the textbook must be the better of the two.
    sum += 0.5 * (Math.expm1(2 * d) - 2 * d + ((p[i] - q[i]) / Math.exp(q[n + i])) ** 2);
  }
  return sum;
}

function klOfLogits(p: readonly number[], q: readonly number[]): number {
  const logs = (logits: readonly number[]): number[] => {
    const top = Math.max(...logits);
    const logSum = Math.log(logits.reduce((sum, l) => sum + Math.exp(l - top), 0));
    return logits.map(l => l - top - logSum);
  };
  const [a, b] = [logs(p), logs(q)];
  return a.reduce((sum, l, i) => sum + Math.exp(l) * (l - b[i]), 0);
}

const kinds: Kind[] = [
  { name: 'gaussian(2)', distribution: gaussian(2), outputs: 2, spreads: 2, kl: klOfNormals },
  { name: 'categorical(4)', distribution: categorical(4), outputs: 4, spreads: 0, kl: klOfLogits },
  {
    name: 'gaussian(1) and categorical(3)',
    distribution: composite([gaussian(1), categorical(3)]),
    outputs: 4,
    spreads: 1,
    kl: (p, q) => klOfNormals(p.slice(0, 2), q.slice(0, 2)) + klOfLogits(p.slice(2), q.slice(2)),
  },
];

const sizeOfKind = ({ outputs, spreads }: Kind): number => inputs * outputs + spreads;

/** One sample's distribution parameters, from float32 policy parameters, in float64. */
function paramsOf({ outputs, spreads }: Kind, policy: ArrayLike<number>, obs: ArrayLike<number>): number[] {
  const means = Array.from({ length: outputs }, (_, o) => {
    let sum = 0;
    for (let i = 0; i < inputs; i++) sum += obs[i] * policy[i * outputs + o];
    return sum;
  });
  const logStds = Array.from({ length: spreads }, (_, i) =>
    Math.min(20, Math.max(-20, policy[inputs * outputs + i])),
  );
  return [...means.slice(0, spreads), ...logStds, ...means.slice(spreads)];
}

function exactKl(
  kind: Kind,
  observations: Float32Array,
  from: ArrayLike<number>,
  to: ArrayLike<number>,
): number {
  let sum = 0;
  for (let r = 0; r < rows; r++) {
    const obs = observations.subarray(r * inputs, (r + 1) * inputs);
    sum += kind.kl(paramsOf(kind, from, obs), paramsOf(kind, to, obs));
  }
  return sum / rows;
}

function graphOf(kind: Kind): Graph {
  const { distribution, outputs, spreads } = kind;
  const g = new Graph();
  const obs = g.input('obs', [rows, inputs]);
  const [before, after] = ['before', 'after'].map(name => g.input(name, [sizeOfKind(kind)]));
  const policy = (flat: typeof before): typeof before => {
    const [weights, logStd] = spreads > 0 ? split(flat, [inputs * outputs, spreads], 0) : [flat, undefined];
    const out = matmul(obs, reshape(weights, [inputs, outputs]));
    if (!logStd) return out;
    const wide = expand(reshape(logStd, [1, spreads]), [rows, spreads]);
    if (outputs === spreads) return concat([out, wide], 1);
    const [means, logits] = split(out, [spreads, outputs - spreads], 1);
    return concat([means, wide, logits], 1);
  };
  const old = policy(before);
  const guarded = guard(before, after, g.input('bound', []), flat =>
    reduceMean(distribution.graph.kl(old, policy(flat))),
  );
  for (const [name, tensor] of Object.entries(guarded)) g.output(name, tensor);
  return g;
}

interface Outcome {
  weights: Float32Array;
  kl: number;
  klRaw: number;
  scale: number;
  backtracks: number;
}

const programs = new Map<string, Program>();
beforeAll(async () => {
  for (const kind of kinds) programs.set(kind.name, await compile(graphOf(kind), { checkFeeds: false }));
});
afterAll(() => {
  for (const program of programs.values()) program.dispose();
});

function run(
  kind: Kind,
  observations: Float32Array,
  before: Float32Array,
  after: Float32Array,
  bound: number,
): Outcome {
  const out = programs.get(kind.name)!.run<Record<string, Float32Array>>({
    obs: observations,
    before,
    after,
    bound: Float32Array.of(bound),
  });
  return {
    weights: out.weights,
    kl: out.kl[0],
    klRaw: out.klRaw[0],
    scale: out.scale[0],
    backtracks: Number(out.backtracks[0]),
  };
}

interface Case {
  observations: Float32Array;
  before: Float32Array;
  after: Float32Array;
}

/** A policy that has learnt something, and an update of it of this size. */
function caseOf(kind: Kind, rng: Rng, size: number): Case {
  const draw = (n: number, scale: number): Float32Array =>
    Float32Array.from({ length: n }, () => scale * rng.normal());
  const before = draw(sizeOfKind(kind), 0.7);
  return {
    observations: draw(rows * inputs, 1),
    before,
    after: before.map(p => p + size * rng.normal()),
  };
}

const same = (a: Float32Array, b: Float32Array): boolean => a.every((value, i) => Object.is(value, b[i]));

describe.each(kinds)('$name', kind => {
  const bounds = [0.5, 0.05, 0.01, 1e-3];

  it('the accepted KL is within the bound, from a nudge to an explosion', () => {
    fc.assert(
      fc.property(
        fc.nat(),
        fc.double({ min: -4, max: 6, noNaN: true }),
        fc.constantFrom(...bounds),
        (s, e, bound) => {
          const { observations, before, after } = caseOf(kind, new Rng(s), 10 ** e);
          const out = run(kind, observations, before, after, bound);
          const accepted = exactKl(kind, observations, before, out.weights);
          expect(accepted).toBeLessThanOrEqual(bound);
          expect(Math.abs(out.kl - accepted)).toBeLessThan(1e-6 + 1e-4 * accepted);
          expect(out.weights.every(Number.isFinite)).toBe(true);
        },
      ),
      { numRuns: 200 },
    );
  });

  it('does nothing where nothing is needed: scale 1 and the same bits', () => {
    let held = 0;
    for (let s = 0; s < 60; s++) {
      const { observations, before, after } = caseOf(kind, new Rng(s), 0.02 + 0.001 * s);
      const out = run(kind, observations, before, after, 0.05);
      if (exactKl(kind, observations, before, after) > 0.0499) continue;
      held++;
      expect(out.scale).toBe(1);
      expect(out.backtracks).toBe(0);
      expect(same(out.weights, after)).toBe(true);
      expect(out.kl).toBe(out.klRaw);
    }
    expect(held).toBeGreaterThan(20);
  });

  it('keeps more than 30 % of the bound, in ordinary cases: those that a too high rate gives', () => {
    const shares: number[] = [];
    for (let s = 0; s < 200; s++) {
      const rng = new Rng(1000 + s);
      const { observations, before, after } = caseOf(kind, rng, 10 ** (-0.8 + 1.6 * rng.uniform()));
      const out = run(kind, observations, before, after, 0.05);
      if (out.backtracks === 0) continue;
      shares.push(exactKl(kind, observations, before, out.weights) / 0.05);
    }
    expect(shares.length).toBeGreaterThan(100);
    expect(Math.min(...shares)).toBeGreaterThan(0.3);
    expect(shares.reduce((a, b) => a + b, 0) / shares.length).toBeGreaterThan(0.6);
  });

  it('needs few looks', () => {
    const counts: number[] = [];
    for (let s = 0; s < 100; s++) {
      const { observations, before, after } = caseOf(kind, new Rng(2000 + s), 0.5);
      counts.push(run(kind, observations, before, after, 0.05).backtracks);
    }
    expect(counts.reduce((a, b) => a + b, 0) / counts.length).toBeLessThan(3);
  });

  it('goes along the line to the old parameters', () => {
    for (let s = 0; s < 20; s++) {
      const { observations, before, after } = caseOf(kind, new Rng(s), 1);
      const { weights, scale } = run(kind, observations, before, after, 0.05);
      weights.forEach((p, i) => {
        expect(p).toBeCloseTo(before[i] + scale * (after[i] - before[i]), 5);
      });
      expect(scale).toBeLessThan(1);
      expect(scale).toBeGreaterThan(0);
    }
  });

  it('goes all the way back, to the bit, where the update is not a number or infinite', () => {
    for (const poison of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]) {
      for (let s = 0; s < 5; s++) {
        const { observations, before, after } = caseOf(kind, new Rng(s), 0.1);
        after[s % after.length] = poison;
        const out = run(kind, observations, before, after, 0.05);
        expect(out.scale).toBe(0);
        expect(out.kl).toBe(0);
        expect(same(out.weights, before)).toBe(true);
        // Each takes a tenth: as many as float32 has powers of ten.
        expect(out.backtracks).toBe(40);
        expect(out.klRaw <= 0.05).toBe(false);
      }
    }
  });

  it('survives updates of the size of the largest float', () => {
    for (let s = 0; s < 10; s++) {
      const { observations, before } = caseOf(kind, new Rng(s), 0);
      const rng = new Rng(50 + s);
      const after = before.map(() => (rng.integer(2) === 0 ? -3e38 : 3e38));
      const out = run(kind, observations, before, after, 0.05);
      expect(out.weights.every(Number.isFinite)).toBe(true);
      expect(exactKl(kind, observations, before, out.weights)).toBeLessThanOrEqual(0.05);
    }
  });

  it('finds its way back from where no KL is a number: something of the update is left', () => {
    for (let s = 0; s < 4; s++) {
      // Nearly as far as float32 goes: infinite, or infinity less infinity.
      const { observations, before, after } = caseOf(kind, new Rng(s), 1e38);
      const out = run(kind, observations, before, after, 0.05);
      expect(Number.isFinite(out.klRaw)).toBe(false);
      expect(out.scale).toBeGreaterThan(0);
      expect(out.kl).toBeGreaterThan(0.01);
      expect(exactKl(kind, observations, before, out.weights)).toBeLessThanOrEqual(0.05);
    }
  });

  it('keeps the old parameters, to the bit, under a bound that no float32 KL reaches', () => {
    for (let s = 0; s < 10; s++) {
      const { observations, before, after } = caseOf(kind, new Rng(s), 1);
      const out = run(kind, observations, before, after, 1e-20);
      // Either exactly nothing is left, or so little that float32 sees no KL in it.
      expect(exactKl(kind, observations, before, out.weights)).toBeLessThan(1e-6);
      if (out.scale === 0) expect(same(out.weights, before)).toBe(true);
    }
  });

  it('is switched off by an infinite bound', () => {
    for (let s = 0; s < 10; s++) {
      const { observations, before, after } = caseOf(kind, new Rng(s), 3);
      const out = run(kind, observations, before, after, Number.POSITIVE_INFINITY);
      expect(out.scale).toBe(1);
      expect(same(out.weights, after)).toBe(true);
      expect(out.backtracks).toBe(0);
    }
  });

  /** How far above the bound an update of just above it is accepted, at the worst, as a share of the bound. */
  function worstJustAbove(bound: number): number {
    let worst = 0;
    for (let s = 0; s < 6; s++) {
      const { observations, before, after } = caseOf(kind, new Rng(s), 0.3);
      const share = (x: number): Float32Array => before.map((p, i) => p + x * (after[i] - p));
      for (const excess of [1e-6, 1e-4, 1e-2]) {
        let [inside, outside] = [0, 1];
        for (let i = 0; i < 26; i++) {
          const middle = (inside + outside) / 2;
          if (exactKl(kind, observations, before, share(middle)) > bound * (1 + excess)) outside = middle;
          else inside = middle;
        }
        const { weights } = run(kind, observations, before, share(outside), bound);
        worst = Math.max(worst, exactKl(kind, observations, before, weights) / bound - 1);
      }
    }
    return worst;
  }

  it('takes back what is just above the bound', () => {
    for (const bound of [0.05, 1e-3]) expect(worstJustAbove(bound), `bound ${bound}`).toBe(0);
  });

  // A fault that was here: the margin is relative, float32's rounding (1e-8 or so) is not: below 1e-4 it is larger
  // than the margin.
  it('also with a bound so small that float32 rounds beyond the margin', () => {
    expect(worstJustAbove(1e-6)).toBe(0);
  });
});

it('what counts as within a bound is the same number in the graph and outside of it', async () => {
  const bounds = [1e-6, 1.3e-5, 0.01, 0.02, 0.05, 1, 1e-8];
  const g = new Graph();
  const [kl, bound] = [g.input('kl', []), g.input('bound', [])];
  const one = g.input('one', [1]);
  g.output('scale', guard(one, one, bound, () => kl).scale);
  const program = await compile(g);
  for (const at of bounds) {
    const limit = heldLimit(at);
    const bits = new Uint32Array(Float32Array.of(limit).buffer)[0];
    const above = new Float32Array(Uint32Array.of(bits + 1).buffer)[0];
    const held = (value: number): boolean =>
      program.run({ kl: Float32Array.of(value), bound: Float32Array.of(at), one: Float32Array.of(1) })
        .scale[0] === 1;
    expect([held(limit), held(above)], `bound ${at}`).toEqual([true, false]);
  }
  program.dispose();
});
