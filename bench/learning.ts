/**
 * Does it learn, and does the bound hold: four classic tasks with their presets on fresh seeds, the same without the guard, and
 * two of them with the learning rate 30 times too high, with the guard and without, falling to 0 as the presets have it and
 * held constant; and Courier-v0, whose action is hybrid.
 *
 * `npm run bench -- learning [cartpole …] [--part presets|unguarded|wild|other] [--jobs 2]` trains what is not in the records yet;
 * `--tune [--set key=value] [--seeds 0..4]` tries something on the seeds that tune. `npm run bench -- figures` makes the tables.
 */
import { parseArgs } from 'node:util';
import { figureFlags, judgePresets } from './figures/conduct.ts';
import { pickTasks } from './figures/tasks.ts';
import { machine, report } from './measure.ts';
import { refuse } from './refuse.ts';

const parts = { presets: 'classic', unguarded: 'unguarded', wild: 'wild', other: 'other' } as const;

export async function run(): Promise<void> {
  const { values, positionals } = parseArgs({
    args: process.argv.slice(3),
    allowPositionals: true,
    options: { ...figureFlags, part: { type: 'string' } },
  });
  const { part } = values;
  if (part !== undefined && !Object.hasOwn(parts, part))
    refuse(`--part ${part} is unknown: use ${Object.keys(parts).join(', ')}`);
  report({ bench: 'learning', ...machine() });
  const groups = part === undefined ? Object.values(parts) : [parts[part as keyof typeof parts]];
  await judgePresets(pickTasks(groups, positionals), values);
}
