/**
 * Studies: `npm run bench -- sweep <part>`.
 *
 * - `chaos`: a thousand tiny runs on workers and a Redis that are killed again and again, against the local pool.
 * - `elastic`: one run whose rollouts are collected by several processes: when that pays, and its bits with processes killed.
 * - `halving`: successive halving against random search, in steps.
 * - `halving-simulated`: the same on made-up learning curves, one kind of which it is wrong about.
 * - `memory`, `throughput`, `workers`: what a queue takes, and two workers against one.
 * - `optuna`: our samplers against Optuna's on functions with known minima, and the time of an ask.
 * - `overhead`: a study against a bare loop.
 * - `preset`: whether a search finds better settings than a preset has.
 */
import { machine, report } from './measure.ts';
import { refuse } from './refuse.ts';

const parts: Record<string, () => Promise<{ run(args: string[]): Promise<void> | void }>> = {
  chaos: () => import('./sweep/chaos.ts'),
  elastic: () => import('./sweep/elastic.ts'),
  halving: () => import('./sweep/halving.ts'),
  'halving-simulated': () => import('./sweep/halving-simulated.ts'),
  memory: async () => (await import('./sweep/queue.ts')).memory,
  optuna: () => import('./sweep/optuna.ts'),
  overhead: () => import('./sweep/overhead.ts'),
  preset: () => import('./sweep/preset.ts'),
  throughput: async () => (await import('./sweep/queue.ts')).throughput,
  workers: async () => (await import('./sweep/queue.ts')).workers,
};

export async function run(): Promise<void> {
  const [part = '', ...args] = process.argv.slice(3);
  const load = parts[part] ?? refuse(`sweep '${part}' is unknown: use ${Object.keys(parts).join(', ')}`);
  report({ bench: `sweep ${part}`, ...machine() });
  await (await load()).run(args);
}
