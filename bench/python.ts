/**
 * Environments in Python: what the bridge costs, and whether it holds.
 *
 * - `npm run bench -- python`: a round trip in µs, steps a second of vectors; with `KEEL_SB3_PYTHON`, a Python that has
 *   Gymnasium, Stable-Baselines3 and torch, PPO on the same Python environments in turns with Stable-Baselines3's.
 * - `npm run bench -- python same`: with that Python, the steps of Gymnasium's environments from the states of ours.
 * - `npm run bench -- python kills --kills 200`: kills processes of a training at random, and then the training itself;
 *   what is learnt must be to the bit what a calm run learns, and nothing may be left.
 */
import { Refused } from './refuse.ts';

const parts: Record<string, () => Promise<{ run(args: readonly string[]): Promise<void> }>> = {
  cost: () => import('./python/cost.ts'),
  same: () => import('./python/same.ts'),
  kills: () => import('./python/kills.ts'),
};

export async function run(): Promise<void> {
  const [part = 'cost', ...rest] = process.argv.slice(3);
  const load = parts[part];
  if (load === undefined)
    throw new Refused(`python ${part} is unknown: use ${Object.keys(parts).join(', ')}`);
  await (await load()).run(rest);
}
