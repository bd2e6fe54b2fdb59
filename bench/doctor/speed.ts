/** How fast: an event file of 100 MB, and a thousand small runs in one directory, each in a process of its own. */
import { spawnSync } from 'node:child_process';
import { closeSync, mkdirSync, mkdtempSync, openSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { report, round } from '../measure.ts';
import { readCached } from './cache.ts';
import { scalarEvent, versionEvent } from './event-file.ts';
import { spell } from './spellings.ts';

const LARGE_MB = 100;
const SMALL_RUNS = 1000;

export async function speed(): Promise<void> {
  const root = mkdtempSync(join(tmpdir(), 'keel-doctor-speed-'));
  try {
    const large = join(root, 'large');
    mkdirSync(large);
    const bytes = writeLarge(join(large, 'events.out.tfevents.1790000000.host.1.0'), LARGE_MB * 1e6);
    const { seconds, megabytes, runs } = inOwnProcess(large);
    const rate = round(bytes / 1e6 / seconds, 1);
    report({
      read: 'an event file',
      mb: round(bytes / 1e6),
      runs,
      seconds,
      mb_per_s: rate,
      peak_mb: megabytes,
    });
    const small = join(root, 'small');
    writeSmall(small);
    report({ read: 'small runs', ...inOwnProcess(small) });
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

interface Measured {
  readonly runs: number;
  readonly seconds: number;
  readonly megabytes: number;
}

/** Diagnoses a directory in a fresh process, so that the memory is the doctor's alone. */
function inOwnProcess(path: string): Measured {
  const script = new URL('./measure-path.ts', import.meta.url).pathname;
  const { stdout, stderr, status } = spawnSync(process.execPath, ['--import', 'tsx', script, path], {
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(`diagnosing ${path} failed: ${stderr}`);
  return JSON.parse(stdout) as Measured;
}

const tags = [
  'losses/value_loss',
  'losses/policy_loss',
  'losses/entropy',
  'losses/old_approx_kl',
  'losses/approx_kl',
  'losses/clipfrac',
  'losses/explained_variance',
  'charts/learning_rate',
  'charts/SPS',
  'charts/episodic_return',
];

/** An event file of CleanRL's of about so many bytes; what it says is that of a calm run. */
function writeLarge(path: string, bytes: number): number {
  const file = openSync(path, 'w');
  let written = 0;
  let pending: Buffer[] = [versionEvent(1_790_000_000)];
  for (let row = 1; written < bytes; row++) {
    const wave = 1 + 0.3 * Math.sin(row / 7);
    const values = [5 * wave, -0.01 * wave, 0.5 * wave, 0.003 * wave, 0.004 * wave, 0.05 * wave];
    values.push(0.8 * wave, 3e-4, 3000, Math.min(500, row / 100) * wave);
    pending.push(...tags.map((tag, i) => scalarEvent(1_790_000_000 + row, row * 128, tag, values[i])));
    if (pending.length < 5000) continue;
    written += writeSync(file, Buffer.concat(pending));
    pending = [];
  }
  closeSync(file);
  return written;
}

function writeSmall(root: string): void {
  const runs = readCached();
  if (runs.length === 0) throw new Error('there are no cached runs: npx tsx bench/doctor/make-runs.ts');
  const spellings = ['sb3', 'cleanrl'] as const;
  for (let i = 0; i < SMALL_RUNS; i++) {
    const { label, log } = runs[i % runs.length];
    spell({ label: { ...label, name: `run-${i}` }, log }, spellings[i % 2], root);
  }
  writeFileSync(join(root, 'notes.txt'), 'a thousand runs\n');
}
