import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { loadEnvFile, makeEnv } from '../../../src/envs/index.ts';
import { findPython } from '../../../src/envs/python/find-python.ts';
import { Rng } from '../../../src/random/rng.ts';
import { python, pythonFile } from './support/files.ts';

const cases = ['Float64', 'Whole', 'Started', 'Several', 'Switches', 'Nested', 'Pair', 'OneNumber'];
const STEPS = 1300; // of each: over 10,000 in all
const folder = mkdtempSync(join(tmpdir(), 'keel-spaces-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** What came through the bridge; leaves what is needed to do the same without it. */
async function throughBridge(name: string): Promise<number[]> {
  const { id } = await loadEnvFile(`${pythonFile('every_space.py')}:${name}`);
  const env = makeEnv(id, { python });
  const rng = new Rng(5);
  const obs = new Float32Array(env.observationSpace.flatSize);
  const action = new Float32Array(env.actionSpace.flatSize);
  const seeds = [77];
  // The seeds that its episodes get: the first as given, then those of its stream.
  const stream = new Rng(77);
  const actions: number[][] = [];
  env.reset({ seed: 77 }, obs);
  const out = [...obs];
  for (let i = 0; i < STEPS; i++) {
    env.actionSpace.sample(rng, action);
    actions.push([...action]);
    const { reward, terminated, truncated } = env.step(action, obs);
    out.push(...obs, reward, Number(terminated), Number(truncated));
    if (!terminated && !truncated) continue;
    seeds.push(stream.integer(2 ** 31));
    env.reset({}, obs);
    out.push(...obs);
  }
  env.close?.();
  writeFileSync(join(folder, `${name}.json`), JSON.stringify({ seeds, actions }));
  return out;
}

it('gives what the environment itself gives, in every space, to the bit', async () => {
  const bridged: number[][] = [];
  for (const name of cases) bridged.push(await throughBridge(name));
  execFileSync(findPython(python).executable, [pythonFile('direct.py'), folder], { stdio: 'inherit' });
  cases.forEach((name, c) => {
    const bytes = readFileSync(join(folder, `${name}.out`));
    const direct = new Float64Array(bytes.buffer, bytes.byteOffset, bytes.length / 8);
    expect(direct.length, name).toBe(bridged[c].length);
    const at = bridged[c].findIndex((value, i) => !Object.is(value, direct[i]));
    expect(at, `${name}: number ${at} is ${bridged[c][at]}, ${direct[at]} without the bridge`).toBe(-1);
  });
});

it('names the parts, and calls whole numbers whole', async () => {
  const { id } = await loadEnvFile(`${pythonFile('every_space.py')}:Nested`);
  const env = makeEnv(id, { python });
  expect(env.observationSpace.describe()).toBe(
    'Dict(b__camera: Box(2x2 uint8: 0..255), a: Tuple(Box(2 float32: 0..1), Dict(x: Box(2 float32: -5..5), _1: MultiBinary(2))))',
  );
  expect(env.actionSpace.describe()).toBe(
    'Dict(move: Box(2 float32: -1..1), task: Tuple(Discrete(3), Discrete(2)))',
  );
  env.close?.();
});
