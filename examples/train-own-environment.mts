/** Trains an environment of one's own from code: it is named by its file, as on the command line. */
import { fileURLToPath } from 'node:url';
import { train } from 'keel';

const { dir, lastRow } = await train({
  env: fileURLToPath(new URL('own-environment.ts', import.meta.url)),
  config: {
    steps: Number(process.argv[2] ?? 60_000),
    envs: 8,
    stepsPerRollout: 128,
    minibatchSize: 128,
    learningRate: 1e-3,
  },
  root: process.argv[3] ?? 'runs',
});
console.log(`return ${lastRow?.['episode/return']?.toFixed(1)} of 100; the run is ${dir}`);
