/** Trains CartPole, prints how it goes, and plays a few episodes with the result. */
import { evaluatePolicy, openTrained, train } from '../src/index.ts';

const steps = Number(process.argv[2] ?? 60_000);
const { dir } = await train({
  env: 'cartpole',
  config: { steps, guard: 0.05 },
  root: process.argv[3] ?? 'runs',
  onRow: row => {
    if (row['train/iteration'] % 10 !== 0) return;
    const [step, kl, value] = [row['train/step'], row['kl/step'], row['episode/return'] ?? Number.NaN];
    console.log(
      `${String(step).padStart(7)} steps   return ${value.toFixed(1).padStart(6)}   kl/step ${kl.toFixed(4)}`,
    );
  },
});

const { trainer, env, close } = await openTrained(dir);
const { model, params, observationNormaliser: normaliser } = trainer;
const { mean, std } = await evaluatePolicy({ env, model, params, normaliser, episodes: 20, seed: 1 });
await close();
console.log(`return ${mean.toFixed(1)} ± ${std.toFixed(1)} over 20 episodes; the run is ${dir}`);
