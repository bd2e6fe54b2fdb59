/**
 * Studies: `npm run bench -- sweep <part>`.
 *
 * - `chaos`: a thousand tiny runs on workers and a Redis that are killed again and again, against the local pool.
 * - `elastic`: one run whose rollouts are collected by several processes: when that pays, and its bits with processes killed.
 * - `optuna`: our samplers against Optuna's on functions with known minima, and the time of an ask.
 */
import { machine, report } from './measure.ts';
import { refuse } from './refuse.ts';

const parts: Record<string, () => Promise<{ run(args: string[]): Promise<void> | void }>> = {
  chaos: () => import('./sweep/chaos.ts'),
  halving: () => import('./sweep/halving.ts'),
  preset: () => import('./sweep/preset.ts'),
  elastic: () => import('./sweep/elastic.ts'),
  optuna: () => import('./sweep/optuna.ts'),
};

export async function run(): Promise<void> {
  const [part = '', ...args] = process.argv.slice(3);
  const load = parts[part] ?? refuse(`sweep '${part}' is unknown: use ${Object.keys(parts).join(', ')}`);
  report({ bench: `sweep ${part}`, ...machine() });
  await (await load()).run(args);
}
