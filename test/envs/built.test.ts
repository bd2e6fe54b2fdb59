/** The same from built JavaScript, as the package has it: worker threads, and a user's TypeScript file. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeVectorEnv } from '../../src/envs/index.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'keel-built-'));
const dist = join(folder, 'dist');

beforeAll(() => {
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  writeFileSync(
    join(folder, 'tsconfig.json'),
    JSON.stringify({
      extends: join(root, 'tsconfig.build.json'),
      // Types are checked elsewhere; this is the package's build without them.
      compilerOptions: {
        rootDir: join(root, 'src'),
        outDir: dist,
        declaration: false,
        sourceMap: false,
        noCheck: true,
      },
      include: [join(root, 'src/envs'), join(root, 'src/random')],
    }),
  );
  execFileSync(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-p', folder], {
    stdio: 'pipe',
  });
});
afterAll(() => rmSync(folder, { recursive: true }));

/** Runs a program in an own process, over the built package, and returns what it prints as JSON. */
function run(program: string): unknown {
  const file = join(folder, 'program.mjs');
  writeFileSync(
    file,
    `import * as envs from ${JSON.stringify(pathToFileURL(join(dist, 'envs/index.js')).href)};\n${program}`,
  );
  return JSON.parse(execFileSync(process.execPath, [file], { encoding: 'utf8', timeout: 30_000 }));
}

describe('built', () => {
  it("workers run, a user's TypeScript file too, with the results of the sources; nothing is left running", async () => {
    writeFileSync(
      join(folder, 'mine.ts'),
      `import { box, discrete, defineEnv, simulation } from './dist/envs/index.js';
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
