/**
 * One ONNX graph for any number of rows.
 *
 * Shapes are static while a graph is built, so that the number of rows stands in its reshapes and expands, and a single
 * build does not tell it from a size that happens to be the same. Two builds for different numbers do: what differs
 * between them is that number, or a multiple of it; everything else is the same, or the graph is refused. In the
 * result a reshape works its size out (-1), and an expand reads it from the shape of an input.
 */
import { isDeepStrictEqual } from 'node:util';
import { toTypedArray } from '../dtype.ts';
import { fail } from '../errors.ts';
import type { Graph } from '../graph.ts';
import { type Shape, showShape } from '../shape.ts';
import type { OnnxGraph, OnnxInitialiser, OnnxNode, OnnxPart, OnnxPort } from './model.ts';

/** A graph whose inputs and outputs have `rows` as their first size. */
export type RowsGraph = (rows: number) => Graph;

/** Rows of the two builds. Not 1, which broadcasts; primes that are seldom the size of something else. */
export const ROW_COUNTS = [101, 103] as const;

/** What the open size is called in a file. */
const ROWS = 'rows';

/** A size that is so many times the number of rows. */
interface Open {
  readonly timesRows: number;
}

/** Two builds of a graph, for {@link ROW_COUNTS}, as one; `fresh` gives names that the first has not taken. */
export function withAnyRows(few: OnnxGraph, more: OnnxGraph, fresh: () => string): OnnxGraph {
  const [a, b] = [sorted(few), sorted(more)];
  /** Names of the first build with those of the second. */
  const twins = new Map<string, string>();
  const inputs = pairs('inputs', a.inputs, b.inputs).map(([x, y]) => {
    twins.set(x.name, y.name);
    return openPort(x, y);
  });
  const source = inputs.find(({ shape }) => shape[0] === ROWS);
  if (!source)
    fail('toOnnx: no input has the number of rows as its first size: give one the shape [rows, …]');
  const nodes: OnnxNode[] = [];
  const shapes = new Shapes(source.name, fresh, node => nodes.push(node));

  for (const [x, y] of pairs('nodes', a.nodes, b.nodes)) {
    const what = `${x.opType} '${x.outputs[0]}'`;
    if (Object.values(x.attributes).some(value => typeof value === 'object' && 'parts' in value))
      fail(`toOnnx: ${what} cannot be written for any number of rows: give toOnnx a graph for a fixed one`);
    if (x.opType !== y.opType) differ(what, `a ${y.opType}`);
    if (!isDeepStrictEqual(x.attributes, y.attributes)) differ(what, 'other attributes');
    const operands = pairs(what, x.inputs, y.inputs).map(([name, twin], i) => {
      const [value, other] = [a.initialisers.get(name), b.initialisers.get(twin)];
      if (!value || !other) {
        // An empty name is an optional operand that is left away.
        if (name === '' ? twin !== '' : twins.get(name) !== twin) differ(what, 'other operands');
        return name;
      }
      if (isDeepStrictEqual(value.type, other.type) && Buffer.compare(value.raw, other.raw) === 0)
        return name;
      if (i === 1 && x.opType === 'Reshape')
        return shapes.workedOut(what, openShape(what, intsOf(value), intsOf(other)));
      if (i === 1 && x.opType === 'Expand')
        return shapes.computed(openShape(what, intsOf(value), intsOf(other)));
      return fail(
        `toOnnx: ${what} takes a constant that depends on the number of rows: only the shapes of reshape and expand may`,
      );
    });
    nodes.push({ ...x, inputs: operands });
    for (const [name, twin] of pairs(what, x.outputs, y.outputs)) twins.set(name, twin);
  }

  const outputs = pairs('outputs', a.outputs, b.outputs).map(([x, y]) => openPort(x, y));
  const used = new Set(nodes.flatMap(node => node.inputs));
  const initialisers = [...a.initialisers.values(), ...shapes.initialisers].filter(({ name }) =>
    used.has(name),
  );
  return { name: few.name, parts: [...inputs, ...initialisers, ...nodes, ...outputs] };
}

/** Writes shapes with open sizes, each of them once. */
class Shapes {
  readonly initialisers: OnnxInitialiser[] = [];
  readonly #source: string;
  readonly #fresh: () => string;
  readonly #add: (node: OnnxNode) => void;
  readonly #known = new Map<string, string>();

  /** `source` is an input whose first size is the number of rows. */
  constructor(source: string, fresh: () => string, add: (node: OnnxNode) => void) {
    this.#source = source;
    this.#fresh = fresh;
    this.#add = add;
  }

