/**
 * Shard jobs and their results as bytes, for processes and queues.
 *
 * ```
 * 8   "keelshd1"
 * 32  SHA-256 of all that follows
 * 4   length of the header, then 4 zeros
 * …   the header: JSON, which also lists the arrays
 * …   the arrays, each from a multiple of 8 on
 * ```
 *
 * What comes in is from outside: sizes are checked before anything is read, the digest before anything is believed.
 * Numbers that JSON would change (-0, NaN) stand in arrays; the states of environments have their own way to write them.
 */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { KeelError } from '../../../base/errors.ts';
import { jsonOf } from '../../../base/json.ts';
import { VERSION } from '../../../base/version.ts';
import type { VectorState } from '../../../envs/vector/vector.ts';
import { Rng } from '../../../random/rng.ts';
import type { MomentsState } from '../../../rollout/normalise.ts';
import { ppoSettings } from '../settings.ts';
import {
  partArrays,
  type RolloutPart,
  type ShardJob,
  type ShardResult,
  type ShardState,
  type ShardTask,
  shardSettings,
} from './shard.ts';

/** A message of shards that cannot be read: damaged, of another kind, too large, or of another version. */
export class MessageError extends KeelError {
  override name = 'MessageError';
}

/** No larger than what Redis holds in one string. */
const MOST_BYTES = 512 * 2 ** 20;
const MAGIC = new TextEncoder().encode('keelshd1');
const DIGEST = 32;
const HEADER_AT = MAGIC.length + DIGEST + 8;

const types = { f32: Float32Array, f64: Float64Array, u8: Uint8Array } as const;
type Numbers = Float32Array | Float64Array | Uint8Array;
type Arrays = Readonly<Record<string, Numbers>>;

const typeOf = (array: Numbers): keyof typeof types =>
  array instanceof Float32Array ? 'f32' : array instanceof Float64Array ? 'f64' : 'u8';
const aligned = (bytes: number): number => Math.ceil(bytes / 8) * 8;
const damaged = (why: string): never => {
  throw new MessageError(`a message of a shard is damaged: ${why}; it must be sent again`);
};

// ---- any message ---------------------------------------------------------------------------------------------------

type Kind = 'job' | 'result';

const envelopeSchema = z.object({
  kind: z.string(),
  version: z.string(),
  arrays: z.array(z.tuple([z.string(), z.enum(['f32', 'f64', 'u8']), z.number().int().min(0)])).max(64),
  fields: z.unknown(),
});

function encode(kind: Kind, fields: object, arrays: Arrays): Uint8Array {
  const list = Object.entries(arrays);
  const listed = list.map(([name, array]) => [name, typeOf(array), array.length]);
  const header = new TextEncoder().encode(JSON.stringify({ kind, version: VERSION, arrays: listed, fields }));
  const first = aligned(HEADER_AT + header.length);
  const size = list.reduce((sum, [, { byteLength }]) => sum + aligned(byteLength), first);
  if (size > MOST_BYTES)
    throw new MessageError(
      `a ${kind} of a shard has ${size} bytes, ${MOST_BYTES} can be sent: use more shards or a smaller stepsPerRollout`,
    );
  const bytes = new Uint8Array(size);
  bytes.set(MAGIC);
  new DataView(bytes.buffer).setUint32(MAGIC.length + DIGEST, header.length, true);
  bytes.set(header, HEADER_AT);
  let at = first;
  for (const [, array] of list) {
    bytes.set(new Uint8Array(array.buffer, array.byteOffset, array.byteLength), at);
    at += aligned(array.byteLength);
  }
  bytes.set(digestOf(bytes), MAGIC.length);
  return bytes;
}

const digestOf = (bytes: Uint8Array): Uint8Array =>
  createHash('sha256')
    .update(bytes.subarray(MAGIC.length + DIGEST))
    .digest();

