/** The ONNX files that graphs are written to: structure, types, determinism, and other tools that run them. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { InferenceSession, Tensor as OrtTensor } from 'onnxruntime-node';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  add,
  argMax,
  compile,
  concat,
  evaluate,
  exp,
  expand,
  Graph,
  gather,
  grad,
  layerNorm,
  less,
  linear,
  loop,
  matmul,
  mul,
  reduceMean,
  reduceSum,
  reshape,
  saveOnnx,
  slice,
  softmax,
  split,
  stopGradient,
  sub,
  type Tensor,
  tanh,
  toOnnx,
  transpose,
} from '../../src/engine/index.ts';
import { cases } from './support/cases.ts';
import { expectClose, f32, i64, seed } from './support/check.ts';
import { Draw } from './support/draw.ts';
import { checkModel, describeValue, opTypes } from './support/onnx-model.ts';
import { engineOps } from './support/ops.ts';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'keel-onnx-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** A little of everything: layers, an early end, scans, a loop in a loop, gradients inside and around. */
function everything(): Graph {
  const g = new Graph();
  const x = g.input('x', [4, 3]);
  const w = g.input('w', [3, 3]);
  const b = g.input('b', [3]);
  const order = g.input('order', [3, 2], 'int64');
  const mask = g.input('mask', [4, 3], 'bool');
  const n = g.input('n', [], 'int64');
  const result = loop({
    trips: { count: n, atMost: 3 },
    carry: { w, b, i: g.constant(0, [], 'int64') },
    body: ({ iteration, carry: c }) => {
      const rows = gather(x, gather(order, iteration));
      const y = layerNorm(tanh(linear(rows, c.w, c.b)), c.b, g.constant([0, 0, 0]), 0.1);
      const inner = loop({
        trips: 2,
        carry: { y },
        body: ({ iteration: j, carry: { y: at } }) => ({
          carry: { y: mul(at, tanh(add(at, c.b))) },
          goOn: less(j, c.i),
        }),
      });
      const loss = reduceSum(mul(inner.carry.y, inner.carry.y));
      const [dw, db] = grad(loss, [c.w, c.b]);
      return {
        carry: { w: add(c.w, mul(dw, -0.05)), b: add(c.b, mul(db, -0.05)), i: add(c.i, 1) },
        scan: { loss, top: argMax(y, 1), outside: stopGradient(b) },
        goOn: less(iteration, 5),
      };
    },
  });
  const [dw, dx] = grad(add(reduceSum(result.scan.loss), reduceSum(result.carry.w)), [w, x]);
  g.output('newW', result.carry.w);
  g.output('newB', result.carry.b);
  g.output('loss', result.scan.loss);
  g.output('top', result.scan.top);
  g.output('outside', result.scan.outside);
  g.output('iterations', result.iterations);
  g.output('dw', dw);
  g.output('dx', dx);
  g.output('masked', engineOps(g).where(mask, x, 0));
  return g;
}

const feeds = {
  x: f32(...Array.from({ length: 12 }, (_, i) => Math.sin(i))),
  w: f32(0.5, -0.25, 1, 0, 0.75, -1, 0.25, 0.5, 0.125),
  b: f32(1, 0.5, -0.5),
  order: i64(0, 1, 3, 2, 1, 1),
  mask: new Uint8Array([1, 0, 1, 1, 0, 0, 1, 1, 1, 0, 0, 1]),
  n: i64(3),
};

