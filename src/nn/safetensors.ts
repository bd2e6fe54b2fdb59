/**
 * Tensors on disk in the safetensors format (https://github.com/huggingface/safetensors#format): an 8-byte length,
 * a JSON header, the data. Nothing in a file can run code, and nothing in it is believed before it is checked
 * against the number of bytes that are really there.
 *
 * Writing gives the bytes that the reference implementation gives. Reading is as strict as the format's text, which
 * is stricter than that implementation in two places: it lets spaces stand before the header, and it keeps the last
 * of two tensors of one name.
 */
export type { TensorInfo } from './safetensors/checks.ts';
export type { Dtype, TensorData } from './safetensors/dtypes.ts';
export { decodeSafetensors, readSafetensors, type Safetensors } from './safetensors/read.ts';
export { SafetensorsError } from './safetensors/refuse.ts';
export { encodeSafetensors, type TensorInput, writeSafetensors } from './safetensors/write.ts';