function decode(kind: Kind, given: Uint8Array): { fields: unknown; arrays: Arrays } {
  if (given.length > MOST_BYTES) damaged(`it has ${given.length} bytes, ${MOST_BYTES} is the most`);
  if (given.length < HEADER_AT) damaged(`it ends after ${given.length} bytes`);
  if (!MAGIC.every((byte, i) => given[i] === byte)) damaged('it does not begin as one');
  if (!digestOf(given).every((byte, i) => given[MAGIC.length + i] === byte)) damaged('its digest is another');
  // Arrays are looked at where they lie, which must be at a multiple of their numbers' size. (A Buffer's slice is no copy.)
  const bytes = given.byteOffset % 8 === 0 ? given : new Uint8Array(given);
  const headerLength = new DataView(bytes.buffer, bytes.byteOffset).getUint32(MAGIC.length + DIGEST, true);
  if (HEADER_AT + headerLength > bytes.length) damaged('its header is longer than it');
  const { data } = envelopeSchema.safeParse(parsed(bytes.subarray(HEADER_AT, HEADER_AT + headerLength)));
  if (data === undefined) return damaged('its header is none');
  if (data.version !== VERSION)
    throw new MessageError(
      `a message of a shard is of Keel ${data.version.slice(0, 40)}, this is ${VERSION}: use the same version for all workers of a run`,
    );
  if (data.kind !== kind) damaged(`it is a ${data.kind.slice(0, 20)}, not a ${kind}`);
  let at = aligned(HEADER_AT + headerLength);
  const arrays: Record<string, Numbers> = {};
  for (const [name, type, length] of data.arrays) {
    const Type = types[type];
    const end = at + length * Type.BYTES_PER_ELEMENT;
    if (end > bytes.length) damaged(`${name} ends beyond it`);
    arrays[name] = new Type(bytes.buffer as ArrayBuffer, bytes.byteOffset + at, length);
    at = aligned(end);
  }
  if (at !== bytes.length) damaged(`${bytes.length - at} bytes belong to nothing`);
  return { fields: data.fields, arrays };
}

function parsed(header: Uint8Array): unknown {
  try {
    return jsonOf(new TextDecoder('utf-8', { fatal: true }).decode(header));
  } catch {
    return damaged('its header is no JSON');
  }
}

/** The array of that name and kind, which may be required to have a length. */
function arrayOf<T extends keyof typeof types>(
  arrays: Arrays,
  name: string,
  type: T,
  length?: number,
): InstanceType<(typeof types)[T]> {
  const array = Object.hasOwn(arrays, name) ? arrays[name] : undefined;
  if (array === undefined || typeOf(array) !== type) return damaged(`it has no ${name}`);
  if (length !== undefined && array.length !== length)
    damaged(`${name} has ${array.length} numbers, not ${length}`);
  return array as InstanceType<(typeof types)[T]>;
}

function checked<T>(schema: z.ZodType<T>, fields: unknown): T {
  const { data, error } = schema.safeParse(fields);
  if (error === undefined) return data;
  return damaged(`${error.issues[0].path.join('.') || 'its header'} is not what it should be`);
}

// ---- what both have ------------------------------------------------------------------------------------------------

const stateSchema = z.object({
  // The environments check their own.
  envs: z.custom<VectorState>(value => typeof value === 'object' && value !== null),
  rng: z.unknown(),
});
const momentsCount = z.number().int().min(0).nullable();
const named = { shard: z.number().int().min(0).max(65_535), policy: z.string().min(1).max(200) };
const counts = { observationCount: momentsCount, rewardCount: momentsCount };

function momentsArrays(name: string, moments: MomentsState | null): Arrays {
  if (moments === null) return {};
  return { [`${name}.mean`]: Float64Array.from(moments.mean), [`${name}.m2`]: Float64Array.from(moments.m2) };
}

function momentsFrom(arrays: Arrays, name: string, count: number | null): MomentsState | null {
  if (count === null) return null;
  const mean = arrayOf(arrays, `${name}.mean`, 'f64');
  const m2 = arrayOf(arrays, `${name}.m2`, 'f64', mean.length);
  return { count, mean: [...mean], m2: [...m2] };
}

const stateArrays = ({ noise, returns }: ShardState): Arrays => ({
  ...(noise && { noise: Float64Array.from(noise) }),
  ...(returns && { returns: Float64Array.from(returns) }),
});

function stateFrom({ envs, rng }: z.infer<typeof stateSchema>, arrays: Arrays): ShardState {
  const list = (name: string): number[] | null =>
    Object.hasOwn(arrays, name) ? [...arrayOf(arrays, name, 'f64')] : null;
  try {
    return { envs, rng: Rng.fromState(rng).state(), noise: list('noise'), returns: list('returns') };
  } catch (error) {
    return damaged((error as Error).message);
  }
}

// ---- jobs ----------------------------------------------------------------------------------------------------------

/** As the settings themselves are checked. */
const configSchema = z.custom<ShardTask['config']>(value => {
  if (typeof value !== 'object' || value === null) return false;
  const given = value as Record<string, unknown>;
  return (
    Object.keys(given).length === shardSettings.length &&
    shardSettings.every(
      key => Object.hasOwn(given, key) && ppoSettings.keys[key].schema.safeParse(given[key]).success,
    )
  );
});

