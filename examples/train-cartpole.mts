/** Trains CartPole, prints how it goes, and plays a few episodes with the result. */
import { openPolicy, train } from 'keel';

const [steps = '60000', root = 'runs'] = process.argv.slice(2);
const { dir } = await train({
  env: 'cartpole',
  config: { steps: Number(steps), guard: 0.05 },
  root,
  onRow(row) {
    const score = row['episode/return']; // of the episodes that ended in this iteration: there may be none
    if (row['train/iteration'] % 10 !== 0 || score === undefined) return;
    console.log(
      `${row['train/step']} steps, return ${score.toFixed(1)}, kl/step ${row['kl/step'].toFixed(4)}`,
    );
  },
});

const policy = await openPolicy(dir);
const played = await policy.evaluate({ episodes: 20, seed: 1 });
await policy.close();
if (played.kind === 'episodes')
  console.log(
    `return ${played.mean.toFixed(1)} ± ${played.std.toFixed(1)} over 20 episodes; the run is ${dir}`,
  );
