/**
 * What it costs to start the command line, as multiples of a bare `node -e 0`, all timed in turns, and how long `keel train cartpole`
 * takes to its first update (startup/first-update.ts): `npm run bench -- startup [commands] [train]`, both unless told.
 *
 * It measures a build of its own, as users install it: in a scratch directory, without the sources beside it.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { machine, report, round, timeInTurns } from './measure.ts';
import { reportFirstUpdate } from './startup/first-update.ts';

const root = fileURLToPath(new URL('../', import.meta.url));
const rounds = 31;

export async function run(): Promise<void> {
  report({ bench: 'startup', ...machine() });
  const work = mkdtempSync(join(tmpdir(), 'keel-startup-'));
  try {
    const keel = build(work);
    const named = process.argv.slice(3);
    const wants = (part: string): boolean => named.length === 0 || named.includes(part);
    if (wants('commands')) measure(work, keel);
    if (wants('train')) await reportFirstUpdate(work);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

function measure(work: string, keel: string): void {
  const csv = join(work, 'progress.csv');
  writeFileSync(csv, smallLog());
  const own = join(work, 'runs');
  const tiny = ['stepsPerRollout=32', 'envs=2', 'steps=1280', 'minibatchSize=32', 'hidden=[8]', 'epochs=1'];
  node([
    keel,
    'train',
    'cartpole',
    '--no-preset',
    '--run-dir',
    own,
    ...tiny.flatMap(pair => ['--set', pair]),
  ]);

  const commands: Readonly<Record<string, readonly string[]>> = {
    'node -e 0': ['-e', '0'],
    'keel --version': [keel, '--version'],
    'keel --help': [keel, '--help'],
    'keel doctor, a CSV of Stable-Baselines3': [keel, 'doctor', csv],
    "keel doctor, Keel's own run": [keel, 'doctor', own],
  };
  const [bare, ...times] = timeInTurns(
    rounds,
    Object.values(commands).map(args => () => node(args)),
  );
  report({ command: 'node -e 0', rounds, ms: round(bare, 1) });
  for (const [i, command] of Object.keys(commands).slice(1).entries())
    report({ command, ms: round(times[i], 1), times_node: round(times[i] / bare) });
}

/** A package without its page: `bin/keel.js` of it. */
function build(work: string): string {
  for (const path of ['bin', 'configs', 'package.json'])
    cpSync(join(root, path), join(work, path), { recursive: true });
  symlinkSync(join(root, 'node_modules'), join(work, 'node_modules'));
  const tsc = join(root, 'node_modules/typescript/bin/tsc');
  node([tsc, '-p', join(root, 'tsconfig.build.json'), '--outDir', join(work, 'dist')]);
  return join(work, 'bin/keel.js');
}

/** Exit codes 1 and 2 are the doctor's verdicts. */
function node(args: readonly string[]): void {
  const { status, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
  if (status === null || status > 2 || stderr.includes('keel: '))
    throw new Error(`node ${args.join(' ')} ended with ${status}: ${stderr}`);
}

/** Forty rows as Stable-Baselines3 writes them. */
function smallLog(): string {
  const rows = Array.from({ length: 40 }, (_, i) =>
    [2048 * (i + 1), 20 + 4 * i, 0.008 + 0.0001 * i, -0.68 + 0.005 * i, 0.2 + 0.01 * i, 30 / (i + 1)].join(
      ',',
    ),
  );
  const names = [
    'time/total_timesteps',
    'rollout/ep_rew_mean',
    'train/approx_kl',
    'train/entropy_loss',
    'train/explained_variance',
    'train/value_loss',
  ];
  return `${[names.join(','), ...rows].join('\n')}\n`;
}
