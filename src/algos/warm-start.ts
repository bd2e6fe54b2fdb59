/** Weights to begin from: those of another run, or of a file. */
import { existsSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import { fileError } from '../metrics/files.ts';
import { decodeSafetensors, type Parameters } from '../nn/index.ts';
import type { MomentsState } from '../rollout/normalise.ts';
import { stateName } from '../runs/checkpoint.ts';
import { listCheckpoints, loadCheckpoint, openRun } from '../runs/index.ts';
import { parseJson, readBounded } from '../runs/json.ts';
import { POLICY_FILE } from './checkpoint-files.ts';
import { resolveConfig } from './train-config.ts';
import { TrainError } from './train-error.ts';
import type { TrainSettings } from './train-schema.ts';

/** What a warm start sets whatever the preset is, unless the user sets it: the start is a reference to stay near at first. */
export const warmStartSettings: TrainSettings = { reference: 'frozen' };

/** The reference is let go over this share of the run. */
const REFERENCE_SHARE = 2 / 3;
/** The learning rate rises over a share of the run, and over so many updates at least, but no more than half of the run. */
const WARMUP_SHARE = 0.1;
const WARMUP_UPDATES = 5;

/**
 * A preset for a warm start: near the start at first, and with small first steps, whose directions are mostly noise
 * (docs/results.md, routing, has runs with and without). What the preset and the user set stays.
 */
export function warmStartPreset(preset: TrainSettings, given: TrainSettings): TrainSettings {
  const { steps, envs, stepsPerRollout, minibatchSize, epochs } = resolveConfig(
    { ...warmStartSettings, ...preset },
    given,
  );
  const samples = envs * stepsPerRollout;
  const updates = Math.ceil(steps / samples);
  const minibatchSteps = updates * epochs * (samples / minibatchSize);
  return {
    ...warmStartSettings,
    klRefDecaySteps: Math.round(REFERENCE_SHARE * minibatchSteps),
    warmupShare: Math.min(0.5, Math.max(WARMUP_SHARE, WARMUP_UPDATES / updates)),
    ...preset,
  };
}

export interface Weights {
  /** The run that they come from. */
  readonly parent: { readonly id: string; readonly step: number } | undefined;
  /** What its observations were normalised by; null where they were not, undefined where a file does not say. */
  readonly observationMoments: MomentsState | null | undefined;
  /** All parameters of a network by their names; an error where one is missing or has another shape. */
  fit(layout: Parameters): Float32Array;
}

/** Squares of observations, and sums of them, must be numbers. */
const MAX_OBSERVATION = 1e100;

/** The largest policy that Keel trains is far smaller. */
const MAX_BYTES = 2 ** 31;
const MAX_STATE_BYTES = 2 ** 28;

/** Reads the weights of a run's checkpoint (the best, else the last; of a cluster the last), or of a safetensors file. */
export function readWeights(from: string, which?: 'last' | 'best' | number): Weights {
  if (from.endsWith('.safetensors')) {
    if (which !== undefined)
      throw new TrainError(`${from} is a file, which has no checkpoints: leave out which one`);
    return {
      parent: undefined,
      observationMoments: momentsBeside(from),
      fit: layout => fit(readFile(from), from, layout),
    };
  }
  const run = openRun(from);
  // Episodes of a cluster have loads of their own, so its best return is the lightest load's: the last is the best trained.
  const best =
    !run.manifest.environment.id.startsWith('Cluster-') && listCheckpoints(from).some(({ isBest }) => isBest);
  const checkpoint = loadCheckpoint(from, which ?? (best ? 'best' : 'last'));
  const bytes = checkpoint?.files.get(POLICY_FILE);
  if (!checkpoint || !bytes) throw new TrainError(`${from} has no checkpoint to begin from: train it first`);
  return {
    parent: { id: run.id, step: checkpoint.index.step },
    observationMoments: momentsOf(checkpoint.state, from),
    fit: layout => fit(bytes, `${from} (of ${run.manifest.environment.id})`, layout),
  };
}

const momentsSchema = z
  .object({
    count: z.number().int().min(0),
    mean: z.array(z.number().min(-MAX_OBSERVATION).max(MAX_OBSERVATION)),
    m2: z.array(z.number().min(0)),
  })
  .refine(({ mean, m2 }) => mean.length === m2.length);
const stateSchema = z.object({ observationNormaliser: momentsSchema.nullish() });

/** Those of the checkpoint that a file lies in. */
function momentsBeside(file: string): MomentsState | null | undefined {
  const path = join(dirname(file), stateName);
  if (!existsSync(path)) return undefined;
  return momentsOf(parseJson(readBounded(path, MAX_STATE_BYTES), path), file);
}

function momentsOf(state: unknown, from: string): MomentsState | null {
  const parsed = stateSchema.safeParse(state);
  if (!parsed.success)
    throw new TrainError(
      `the checkpoint of ${from} has a damaged observation normaliser: use another checkpoint`,
    );
  return parsed.data.observationNormaliser ?? null;
}

/** Weights mean nothing without the scale of the observations that they were learnt with. */
export function requireSameScale(
  { observationMoments: moments }: Weights,
  from: string,
  normaliseObservations: boolean,
  observationSize: number,
): void {
  if (moments === undefined) return;
  if ((moments !== null) !== normaliseObservations)
    throw new TrainError(
      `${from} was trained ${moments ? 'with' : 'without'} normaliseObservations: set it to ${moments !== null}`,
    );
  if (moments && moments.mean.length !== observationSize)
    throw new TrainError(
      `the observation normaliser of ${from} is for ${moments.mean.length} values, observations here have ${observationSize}: use another checkpoint`,
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
        `${from} has no ${name}: its network is another one, use the same environment, network and hidden layers`,
      );
    const saved = tensors.info(name).shape;
    if (saved.join() !== shape.join()) {
      throw new TrainError(
        `${name} of ${from} is (${saved.join(', ')}), this network's (${shape.join(', ')}): use the same environment, network and hidden layers`,
      );
    }
    views[name]!.set(tensors.float32(name));
  }
  return flat;
}
