/** Matrix products: 2-D, batched, and with a bias. Either side can be read transposed at no cost. */
import { fail } from '../errors.ts';
import { apply1, type Operator, type Tensor } from '../graph.ts';
import type { OnnxBuilder } from '../onnx/builder.ts';
import { type Shape, sameShape, showShape, sizeOf, tryBroadcast } from '../shape.ts';
import { mapBroadcast, requireFloat } from './elementwise.ts';
import { reshape, transposeOp } from './shape.ts';

export interface MatmulAttrs {
  readonly transposeA: boolean;
  readonly transposeB: boolean;
}

export const matmulOp: Operator<MatmulAttrs> = {
  name: 'matmul',
  infer([a, b], attrs) {
    const { rows, inner, columns } = productSizes('matmul', a, b, attrs);
    if (inner.a !== inner.b) {
      fail(
        `matmul: shapes ${showProduct(a, b, attrs)} do not fit: inner sizes ${inner.a} and ${inner.b} differ`,
      );
    }
    const batch = tryBroadcast(a.shape.slice(0, -2), b.shape.slice(0, -2));
    if (!batch) fail(`matmul: shapes ${showProduct(a, b, attrs)} do not fit: their batches do not broadcast`);
    return [{ shape: [...batch, rows, columns], dtype: 'float32' }];
  },
  evaluate([a, b], attrs, [out]) {
    const [rows, columns] = out.shape.slice(-2);
    const inner = a.shape.at(attrs.transposeA ? -2 : -1)!;
    const batch = out.shape.slice(0, -2);
    // The offsets of each batch's matrices, found by broadcasting the batches' numbers.
    const numbers = (shape: Shape) => {
      const own = shape.slice(0, -2);
      return mapBroadcast(
        batch,
        [{ shape: own, data: Float64Array.from({ length: sizeOf(own) }, (_, i) => i) }],
        v => v,
      );
    };
    const [ofA, ofB] = [numbers(a.shape), numbers(b.shape)];
    const data = new Float64Array(sizeOf(out.shape));
    for (let n = 0; n < sizeOf(batch); n++) {
      const [baseA, baseB] = [ofA[n] * rows * inner, ofB[n] * inner * columns];
      for (let i = 0; i < rows; i++) {
        for (let j = 0; j < columns; j++) {
          let sum = 0;
          for (let k = 0; k < inner; k++) {
            const x = a.data[baseA + (attrs.transposeA ? k * rows + i : i * inner + k)];
            const y = b.data[baseB + (attrs.transposeB ? j * inner + k : k * columns + j)];
            sum += x * y;
          }
          data[(n * rows + i) * columns + j] = sum;
        }
      }
    }
    return [data];
  },
  onnx(builder, [a, b], outputs, { attrs, inputs, outputs: [out] }) {
    const flags = { transA: attrs.transposeA ? 1 : 0, transB: attrs.transposeB ? 1 : 0 };
    if (inputs.every(t => t.shape.length === 2)) {
      const how = attrs.transposeA ? copiesFor(inputs[0].shape, out.shape) : 'none';
      if (how === 'left') {
        const left = turnedCopy(builder, a, inputs[0].shape);
        builder.node('Gemm', [left, b], outputs, { transB: flags.transB });
      } else if (how === 'right and result' && !attrs.transposeB) {
        // (bᵀ a)ᵀ
        const product = builder.fresh();
        builder.node('Gemm', [turnedCopy(builder, b, inputs[1].shape), a], [product]);
        turnedCopy(builder, product, [out.shape[1], out.shape[0]], outputs[0]);
      } else {
        builder.node('Gemm', [a, b], outputs, flags);
      }
      return;
    }
    // ONNX Runtime fuses these transposes into the product.
    const swapped = (name: string, rank: number): string => {
      const out = builder.fresh();
      builder.node('Transpose', [name], [out], { perm: [...Array(rank - 2).keys(), rank - 1, rank - 2] });
      return out;
    };
    const left = attrs.transposeA ? swapped(a, inputs[0].shape.length) : a;
    const right = attrs.transposeB ? swapped(b, inputs[1].shape.length) : b;
    builder.node('MatMul', [left, right], outputs);
  },
};

/** Products at least this wide, whose left side has at least so many values, gain from a transposed copy of it. */
const WIDE = 192;
const LARGE = 65_536;

/**
 * Which sides of a product with a transposed left side are better copied into order than read against it: ONNX Runtime's
 * product turns the left side again for every 128 columns of the result, which costs a fifth of its speed. Transposing the
 * right side and the result instead is less to copy where the left side is the largest of the three.
 */
function copiesFor(left: Shape, result: Shape): 'none' | 'left' | 'right and result' {
  const [inner, columns] = [left[0], result[1]];
  if (columns < WIDE || sizeOf(left) < LARGE) return 'none';
  return sizeOf(left) > inner * columns + sizeOf(result) ? 'right and result' : 'left';
}