describe('structure', () => {
  it('is that of a valid model, with loops, gradients and several levels of graphs', () => {
    const g = everything();
    const { bytes, nodeCount, bodyNodeCounts } = toOnnx(g);
    const model = checkModel(bytes);
    const types = opTypes(model.graph!);
    expect(types.length).toBe(nodeCount);
    expect(types.filter(type => type === 'Loop').length).toBe(bodyNodeCounts.length);
    expect(bodyNodeCounts.length).toBeGreaterThanOrEqual(4);
    expect(model.graph!.input!.map(describeValue)).toEqual([
      { name: 'x', dtype: 'float32', shape: [4, 3] },
      { name: 'w', dtype: 'float32', shape: [3, 3] },
      { name: 'b', dtype: 'float32', shape: [3] },
      { name: 'order', dtype: 'int64', shape: [3, 2] },
      { name: 'mask', dtype: 'bool', shape: [4, 3] },
      { name: 'n', dtype: 'int64', shape: [] },
    ]);
    expect(model.graph!.output!.map(describeValue)).toEqual(
      [...g.outputs].map(([name, { dtype, shape }]) => ({ name, dtype, shape })),
    );
  });

  it('is valid for every operator and its derivative', () => {
    fc.assert(
      fc.property(fc.constantFrom(...cases), fc.gen(), ({ make }, gen) => {
        const instance = make(new Draw(gen));
        const g = new Graph();
        const x = Object.fromEntries(
          Object.entries(instance.inputs).map(([name, { shape, dtype }]) => [
            name,
            g.input(name, shape, dtype, { required: false }),
          ]),
        );
        const made = instance.f(engineOps(g), x);
        const outputs: readonly Tensor[] = Array.isArray(made) ? made : [made as Tensor];
        outputs.forEach((t, i) => {
          g.output(`out${i}`, t);
        });
        const loss = outputs.filter(t => t.dtype === 'float32').map(t => reduceSum(t));
        const wrt = Object.values(x).filter(t => t.dtype === 'float32');
        if (loss.length > 0) {
          grad(loss, wrt, { unused: 'zero' }).forEach((t, i) => {
            g.output(`d${i}`, t);
          });
        }
        const model = checkModel(toOnnx(g).bytes);
        expect(model.graph!.output!.map(describeValue)).toEqual(
          [...g.outputs].map(([name, { dtype, shape }]) => ({ name, dtype, shape })),
        );
      }),
      { numRuns: 3 * cases.length, seed },
    );
  });

  it('keeps clear of names that look like its own', () => {
    const g = new Graph();
    const names = ['t0', 't1', 't2', 'Exp_t3', 'keel', 'a b/c:0', 'ü'];
    const sum = names.map(name => exp(g.input(name, [2]))).reduce(add);
    g.output('t3', mul(sum, 2));
    g.output('t4', add(sum, 1));
    const model = checkModel(toOnnx(g).bytes);
    expect(model.graph!.input!.map(v => v.name)).toEqual(names);
  });

  it('gives every output its name: an input, a constant, one value twice, a stopped gradient, a scan', async () => {
    const g = new Graph();
    const x = g.input('x', [2]);
    const y = exp(x);
    const { carry, scan, iterations } = loop({
      trips: 2,
      carry: { x, twin: x },
      body: ({ carry: c }) => {
        // One value of the body as two carried values and two scans.
        const next = mul(c.x, c.twin);
        return { carry: { x: next, twin: next }, scan: { x: c.x, y, next, twice: next } };
      },
    });
    const outputs = {
      same: x,
      constant: g.constant([3, 4]),
      repeated: expand(g.constant(5), [2]),
      first: y,
      second: y,
      stopped: stopGradient(y),
      carried: carry.x,
      twin: carry.twin,
      next: scan.next,
      twice: scan.twice,
      scanned: scan.x,
      again: scan.x,
      outer: scan.y,
      count: iterations,
      pieces: split(concat([y, x], 0), [1, 3], 0)[1],
    };
    for (const [name, t] of Object.entries(outputs)) g.output(name, t);
    const model = checkModel(toOnnx(g).bytes);
    expect(model.graph!.output!.map(v => v.name)).toEqual(Object.keys(outputs));
    const program = await compile(g);
    const out = program.run({ x: f32(0, 1) });
    const reference = evaluate(g, { x: [0, 1] });
    for (const name of Object.keys(outputs)) expectClose(name, out[name], reference[name].data, 1e-6);
    program.dispose();
  });

  it('holds initialisers of every dtype with the right bits', () => {
    const g = new Graph();
    g.output('f', g.constant([0.1, -0, Infinity, -1e-40]));
    g.output('i', g.constant([-1, 2147483647, -2147483648], [3], 'int32'));
    g.output('l', g.constant([-1n, 9007199254740991n], [2], 'int64'));
    g.output('b', g.constant([1, 0], [2], 'bool'));
    g.output('e', g.constant([], [0, 3]));
    const model = checkModel(toOnnx(g).bytes);
    const sourceOf = new Map(model.graph!.node!.map(node => [node.output![0], node.input![0]]));
    const bits = (name: string): Uint8Array =>
      Uint8Array.from(model.graph!.initializer!.find(t => t.name === sourceOf.get(name))!.rawData!);
    expect(bits('f')).toEqual(new Uint8Array(f32(0.1, -0, Infinity, -1e-40).buffer));
    expect(bits('i')).toEqual(new Uint8Array(Int32Array.of(-1, 2147483647, -2147483648).buffer));
    expect(bits('l')).toEqual(new Uint8Array(BigInt64Array.of(-1n, 9007199254740991n).buffer));
    expect(bits('b')).toEqual(Uint8Array.of(1, 0));
    expect(bits('e')).toEqual(new Uint8Array(0));
  });
});

