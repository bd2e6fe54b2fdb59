/** Compiled programs: arrays in and out, reuse, several at once, worker threads, devices, and what they refuse. */
import { setTimeout as later } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { afterAll, describe, expect, it } from 'vitest';
import {
  add,
  cast,
  compile,
  concat,
  type Device,
  devices,
  EngineError,
  evaluate,
  exp,
  expand,
  Graph,
  gather,
  greater,
  linear,
  matmul,
  mul,
  neg,
  not,
  type Program,
  reduceSum,
  scatterRows,
  sub,
  type Tensor,
  tanh,
} from '../../src/engine/index.ts';
import { expectClose, f32, i64 } from './support/check.ts';
import { smallNetwork } from './support/small-network.ts';

const programs: Program[] = [];
afterAll(() => {
  for (const program of programs) program.dispose();
});

async function compiled(g: Graph, options = {}): Promise<Program> {
  const program = await compile(g, options);
  programs.push(program);
  return program;
}

function graph(outputs: (g: Graph) => Record<string, Tensor>): Graph {
  const g = new Graph();
  for (const [name, t] of Object.entries(outputs(g))) g.output(name, t);
  return g;
}

/** x (2) to its exponential, twice it, and whether it is positive. */
const simple = (): Graph =>
  graph(g => {
    const x = g.input('x', [2]);
    return { exp: exp(x), twice: mul(x, 2), positive: greater(x, 0) };
  });

