/** Shards as bytes: the same comes out that went in, and what was damaged on its way is refused. */
import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { networkFor } from '../../../../src/algos/agents/networks/network.ts';
import { ppoSettings } from '../../../../src/algos/ppo/settings.ts';
import {
  decodeShardJob,
  decodeShardResult,
  encodeShardJob,
  encodeShardResult,
  MessageError,
} from '../../../../src/algos/ppo/shards/message.ts';
import { shardTask } from '../../../../src/algos/ppo/shards/place.ts';
import {
  firstShardStates,
  openShardCollector,
  partArrays,
  type ShardJob,
  type ShardResult,
} from '../../../../src/algos/ppo/shards/shard.ts';
import { shardWorker } from '../../../../src/algos/ppo/shards/worker.ts';
import { makeVectorEnv } from '../../../../src/envs/index.ts';
import { Rng } from '../../../../src/random/rng.ts';
import { everything } from '../support/sharded.ts';
import { tiny } from '../support/trainer.ts';

let job: ShardJob;
let result: ShardResult;
const closing: (() => unknown)[] = [];
afterAll(async () => {
  for (const close of closing) await close();
});

beforeAll(async () => {
  const envs = await makeVectorEnv('Pendulum-v1', { envCount: 2 });
  const config = ppoSettings.schema.parse({ ...tiny, envs: 4, shards: 2, ...everything });
  const task = shardTask(config, envs);
  const [state] = await firstShardStates(envs, 2, new Rng(3), config);
  const { layout } = networkFor(config, envs.observationSpace, envs.actionSpace);
  job = {
    ...{ task, shard: 0, policy: '0-abc', progress: 0, gamma: 0.99, rewardScale: 1 },
    weights: layout.initialise(new Rng(1)),
    observationMoments: { count: 2, mean: [0.1, -0, 1e-300], m2: [1, 2, 3] },
    rewardMoments: { count: 0, mean: [0], m2: [0] },
    state: { ...state, noise: [-0, 0.5], returns: [-0, 1.25] },
  };
  const collector = await openShardCollector(task, envs);
  result = await collector.collect(job);
  closing.push(
    () => collector.dispose(),
    () => envs.close(),
  );
});

describe('there and back', () => {
  it('a job is the same, to the sign of a zero', () => {
    const back = decodeShardJob(encodeShardJob(job));
    expect(back).toEqual(job);
    expect(Object.is(back.observationMoments!.mean[1], -0)).toBe(true);
    expect(Object.is(back.state.noise![0], -0)).toBe(true);
  });

  it('a result is the same', () => {
    const back = decodeShardResult(encodeShardResult(result));
    for (const name of partArrays) expect(back.part[name], name).toEqual(result.part[name]);
    const { part: _, ...others } = back;
    const { part: __, ...wanted } = result;
    expect(others).toEqual(wanted);
  });

  it('wherever its bytes lie', () => {
    const bytes = encodeShardJob(job);
    const shifted = new Uint8Array(bytes.length + 3);
    shifted.set(bytes, 3);
    expect(decodeShardJob(shifted.subarray(3))).toEqual(job);
    expect(decodeShardJob(Buffer.from(shifted.buffer, 3))).toEqual(job);
  });
});

/** A message with another header, and the digest that it would have. */
function forged(bytes: Uint8Array, change: (header: string) => string): Uint8Array {
  const [at, length] = [48, new DataView(bytes.buffer).getUint32(40, true)];
  const header = new TextEncoder().encode(change(new TextDecoder().decode(bytes.subarray(at, at + length))));
  const first = Math.ceil((at + header.length) / 8) * 8;
  const rest = bytes.subarray(Math.ceil((at + length) / 8) * 8);
  const out = new Uint8Array(first + rest.length);
  out.set(bytes.subarray(0, at));
  new DataView(out.buffer).setUint32(40, header.length, true);
  out.set(header, at);
  out.set(rest, first);
  out.set(createHash('sha256').update(out.subarray(40)).digest(), 8);
  return out;
}

describe('damage', () => {
  it('of any one byte is refused', () => {
    const bytes = encodeShardResult(result);
    const rng = new Rng(11);
    for (let i = 0; i < 300; i++) {
      const broken = bytes.slice();
      // The first ones all, then anywhere.
      const at = i < 60 ? i : rng.integer(bytes.length);
      broken[at] ^= 1 << rng.integer(8);
      expect(() => decodeShardResult(broken), String(at)).toThrow(MessageError);
    }
  });

  it('at the end is refused', () => {
    const bytes = encodeShardJob(job);
    for (const length of [0, 7, 40, 47, 48, 100, bytes.length - 8, bytes.length - 1])
      expect(() => decodeShardJob(bytes.slice(0, length)), String(length)).toThrow(MessageError);
    const longer = new Uint8Array(bytes.length + 8);
    longer.set(bytes);
    expect(() => decodeShardJob(longer)).toThrow(MessageError);
  });

  it.each([
    ['no JSON', (text: string) => text.slice(1), /its header is no JSON/],
    [
      'another version',
      (t: string) => t.replace(/"version":"[^"]+"/, '"version":"0.0.1"'),
      /is of Keel 0.0.1/,
    ],
    [
      'another kind',
      (t: string) => t.replace('"kind":"job"', '"kind":"result"'),
      /it is a result, not a job/,
    ],
    ['longer arrays', (t: string) => t.replace('["weights","f32",', '["weights","f32",9'), /ends beyond it/],
    [
      'shorter arrays',
      (t: string) => t.replace('["returns","f64",2]', '["returns","f64",0]'),
      /belong to nothing/,
    ],
    ['no weights', (t: string) => t.replace('["weights"', '["other"'), /it has no weights/],
    [
      'wrong settings',
      (t: string) => t.replace('"stepsPerRollout":32', '"stepsPerRollout":-1'),
      /task.config/,
    ],
    ['further settings', (t: string) => t.replace('"config":{', '"config":{"seed":1,'), /task.config/],
    ['a wrong generator', (t: string) => t.replace(/(.*)xoshiro128\*\*/, '$1rot13'), /algorithm/],
    ['too few moments', (t: string) => t.replace('"rewardCount":0', '"rewardCount":null'), /normalised/],
    [
      'deep nesting',
      (t: string) => t.replace('"policy"', `"x":${'['.repeat(99)}${']'.repeat(99)},"policy"`),
      /no JSON/,
    ],
  ])('%s, with a digest that agrees, is refused', (_, change, why) => {
    const bytes = encodeShardJob(job);
    expect(decodeShardJob(forged(bytes, text => text))).toEqual(job);
    expect(() => decodeShardJob(forged(bytes, change))).toThrow(why);
  });

  it('a worker refuses a policy of another network, and goes on', async () => {
    const worker = shardWorker();
    closing.push(() => worker.close());
    await expect(worker.work(encodeShardJob({ ...job, weights: new Float32Array(7) }))).rejects.toThrow(
      /the policy has 7 weights, this network \d+/,
    );
    expect(decodeShardResult(await worker.work(encodeShardJob(job))).state).toEqual(result.state);
  });
});
