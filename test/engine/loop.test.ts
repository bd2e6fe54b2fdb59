/** `loop`: what it computes, what flows back through it, and what it refuses. */
import { describe, expect, it } from 'vitest';
import {
  add,
  cast,
  div,
  EngineError,
  evaluate,
  exp,
  expand,
  Graph,
  gather,
  grad,
  greater,
  less,
  loop,
  matmul,
  mul,
  reduceSum,
  sub,
  type Tensor,
  tanh,
  toOnnx,
  where,
} from '../../src/engine/index.ts';
import { expectClose, finiteDifferences, type PlainFeeds, runCompiled } from './support/check.ts';

/** Outputs by both ways of running, which must agree. */
async function bothWays(
  g: Graph,
  outputs: Record<string, Tensor>,
  feeds: PlainFeeds,
): Promise<Record<string, number[]>> {
  for (const [name, t] of Object.entries(outputs)) g.output(name, t);
  const reference = evaluate(g, feeds);
  const compiled = await runCompiled(g, feeds);
  for (const [name, { data }] of Object.entries(reference)) {
    expectClose(`compiled ${name}`, compiled[name], data, 1e-4);
  }
  return Object.fromEntries(Object.entries(reference).map(([name, { data }]) => [name, [...data]]));
}

/** The derivatives of a loss by all float inputs, against finite differences and compiled. */
async function checkGradient(
  build: (g: Graph) => Tensor,
  feeds: Record<string, number[]>,
  wrt = Object.keys(feeds),
): Promise<Record<string, number[]>> {
  const plain = new Graph();
  plain.output('loss', build(plain));
  const full = new Graph();
  const loss = build(full);
  const found = grad(
    loss,
    wrt.map(name => full.inputNamed(name)!),
  );
  const out = await bothWays(full, Object.fromEntries(wrt.map((name, i) => [`d/${name}`, found[i]])), feeds);
  for (const name of wrt) {
    const expected = finiteDifferences(
      moved => evaluate(plain, { ...feeds, [name]: moved }).loss.data[0],
      feeds[name],
    );
    expectClose(`d/${name}`, out[`d/${name}`], expected, 1e-6);
  }
  return out;
}

