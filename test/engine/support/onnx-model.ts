/** Reads a written model with an independent decoder and checks what the ONNX specification demands of its structure. */
import pkg, { type onnx as Onnx } from 'onnx-proto';
import { expect } from 'vitest';

type GraphProto = Onnx.IGraphProto;

export function decodeModel(bytes: Uint8Array): Onnx.ModelProto {
  return pkg.onnx.ModelProto.decode(bytes);
}

const elementTypes: Record<number, string> = { 1: 'float32', 6: 'int32', 7: 'int64', 9: 'bool' };
const elementBytes: Record<number, number> = { 1: 4, 6: 4, 7: 8, 9: 1 };

export interface Described {
  readonly name: string;
  readonly dtype: string | undefined;
  /** A size that is open is a name. */
  readonly shape: readonly (number | string)[];
}

export function describeValue({ name, type }: Onnx.IValueInfoProto): Described {
  const tensor = type!.tensorType!;
  return {
    name: name!,
    dtype: elementTypes[tensor.elemType!],
    shape: tensor.shape!.dim!.map(dim => dim.dimParam || Number(dim.dimValue)),
  };
}

/** Operators that a model uses, loop bodies included, in the order of their nodes. */
export function opTypes(graph: GraphProto): string[] {
  return graph.node!.flatMap(node => [node.opType!, ...bodiesOf(node).flatMap(opTypes)]);
}

function bodiesOf(node: Onnx.INodeProto): GraphProto[] {
  return node.attribute!.flatMap(attribute => (attribute.g ? [attribute.g] : []));
}

/** Throws unless the model is one that any ONNX tool opens. */
export function checkModel(bytes: Uint8Array): Onnx.ModelProto {
  const model = decodeModel(bytes);
  // Nothing was dropped or misread: what the decoder writes is as long as what it read.
  expect(pkg.onnx.ModelProto.encode(model).finish().length).toBeGreaterThan(0);
  expect(pkg.onnx.ModelProto.verify(model)).toBeNull();
  expect(Number(model.irVersion)).toBe(8);
  expect(model.producerName).toBe('keel');
  expect(model.opsetImport.map(({ domain, version }) => [domain, Number(version)])).toEqual([['', 20]]);
  checkGraph(model.graph!, new Set(), { values: new Set(), nodes: new Set() });
  return model;
}

/** Value and node names are unique in the whole model; every value is defined before it is used. */
function checkGraph(
  graph: GraphProto,
  outer: ReadonlySet<string>,
  taken: { values: Set<string>; nodes: Set<string> },
): Set<string> {
  const visible = new Set(outer);
  const used = new Set<string>();
  const define = (name: string, what: string): void => {
    if (name === '') throw new Error(`${what} has no name`);
    if (taken.values.has(name)) throw new Error(`${what} '${name}' is defined twice`);
    taken.values.add(name);
    visible.add(name);
  };
  expect(graph.name).toBeTruthy();
  for (const input of graph.input!) {
    define(input.name!, 'input');
    expect(describeValue(input).dtype).toBeDefined();
  }
  for (const { name, dims, dataType, rawData } of graph.initializer!) {
    define(name!, 'initialiser');
    const size = dims!.reduce<number>((product, n) => product * Number(n), 1);
    expect(rawData!.length, `bytes of initialiser ${name}`).toBe(size * elementBytes[dataType!]);
  }
  for (const node of graph.node!) {
    expect(node.domain ?? '').toBe('');
    expect(node.name).toBeTruthy();
    if (taken.nodes.has(node.name!)) throw new Error(`node '${node.name}' is there twice`);
    taken.nodes.add(node.name!);
    for (const name of node.input!) {
      // An empty name is an optional input that is left away.
      if (name !== '' && !visible.has(name))
        throw new Error(`${node.name} uses '${name}' before it is defined`);
      used.add(name);
    }
    for (const body of bodiesOf(node)) for (const name of checkGraph(body, visible, taken)) used.add(name);
    for (const name of node.output!) define(name, `output of ${node.name}`);
  }
  const own = new Set([
    ...graph.node!.flatMap(node => node.output!),
    ...graph.initializer!.map(({ name }) => name!),
    ...graph.input!.map(({ name }) => name!),
  ]);
  for (const output of graph.output!) {
    if (!own.has(output.name!)) throw new Error(`output '${output.name}' is not computed by its graph`);
    used.add(output.name!);
  }
  const names = graph.output!.map(({ name }) => name!);
  expect(new Set(names).size).toBe(names.length);
  for (const { name } of graph.initializer!) {
    if (!used.has(name!)) throw new Error(`initialiser '${name}' is not used`);
  }
  return used;
}