describe('arrays', () => {
  it('of every dtype go in and come out', async () => {
    const g = graph(g => ({
      float: mul(g.input('f', [2]), 2),
      int32: add(g.input('i', [2], 'int32'), 1),
      int64: sub(g.input('l', [2], 'int64'), 1),
      bool: not(g.input('b', [2], 'bool')),
      scalar: add(g.input('s', []), 1),
    }));
    const program = await compiled(g);
    expect(program.inputs).toEqual([
      { name: 'f', shape: [2], dtype: 'float32' },
      { name: 'i', shape: [2], dtype: 'int32' },
      { name: 'l', shape: [2], dtype: 'int64' },
      { name: 'b', shape: [2], dtype: 'bool' },
      { name: 's', shape: [], dtype: 'float32' },
    ]);
    expect(program.outputs.map(o => o.dtype)).toEqual(['float32', 'int32', 'int64', 'bool', 'float32']);
    const feeds = {
      f: f32(1.5, -2),
      i: Int32Array.of(-2147483648, 7),
      l: BigInt64Array.of(2n ** 62n, -5n),
      b: Uint8Array.of(1, 0),
      s: f32(3),
    };
    const before = structuredClone(feeds);
    const out = program.run(feeds);
    expect(out).toEqual({
      float: f32(3, -4),
      int32: Int32Array.of(-2147483647, 8),
      int64: BigInt64Array.of(2n ** 62n - 1n, -6n),
      bool: Uint8Array.of(0, 1),
      scalar: f32(4),
    });
    expect(feeds).toEqual(before);
  });

  it('may be empty', async () => {
    const g = graph(g => {
      const x = g.input('x', [0, 3]);
      return {
        y: exp(x),
        sum: reduceSum(x, { axes: [0] }),
        squares: reduceSum(mul(x, x), { axes: [0] }),
        all: reduceSum(x),
        more: concat([x, expand(g.constant(1), [1, 3])], 0),
        product: matmul(x, x, { transposeA: true }),
      };
    });
    const out = (await compiled(g)).run({ x: f32() });
    expect(out.y).toEqual(f32());
    expect(out.sum).toEqual(f32(0, 0, 0));
    expect(out.squares).toEqual(f32(0, 0, 0));
    expect(out.all).toEqual(f32(0));
    expect(out.more).toEqual(f32(1, 1, 1));
    expect(out.product).toEqual(new Float32Array(9));
  });

  it('may be views into a larger buffer', async () => {
    const program = await compiled(simple());
    const buffer = new ArrayBuffer(64);
    const x = new Float32Array(buffer, 8, 2);
    const twice = new Float32Array(buffer, 32, 2);
    x.set([1, -2]);
    program.run({ x }, { twice });
    expect([...new Float32Array(buffer)]).toEqual([0, 0, 1, -2, 0, 0, 0, 0, 2, -4, 0, 0, 0, 0, 0, 0]);
  });

  it('are read anew at each run: the same array with other values, and other arrays', async () => {
    const program = await compiled(simple());
    const x = f32(1, 2);
    expect(program.run({ x }).twice).toEqual(f32(2, 4));
    x[0] = 5;
    expect(program.run({ x }).twice).toEqual(f32(10, 4));
    expect(program.run({ x: f32(7, 8) }).twice).toEqual(f32(14, 16));
    expect(program.run({ x }).twice).toEqual(f32(10, 4));
  });

  it('that come out are fresh: a later run does not write to them', async () => {
    const program = await compiled(simple());
    const first = program.run({ x: f32(1, 2) });
    const kept = structuredClone(first);
    const second = program.run({ x: f32(3, 4) });
    expect(first).toEqual(kept);
    expect(second.twice).not.toBe(first.twice);
  });

  it('given in `into` are filled and returned, the others are fresh', async () => {
    const program = await compiled(simple());
    const into = { exp: new Float32Array(2), positive: new Uint8Array(2) };
    for (const x of [f32(0, 1), f32(1, -1), f32(-1, 2)]) {
      const out: Record<string, unknown> = program.run({ x }, into);
      expect(out.exp).toBe(into.exp);
      expect(out.positive).toBe(into.positive);
      expectClose('exp', into.exp, [...x].map(Math.exp), 1e-6);
      expect([...into.positive]).toEqual([...x].map(v => Number(v > 0)));
      expect(out.twice).toEqual(x.map(v => v * 2));
    }
    // And again without.
    expect(program.run({ x: f32(0, 0) }).exp).not.toBe(into.exp);
    expectClose('exp', into.exp, [Math.exp(-1), Math.exp(2)], 1e-6);
  });

  it('in `into` work for outputs that are inputs, constants, or the same value under two names', async () => {
    const g = graph(g => {
      const x = g.input('x', [2]);
      const e = exp(x);
      return { same: x, constant: g.constant([5, 6]), first: e, second: e, wide: expand(g.constant(3), [2]) };
    });
    const program = await compiled(g);
    const into = Object.fromEntries(program.outputs.map(({ name }) => [name, new Float32Array(2)]));
    for (const x of [f32(0, 1), f32(2, 3)]) {
      const out = program.run({ x }, into);
      for (const name of Object.keys(into)) {
        expect(out[name]).toBe(into[name]);
        expectClose(name, into[name], evaluate(g, { x })[name].data, 1e-6);
      }
    }
  });

  it('can take turns: the output of one run is the feed of the next', async () => {
    const program = await compiled(graph(g => ({ next: add(mul(g.input('x', [3]), 0.5), 1) })));
    let [x, next]: Float32Array[] = [f32(0, 4, -8), new Float32Array(3)];
    for (let i = 0; i < 20; i++) {
      program.run({ x }, { next });
      [x, next] = [next, x];
    }
    expectClose('limit', x, [2, 2, 2], 1e-5);
  });

  it('that a run could overwrite while it reads are refused', async () => {
    const program = await compiled(simple());
    const x = f32(1, 2);
    expect(() => program.run({ x }, { twice: x })).toThrow(
      new EngineError(
        "output 'twice' would be written over feed 'x': give it another array and swap them after the run",
      ),
    );
    const buffer = new ArrayBuffer(16);
    const [low, overlapping, apart] = [0, 4, 8].map(at => new Float32Array(buffer, at, 2));
    expect(() => program.run({ x: low }, { exp: overlapping })).toThrow(/would be written over feed 'x'/);
    expect(() => program.run({ x: overlapping }, { exp: low })).toThrow(/would be written over feed 'x'/);
    expect(() => program.run({ x: low }, { exp: apart })).not.toThrow();
    // A refused run leaves the program usable.
    expect(program.run({ x }).twice).toEqual(f32(2, 4));
  });

  it('that two outputs would share are refused', async () => {
    const program = await compiled(simple());
    const out = new Float32Array(2);
    expect(() => program.run({ x: f32(1, 2) }, { exp: out, twice: out })).toThrow(EngineError);
  });

  it('whose buffer was transferred away are refused, not read', async () => {
    const program = await compiled(simple());
    const [x, twice] = [f32(1, 2), new Float32Array(2)];
    program.run({ x }, { twice });
    structuredClone(x, { transfer: [x.buffer as ArrayBuffer] });
    expect(() => program.run({ x })).toThrow(EngineError);
    structuredClone(twice, { transfer: [twice.buffer as ArrayBuffer] });
    expect(() => program.run({ x: f32(1, 2) }, { twice })).toThrow(EngineError);
    expect(program.run({ x: f32(1, 2) }).twice).toEqual(f32(2, 4));
  });

  it('may hold infinities, also of both signs, but no NaN, wherever it is', async () => {
    const size = 11;
    const program = await compiled(graph(g => ({ y: neg(g.input('x', [size])) })));
    const x = new Float32Array(size).fill(1);
    x[3] = Infinity;
    x[8] = -Infinity;
    expect(program.run({ x }).y).toEqual(x.map(v => -v));
    const huge = new Float32Array(size).fill(3.4e38);
    expect(program.run({ x: huge }).y).toEqual(huge.map(v => -v));
    for (let at = 0; at < size; at++) {
      for (const others of [1, Infinity]) {
        const bad = new Float32Array(size).fill(others);
        bad[at] = NaN;
        expect(() => program.run({ x: bad })).toThrow(
          new EngineError(`feed 'x' (${size}) is NaN at index ${at}: check where it was computed`),
        );
      }
    }
    // The same array again: a NaN that came later is seen, and one that was put right is forgotten.
    x[10] = NaN;
    expect(() => program.run({ x })).toThrow(/NaN at index 10/);
    x[10] = 0;
    expect(() => program.run({ x })).not.toThrow();
    const unchecked = await compiled(
      graph(g => ({ y: neg(g.input('x', [size])) })),
      { checkFeeds: false },
    );
    x[10] = NaN;
    expect(unchecked.run({ x }).y[10]).toBeNaN();
  });
});

