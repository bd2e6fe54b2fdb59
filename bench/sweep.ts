/**
 * Studies: `npm run bench -- sweep <part>`.
 *
 * - `optuna`: our samplers against Optuna's on functions with known minima, and the time of an ask.
 * - `halving-simulated`: successive halving against random search on made-up learning curves.
 */
import { machine, report } from './measure.ts';
import { refuse } from './refuse.ts';

const parts: Record<string, () => Promise<{ run(args: string[]): Promise<void> | void }>> = {
  'halving-simulated': () => import('./sweep/halving.ts'),
  optuna: () => import('./sweep/optuna.ts'),
};

export async function run(): Promise<void> {
  const [part = '', ...args] = process.argv.slice(3);
  const load = parts[part] ?? refuse(`sweep '${part}' is unknown: use ${Object.keys(parts).join(', ')}`);
  report({ bench: `sweep ${part}`, ...machine() });
  await (await load()).run(args);
}
