/**
 * The checkpoints of language models. Each is also a Hugging Face directory (`config.json`, `model.safetensors`,
 * `tokenizer.json`): other tools load it, and so does `--from`.
 */
import {
  flatFrom,
  modelFiles,
  modelFromFiles,
  modelTensors,
  weightsFromFiles,
} from '../../lm/huggingface.ts';
import type { LanguageModel } from '../../lm/model.ts';
import { namedTensors } from '../../nn/named-tensors.ts';
import { decodeSafetensors, writeSafetensors } from '../../nn/safetensors.ts';
import type { Checkpoint, CheckpointFile } from '../../runs/checkpoint.ts';
import { readTensors, savedCounters } from '../checkpoint.ts';
import type { UpdateCounters } from '../update/guarded.ts';
import type { SavedTensors } from '../update/state.ts';
import type { SavedState } from '../update/trainer-state.ts';

const OPTIMIZER_FILE = 'optimizer.safetensors';
const REFERENCE_FILE = 'reference.safetensors';

/** All that the future of a trainer of text depends on. */
export type TextSnapshot<
  C extends UpdateCounters = UpdateCounters,
  Streams extends string = string,
> = SavedTensors & SavedState<C, Streams>;

/** A snapshot as files and state. Files are written from the arrays as they are then: nothing may change them before. */
export function savedText(
  model: LanguageModel,
  { weights, m, v, reference, counters, rng }: TextSnapshot,
): { files: Record<string, CheckpointFile>; state: Record<string, unknown> } {
  const { layout } = model;
  return {
    files: {
      ...modelFiles(model, weights),
      [OPTIMIZER_FILE]: path =>
        writeSafetensors(path, { ...namedTensors(layout, m, 'm.'), ...namedTensors(layout, v, 'v.') }),
      ...(reference && {
        [REFERENCE_FILE]: (path: string) => writeSafetensors(path, modelTensors(layout, reference)),
      }),
    },
    state: { counters: savedCounters(counters), rng },
  };
}

/** The model of a checkpoint. */
export function checkpointModel({ files, index }: Checkpoint): LanguageModel {
  return modelFromFiles(files, `checkpoint ${index.step}`);
}

/** The tensors of a snapshot, of a checkpoint that was found whole; still checked, because they may be of another model. */
export function textTensors({ layout }: LanguageModel, checkpoint: Checkpoint): SavedTensors {
  const source = `checkpoint ${checkpoint.index.step}`;
  const reference = checkpoint.files.get(REFERENCE_FILE);
  return {
    weights: weightsFromFiles(checkpoint.files, layout, source),
    m: readTensors(checkpoint, OPTIMIZER_FILE, layout, 'm.'),
    v: readTensors(checkpoint, OPTIMIZER_FILE, layout, 'v.'),
    reference: reference && flatFrom(layout, [decodeSafetensors(reference, REFERENCE_FILE)], source),
  };
}
