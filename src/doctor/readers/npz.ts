/** `evaluations.npz` of Stable-Baselines3: NumPy arrays in a zip archive. Only plain numbers are read. */
import { basename } from 'node:path';
import { ReadError } from './errors.ts';
import { indexOf, openPlace, placeIn } from './places.ts';
import type { RunBuilder } from './run-builder.ts';

const mostValues = 2 ** 22;

interface Table {
  readonly rows: number;
  readonly width: number;
  at(i: number): number;
}

/** `.npy`: a mark, the version, the length of a header that is a Python dictionary, then the numbers. */
function arrayOf(bytes: Buffer): Table | undefined {
  if (bytes.length < 12 || bytes.toString('latin1', 0, 6) !== '\x93NUMPY') return undefined;
  const long = bytes[6] > 1;
  const start = long ? 12 : 10;
  const end = start + (long ? bytes.readUInt32LE(8) : bytes.readUInt16LE(8));
  const header = bytes.toString('latin1', start, Math.min(end, start + 4096));
  const type = /'descr':\s*'<([fi])([48])'/.exec(header);
  const shape = /'shape':\s*\((\d{1,10})(?:,\s*(\d{1,10}))?,?\s*\)/.exec(header);
  if (type === null || shape === null || !/'fortran_order':\s*False/.test(header)) return undefined;
  const [size, rows, width] = [Number(type[2]), Number(shape[1]), Number(shape[2] ?? 1)];
  if (rows * width > mostValues || end + rows * width * size > bytes.length) return undefined;
  const read =
    type[1] === 'f'
      ? size === 8
        ? 'readDoubleLE'
        : 'readFloatLE'
      : size === 8
        ? 'readBigInt64LE'
        : 'readInt32LE';
  return { rows, width, at: i => Number(bytes[read](end + i * size)) };
}

/** Reads the evaluations of a run: their mean over episodes, as SB3 logs it. */
export function readNpz(path: string, run: RunBuilder): void {
  const arrays = new Map<string, Table>();
  for (const name of indexOf(path).keys()) {
    const source = openPlace(placeIn(path, name));
    const table = arrayOf(source.read(0, source.size));
    source.close();
    if (table !== undefined) arrays.set(basename(name, '.npy'), table);
  }
  const steps = arrays.get('timesteps');
  const results = arrays.get('results');
  if (steps === undefined || results === undefined)
    throw new ReadError(
      path,
      `looked for the evaluations of a run (timesteps, results), and found NumPy's arrays ${[...indexOf(path).keys()].slice(0, 5).join(', ')}: export them as CSV`,
      { isNoLog: true },
    );
  const means: readonly (readonly [string, Table | undefined])[] = [
    ['eval/mean_reward', results],
    ['eval/mean_ep_length', arrays.get('ep_lengths')],
    ['eval/success_rate', arrays.get('successes')],
  ];
  for (const [name, table] of means) {
    if (table === undefined || table.width === 0) continue;
    for (let row = 0; row < Math.min(steps.rows, table.rows); row++) {
      let total = 0;
      for (let i = 0; i < table.width; i++) total += table.at(row * table.width + i);
      run.number(name, steps.at(row), total / table.width);
    }
  }
}
