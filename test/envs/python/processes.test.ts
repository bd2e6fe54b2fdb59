/** Environments in several processes that one thread leads. */
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { type AnyMakeOptions, makeVectorEnv, type VectorEnv } from '../../../src/envs/index.ts';
import { Rng } from '../../../src/random/rng.ts';
import { python, pythonFile } from './support/files.ts';
import { servers } from './support/servers.ts';

const walker = pythonFile('walker.py');
const opened: VectorEnv[] = [];
afterEach(async () => {
  for (const envs of opened.splice(0)) await envs.close().catch(() => {});
});

async function open(name: string, workers: number, options: AnyMakeOptions = {}, envCount = 5) {
  const envs = await makeVectorEnv(`${walker}:${name}`, {
    envCount,
    workers,
    options: { python, ...options },
  });
  opened.push(envs);
  return envs;
}

/** All that a vector gives in so many steps, to the bit. */
async function play(envs: VectorEnv, steps: number): Promise<string[]> {
  await envs.reset({ seed: 9 });
  const rng = new Rng(1);
  const lines: string[] = [];
  const actions = new Float32Array(envs.envCount * envs.actionSize);
  for (let i = 0; i < steps; i++) {
    for (let n = 0; n < envs.envCount; n++) envs.actionSpace.sample(rng, actions, n);
    await envs.step(actions);
    const { observations, rewards, terminated, truncated } = envs;
    const ended = envs.endedCount > 0 ? [...envs.finalObservations, ...envs.episodeReturns] : [];
    lines.push([...observations, ...rewards, ...terminated, ...truncated, ...ended].join());
  }
  return lines;
}

it('the number of processes makes no difference to the bits', async () => {
  const [one, ...others] = await Promise.all(
    [0, 1, 2, 3].map(async n => play(await open('make_small', n), 60)),
  );
  for (const other of others) expect(other).toEqual(one);
});

it('a saved state goes on to the bit in another number of processes', async () => {
  const from = await open('Walker', 2);
  await play(from, 63);
  const saved = JSON.parse(JSON.stringify(await from.state()));
  const [here, there] = await Promise.all([open('Walker', 0), open('Walker', 3)]);
  for (const envs of [here, there]) {
    await envs.restore(saved);
    for (let i = 0; i < 60; i++) await envs.step(new Float32Array(5).fill(i % 2));
  }
  expect([...there.observations]).toEqual([...here.observations]);
  expect([...there.episodeReturns]).toEqual([...here.episodeReturns]);
});

it('a step that takes long leaves the thread free, and changes nothing', async () => {
  const calm = await play(await open('Walker', 2), 12);
  const envs = await open('Walker', 2, { args: '{"fault": "slow"}' });
  let turns = 0;
  const timer = setInterval(() => turns++, 20);
  const found = await play(envs, 12);
  clearInterval(timer);
  expect(found).toEqual(calm);
  // Five of them sleep .8 s, three in a row in one process; without turns there were a few.
  expect(turns).toBeGreaterThan(30);
});

it('so does one whose answers are longer than what a pipe takes at once', async () => {
  const calm = await play(await open('Wide', 2, {}, 2), 4);
  const envs = await open('Wide', 2, { args: '{"seconds": 0.4}' }, 2);
  let turns = 0;
  const timer = setInterval(() => turns++, 10);
  expect(await play(envs, 4)).toEqual(calm);
  clearInterval(timer);
  expect(turns).toBeGreaterThan(6);
});

it('the first episodes begin in all processes at once, and leave the thread free', async () => {
  const place = mkdtempSync(join(tmpdir(), 'keel-late-'));
  const envs = await open('Late', 4, { args: JSON.stringify({ place }) }, 4);
  const calm = await open('Walker', 0, {}, 4);
  await calm.reset({ seed: 9 });
  // This thread lets them begin as soon as all four wait: one after the other, or with this thread waiting, none ever would.
  const timer = setInterval(() => {
    if (readdirSync(place).length === 4) writeFileSync(join(place, 'go'), '');
  }, 5);
  try {
    await envs.reset({ seed: 9 });
  } finally {
    clearInterval(timer);
  }
  expect([...envs.observations]).toEqual([...calm.observations]);
  await Promise.all([envs.reset(), calm.reset()]);
  expect([...envs.observations]).toEqual([...calm.observations]);
  rmSync(place, { recursive: true });
});

it.runIf(process.platform === 'linux')(
  'closed during a call, it ends the call and all processes',
  async () => {
    const before = servers();
    const envs = await open('Walker', 2, { args: '{"fault": "hang"}' });
    await envs.reset({ seed: 1 });
    for (let i = 0; i < 4; i++) await envs.step(new Float32Array(5));
    expect(servers().length).toBe(before.length + 2);
    const stepping = envs.step(new Float32Array(5));
    const failing = expect(stepping).rejects.toThrow('closed during the call');
    await new Promise(resolve => setTimeout(resolve, 500));
    await envs.close();
    await failing;
    // The kernel ends what was killed a moment later.
    await expect.poll(servers, { timeout: 5000 }).toEqual(before);
  },
);

it.runIf(process.platform === 'linux')('nothing is left where one cannot be made', async () => {
  const before = servers();
  await expect(open('Walker', 3, { args: '{"speed": 1}' })).rejects.toThrow('unexpected keyword');
  await expect.poll(servers, { timeout: 5000 }).toEqual(before);
  await expect(open('Various', 2)).rejects.toThrow('environment 1 has the observationSpace Box(2');
  await expect.poll(servers, { timeout: 5000 }).toEqual(before);
});

it.runIf(process.platform === 'linux')('a count that cannot be starts no process', async () => {
  const before = servers();
  for (const count of [0, 70_000])
    await expect(open('Walker', 2, {}, count)).rejects.toThrow(`envCount ${count} is not a whole number`);
  await expect(open('Walker', -1)).rejects.toThrow('workers -1 is not a whole number in 1..256');
  expect(servers()).toEqual(before);
});