describe('determinism', () => {
  it('one graph written twice, and two graphs built alike, are the same bytes', () => {
    const g = everything();
    const first = toOnnx(g).bytes;
    expect(toOnnx(g).bytes).toEqual(first);
    // Ids of tensors have moved on by now; names must not depend on them.
    new Graph().input('unrelated', [7]);
    expect(toOnnx(everything()).bytes).toEqual(first);
  });

  it('two programs of one graph give the same bits, run after run', async () => {
    const [a, b] = [await compile(everything()), await compile(everything())];
    const first = a.run(feeds);
    for (const program of [a, b, a]) expect(program.run(feeds)).toEqual(first);
    a.dispose();
    b.dispose();
  });
});

describe('other tools', () => {
  it("onnxruntime-node's own session runs the file and gives the same", async () => {
    const g = everything();
    const path = join(folder, 'everything.onnx');
    await saveOnnx(g, path);
    const session = await InferenceSession.create(path, { graphOptimizationLevel: 'disabled' });
    expect(session.inputNames).toEqual(g.inputs.map((_, i) => Object.keys(feeds)[i]));
    expect(session.outputNames).toEqual([...g.outputs.keys()]);
    const given = Object.fromEntries(
      Object.entries(feeds).map(([name, array]) => {
        const { shape, dtype } = g.inputNamed(name)!;
        return [name, new OrtTensor(dtype, array as Float32Array, shape)];
      }),
    );
    const theirs = await session.run(given);
    const program = await compile(g);
    const ours = program.run(feeds);
    const reference = evaluate(g, feeds);
    for (const name of session.outputNames) {
      expect(theirs[name].dims, `dims of ${name}`).toEqual(reference[name].shape);
      expectClose(`their ${name}`, theirs[name].data as Float32Array, reference[name].data, 1e-4);
      expectClose(`our ${name}`, ours[name], reference[name].data, 1e-4);
    }
    await session.release();
    program.dispose();
  });
});

describe('saveOnnx', () => {
  const small = (factor: number): Graph => {
    const g = new Graph();
    g.output('y', mul(g.input('x', [2]), factor));
    return g;
  };

  it('writes what toOnnx gives, over an old file, and leaves nothing else behind', async () => {
    const path = join(folder, 'small.onnx');
    writeFileSync(path, 'an old file that is longer than nothing');
    await saveOnnx(small(2), path);
    expect(new Uint8Array(readFileSync(path))).toEqual(toOnnx(small(2)).bytes);
    expect(readdirSync(folder).filter(name => name.startsWith('small'))).toEqual(['small.onnx']);
  });

  it('leaves the old file as it was when the graph cannot be written, and no other', async () => {
    const path = join(folder, 'kept.onnx');
    await saveOnnx(small(2), path);
    const broken = new Graph();
    broken.input('x', [1]);
    await expect(saveOnnx(broken, path)).rejects.toThrow(/the graph has no output/);
    expect(new Uint8Array(readFileSync(path))).toEqual(toOnnx(small(2)).bytes);
    expect(readdirSync(folder).filter(name => name.startsWith('kept'))).toEqual(['kept.onnx']);
  });

  it('into a folder that is not there fails in one line, with the path', async () => {
    const path = join(folder, 'missing', 'x.onnx');
    const error = await saveOnnx(small(2), path).then(
      () => undefined,
      (e: Error) => e,
    );
    expect(error?.message).toMatch(/missing/);
    expect(error?.message).not.toContain('\n');
  });

  it('several times at once to one path leaves one whole file', async () => {
    const path = join(folder, 'raced.onnx');
    await Promise.all([1, 2, 3, 4, 5, 6].map(factor => saveOnnx(small(factor), path)));
    const written = new Uint8Array(readFileSync(path));
    const possible = [1, 2, 3, 4, 5, 6].map(factor => toOnnx(small(factor)).bytes);
    expect(possible.some(bytes => Buffer.compare(bytes, written) === 0)).toBe(true);
    expect(readdirSync(folder).filter(name => name.startsWith('raced'))).toEqual(['raced.onnx']);
  });
});

