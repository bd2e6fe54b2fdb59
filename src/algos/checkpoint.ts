/** What the checkpoints of all algorithms have in common: counters, generators, and tensors by their names. */
import { z } from 'zod';
import { TrainError } from '../base/errors.ts';
import { type FoundTensors, tensorsIn } from '../nn/named-tensors.ts';
import type { Parameters } from '../nn/parameters.ts';
import { decodeSafetensors } from '../nn/safetensors.ts';
import { Rng, type RngState } from '../random/rng.ts';
import type { Checkpoint } from '../runs/checkpoint.ts';
import type { UpdateCounters } from './update/guarded.ts';

const count = z.number().int().min(0);

/** Counters as `state.json` has them. What a run counts is called `envSteps` there, whatever it counts. */
export const countersSchema = z.object({
  iteration: count,
  envSteps: count,
  gradientSteps: count.default(0),
  guardedFactor: z.number().default(1),
  recoveryFactor: z.number().default(1),
  recoveries: count.default(0),
  skippedInARow: count.default(0),
});

/** Counters for `state.json`. */
export function savedCounters(counters: UpdateCounters): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(counters).map(([key, value]) => [key === 'steps' ? 'envSteps' : key, value]),
  );
}

/** Counters from a state that was checked. */
export function restoredCounters<S extends z.infer<typeof countersSchema>>({
  envSteps,
  ...others
}: S): Omit<S, 'envSteps'> & { steps: number } {
  return { ...others, steps: envSteps };
}

/** A saved generator; one that is damaged is refused when the state is read, not in the middle of a run. */
export const rngSchema = z.unknown().transform(state => Rng.fromState(state).state() as RngState);

/** What observations or returns were normalised by. */
export const momentsSchema = z.object({
  count: z.number(),
  mean: z.array(z.number()),
  m2: z.array(z.number()),
});

/** The state of a checkpoint, checked; what is missing or damaged is named. */
export function readState<T>({ state, index }: Checkpoint, schema: z.ZodType<T>): T {
  const { data, error } = schema.safeParse(state);
  if (error === undefined) return data;
  const where = error.issues[0].path.join('.');
  throw new TrainError(
    `checkpoint ${index.step} has no usable ${where} in its state: use another checkpoint`,
  );
}

/** A flat vector out of a checkpoint's file, whose names may have a prefix. */
export function readTensors(
  { files, index }: Checkpoint,
  name: string,
  layout: Parameters,
  prefix = '',
): Float32Array {
  const bytes = files.get(name);
  if (bytes === undefined)
    throw new TrainError(`checkpoint ${index.step} has no ${name}: use another checkpoint`);
  return wholeTensors(tensorsIn(layout, decodeSafetensors(bytes, name), prefix), {
    missing: key =>
      `checkpoint ${index.step} has no tensor ${prefix}${key}, its network is another one: use the config it was trained with`,
    otherShape: (key, saved, wanted) =>
      `${prefix}${key} of checkpoint ${index.step} is ${saved}, this network's ${wanted}: use the config it was trained with`,
  });
}

/** What was found, if it is all of a network; else an error in the caller's words. */
export function wholeTensors(
  { flat, missing, otherShapes }: FoundTensors,
  words: {
    readonly missing: (name: string) => string;
    readonly otherShape: (name: string, saved: string, wanted: string) => string;
  },
): Float32Array {
  if (missing.length > 0) throw new TrainError(words.missing(missing[0]));
  if (otherShapes.length > 0) {
    const [{ name, saved, wanted }] = otherShapes;
    throw new TrainError(words.otherShape(name, saved, wanted));
  }
  return flat;
}
