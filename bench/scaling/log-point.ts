/** `keel doctor` on a log of so many rows, in a process of its own. */
import { closeSync, mkdtempSync, openSync, readdirSync, rmSync, statSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { RunWriter } from '../../src/runs/index.ts';
import { startKeel } from '../compiled-keel.ts';

export type LogKind = 'csv' | 'jsonl';

export interface LogFigures {
  readonly logMegabytes: number;
  /** From the start of the process to its end. */
  readonly seconds: number;
  readonly peakMegabytes: number;
}

export async function logPoint(built: string, kind: LogKind, rows: number): Promise<LogFigures> {
  const root = mkdtempSync(join(tmpdir(), 'keel-scaling-'));
  try {
    const path = kind === 'csv' ? join(root, 'progress.csv') : ownLog(root);
    writeRows(path, kind, rows);
    // Codes up to 2 are verdicts.
    const { seconds, peakMegabytes } = await startKeel(built, ['doctor', root, '--json']).ended(0, 1, 2);
    return { logMegabytes: statSync(path).size / 2 ** 20, seconds, peakMegabytes };
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

/** The log of a run of Keel's that has no row yet. */
function ownLog(root: string): string {
  const run = RunWriter.create(
    {
      algorithm: 'ppo',
      environment: { id: 'Bench', version: '1', options: {}, reward: {} },
      config: { steps: 1e9, guard: 0.05 },
      seed: 0,
      versions: {},
    },
    { root },
    { csv: false, tensorboard: false },
  );
  run.end('finished');
  const [name] = readdirSync(root);
  return join(root, name, 'metrics.jsonl');
}

/** The same six values a row, by the names of Stable-Baselines3 and by ours. */
const names = {
  csv: [
    ...['time/total_timesteps', 'rollout/ep_rew_mean', 'train/approx_kl'],
    ...['train/entropy_loss', 'train/explained_variance', 'train/value_loss'],
  ],
  jsonl: [
    ...[
      'train/step',
      'episode/return',
      'kl/step',
      'policy/entropy',
      'value/explained_variance',
      'loss/value',
    ],
  ],
} as const satisfies Record<LogKind, readonly string[]>;

/** A calm run: what is said of it is the same however long it is. */
function writeRows(path: string, kind: LogKind, rows: number): void {
  const file = openSync(path, 'a');
  if (kind === 'csv') writeSync(file, `${names.csv.join(',')}\n`);
  let lines: string[] = [];
  for (let i = 1; i <= rows; i++) {
    const wave = 1 + 0.3 * Math.sin(i / 7);
    const entropy = (kind === 'csv' ? -0.5 : 0.5) * wave;
    const values = [2048 * i, 500 * (i / rows) * wave, 0.006 * wave, entropy, 0.6 * wave, 5 * wave];
    if (kind === 'csv') lines.push(`${values.map(Math.fround).join(',')}\n`);
    else {
      const cells = names.jsonl.map((name, k) => `"${name}":${Math.fround(values[k])}`);
      lines.push(`{"train/iteration":${i},${cells.join(',')},"time/unix_s":${1.79e9 + i}}\n`);
    }
    if (lines.length < 5000 && i < rows) continue;
    writeSync(file, lines.join(''));
    lines = [];
  }
  closeSync(file);
}
