/** A trainer's snapshot as the files of a checkpoint, and back. Weights go by name, so that other tools can read them. */
import { z } from 'zod';
import type { VectorState } from '../../envs/vector/vector.ts';
import { namedTensors } from '../../nn/named-tensors.ts';
import type { Parameters } from '../../nn/parameters.ts';
import { decodeSafetensors, encodeSafetensors } from '../../nn/safetensors.ts';
import type { Checkpoint } from '../../runs/checkpoint.ts';
import {
  countersSchema,
  momentsSchema,
  readState,
  readTensors,
  restoredCounters,
  rngSchema,
  savedCounters,
} from '../checkpoint.ts';
import type { UpdateCounters } from '../update/guarded.ts';
import type { SavedTensors } from '../update/state.ts';
import type { SavedState } from '../update/trainer-state.ts';
import type { CollectorState } from './collector.ts';
import type { PpoCounters } from './control.ts';

const POLICY_FILE = 'policy.safetensors';
const OPTIMIZER_FILE = 'optimizer.safetensors';
const REFERENCE = 'reference.';

/** All that the future of a trainer depends on: tensors, and what `state.json` holds. */
export interface PpoSnapshot extends SavedTensors, SavedState<PpoCounters, 'act' | 'order'>, CollectorState {}

/** The tensors of a policy and its optimiser as files. */
export function tensorFiles(
  layout: Parameters,
  { weights, m, v, reference }: SavedTensors,
): Record<string, Uint8Array> {
  return {
    [POLICY_FILE]: encodeSafetensors({
      ...namedTensors(layout, weights),
      ...(reference ? namedTensors(layout, reference, REFERENCE) : {}),
    }),
    [OPTIMIZER_FILE]: encodeSafetensors({
      ...namedTensors(layout, m, 'm.'),
      ...namedTensors(layout, v, 'v.'),
    }),
  };
}

/** The same tensors from a checkpoint that was found whole; still checked, because its network may be another. */
export function tensorsFrom(layout: Parameters, checkpoint: Checkpoint): SavedTensors {
  const weights = readTensors(checkpoint, POLICY_FILE, layout);
  const { names } = decodeSafetensors(checkpoint.files.get(POLICY_FILE)!, POLICY_FILE);
  const hasReference = names.some(name => name.startsWith(REFERENCE));
  return {
    weights,
    m: readTensors(checkpoint, OPTIMIZER_FILE, layout, 'm.'),
    v: readTensors(checkpoint, OPTIMIZER_FILE, layout, 'v.'),
    reference: hasReference ? readTensors(checkpoint, POLICY_FILE, layout, REFERENCE) : undefined,
  };
}

/** What `state.json` holds: all of a policy's snapshot that is not a tensor. */
export function stateOf(
  snapshot: SavedTensors & { readonly counters: UpdateCounters },
): Record<string, unknown> {
  const { weights: _, m: __, v: ___, reference: ____, counters, ...state } = snapshot;
  return { counters: savedCounters(counters), ...state };
}

const stateSchema = z.object({
  counters: countersSchema.extend({
    klCoef: z.number(),
    adaptiveFactor: z.number(),
    bestReturn: z.number().nullable(),
  }),
  rng: z.object({ act: rngSchema, order: rngSchema }),
  observationNormaliser: momentsSchema.nullable(),
  rewardNormaliser: z.object({ moments: momentsSchema, returns: z.array(z.number()) }).nullable(),
  actionNoise: z.array(z.number()).nullable(),
  // The environments check their own.
  envs: z.custom<VectorState>(value => typeof value === 'object' && value !== null),
  // Checkpoints of earlier versions have none.
  shardRngs: z.array(rngSchema).nullable().default(null),
});

/** A snapshot from a checkpoint. */
export function snapshotFrom(layout: Parameters, checkpoint: Checkpoint): PpoSnapshot {
  const { counters, ...state } = readState(checkpoint, stateSchema);
  return { ...tensorsFrom(layout, checkpoint), ...state, counters: restoredCounters(counters) };
}