describe('programs', () => {
  it('say their ports and node counts', async () => {
    const program = await compiled(smallNetwork());
    expect(program.device).toBe('cpu');
    expect(program.inputs.map(p => p.name)).toEqual(['x']);
    expect(program.outputs).toEqual([
      { name: 'h', shape: [8, 16], dtype: 'float32' },
      { name: 'loss', shape: [5], dtype: 'float32' },
      { name: 'iterations', shape: [], dtype: 'int64' },
      { name: 'dx', shape: [8, 16], dtype: 'float32' },
    ]);
    expect(program.bodyNodeCounts.length).toBe(2);
    expect(program.nodeCount).toBeGreaterThan(program.bodyNodeCounts.reduce((a, b) => a + b));
  });

  it('are of the graph as it was when compile was called', async () => {
    const g = simple();
    const pending = compile(g);
    g.output('later', neg(g.inputs[0]));
    g.input('extra', [1]);
    const program = await pending;
    programs.push(program);
    expect(program.outputs.map(p => p.name)).toEqual(['exp', 'twice', 'positive']);
    expect(program.run({ x: f32(1, 2) }).twice).toEqual(f32(2, 4));
  });

  it('can be several at once, of one graph and of others, without a mix-up', async () => {
    const all = await Promise.all(
      [1, 2, 3, 4].map(factor => compiled(graph(g => ({ y: mul(g.input('x', [2]), factor) })))),
    );
    const twin = await compiled(simple());
    const other = await compiled(simple());
    for (let round = 0; round < 3; round++) {
      const x = f32(round, 1);
      all.forEach((program, i) => {
        expect(program.run({ x }).y).toEqual(x.map(v => v * (i + 1)));
      });
      expect(twin.run({ x })).toEqual(other.run({ x }));
    }
  });

  it('with 1 and with 2 threads agree', async () => {
    const big = graph(g => {
      const [x, w, b] = [g.input('x', [256, 128]), g.input('w', [128, 128]), g.input('b', [128])];
      return { y: tanh(linear(x, w, b)), sum: reduceSum(x, { axes: [0] }) };
    });
    const feeds = {
      x: Float32Array.from({ length: 256 * 128 }, (_, i) => Math.sin(i)),
      w: Float32Array.from({ length: 128 * 128 }, (_, i) => Math.cos(i) / 11),
      b: Float32Array.from({ length: 128 }, (_, i) => Math.sin(3 * i)),
    };
    const [one, two] = [await compiled(big, { threads: 1 }), await compiled(big, { threads: 2 })];
    const [a, b] = [one.run(feeds), two.run(feeds)];
    for (const name of ['y', 'sum']) expectClose(name, b[name], a[name], 1e-6);
    // Each by itself repeats to the bit.
    expect(two.run(feeds)).toEqual(b);
    expect(one.run(feeds)).toEqual(a);
  });

  it('do not run after they were disposed of; disposing twice is harmless', async () => {
    const program = await compile(simple());
    program.dispose();
    program.dispose();
    expect(() => program.run({ x: f32(1, 2) })).toThrow(
      new EngineError('run: this program was disposed of: compile the graph again'),
    );
  });

  it('run often without growing', async () => {
    const program = await compiled(smallNetwork());
    const x = new Float32Array(8 * 16).fill(0.25);
    const out = { h: new Float32Array(8 * 16), dx: new Float32Array(8 * 16) };
    const runs = (n: number): void => {
      for (let i = 0; i < n; i++) program.run({ x }, out);
    };
    runs(300);
    await later(0);
    const before = process.memoryUsage().rss;
    for (let i = 0; i < 5; i++) {
      runs(300);
      await later(0);
    }
    expect(process.memoryUsage().rss - before).toBeLessThan(64 * 2 ** 20);
  });

  it('ignore feeds of inputs that are not required and not used', async () => {
    const g = simple();
    g.input('spare', [3], 'float32', { required: false });
    const program = await compiled(g);
    expect(program.inputs.map(p => p.name)).toEqual(['x']);
    expect(program.run({ x: f32(1, 2), spare: f32(1, 2, 3) }).twice).toEqual(f32(2, 4));
    expect(program.run({ x: f32(1, 2) }).twice).toEqual(f32(2, 4));
  });

  it('work in worker threads, several at once, as they do here', async () => {
    const runs = [0, 1, 2].map(k => Float32Array.from({ length: 128 }, (_, i) => Math.sin(i * (k + 1))));
    // Node's own loader has no TypeScript: each worker registers tsx first.
    const file = new URL('./support/worker.ts', import.meta.url).href;
    const start = `import('tsx/esm/api').then(({ register }) => (register(), import('${file}')))`;
    const threads = [0, 1].map(
      () =>
        new Promise<Record<string, Float32Array>[]>((resolve, reject) => {
          const worker = new Worker(start, { eval: true, workerData: { runs } });
          worker.once('message', resolve);
          worker.once('error', reject);
          worker.once('exit', code => reject(new Error(`the worker ended with code ${code}`)));
        }),
    );
    const here = await compiled(smallNetwork());
    const expected = runs.map(x => here.run({ x }));
    for (const answer of await Promise.all(threads)) expect(answer).toEqual(expected);
  });
});