const jobSchema = z.object({
  ...named,
  ...counts,
  task: z.object({
    env: z.string().min(1).max(4096).nullable(),
    options: z.record(z.string(), z.union([z.number(), z.boolean(), z.string(), z.null()])),
    envs: z.number().int().min(1).max(65_536),
    config: configSchema,
  }),
  progress: z.number().min(0).max(1),
  gamma: z.number().min(0).max(1),
  rewardScale: z.number().positive(),
  state: stateSchema,
});

export function encodeShardJob(job: ShardJob): Uint8Array {
  const { weights, observationMoments, rewardMoments, state, ...fields } = job;
  return encode(
    'job',
    {
      ...fields,
      observationCount: observationMoments?.count ?? null,
      rewardCount: rewardMoments?.count ?? null,
      state: { envs: state.envs, rng: state.rng },
    },
    {
      weights,
      ...momentsArrays('observation', observationMoments),
      ...momentsArrays('reward', rewardMoments),
      ...stateArrays(state),
    },
  );
}

export function decodeShardJob(bytes: Uint8Array): ShardJob {
  const { fields, arrays } = decode('job', bytes);
  const { observationCount, rewardCount, state, ...job } = checked(jobSchema, fields);
  const { normaliseObservations, normaliseRewards } = job.task.config;
  const decoded = {
    ...job,
    weights: arrayOf(arrays, 'weights', 'f32'),
    observationMoments: momentsFrom(arrays, 'observation', observationCount),
    rewardMoments: momentsFrom(arrays, 'reward', rewardCount),
    state: stateFrom(state, arrays),
  };
  const parts = [
    [normaliseObservations, decoded.observationMoments],
    [normaliseRewards, decoded.rewardMoments],
    [normaliseRewards, decoded.state.returns],
  ] as const;
  if (parts.some(([wanted, part]) => wanted !== (part !== null)))
    damaged('what it is normalised by is not what its config asks for');
  return decoded;
}

// ---- results -------------------------------------------------------------------------------------------------------

const resultSchema = z.object({ ...named, ...counts, blowUps: z.number().int().min(0), state: stateSchema });

const bytesOnly: readonly string[] = ['terminated', 'truncated'];

export function encodeShardResult(result: ShardResult): Uint8Array {
  const { shard, policy, part, stats, observationMoments, rewardMoments, state } = result;
  const { episodeReturns, episodeLengths, termMeans, measureMeans } = stats;
  return encode(
    'result',
    {
      ...{ shard, policy },
      observationCount: observationMoments?.count ?? null,
      rewardCount: rewardMoments?.count ?? null,
      blowUps: stats.blowUps,
      state: { envs: state.envs, rng: state.rng },
    },
    {
      ...Object.fromEntries(partArrays.map(name => [name, part[name]])),
      episodeReturns: Float64Array.from(episodeReturns),
      episodeLengths: Float64Array.from(episodeLengths),
      ...{ termMeans, measureMeans },
      numbers: Float64Array.of(stats.rewardMean, stats.rewardStd, stats.envSeconds),
      ...momentsArrays('observation', observationMoments),
      ...momentsArrays('reward', rewardMoments),
      ...stateArrays(state),
    },
  );
}

/** A result as it came in; that its arrays have the sizes of the rollout is for who puts them there to check. */
export function decodeShardResult(bytes: Uint8Array): ShardResult {
  const { fields, arrays } = decode('result', bytes);
  const { shard, policy, observationCount, rewardCount, blowUps, state } = checked(resultSchema, fields);
  const part = Object.fromEntries(
    partArrays.map(name => [name, arrayOf(arrays, name, bytesOnly.includes(name) ? 'u8' : 'f32')]),
  ) as unknown as RolloutPart;
  const episodeReturns = [...arrayOf(arrays, 'episodeReturns', 'f64')];
  const [rewardMean, rewardStd, envSeconds] = arrayOf(arrays, 'numbers', 'f64', 3);
  return {
    shard,
    policy,
    part,
    stats: {
      episodeReturns,
      episodeLengths: [...arrayOf(arrays, 'episodeLengths', 'f64', episodeReturns.length)],
      ...{ rewardMean, rewardStd, envSeconds, blowUps },
      termMeans: arrayOf(arrays, 'termMeans', 'f64'),
      measureMeans: arrayOf(arrays, 'measureMeans', 'f64'),
    },
    observationMoments: momentsFrom(arrays, 'observation', observationCount),
    rewardMoments: momentsFrom(arrays, 'reward', rewardCount),
    state: stateFrom(state, arrays),
  };
}