  /** For Reshape, which works one size out from the others. */
  workedOut(what: string, shape: readonly (number | Open)[]): string {
    const sizes = shape.map(size => (typeof size === 'number' ? size : -1));
    if (sizes.filter(n => n === -1).length > 1 || sizes.includes(0))
      fail(
        `toOnnx: ${what} to ${showShape(sizes)} leaves its sizes open: one may depend on the rows, and none be 0`,
      );
    return this.#ints(sizes);
  }

  /** For Expand, which must be told every size. */
  computed(shape: readonly (number | Open)[]): string {
    const sizes = shape.map(size => (typeof size === 'number' ? this.#ints([size]) : this.#times(size)));
    return this.#node('Concat', sizes, { axis: 0 });
  }

  #times({ timesRows }: Open): string {
    const rows = this.#node('Shape', [this.#source], { start: 0, end: 1 });
    return timesRows === 1 ? rows : this.#node('Mul', [rows, this.#ints([timesRows])], {});
  }

  #node(opType: string, inputs: readonly string[], attributes: OnnxNode['attributes']): string {
    return this.#once(`${opType} ${inputs.join()}`, name =>
      this.#add({ kind: 'node', opType, inputs, outputs: [name], attributes }),
    );
  }

  #ints(values: readonly number[]): string {
    const type = { shape: [values.length], dtype: 'int64' } as const;
    const raw = new Uint8Array(toTypedArray(values, 'int64').buffer);
    return this.#once(`ints ${values.join()}`, name =>
      this.initialisers.push({ kind: 'initialiser', name, type, raw }),
    );
  }

  #once(key: string, write: (name: string) => void): string {
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const name = this.#fresh();
    this.#known.set(key, name);
    write(name);
    return name;
  }
}

/** The parts of a graph by their kind. */
function sorted({ parts }: OnnxGraph) {
  const of = <K extends OnnxPart['kind']>(kind: K) =>
    parts.filter((part): part is Extract<OnnxPart, { kind: K }> => part.kind === kind);
  const ports = (kind: OnnxPort['kind']): OnnxPort[] =>
    parts.filter((part): part is OnnxPort => part.kind === kind);
  return {
    inputs: ports('input'),
    outputs: ports('output'),
    nodes: of('node'),
    initialisers: new Map(of('initialiser').map(part => [part.name, part])),
  };
}

function pairs<T>(what: string, some: readonly T[], others: readonly T[]): [T, T][] {
  if (some.length !== others.length) differ(what, `${some.length} and ${others.length}`);
  return some.map((x, i) => [x, others[i]]);
}

function differ(what: string, how: string): never {
  const [few, more] = ROW_COUNTS;
  return fail(
    `toOnnx: for ${few} rows and for ${more} rows other graphs are built (${what}: ${how}): build the same operators for any number of rows`,
  );
}

/** A port with the number of rows left open; it may stand in front only, and only as it is. */
function openPort(x: OnnxPort, y: OnnxPort): OnnxPort {
  const what = `${x.kind} '${x.name}'`;
  if (x.name !== y.name || x.dtype !== y.dtype) differ(what, `'${y.name}', ${y.dtype}`);
  const shape = openShape(what, x.shape as Shape, y.shape as Shape).map((size, axis) => {
    if (typeof size === 'number') return size;
    if (axis > 0 || size.timesRows !== 1)
      fail(
        `toOnnx: ${what} ${showShape(x.shape as Shape)} depends on the number of rows on axis ${axis}: it may be the first size, and as it is`,
      );
    return ROWS;
  });
  return { ...x, shape };
}

/** A shape in which sizes that differ between the builds are open. */
function openShape(what: string, few: Shape, more: Shape): (number | Open)[] {
  const [fewRows, moreRows] = ROW_COUNTS;
  return pairs(what, few, more).map(([n, m]) => {
    if (n === m) return n;
    const timesRows = n / fewRows;
    if (!Number.isInteger(timesRows) || m !== timesRows * moreRows)
      fail(
        `toOnnx: ${what} has the size ${n} for ${fewRows} rows and ${m} for ${moreRows}: sizes are multiples of the rows`,
      );
    return { timesRows };
  });
}

function intsOf({ raw }: OnnxInitialiser): number[] {
  return Array.from(new BigInt64Array(raw.buffer, raw.byteOffset, raw.byteLength / 8), Number);
}
