/** Weights to begin from: those of another run, or of a file. */
import { existsSync, readFileSync, statSync } from 'node:fs';
import { z } from 'zod';
import { fileError } from '../metrics/files.ts';
import { decodeSafetensors, type Parameters } from '../nn/index.ts';
import type { MomentsState } from '../rollout/normalise.ts';
import { listCheckpoints, loadCheckpoint, openRun } from '../runs/index.ts';
import { POLICY_FILE } from './checkpoint-files.ts';
import { TrainError } from './train-error.ts';
import type { TrainSettings } from './train-schema.ts';

/**
 * What a warm start changes below presets and what the user sets: the start is a reference to stay near at first, and the first
 * updates, whose directions are mostly noise, are small (docs/results.md, routing, has five runs with and without).
 */
export const warmStartSettings: TrainSettings = {
  reference: 'frozen',
  klRefDecaySteps: 1000,
  warmupShare: 0.1,
};

export interface Weights {
  /** The run that they come from. */
  readonly parent: { readonly id: string; readonly step: number } | undefined;
  /** What its observations were normalised by; null where they were not, undefined where a file does not say. */
  readonly observationMoments: MomentsState | null | undefined;
  /** All parameters of a network by their names; an error where one is missing or has another shape. */
  fit(layout: Parameters): Float32Array;
}

/** The largest policy that Keel trains is far smaller. */
const MAX_BYTES = 2 ** 31;

/** Reads the weights of a run's checkpoint (the best, else the last), or of a safetensors file. */
export function readWeights(from: string, which?: 'last' | 'best' | number): Weights {
  if (from.endsWith('.safetensors')) {
    if (which !== undefined)
      throw new TrainError(`${from} is a file, which has no checkpoints: leave out which one`);
    return {
      parent: undefined,
      observationMoments: undefined,
      fit: layout => fit(readFile(from), from, layout),
    };
  }
  const run = openRun(from);
  const best = listCheckpoints(from).some(({ isBest }) => isBest);
  const checkpoint = loadCheckpoint(from, which ?? (best ? 'best' : 'last'));
  const bytes = checkpoint?.files.get(POLICY_FILE);
  if (!checkpoint || !bytes) throw new TrainError(`${from} has no checkpoint to begin from: train it first`);
  return {
    parent: { id: run.id, step: checkpoint.index.step },
    observationMoments: momentsOf(checkpoint.state, from),
    fit: layout => fit(bytes, from, layout),
  };
}

const momentsSchema = z.object({
  count: z.number().int().min(0),
  mean: z.array(z.number()),
  m2: z.array(z.number().min(0)),
});

function momentsOf(state: object, from: string): MomentsState | null {
  const { observationNormaliser } = state as { observationNormaliser?: unknown };
  const parsed = momentsSchema.nullable().safeParse(observationNormaliser ?? null);
  if (!parsed.success)
    throw new TrainError(
      `the checkpoint of ${from} has a damaged observation normaliser: use another checkpoint`,
    );
  return parsed.data;
}

/** Weights mean nothing without the scale of the observations that they were learnt with. */
export function requireSameScale(
  { observationMoments: moments }: Weights,
  from: string,
  normaliseObservations: boolean,
): void {
  if (moments === undefined || (moments !== null) === normaliseObservations) return;
  throw new TrainError(
    `${from} was trained ${moments ? 'with' : 'without'} normaliseObservations: set it to ${moments !== null}`,
  );
}

function readFile(path: string): Uint8Array {
  if (!existsSync(path)) throw new TrainError(`${path} is not there: check the path`);
  try {
    const { size } = statSync(path);
    if (size > MAX_BYTES)
      throw new TrainError(`${path} has ${size} bytes, more than ${MAX_BYTES}: is it a policy?`);
    return readFileSync(path);
  } catch (error) {
    throw error instanceof TrainError ? error : fileError(error, 'read', path);
  }
}

function fit(bytes: Uint8Array, from: string, layout: Parameters): Float32Array {
  const tensors = decodeSafetensors(bytes, from);
  const flat = new Float32Array(layout.size);
  const views = layout.views(flat);
  for (const { name, shape } of layout.specs) {
    if (!tensors.names.includes(name))
      throw new TrainError(
        `${from} has no ${name}: its network is another one, use the same network and hidden layers`,
      );
    const saved = tensors.info(name).shape;
    if (saved.join() !== shape.join()) {
      throw new TrainError(
        `${name} of ${from} is (${saved.join(', ')}), this network's (${shape.join(', ')}): use the same network and hidden layers`,
      );
    }
    views[name]!.set(tensors.float32(name));
  }
  return flat;
}
