/**
 * A text trainer's snapshot as the files of a checkpoint, and back. Every checkpoint is also a Hugging Face directory
 * (`config.json`, `model.safetensors`, `tokenizer.json`): other tools load it, and so does `--from`.
 */
import { flatFrom, type LanguageModel, modelFiles, modelFromFiles, namedTensors } from '../../lm/index.ts';
import { decodeSafetensors, writeSafetensors } from '../../nn/index.ts';
import { Rng } from '../../random/index.ts';
import type { Checkpoint, CheckpointFile } from '../../runs/index.ts';
import { TrainError } from '../train-error.ts';

/** What trainers of text keep. */
export interface TextSnapshot<C = unknown> {
  readonly weights: Float32Array;
  readonly m: Float32Array;
  readonly v: Float32Array;
  readonly reference: Float32Array | undefined;
  readonly counters: C;
  readonly rng: Readonly<Record<string, unknown>>;
}

const OPTIMIZER_FILE = 'optimizer.safetensors';
const REFERENCE_FILE = 'reference.safetensors';

/** Files are written from the arrays as they are then: nothing may change them before. */
export function textFiles(
  model: LanguageModel,
  { weights, m, v, reference }: TextSnapshot,
): Record<string, CheckpointFile> {
  const { layout } = model;
  return {
    ...modelFiles(model, weights),
    [OPTIMIZER_FILE]: path =>
      writeSafetensors(path, { ...namedTensors(layout, m, 'm.'), ...namedTensors(layout, v, 'v.') }),
    ...(reference
      ? { [REFERENCE_FILE]: (path: string) => writeSafetensors(path, namedTensors(layout, reference)) }
      : {}),
  };
}

/** The model of a checkpoint. */
export function checkpointModel({ files, index }: Checkpoint): LanguageModel {
  return modelFromFiles(files, `checkpoint ${index.step}`);
}

/** A snapshot from a checkpoint that was found whole; still checked, because its sizes may be of another model. */
export function textSnapshot<S extends TextSnapshot>(
  model: LanguageModel,
  { files, state, index }: Checkpoint,
  streams: readonly string[],
): S {
  const source = `checkpoint ${index.step}`;
  const flat = (name: string, prefix = ''): Float32Array => {
    const bytes = files.get(name);
    if (!bytes) throw new TrainError(`${source} has no ${name}: use another checkpoint`);
    return flatFrom(model.layout, [decodeSafetensors(bytes, name)], `${name} of ${source}`, prefix);
  };
  const { counters, rng } = state as { counters?: unknown; rng?: Record<string, unknown> };
  for (const [name, value] of Object.entries({ counters, rng })) {
    if (typeof value !== 'object' || value === null)
      throw new TrainError(`${source} has no ${name} in its state: use another checkpoint`);
  }
  // Refused here rather than in the middle of a run.
  for (const name of streams) Rng.fromState(rng![name]);
  return {
    weights: model.weights,
    m: flat(OPTIMIZER_FILE, 'm.'),
    v: flat(OPTIMIZER_FILE, 'v.'),
    reference: files.has(REFERENCE_FILE) ? flat(REFERENCE_FILE) : undefined,
    counters,
    rng,
  } as unknown as S;
}