describe('loop', () => {
  it('stacks what the body scans, of every dtype', async () => {
    const g = new Graph();
    const x = g.input('x', [2]);
    const { scan, iterations } = loop({
      trips: 3,
      carry: { x },
      body: ({ iteration, carry }) => ({
        carry: { x: mul(carry.x, 2) },
        scan: {
          float: carry.x,
          int64: iteration,
          int32: cast(carry.x, 'int32'),
          bool: greater(carry.x, 3),
          constant: g.constant([7]),
          outside: x,
          same: carry.x,
        },
      }),
    });
    expect(scan.float.shape).toEqual([3, 2]);
    expect(scan.int64.shape).toEqual([3]);
    expect([scan.int32.dtype, scan.bool.dtype, iterations.dtype]).toEqual(['int32', 'bool', 'int64']);
    const out = await bothWays(g, { ...scan, iterations }, { x: [1, 2] });
    expect(out).toEqual({
      float: [1, 2, 2, 4, 4, 8],
      int64: [0, 1, 2],
      int32: [1, 2, 2, 4, 4, 8],
      bool: [0, 0, 0, 1, 1, 1],
      constant: [7, 7, 7],
      outside: [1, 2, 1, 2, 1, 2],
      same: [1, 2, 2, 4, 4, 8],
      iterations: [3],
    });
  });

  it('may return an outer tensor, a constant, a carried value unchanged, or one tensor twice', async () => {
    const g = new Graph();
    const [x, y] = [g.input('x', [2]), g.input('y', [2])];
    const { carry } = loop({
      trips: 2,
      carry: { outer: x, constant: x, kept: y, swapA: x, swapB: y, twiceA: x, twiceB: x, scalar: x },
      body: ({ carry: c }) => {
        const twice = mul(c.twiceA, 3);
        return {
          carry: {
            outer: y,
            constant: g.constant([5, 6]),
            kept: c.kept,
            swapA: c.swapB,
            swapB: c.swapA,
            twiceA: twice,
            twiceB: twice,
            // One value for all of a carried shape.
            scalar: g.constant(4),
          },
        };
      },
    });
    const out = await bothWays(g, carry, { x: [1, 2], y: [10, 20] });
    expect(out).toEqual({
      outer: [10, 20],
      constant: [5, 6],
      kept: [10, 20],
      swapA: [1, 2],
      swapB: [10, 20],
      twiceA: [9, 18],
      twiceB: [9, 18],
      scalar: [4, 4],
    });
  });

  it('derives through all of these', async () => {
    await checkGradient(
      g => {
        const [x, y] = [g.input('x', [2]), g.input('y', [2])];
        const { carry, scan } = loop({
          trips: 3,
          carry: { outer: x, kept: y, swapA: x, swapB: mul(y, 2), twiceA: x, twiceB: y },
          body: ({ carry: c }) => {
            const twice = tanh(mul(c.twiceA, c.twiceB));
            return {
              carry: {
                outer: mul(y, 3),
                kept: c.kept,
                swapA: c.swapB,
                swapB: c.swapA,
                twiceA: twice,
                twiceB: twice,
              },
              scan: { outer: c.outer, twice, x, product: mul(c.swapA, x) },
            };
          },
        });
        return [...Object.values(carry), ...Object.values(scan)]
          .map((t, i) => reduceSum(mul(exp(t), (i % 3) - 0.5)))
          .reduce(add);
      },
      { x: [0.5, -0.25], y: [0.75, 0.125] },
    );
  });

  it('derives through whole-number carried values', async () => {
    await checkGradient(
      g => {
        const x = g.input('x', [3]);
        const { carry } = loop({
          trips: 3,
          carry: { at: g.constant(0, [], 'int64'), sum: g.constant(1) },
          body: ({ carry: { at, sum } }) => ({
            carry: { at: add(at, 1), sum: mul(sum, exp(gather(x, at))) },
          }),
        });
        return carry.sum;
      },
      { x: [0.5, -0.25, 1] },
    );
  });

  it('picks rows by a carried index that jumps', async () => {
    const out = await checkGradient(
      g => {
        const x = g.input('x', [4]);
        const { scan } = loop({
          trips: 4,
          carry: { at: g.constant(0, [], 'int64') },
          body: ({ carry: { at } }) => ({
            // 0, 3, 2, 1
            carry: { at: where(less(at, 1), add(at, 3), sub(at, 1)) },
            scan: { v: mul(gather(x, at), gather(x, at)) },
          }),
        });
        return reduceSum(mul(scan.v, g.constant([1, 10, 100, 1000])));
      },
      { x: [1, 2, 3, 4] },
    );
    expect(out['d/x']).toEqual([2, 4000, 600, 80]);
  });

  it.each([0, 1, 2, 4, 9])('derives through an early end at %i', async last => {
    await checkGradient(
      g => {
        const [x, w] = [g.input('x', [2]), g.input('w', [])];
        const { carry, scan, iterations } = loop({
          trips: 4,
          carry: { x },
          body: ({ iteration, carry }) => ({
            carry: { x: tanh(mul(carry.x, w)) },
            scan: { row: exp(carry.x) },
            goOn: less(iteration, last),
          }),
        });
        const weights = g.constant([1, 2, 3, 4, 5, 6, 7, 8], [4, 2]);
        return add(
          add(reduceSum(carry.x), reduceSum(mul(scan.row, weights))),
          mul(cast(iterations, 'float32'), w),
        );
      },
      { x: [0.5, -0.25], w: [1.5] },
    );
  });

  it.each([0, 1, 3, 7])('derives through %i trips that are fed', async n => {
    await checkGradient(
      g => {
        const [x, w] = [g.input('x', [2]), g.input('w', [])];
        const { carry, scan } = loop({
          trips: { count: g.input('n', [], 'int64'), atMost: 4 },
          carry: { x },
          body: ({ iteration, carry }) => ({
            carry: { x: mul(carry.x, w) },
            scan: { row: mul(carry.x, add(cast(iteration, 'float32'), w)) },
          }),
        });
        return add(reduceSum(carry.x), reduceSum(scan.row));
      },
      { x: [0.5, -0.25], w: [1.5], n: [n] },
      ['x', 'w'],
    );
  });

  it('derives through loops in loops, with captures of each level', async () => {
    await checkGradient(
      g => {
        const [x, w, v] = [g.input('x', [2]), g.input('w', [2, 2]), g.input('v', [2])];
        const outer = loop({
          trips: 2,
          carry: { h: x },
          body: ({ iteration: i, carry: { h } }) => {
            const middle = loop({
              trips: { count: add(i, 1), atMost: 2 },
              carry: { m: mul(h, v) },
              body: ({ carry: { m } }) => {
                const inner = loop({
                  trips: 3,
                  carry: { n: add(m, h) },
                  body: ({ iteration: j, carry: { n } }) => ({
                    carry: { n: tanh(add(mul(n, v), mul(m, h))) },
                    scan: { n: mul(n, m) },
                    goOn: less(j, add(i, 1)),
                  }),
                });
                const next = reduceSum(inner.scan.n, { axes: [0] });
                return { carry: { m: tanh(add(next, inner.carry.n)) } };
              },
            });
            const row = matmul(expand(middle.carry.m, [1, 2]), w);
            return { carry: { h: tanh(reduceSum(row, { axes: [0] })) }, scan: { h: middle.carry.m } };
          },
        });
        return add(reduceSum(outer.carry.h), reduceSum(mul(outer.scan.h, outer.scan.h)));
      },
      { x: [0.5, -0.25], w: [0.5, -1, 0.25, 1], v: [0.75, -0.5] },
    );
  });

  it('derives twice', async () => {
    await checkGradient(
      g => {
        const [x, w] = [g.input('x', [2]), g.input('w', [2])];
        const { carry, scan } = loop({
          trips: 3,
          carry: { x },
          body: ({ iteration, carry }) => ({
            carry: { x: tanh(mul(carry.x, w)) },
            scan: { s: mul(carry.x, carry.x) },
            goOn: less(iteration, 1),
          }),
        });
        const [dx, dw] = grad(add(reduceSum(exp(carry.x)), reduceSum(scan.s)), [x, w]);
        return add(reduceSum(mul(dx, dx)), reduceSum(mul(dw, exp(dx))));
      },
      { x: [0.5, -0.25], w: [1.5, 0.5] },
    );
  });

  it('derives a loop in a loop twice', async () => {
    await checkGradient(
      g => {
        const [x, w] = [g.input('x', []), g.input('w', [])];
        const { carry } = loop({
          trips: 2,
          carry: { x },
          body: ({ carry: { x: outer } }) => ({
            carry: {
              x: loop({
                trips: 2,
                carry: { y: outer },
                body: ({ carry: { y } }) => ({ carry: { y: tanh(mul(y, mul(w, outer))) } }),
              }).carry.y,
            },
          }),
        });
        const [dx, dw] = grad(carry.x, [x, w]);
        return mul(dx, add(dw, dx));
      },
      { x: [0.5], w: [1.5] },
    );
  });

  it('takes gradients inside of its body: gradient descent with a closed form', async () => {
    const g = new Graph();
    const [w0, target, rate] = [g.input('w', [2]), g.input('target', [2]), g.input('rate', [])];
    const n = 5;
    const { carry, scan } = loop({
      trips: n,
      carry: { w: w0 },
      body: ({ carry: { w } }) => {
        const error = sub(w, target);
        const loss = mul(reduceSum(mul(error, error)), 0.5);
        const [d] = grad(loss, [w]);
        return { carry: { w: sub(w, mul(d, rate)) }, scan: { loss } };
      },
    });
    // w_n = t + (1 - r)^n (w_0 - t); by r: -n (1 - r)^(n - 1) (w_0 - t).
    const [byRate, byTarget] = grad(reduceSum(carry.w), [rate, target]);
    const out = await bothWays(
      g,
      { last: carry.w, loss: scan.loss, byRate, byTarget },
      { w: [3, -1], target: [1, 1], rate: [0.25] },
    );
    const left = 0.75 ** n;
    expectClose('last', out.last, [1 + 2 * left, 1 - 2 * left], 1e-12);
    expectClose(
      'loss',
      out.loss,
      [0, 1, 2, 3, 4].map(k => 4 * 0.75 ** (2 * k)),
      1e-12,
    );
    expectClose('by the target', out.byTarget, [1 - left, 1 - left], 1e-12);
    expectClose('by the rate', out.byRate, [0], 1e-12);
  });

  it('takes gradients inside of its body by outer tensors, and through an outer loop', async () => {
    const build = (g: Graph): Tensor => {
      const [x, w] = [g.input('x', []), g.input('w', [])];
      const before = loop({
        trips: 2,
        carry: { a: w },
        body: ({ carry: { a } }) => ({ carry: { a: mul(a, w) } }),
      }).carry.a; // w³
      const { carry } = loop({
        trips: 3,
        carry: { x },
        body: ({ carry: { x: at } }) => {
          const [dw, dBefore] = grad(mul(mul(at, at), before), [w, before]);
          return { carry: { x: tanh(add(at, add(mul(dw, 0.125), dBefore))) } };
        },
      });
      return carry.x;
    };
    const g = new Graph();
    const result = build(g);
    const out = await bothWays(g, { result }, { x: [0.5], w: [0.75] });
    let at = 0.5;
    for (let i = 0; i < 3; i++) at = Math.tanh(at + 0.125 * at * at * 3 * 0.75 ** 2 + at * at);
    expectClose('result', out.result, [at], 1e-12);
    await checkGradient(build, { x: [0.5], w: [0.75] });
  });

  it('counts its iterations with and without scans, with and without an early end', async () => {
    for (const scans of [true, false]) {
      for (const last of [0, 1, 2, 9, undefined]) {
        for (const fed of [undefined, 0, 2, 9]) {
          const g = new Graph();
          const x = g.input('x', [2]);
          const { carry, iterations } = loop({
            trips: fed === undefined ? 3 : { count: g.input('n', [], 'int64'), atMost: 3 },
            carry: { x },
            body: ({ iteration, carry: c }) => ({
              carry: { x: add(c.x, 1) },
              scan: { x: c.x },
              ...(last === undefined ? {} : { goOn: less(iteration, last) }),
            }),
          });
          const [d] = scans ? grad(reduceSum(exp(carry.x)), [x]) : [carry.x];
          const out = await bothWays(g, { iterations, d }, { x: [0, 0], n: [fed ?? 0] });
          const expected = Math.min(fed ?? 3, 3, last === undefined ? 3 : last + 1);
          expect(out.iterations, `last ${last}, fed ${fed}`).toEqual([expected]);
        }
      }
    }
  });

  it('that never runs returns what it started with, and rows of 0', async () => {
    const g = new Graph();
    const x = g.input('x', [2]);
    const { carry, scan, iterations } = loop({
      trips: { count: g.input('n', [], 'int64'), atMost: 2 },
      carry: { x },
      body: ({ carry: c }) => ({
        carry: { x: div(c.x, 0) },
        scan: { x: exp(c.x), b: greater(c.x, 0), i: cast(c.x, 'int32') },
      }),
    });
    const outputs = { last: carry.x, rows: scan.x, bools: scan.b, ints: scan.i, iterations };
    const zeros = [0, 0, 0, 0];
    const expected = { last: [1, 2], rows: zeros, bools: zeros, ints: zeros, iterations: [0] };
    expect(await bothWays(g, outputs, { x: [1, 2], n: [0] })).toEqual(expected);
    expect(await runCompiled(g, { x: [1, 2], n: [-3] })).toEqual(expected);
  });

  it('leaves rows of 0 after an early end, also where the body scans something scaled', async () => {
    const g = new Graph();
    const x = g.input('x', []);
    const { scan } = loop({
      trips: 3,
      carry: { x },
      body: ({ carry: c }) => ({ carry: c, scan: { n: mul(c.x, -2) }, goOn: less(c.x, 0) }),
    });
    g.output('n', scan.n);
    // -2 times 0 is -0: equal to 0, which is enough.
    expectClose('evaluated', evaluate(g, { x: [5] }).n.data, [-10, 0, 0], 0);
    expectClose('compiled', (await runCompiled(g, { x: [5] })).n, [-10, 0, 0], 0);
  });

  it('computes once, outside, what does not depend on it', () => {
    const g = new Graph();
    const [x, w] = [g.input('x', [2]), g.input('w', [2])];
    const { carry } = loop({
      trips: 3,
      carry: { x },
      body: ({ carry: c }) => ({ carry: { x: add(c.x, tanh(exp(mul(w, w)))) } }),
    });
    g.output('y', carry.x);
    const { bodyNodeCounts, nodeCount } = toOnnx(g);
    // The sum, and the condition that is passed on.
    expect(bodyNodeCounts).toEqual([2]);
    expect(nodeCount).toBe(2 + 4);
  });

  it('writes no scan that is not used, and nothing of a loop that is not', () => {
    const count = (
      use: (r: { carry: { x: Tensor }; scan: { s: Tensor; t: Tensor } }) => Tensor,
    ): number[] => {
      const g = new Graph();
      const x = g.input('x', [2]);
      const result = loop({
        trips: 3,
        carry: { x },
        body: ({ carry: c }) => ({ carry: { x: tanh(c.x) }, scan: { s: exp(c.x), t: exp(mul(c.x, c.x)) } }),
      });
      grad(reduceSum(result.scan.t), [x]);
      g.output('y', use(result));
      return [...toOnnx(g).bodyNodeCounts];
    };
    expect(count(r => r.carry.x)).toEqual([2]);
    expect(count(r => r.scan.s)).toEqual([3]);
    expect(count(r => add(r.scan.s, r.scan.t))).toEqual([5]);
  });

  it('derives a body deeper than the call stack', () => {
    const g = new Graph();
    const x = g.input('x', []);
    const { carry } = loop({
      trips: 2,
      carry: { x },
      body: ({ carry: c }) => {
        let y = c.x;
        for (let i = 0; i < 10_000; i++) y = i % 2 ? sub(1, y) : tanh(y);
        return { carry: { x: y } };
      },
    });
    const [d] = grad(carry.x, [x]);
    expect(d.shape).toEqual([]);
  });

  it('can be built while another graph is: a helper that makes its own graph inside of a body', () => {
    const helper = (): number => {
      const own = new Graph();
      const z = own.input('z', []);
      const { carry } = loop({
        trips: 2,
        carry: { z },
        body: ({ carry: c }) => ({ carry: { z: exp(c.z) } }),
      });
      own.output('z', carry.z);
      return evaluate(own, { z: [0] }).z.data[0];
    };
    const g = new Graph();
    const x = g.input('x', []);
    const { carry } = loop({
      trips: 2,
      carry: { x },
      body: ({ carry: c }) => ({ carry: { x: add(c.x, helper()) } }),
    });
    g.output('y', carry.x);
    expectClose('y', evaluate(g, { x: [1] }).y.data, [1 + 2 * Math.E], 1e-12);
  });

  it('is as before after a body that threw', () => {
    const g = new Graph();
    const x = g.input('x', [2]);
    expect(() =>
      loop({
        trips: 2,
        carry: { x },
        body: () => {
          throw new Error('mine');
        },
      }),
    ).toThrow('mine');
    const { carry } = loop({
      trips: 2,
      carry: { x },
      body: ({ carry: c }) => ({ carry: { x: add(c.x, 1) } }),
    });
    g.output('y', carry.x);
    expect([...evaluate(g, { x: [1, 2] }).y.data]).toEqual([3, 4]);
  });
});