describe('a graph for any number of rows', () => {
  /** Reshapes, expands and products, with sizes that are the row counts of the builds. */
  const build = (rows: number): Graph => {
    const g = new Graph();
    const x = g.input('x', [rows, 6]);
    const y = g.input('y', [rows], 'int64');
    const fixed = g.input('fixed', [101, 3]);
    const pairs = reshape(x, [rows * 3, 2]);
    const spread = expand(reshape(g.constant([1, 2, 3]), [1, 3, 1]), [rows, 3, 2]);
    g.output('sums', reduceSum(mul(reshape(pairs, [rows, 3, 2]), add(spread, 1)), { axes: [2] }));
    g.output('spread', reshape(concat([expand(g.constant([5, 6]), [rows * 3, 2]), pairs], 1), [rows, 12]));
    g.output('table', reshape(expand(reshape(fixed, [1, 303]), [rows, 303]), [rows, 101, 3]));
    g.output('picked', gather(fixed, y));
    g.output('ranks', argMax(x, 1));
    g.output('still', reduceSum(expand(fixed, [103, 101, 3]), { axes: [1] }));
    return g;
  };

  it.each([1, 2, 7, 101, 250])('gives for %i rows what a graph for as many gives', async rows => {
    const { bytes, nodeCount } = toOnnx(build);
    const model = checkModel(bytes);
    expect(opTypes(model.graph!).length).toBe(nodeCount);
    expect(model.graph!.input!.map(describeValue)).toEqual([
      { name: 'x', dtype: 'float32', shape: ['rows', 6] },
      { name: 'y', dtype: 'int64', shape: ['rows'] },
      { name: 'fixed', dtype: 'float32', shape: [101, 3] },
    ]);
    expect(model.graph!.output!.map(value => describeValue(value).shape)).toEqual([
      ['rows', 3],
      ['rows', 12],
      ['rows', 101, 3],
      ['rows', 3],
      ['rows'],
      [103, 3],
    ]);
    const given = {
      x: Float32Array.from({ length: rows * 6 }, (_, i) => Math.sin(i)),
      y: i64(...Array.from({ length: rows }, (_, i) => (i * 7) % 101)),
      fixed: Float32Array.from({ length: 303 }, (_, i) => Math.cos(i)),
    };
    const g = build(rows);
    const reference = evaluate(g, given);
    const session = await InferenceSession.create(bytes);
    const out = await session.run(
      Object.fromEntries(
        g.inputs.map((t, i) => {
          const name = (['x', 'y', 'fixed'] as const)[i];
          return [name, new OrtTensor(t.dtype, given[name] as Float32Array, t.shape)];
        }),
      ),
    );
    for (const name of session.outputNames) {
      expect(out[name].dims, `dims of ${name}`).toEqual(reference[name].shape);
      expectClose(name, out[name].data as Float32Array, reference[name].data, 1e-5);
    }
    await session.release();
  });

  it('is the same bytes each time', () => {
    expect(toOnnx(build).bytes).toEqual(toOnnx(build).bytes);
  });

  it('is written by saveOnnx', async () => {
    const path = join(folder, 'any-rows.onnx');
    await saveOnnx(build, path);
    expect(new Uint8Array(readFileSync(path))).toEqual(toOnnx(build).bytes);
  });

  it.each<[string, (x: Tensor, rows: number) => Tensor, RegExp]>([
    [
      'a mean over rows',
      x => add(x, reduceMean(x)),
      /^toOnnx: Mul .* takes a constant that depends on the number of rows/,
    ],
    [
      'a sum over rows',
      x => add(x, reduceSum(x, { axes: [0] })),
      /^toOnnx: MatMul .* takes a constant that depends on/,
    ],
    [
      'rows cut by their number',
      (x, rows) => slice(x, [rows - 1], [rows], [0]),
      /^toOnnx: Slice .* takes a constant/,
    ],
    [
      'an output with rows inside',
      x => transpose(x),
      /^toOnnx: output 'y' \(4, 101\) depends on the number of rows on axis 1/,
    ],
    [
      'an output of twice as many',
      x => concat([x, x], 0),
      /^toOnnx: output 'y' \(202, 4\) depends on .* axis 0/,
    ],
    [
      'one row more',
      x => concat([x, x.node.graph.constant([1, 2, 3, 4], [1, 4])], 0),
      /^toOnnx: output 'y' has the size 102 for 101 rows and 104 for 103: sizes are multiples of the rows$/,
    ],
    [
      'a reshape with rows twice',
      (x, rows) => reshape(matmul(x, transpose(x)), [rows * 1, 1, rows]),
      /^toOnnx: Reshape .* to \(-1, 1, -1\) leaves its sizes open: one may depend on the rows/,
    ],
    [
      'other operators',
      (x, rows) => (rows > 101 ? tanh(x) : exp(x)),
      /^toOnnx: for 101 rows and for 103 rows other graphs are built \(Exp 'y': a Tanh\)/,
    ],
    [
      'more operators',
      (x, rows) => (rows > 101 ? exp(tanh(x)) : exp(x)),
      /^toOnnx: .* other graphs are built \(nodes: 1 and 2\)/,
    ],
    [
      'other attributes',
      (x, rows) => softmax(x, rows > 101 ? 0 : 1),
      /^toOnnx: .* \(Softmax 'y': other attributes\)/,
    ],
    [
      'other operands',
      (x, rows) => {
        const [a, b] = [exp(x), tanh(x)];
        return rows > 101 ? sub(a, b) : sub(b, a);
      },
      /^toOnnx: .* \(Sub 'y': other operands\)/,
    ],
    [
      'a loop',
      x => loop({ trips: 2, carry: { x }, body: ({ carry }) => ({ carry: { x: exp(carry.x) } }) }).carry.x,
      /^toOnnx: Loop .* cannot be written for any number of rows: give toOnnx a graph for a fixed one$/,
    ],
  ])('is refused with %s', (_, f, message) => {
    const graph = (rows: number): Graph => {
      const g = new Graph();
      g.output('y', f(g.input('x', [rows, 4]), rows));
      return g;
    };
    expect(() => toOnnx(graph)).toThrow(message);
  });

  it('is refused where no input has rows', () => {
    const graph = (rows: number): Graph => {
      const g = new Graph();
      g.output('y', expand(g.input('x', [4]), [rows, 4]));
      return g;
    };
    expect(() => toOnnx(graph)).toThrow(/^toOnnx: no input has the number of rows as its first size/);
  });
});

