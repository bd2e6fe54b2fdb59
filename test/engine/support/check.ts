/** Running a graph both ways, comparing numbers, and differentiating numerically. */
import { type CompileOptions, compile, type DType, type Graph } from '../../../src/engine/index.ts';
import { compileWasm, wasmRefusal } from '../../../src/engine/wasm/program.ts';

/** Fixed, so that a failure comes back; `KEEL_TEST_SEED=7 npx vitest run test/engine` tries other cases. */
export const seed = Number(process.env.KEEL_TEST_SEED ?? process.env.KEEL_PROPERTY_SEED ?? 1);
/** `KEEL_TEST_SCALE=20` runs the random tests twenty times as long. */
export const scale = Number(process.env.KEEL_TEST_SCALE ?? 1);

export type Numbers = ArrayLike<number> | ArrayLike<bigint>;

export function numbers(values: Numbers): number[] {
  return Array.from(values as ArrayLike<number>, Number);
}

/** Numbers as the typed array of a dtype. */
export function typed(values: Numbers, dtype: DType): Float32Array | Int32Array | BigInt64Array | Uint8Array {
  const plain = numbers(values);
  switch (dtype) {
    case 'float32':
      return new Float32Array(plain);
    case 'int32':
      return new Int32Array(plain);
    case 'int64':
      return new BigInt64Array(plain.map(BigInt));
    case 'bool':
      return new Uint8Array(plain);
    default:
      return dtype satisfies never;
  }
}

export function f32(...values: number[]): Float32Array {
  return new Float32Array(values);
}

export function i64(...values: number[]): BigInt64Array {
  return new BigInt64Array(values.map(BigInt));
}

export type PlainFeeds = Record<string, Numbers>;

/**
 * Compiles, runs once, frees; outputs as plain numbers. Where the graph can be a WebAssembly program, it is run as one as
 * well, and both must agree; `wasm: false` spares what repeats so often that the last digit decides.
 */
export async function runCompiled(
  graph: Graph,
  feeds: PlainFeeds = {},
  options: CompileOptions & { readonly wasm?: false } = {},
): Promise<Record<string, number[]>> {
  const program = await compile(graph, options);
  try {
    const given = Object.fromEntries(
      program.inputs.map(({ name, dtype }) => [name, typed(feeds[name] ?? [], dtype)]),
    );
    const out = program.run(given);
    if (options.wasm !== false && wasmRefusal(graph) === undefined) {
      const wasm = compileWasm(graph).run(given);
      for (const { name, dtype } of program.outputs)
        expectClose(
          `WebAssembly: ${name}`,
          wasm[name],
          out[name],
          dtype === 'float32' ? 1e-5 : 0,
          largest(out[name]),
        );
    }
    return Object.fromEntries(Object.entries(out).map(([name, array]) => [name, numbers(array)]));
  } finally {
    program.dispose();
  }
}

/** The largest finite size among numbers, at least 1: what a sum may have lost digits beside. */
function largest(values: Numbers): number {
  return numbers(values).reduce((top, v) => (Number.isFinite(v) ? Math.max(top, Math.abs(v)) : top), 1);
}

/** Throws unless numbers agree to `tolerance`, relative to the larger of `scale` and the expected value. */
export function expectClose(
  what: string,
  actual: Numbers,
  expected: Numbers,
  tolerance: number,
  scale = 1,
): void {
  const [a, b] = [numbers(actual), numbers(expected)];
  const off = a.length === b.length ? b.findIndex((v, i) => !isClose(a[i], v, tolerance, scale)) : 0;
  if (off < 0) return;
  throw new Error(
    `${what}: ${a[off]} instead of ${b[off]} at ${off}\n  actual   [${a.join(', ')}]\n  expected [${b.join(', ')}]`,
  );
}

function isClose(a: number, b: number, tolerance: number, scale: number): boolean {
  if (!Number.isFinite(b) || !Number.isFinite(a)) return Object.is(a, b);
  return Math.abs(a - b) <= tolerance * Math.max(scale, Math.abs(b));
}

/** The derivative of `f` at 0 by central differences of two widths (Richardson), and how far these differ. */
export function derivativeAtZero(f: (t: number) => number, h = 1e-3): { value: number; uncertainty: number } {
  const central = (step: number): number => (f(step) - f(-step)) / (2 * step);
  const [wide, narrow] = [central(h), central(h / 2)];
  return { value: narrow + (narrow - wide) / 3, uncertainty: Math.abs(narrow - wide) / 3 };
}

/** The derivative of `f` by each of `values`, which are read anew at each call. */
export function finiteDifferences(f: (values: number[]) => number, values: readonly number[]): number[] {
  return values.map((v, i) => derivativeAtZero(t => f(values.with(i, v + t) as number[])).value);
}