describe('run refuses, in one line with the remedy,', () => {
  const g = graph(g => ({
    y: add(g.input('observation', [2, 3]), cast(g.input('steps', [3], 'int32'), 'float32')),
  }));
  const [observation, steps] = [new Float32Array(6), new Int32Array(3)];

  const refusals: [string, Record<string, unknown>, Record<string, unknown> | undefined, string][] = [
    [
      'a missing feed',
      { steps },
      undefined,
      "feed 'observation' is missing: give a Float32Array for its shape (2, 3)",
    ],
    [
      'an unknown feed, with a suggestion',
      { observation, steps, observatoin: observation },
      undefined,
      "feed 'observatoin' is not one of the program's: did you mean 'observation'?",
    ],
    [
      'an unknown feed like no other',
      { observation, steps, q: observation },
      undefined,
      "feed 'q' is not one of the program's: there are observation, steps",
    ],
    [
      'an unknown feed that every object has',
      { observation, steps, toString: observation },
      undefined,
      "feed 'toString' is not one of the program's: there are observation, steps",
    ],
    [
      'another typed array',
      { observation: new Float64Array(6), steps },
      undefined,
      "feed 'observation' is Float64Array: float32 (2, 3) takes a Float32Array",
    ],
    [
      'integers of another size',
      { observation, steps: i64(1, 2, 3) },
      undefined,
      "feed 'steps' is BigInt64Array: int32 (3) takes a Int32Array",
    ],
    [
      'a plain array',
      { observation: [1, 2, 3, 4, 5, 6], steps },
      undefined,
      "feed 'observation' is Array: float32 (2, 3) takes a Float32Array",
    ],
    [
      'too few values',
      { observation: new Float32Array(5), steps },
      undefined,
      "feed 'observation' has 5 values, but its shape (2, 3) holds 6: give as many",
    ],
    [
      'too many values',
      { observation, steps: new Int32Array(4) },
      undefined,
      "feed 'steps' has 4 values, but its shape (3) holds 3: give as many",
    ],
    [
      'an unknown output',
      { observation, steps },
      { z: new Float32Array(6) },
      "output 'z' is not one of the program's: did you mean 'y'?",
    ],
    [
      'another typed array as output',
      { observation, steps },
      { y: new Int32Array(6) },
      "output 'y' is Int32Array: float32 (2, 3) takes a Float32Array",
    ],
    [
      'an output of another length',
      { observation, steps },
      { y: new Float32Array(7) },
      "output 'y' has 7 values, but its shape (2, 3) holds 6: give as many",
    ],
  ];
  it.each(refusals)('%s', async (_, feeds, into, message) => {
    const program = await compiled(g);
    expect(() => program.run(feeds as never, into as never)).toThrow(new EngineError(message));
    expect(program.run({ observation, steps }).y.length).toBe(6);
  });

  it('an index out of range, and goes on afterwards', async () => {
    const program = await compiled(
      graph(g => ({ y: gather(g.input('x', [3]), g.input('i', [1], 'int64')) })),
    );
    const x = f32(1, 2, 3);
    for (const i of [3, -4]) {
      let error: unknown;
      try {
        program.run({ x, i: i64(i) });
      } catch (e) {
        error = e;
      }
      expect(error).toBeInstanceOf(EngineError);
      expect((error as Error).message).toMatch(new RegExp(`^run: .*${i}`));
      expect((error as Error).message).not.toContain('\n');
    }
    expect(program.run({ x, i: i64(-3) }).y).toEqual(f32(1));
  });
});

