/** The same from built JavaScript, as the package has it: worker threads, and a user's TypeScript file. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { makeVectorEnv } from '../../src/envs/index.ts';
import { compiledUrl } from '../support/compiled.ts';
import { patienceMs } from '../support/until.ts';

const folder = mkdtempSync(join(tmpdir(), 'keel-built-'));
const built = compiledUrl('envs/index');
afterAll(() => rmSync(folder, { recursive: true }));

/** Runs a program in an own process, over the built package, and returns what it prints as JSON. */
function run(program: string): unknown {
  const file = join(folder, 'program.mjs');
  writeFileSync(file, `import * as envs from ${JSON.stringify(built)};\n${program}`);
  return JSON.parse(execFileSync(process.execPath, [file], { encoding: 'utf8', timeout: patienceMs }));
}

describe('built', () => {
  it("workers run, a user's TypeScript file too, with the results of the sources; nothing is left running", async () => {
    writeFileSync(
      join(folder, 'mine.ts'),
      `import { box, discrete, defineEnv, simulation } from '${built}';
       interface State { x: number }
       export default defineEnv({ id: 'Mine-v0', description: 'x', maxEpisodeSteps: 5, make: () => simulation({
         observationSpace: box({ shape: [1] }), actionSpace: discrete(2), start: (rng): State => ({ x: rng.uniform() }),
         observe: (s: State) => [s.x], step(s: State, action, result) { s.x += action[0]!; result.reward = s.x; } }) });`,
    );
    const printed = run(`
      const sums = {};
      for (const reference of ['pendulum', ${JSON.stringify(join(folder, 'mine.ts'))}]) {
        for (const workers of [0, 2]) {
          const vector = await envs.makeVectorEnv(reference, { envCount: 3, workers });
          await vector.reset({ seed: 5 });
          const rewards = [];
          for (let i = 0; i < 30; i++) {
            await vector.step(new Float32Array(3).fill(1));
            rewards.push(...vector.rewards);
          }
          sums[vector.spec.id + workers] = rewards;
          if (reference === 'pendulum') await vector.close(); // the other is left open: idle threads must not hold the process
        }
      }
      console.log(JSON.stringify(sums));
    `) as Record<string, number[]>;
    expect(Object.keys(printed)).toEqual(['Pendulum-v10', 'Pendulum-v12', 'Mine-v00', 'Mine-v02']);
    expect(printed['Pendulum-v12']).toEqual(printed['Pendulum-v10']);
    expect(printed['Mine-v02']).toEqual(printed['Mine-v00']);
    expect(printed['Mine-v00']).toHaveLength(90);

    const envs = await makeVectorEnv('pendulum', { envCount: 3 });
    await envs.reset({ seed: 5 });
    const rewards: number[] = [];
    for (let i = 0; i < 30; i++) {
      await envs.step(new Float32Array(3).fill(1));
      rewards.push(...envs.rewards);
    }
    expect(printed['Pendulum-v10']).toEqual(rewards);
  });
});
