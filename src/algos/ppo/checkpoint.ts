/** A trainer's snapshot as the files of a checkpoint, and back. Weights go by name, so that other tools can read them. */
import { z } from 'zod';
import type { VectorState } from '../../envs/vector/vector.ts';
import { namedTensors } from '../../nn/named-tensors.ts';
import type { Parameters } from '../../nn/parameters.ts';
import { decodeSafetensors, encodeSafetensors } from '../../nn/safetensors.ts';
import type { RngState } from '../../random/rng.ts';
import type { MomentsState, RewardNormaliserState } from '../../rollout/normalise.ts';
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
import type { PpoCounters } from './control.ts';

const POLICY_FILE = 'policy.safetensors';
const OPTIMIZER_FILE = 'optimizer.safetensors';
const REFERENCE = 'reference.';

/** All that the future of a trainer depends on. */
export interface PpoSnapshot {
  readonly weights: Float32Array;
  readonly m: Float32Array;
  readonly v: Float32Array;
  readonly reference: Float32Array | undefined;
  readonly counters: PpoCounters;
  readonly rng: { readonly act: RngState; readonly order: RngState };
  readonly observationNormaliser: MomentsState | null;
  readonly rewardNormaliser: RewardNormaliserState | null;
  readonly actionNoise: readonly number[] | null;
  readonly envs: VectorState;
}

/** The tensors of a policy and its optimiser as files. */
export function tensorFiles(
  layout: Parameters,
  { weights, m, v, reference }: Pick<PpoSnapshot, 'weights' | 'm' | 'v' | 'reference'>,
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
export function tensorsFrom(
  layout: Parameters,
  checkpoint: Checkpoint,
): Pick<PpoSnapshot, 'weights' | 'm' | 'v' | 'reference'> {
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

/** What `state.json` holds: all of a snapshot that is not a tensor. */
export function stateOf(snapshot: PpoSnapshot): Record<string, unknown> {
  const { counters, rng, observationNormaliser, rewardNormaliser, actionNoise, envs } = snapshot;
  const saved = savedCounters(counters);
  return { counters: saved, rng, observationNormaliser, rewardNormaliser, actionNoise, envs };
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
});

/** A snapshot from a checkpoint. */
export function snapshotFrom(layout: Parameters, checkpoint: Checkpoint): PpoSnapshot {
  const { counters, ...state } = readState(checkpoint, stateSchema);
  return { ...tensorsFrom(layout, checkpoint), ...state, counters: restoredCounters(counters) };
}
