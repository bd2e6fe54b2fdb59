import { it, expect } from 'vitest';
import { inProcessVectorEnv, cartPole } from '/work/main/src/envs/index.ts';
import { createPpoTrainer } from '/work/main/src/algos/ppo-trainer.ts';
import { ppoSchema } from '/work/main/src/algos/ppo-config.ts';
it('x', async () => {
  const t0 = performance.now();
  const tr = await createPpoTrainer({ envs: inProcessVectorEnv(() => cartPole(), 4), seed: 1, totalSteps: 10000, config: ppoSchema.parse({ stepsPerRollout: 64, minibatchSize: 64, epochs: 4, hidden: [16] }) });
  const t1 = performance.now();
  await tr.start();
  const r = await tr.iterate();
  const t2 = performance.now();
  const r2 = await tr.iterate();
  console.log(t1 - t0, t2 - t1, performance.now() - t2, r, r2.row['time/collect_s']);
});