describe('compile refuses', () => {
  it('an unknown device', async () => {
    await expect(compile(simple(), { device: 'gpu' as Device })).rejects.toThrow(
      new EngineError("device 'gpu' is unknown: use cpu, webgpu, cuda"),
    );
  });

  it.each([0, -1, 1.5, NaN, 2000])('%d threads', async threads => {
    await expect(compile(simple(), { threads })).rejects.toThrow(
      new EngineError(`threads ${threads} is not possible: use a whole number from 1 to 1024`),
    );
  });

  it('a graph without outputs, with an unused input, or with one name twice', async () => {
    const g = new Graph();
    const x = g.input('x', [2]);
    await expect(compile(g)).rejects.toThrow(/the graph has no output: name one/);
    g.output('y', exp(x));
    g.input('z', [3]);
    await expect(compile(g)).rejects.toThrow(/^input 'z' \(3\) is used by no output: use it, remove it, or/);
    const clash = graph(h => ({ x: exp(h.input('x', [2])) }));
    await expect(compile(clash)).rejects.toThrow(
      /^'x' names both an input and an output: rename one of them$/,
    );
  });
});

describe('devices', () => {
  it.each(devices)('%s computes, or says in one line how to get it', async device => {
    let program: Program;
    try {
      program = await compile(simple(), { device });
    } catch (error) {
      expect(device).not.toBe('cpu');
      expect(error).toBeInstanceOf(EngineError);
      const { message } = error as Error;
      expect(message).toMatch(
        new RegExp(`^device '${device}' cannot be used here: install .*, or use device 'cpu' \\(`),
      );
      expect(message).not.toContain('\n');
      return;
    }
    const out = program.run({ x: f32(1, -2) });
    expectClose('twice', out.twice, [2, -4], 1e-6);
    expectClose('exp', out.exp, [Math.E, Math.exp(-2)], 1e-4);
    expect(program.device).toBe(device);
    program.dispose();
  });

  it('a device that is absent does not spoil the next program', async () => {
    await compile(simple(), { device: 'cuda' }).then(
      program => program.dispose(),
      () => {},
    );
    expect((await compiled(simple())).run({ x: f32(1, 2) }).twice).toEqual(f32(2, 4));
  });
});