describe('loop refuses', () => {
  const g = new Graph();
  const x = g.input('x', [2, 3]);
  const keep = { trips: 2, carry: { x } };

  it('nothing carried', () => {
    expect(() => loop({ trips: 2, carry: {}, body: () => ({ carry: {} }) })).toThrow(
      new EngineError('loop: nothing is carried: carry at least one value'),
    );
  });

  it.each([0, -1, 1.5, NaN, Infinity])('%d trips', trips => {
    const refused = new RegExp(`^loop: trips is ${trips}: a whole number of at least 1 is needed$`);
    expect(() => loop({ trips, carry: { x }, body: s => ({ carry: s.carry }) })).toThrow(refused);
    const count = g.constant(1, [], 'int64');
    expect(() =>
      loop({ trips: { count, atMost: trips }, carry: { x }, body: s => ({ carry: s.carry }) }),
    ).toThrow(refused);
  });

  it('a trip count that is not an int64 scalar', () => {
    for (const count of [g.constant(2), g.constant([2], [1], 'int64'), g.constant(2, [], 'int32')]) {
      expect(() =>
        loop({ trips: { count, atMost: 2 }, carry: { x }, body: s => ({ carry: s.carry }) }),
      ).toThrow(/^loop: the trip count is (float32 \(\)|int64 \(1\)|int32 \(\)): an int64 scalar is needed$/);
    }
  });

  it('a carried value of another shape or dtype', () => {
    expect(() => loop({ ...keep, body: () => ({ carry: { x: g.constant([1, 2, 3]) } }) })).toThrow(
      new EngineError(
        "loop: 'x' starts as float32 (2, 3) but the body returns float32 (3): they must be the same",
      ),
    );
    expect(() => loop({ ...keep, body: s => ({ carry: { x: cast(s.carry.x, 'int32') } }) })).toThrow(
      /'x' starts as float32 \(2, 3\) but the body returns int32 \(2, 3\)/,
    );
    expect(() => loop({ ...keep, body: () => ({ carry: { x: g.constant(1, [], 'int64') } }) })).toThrow(
      /'x' starts as float32 \(2, 3\) but the body returns int64 \(\)/,
    );
  });

  it('a carried value that is missing, or one that was not carried', () => {
    expect(() => loop({ ...keep, body: () => ({ carry: {} as never }) })).toThrow(
      new EngineError("loop: the body does not return 'x', which is carried"),
    );
    expect(() => loop({ ...keep, body: s => ({ carry: { ...s.carry, y: x } as never }) })).toThrow(
      new EngineError("loop: the body returns 'y', which is not carried: start it in carry"),
    );
  });

  it('a condition that is not a bool scalar', () => {
    expect(() => loop({ ...keep, body: s => ({ carry: s.carry, goOn: less(s.carry.x, 1) }) })).toThrow(
      new EngineError('loop: goOn is bool (2, 3): a bool scalar is needed; reduce it first'),
    );
    expect(() => loop({ ...keep, body: s => ({ carry: s.carry, goOn: s.iteration }) })).toThrow(
      /^loop: goOn is int64 \(\): a bool scalar is needed/,
    );
  });

  it('inner tensors outside: used, used in an expression that the body has, named as output', () => {
    let inner!: Tensor;
    loop({
      ...keep,
      body: s => {
        inner = s.carry.x;
        return { carry: { x: exp(s.carry.x) } };
      },
    });
    const refused =
      /^\w+: the loop body is finished: use what the loop returns instead of its inner tensors$/;
    expect(() => tanh(inner)).toThrow(refused);
    expect(() => add(inner, x)).toThrow(refused);
    expect(() => exp(inner)).toThrow(refused);
    expect(() => g.output('inner', inner)).toThrow(/^output 'inner' belongs to another graph: /);
    expect(() => loop({ trips: 1, carry: { inner }, body: s => ({ carry: s.carry }) })).toThrow(/finished/);
  });

  it("another loop's inner tensors inside of a body", () => {
    let inner!: Tensor;
    loop({
      ...keep,
      body: s => {
        inner = s.carry.x;
        return { carry: s.carry };
      },
    });
    expect(() => loop({ ...keep, body: () => ({ carry: { x: inner } }) })).toThrow(
      new EngineError('loop: the body returns a tensor of another graph: return what it computes itself'),
    );
    expect(() => loop({ ...keep, body: s => ({ carry: { x: add(s.carry.x, inner) } }) })).toThrow(
      /^add: operands belong to different graphs/,
    );
    expect(() => loop({ ...keep, body: s => ({ carry: s.carry, scan: { inner } }) })).toThrow(
      /another graph/,
    );
  });

  it('tensors of two graphs, as carried values or as trip count', () => {
    const h = new Graph();
    const other = h.input('other', [2, 3]);
    const count = h.input('count', [], 'int64');
    expect(() => loop({ trips: 2, carry: { x, other }, body: s => ({ carry: s.carry }) })).toThrow(
      /different graphs/,
    );
    expect(() =>
      loop({ trips: { count, atMost: 2 }, carry: { x }, body: s => ({ carry: s.carry }) }),
    ).toThrow(/different graphs/);
  });

  it('a gradient by a value that only decides when it ends', () => {
    const limit = g.input('limit', []);
    const start = g.input('start', []);
    const { carry } = loop({
      trips: 3,
      carry: { y: start },
      body: ({ carry: { y } }) => ({ carry: { y: exp(y) }, goOn: less(y, limit) }),
    });
    expect(() => grad(carry.y, [limit])).toThrow(/does not depend on input 'limit'/);
  });
});