/** Writes a transposed copy, through three axes: ONNX Runtime would take a plain transpose into the product again. */
function turnedCopy(
  builder: OnnxBuilder,
  name: string,
  [rows, columns]: Shape,
  out = builder.fresh(),
): string {
  const [before, after] = [builder.fresh(), builder.fresh()];
  builder.node('Reshape', [name, builder.ints([1, rows, columns])], [before]);
  builder.node('Transpose', [before], [after], { perm: [0, 2, 1] });
  builder.node('Reshape', [after, builder.ints([columns, rows])], [out]);
  return out;
}

/** The matrix product over the last two axes; axes before them are batches and broadcast. */
export function matmul(
  a: Tensor,
  b: Tensor,
  options: { transposeA?: boolean; transposeB?: boolean } = {},
): Tensor {
  const left = readTransposed(a, options.transposeA ?? false);
  const right = readTransposed(b, options.transposeB ?? false);
  const attrs = { transposeA: left.transposed, transposeB: right.transposed };
  if (left.tensor.shape.length > 2 && right.tensor.shape.length === 2 && !attrs.transposeA) {
    // One tall product instead of a batch of small ones that share a side; its derivative is one product, too.
    matmulOp.infer([left.tensor, right.tensor], attrs); // names the shapes as they were given
    const shape = left.tensor.shape;
    const flat = reshape(left.tensor, [sizeOf(shape.slice(0, -1)), shape.at(-1)!]);
    const out = apply1(matmulOp, [flat, right.tensor], attrs);
    return reshape(out, [...shape.slice(0, -1), out.shape[1]]);
  }
  return apply1(matmulOp, [left.tensor, right.tensor], attrs);
}

/** A side that is a swap of its last two axes, read as what it swaps. */
function readTransposed(x: Tensor, transposed: boolean): { tensor: Tensor; transposed: boolean } {
  const rank = x.shape.length;
  if (x.node.op === (transposeOp as Operator) && rank >= 2) {
    const { order } = x.node.attrs as { order: readonly number[] };
    if (sameShape(order, [...Array(rank - 2).keys(), rank - 1, rank - 2])) {
      return { tensor: x.node.inputs[0], transposed: !transposed };
    }
  }
  return { tensor: x, transposed };
}

export interface LinearAttrs {
  readonly transposeW: boolean;
}

export const linearOp: Operator<LinearAttrs> = {
  name: 'linear',
  infer([x, w, b], { transposeW }) {
    const attrs = { transposeA: false, transposeB: transposeW };
    const { rows, inner, columns } = productSizes('linear', x, w, attrs);
    requireFloat('linear', b);
    if (x.shape.length !== 2 || w.shape.length !== 2 || inner.a !== inner.b) {
      fail(
        `linear: shapes ${showProduct(x, w, attrs)} do not fit: (rows, inputs) and (inputs, outputs) are needed`,
      );
    }
    if (!sameShape(b.shape, [columns]) && !sameShape(b.shape, [1, columns])) {
      fail(
        `linear: the bias has the shape ${showShape(b.shape)}, but ${showShape(w.shape)} asks for (${columns})`,
      );
    }
    return [{ shape: [rows, columns], dtype: 'float32' }];
  },
  evaluate([x, w, b], { transposeW }, outputs) {
    const [product] = matmulOp.evaluate!([x, w], { transposeA: false, transposeB: transposeW }, outputs);
    return [product.map((v, i) => v + b.data[i % b.data.length])];
  },
  onnx: (builder, inputs, outputs, { attrs }) =>
    builder.node('Gemm', inputs, outputs, { transB: attrs.transposeW ? 1 : 0 }),
};

/** x·w + b for rows of inputs, as one node; `transposeW` reads weights stored as (outputs, inputs). */
export function linear(x: Tensor, w: Tensor, b: Tensor, options: { transposeW?: boolean } = {}): Tensor {
  return apply1(linearOp, [x, w, b], { transposeW: options.transposeW ?? false });
}

function productSizes(what: string, a: Tensor, b: Tensor, { transposeA, transposeB }: MatmulAttrs) {
  for (const t of [a, b]) {
    requireFloat(what, t);
    if (t.shape.length < 2) {
      fail(
        `${what}: shapes ${showShape(a.shape)} and ${showShape(b.shape)} do not fit: each needs at least 2 axes`,
      );
    }
  }
  return {
    rows: a.shape.at(transposeA ? -1 : -2)!,
    inner: { a: a.shape.at(transposeA ? -2 : -1)!, b: b.shape.at(transposeB ? -1 : -2)! },
    columns: b.shape.at(transposeB ? -2 : -1)!,
  };
}

function showProduct(a: Tensor, b: Tensor, { transposeA, transposeB }: MatmulAttrs): string {
  return `${showShape(a.shape)}${transposeA ? ' transposed' : ''} and ${showShape(b.shape)}${transposeB ? ' transposed' : ''}`;
}
