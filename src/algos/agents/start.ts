/** Weights that a policy begins from: those of another run, or of a file. */
import { existsSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { z } from 'zod';
import { TrainError } from '../../base/errors.ts';
import { fileError, readBounded } from '../../base/files.ts';
import { parseJson } from '../../base/json.ts';
import { tensorsIn } from '../../nn/named-tensors.ts';
import type { Parameters } from '../../nn/parameters.ts';
import { decodeSafetensors } from '../../nn/safetensors.ts';
import { type MomentsState, ObservationNormaliser } from '../../rollout/normalise.ts';
import { type Checkpoint, stateName } from '../../runs/checkpoint.ts';
import { type Run, resolveRun } from '../../runs/store.ts';
import type { Settings, Start, StartOptions } from '../algorithm.ts';
import { wholeTensors } from '../checkpoint.ts';
import { readCheckpoint } from '../choose-checkpoint.ts';

/** The weights of a policy, whatever its network, with the scale of the observations that they were learnt with. */
export interface PolicyStart extends Start {
  /** How errors name it. */
  readonly name: string;
  /** What its observations were normalised by; null where they were not, undefined where a file does not say. */
  readonly observationMoments: MomentsState | null | undefined;
  /** The settings that say what its network is, where they are known: weights mean something in that one alone. */
  readonly network?: Settings;
  /** All weights of a network by their names; an error where one is missing or has another shape. */
  fit(layout: Parameters): Float32Array;
}

/** The file of a policy's weights in a checkpoint. */
const POLICY_FILE = 'policy.safetensors';

/** What a network computes from its weights depends on these. */
const networkSettings: readonly string[] = [
  'hidden',
  'criticHidden',
  'activation',
  'network',
  'normaliseObservations',
  'logStdMin',
  'logStdMax',
];

/** Squares of observations, and sums of them, must be numbers. */
const MAX_OBSERVATION = 1e100;

/** The largest policy that Keel trains is far smaller. */
const MAX_BYTES = 2 ** 31;
const MAX_STATE_BYTES = 2 ** 28;

/** Reads the weights of a run's checkpoint, or of a safetensors file. */
export function policyStart(from: string, { checkpoint: which, root }: StartOptions): PolicyStart {
  if (from.endsWith('.safetensors')) {
    if (which !== undefined)
      throw new TrainError(`${from} is a file, which has no checkpoints: leave out which one`);
    return {
      name: from,
      parent: undefined,
      source: { path: resolve(from), step: null },
      observationMoments: momentsBeside(from),
      fit: layout => fit(readFile(from), from, layout),
    };
  }
  const run = resolveRun(from, [root]);
  return startOf(readCheckpoint(run, which), run);
}

/** The weights of a checkpoint. */
export function startOf(
  { files, state, index: { step } }: Checkpoint,
  { id, dir, manifest }: Pick<Run, 'id' | 'dir' | 'manifest'>,
): PolicyStart {
  const bytes = files.get(POLICY_FILE);
  if (!bytes) throw new TrainError(`${id} has no policy to begin from: use a run of a policy`);
  return {
    name: id,
    parent: { id, step },
    source: { path: dir, step },
    observationMoments: momentsOf(state, id),
    network: Object.fromEntries(
      Object.entries(manifest.config).filter(([key]) => networkSettings.includes(key)),
    ),
    fit: layout => fit(bytes, `${id} (of ${manifest.environment.id})`, layout),
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
  const { data } = stateSchema.safeParse(state);
  if (data === undefined)
    throw new TrainError(
      `the checkpoint of ${from} has a damaged observation normaliser: use another checkpoint`,
    );
  return data.observationNormaliser ?? null;
}

/**
 * What normalises a policy's observations, where something did: weights mean nothing without the scale of the observations
 * that they were learnt with, so another one is refused.
 */
export function normaliserOf(
  { observationMoments: moments, name }: PolicyStart,
  normaliseObservations: boolean,
  observationSize: number,
): ObservationNormaliser | undefined {
  if (moments === undefined) return undefined;
  if ((moments !== null) !== normaliseObservations)
    throw new TrainError(
      `${name} was trained ${moments ? 'with' : 'without'} normaliseObservations: set it to ${moments !== null}`,
    );
  if (moments === null) return undefined;
  if (moments.mean.length !== observationSize)
    throw new TrainError(
      `the observation normaliser of ${name} is for ${moments.mean.length} values, observations here have ${observationSize}: use another checkpoint`,
    );
  const normaliser = new ObservationNormaliser(observationSize);
  normaliser.moments.restore(moments);
  return normaliser;
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
  const same = 'use the same environment, network and hidden layers';
  return wholeTensors(tensorsIn(layout, decodeSafetensors(bytes, from)), {
    missing: name => `${from} has no ${name}: its network is another one, ${same}`,
    otherShape: (name, saved, wanted) => `${name} of ${from} is ${saved}, this network's ${wanted}: ${same}`,
  });
}