describe('toOnnx refuses', () => {
  it('a graph without outputs, an unused input, one name for an input and an output, a body', () => {
    const empty = new Graph();
    const x = empty.input('x', [2]);
    expect(() => toOnnx(empty)).toThrow(
      /^toOnnx: the graph has no output: name one with graph\.output\(name, tensor\)$/,
    );
    empty.output('y', exp(x));
    const z = empty.input('z', [4, 1]);
    expect(() => toOnnx(empty)).toThrow(
      /^input 'z' \(4, 1\) is used by no output: use it, remove it, or declare it \{ required: false \}$/,
    );
    // Used, but by nothing that leads to an output.
    reshape(z, [4]);
    expect(() => toOnnx(empty)).toThrow(/^input 'z'/);
    const clash = new Graph();
    clash.output('x', exp(clash.input('x', [2])));
    expect(() => toOnnx(clash)).toThrow(/^'x' names both an input and an output: rename one of them$/);
    const g = new Graph();
    let body!: Graph;
    loop({
      trips: 1,
      carry: { x: g.input('x', [1]) },
      body: s => {
        body = s.carry.x.node.graph;
        return { carry: s.carry };
      },
    });
    expect(() => toOnnx(body)).toThrow(
      /^toOnnx: this graph is the body of a loop: save the graph around it$/,
    );
  });

  it('writes no input that is not required and not used', () => {
    const g = new Graph();
    g.input('spare', [2], 'float32', { required: false });
    g.output('y', exp(g.input('x', [2])));
    expect(checkModel(toOnnx(g).bytes).graph!.input!.map(v => v.name)).toEqual(['x']);
  });
});