// Several threads must not add to one row at once: ONNX Runtime's ScatterND does, and then sums are too small.
it.each([64, 600])('adds every update to its row of %i, on several threads', async rows => {
  const [count, width] = [6000, 128];
  const g = new Graph();
  g.output(
    'sums',
    scatterRows(g.input('rows', [count], 'int64'), g.input('updates', [count, width]), [rows, width]),
  );
  const program = await compiled(g, { threads: 4 });
  const feeds = {
    rows: BigInt64Array.from({ length: count }, (_, i) => BigInt(i % rows)),
    updates: new Float32Array(count * width).fill(1),
  };
  const share = new Float32Array(rows).map((_, row) => Math.ceil((count - row) / rows));
  for (let run = 0; run < 10; run++) {
    const sums = program.run<{ sums: Float32Array }>(feeds).sums;
    expect(sums.every((value, i) => value === share[Math.floor(i / width)])).toBe(true);
  }
});

it.each(['int32', 'int64'] as const)(
  'moves rows to distinct places by %s, on several threads',
  async dtype => {
    const [count, rows, width] = [3000, 4000, 128];
    const g = new Graph();
    const places = g.input('places', [count], dtype);
    g.output(
      'moved',
      scatterRows(places, g.input('updates', [count, width]), [rows, width], { distinct: true }),
    );
    const program = await compiled(g, { threads: 4 });
    const place = (i: number): number => (i * 7) % rows;
    const feeds = {
      places:
        dtype === 'int64'
          ? BigInt64Array.from({ length: count }, (_, i) => BigInt(place(i)))
          : Int32Array.from({ length: count }, (_, i) => place(i)),
      updates: Float32Array.from({ length: count * width }, (_, i) => i % 1001),
    };
    const expected = new Float32Array(rows * width);
    for (let i = 0; i < count; i++)
      expected.set(feeds.updates.subarray(i * width, (i + 1) * width), place(i) * width);
    expect(program.run(feeds).moved).toEqual(expected);
  },
);
