/** An ONNX graph as plain data, and the bytes of a model file. Field numbers are those of onnx.proto3. */

import { ProtoWriter } from '../../base/protobuf.ts';
import { type DType, dtypes } from '../dtype.ts';
import type { TensorType } from '../graph.ts';
import type { OnnxAttribute } from './builder.ts';

const IR_VERSION = 8;
const OPSET = 20;

/** One (sub)graph: its inputs, initialisers, nodes and outputs, in the order in which they are written. */
export interface OnnxGraph {
  readonly name: string;
  readonly parts: readonly OnnxPart[];
}

export type OnnxPart = OnnxPort | OnnxInitialiser | OnnxNode;

/** An input or an output; a size that is a name is any number, the same wherever the name stands. */
export interface OnnxPort {
  readonly kind: 'input' | 'output';
  readonly name: string;
  readonly shape: readonly (number | string)[];
  readonly dtype: DType;
}

export interface OnnxInitialiser {
  readonly kind: 'initialiser';
  readonly name: string;
  readonly type: TensorType;
  readonly raw: Uint8Array;
}

export interface OnnxNode {
  readonly kind: 'node';
  readonly opType: string;
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  readonly attributes: Readonly<Record<string, OnnxAttribute | OnnxGraph>>;
}

/** How many nodes a graph has, without those of loop bodies. */
export function nodesIn({ parts }: OnnxGraph): number {
  return parts.filter(({ kind }) => kind === 'node').length;
}

/** The bytes of a model file. */
export function encodeModel(graph: OnnxGraph): Uint8Array {
  return new ProtoWriter()
    .int(1, IR_VERSION)
    .text(2, 'keel')
    .message(7, graphProto(graph))
    .message(8, new ProtoWriter().text(1, '').int(2, OPSET))
    .finish();
}

function graphProto({ name, parts }: OnnxGraph): ProtoWriter {
  const proto = new ProtoWriter();
  for (const part of parts) {
    switch (part.kind) {
      case 'node':
        proto.message(1, nodeProto(part));
        break;
      case 'initialiser':
        proto.message(5, initialiserProto(part));
        break;
      case 'input':
        proto.message(11, portProto(part));
        break;
      case 'output':
        proto.message(12, portProto(part));
        break;
      default:
        part satisfies never;
    }
  }
  return proto.text(2, name);
}

function nodeProto({ opType, inputs, outputs, attributes }: OnnxNode): ProtoWriter {
  const proto = new ProtoWriter();
  for (const name of inputs) proto.text(1, name);
  for (const name of outputs) proto.text(2, name);
  proto.text(3, `${opType}_${outputs[0]}`).text(4, opType);
  for (const [name, value] of Object.entries(attributes)) proto.message(5, attributeProto(name, value));
  return proto;
}

function attributeProto(name: string, value: OnnxAttribute | OnnxGraph): ProtoWriter {
  const proto = new ProtoWriter().text(1, name);
  if (typeof value === 'string') return proto.text(4, value).int(20, 3);
  if (typeof value === 'number') return proto.int(3, value).int(20, 2);
  if ('parts' in value) return proto.message(6, graphProto(value)).int(20, 5);
  if ('float' in value) return proto.float(2, value.float).int(20, 1);
  for (const v of value) proto.int(8, v);
  return proto.int(20, 7);
}

function initialiserProto({ name, type: { shape, dtype }, raw }: OnnxInitialiser): ProtoWriter {
  const proto = new ProtoWriter();
  for (const n of shape) proto.int(1, n);
  return proto.int(2, dtypes[dtype].onnx).text(8, name).bytes(9, raw);
}

function portProto({ name, shape, dtype }: OnnxPort): ProtoWriter {
  const dims = new ProtoWriter();
  for (const n of shape) {
    dims.message(1, typeof n === 'number' ? new ProtoWriter().int(1, n) : new ProtoWriter().text(2, n));
  }
  const type = new ProtoWriter().int(1, dtypes[dtype].onnx).message(2, dims);
  return new ProtoWriter().text(1, name).message(2, new ProtoWriter().message(1, type));
}
