/** Runs in SQLite databases. The fixtures were written by SQLite itself, in the schemas of MLflow and trackio. */
import { readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { describe, expect, it } from 'vitest';
import { toCanonical } from '../../../src/doctor/dialects/translate.ts';
import { ReadError } from '../../../src/doctor/readers/errors.ts';
import { findRuns } from '../../../src/doctor/readers/find.ts';
import { readRun } from '../../../src/doctor/readers/read.ts';
import { columnsOf, Database } from '../../../src/doctor/readers/sqlite.ts';
import { points, temporaryDirectory, values, writeTree } from '../support/files.ts';

const stores = join(import.meta.dirname, '../fixtures/stores');
const mlflow = readFileSync(join(stores, 'mlflow.db'));
const list = Array.from({ length: 12 }, (_, i) => i);

const message = async (path: string): Promise<string> => {
  const failure = await findRuns(path).catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(ReadError);
  return (failure as Error).message;
};

describe("MLflow's database", () => {
  it('has runs, by their names; those that were deleted are left out', async () => {
    const { candidates } = await findRuns(join(stores, 'mlflow.db'));
    expect(candidates.map(one => relative(stores, one.path))).toEqual([
      'mlflow.db!/first',
      'mlflow.db!/sweep 00000000000000000000000000001ef0',
      'mlflow.db!/sweep 00000000000000000000000000003ddf',
    ]);
    const run = await readRun(candidates[1]);
    expect(run.format).toBe('mlflow');
    expect(points(run, 'rollout/ep_rew_mean')).toEqual(
      list.map(i => [2048 * i, i === 5 ? Number.NaN : 1.5 * i + 1]),
    );
    expect(run.series.get('train/approx_kl')!.wallTime[1]).toBe(1_700_000_001);
    expect(run.config.get('learning_rate')).toBe(0.0003);
    // Longer than a page: it is in pages of its own.
    expect(String(run.config.get('notes'))).toMatch(/^x{1999}…$/);
  });

  it('gives every row of a table once, in order, by scan and by index alike', () => {
    const database = new Database(join(stores, 'mlflow.db'));
    const table = database.table('metrics')!;
    const all = [...database.rows(table)];
    expect(all).toHaveLength(4 * 2 * list.length);
    const id = '%032x'.replace('%032x', '1ef0'.padStart(32, '0'));
    const wanted = all.filter(row => row[table.columns.indexOf('run_uuid')] === id);
    expect([...database.rowsWith(table, 'run_uuid', id)]).toEqual(wanted);
    expect([...database.rowsWith(table, 'key', 'train/approx_kl')]).toHaveLength(4 * list.length);
    expect([...database.rowsWith(table, 'run_uuid', 'nobody')]).toEqual([]);
    database.close();
  });
});

describe("trackio's database", () => {
  it('has the rows that a live writer keeps in its log beside it', async () => {
    const { candidates } = await findRuns(join(stores, 'trackio.db'));
    expect(candidates.map(one => relative(stores, one.path))).toEqual(
      ['trackio.db!/brave-owl-1', 'trackio.db!/calm-fox-0'].reverse(),
    );
    const raw = await readRun(candidates[0]);
    expect(values(raw, 'kl')).toEqual([1, 2, 3, 4, 5, 6].map(i => 0.001 * i));
    expect(values(raw, 'loss')[2]).toBe(Number.POSITIVE_INFINITY);
    expect(raw.series.get('kl')!.wallTime[0]).toBe(Date.UTC(2026, 0, 1, 0, 1) / 1000);
    const run = toCanonical(raw);
    expect(run.unit).toBe('updates');
    expect(run.config.refCoef).toBe(0.04);
  });

  it('a log that is torn gives what was committed before', async () => {
    const wal = readFileSync(join(stores, 'trackio.db-wal'));
    const root = writeTree(temporaryDirectory(), {
      'x.db': readFileSync(join(stores, 'trackio.db')),
      'x.db-wal': wal.subarray(0, wal.length - 100),
    });
    // The rows were one transaction: the tables alone are left.
    const file = join(root, 'x.db');
    const read = async () => readRun((await findRuns(file)).candidates[0]);
    await expect(read()).rejects.toThrow(/has no runs: nothing was logged yet/);
    const flipped = Buffer.from(wal);
    flipped[flipped.length - 10] ^= 0xff;
    writeTree(root, { 'x.db-wal': flipped });
    await expect(read()).rejects.toThrow(/has no runs: nothing was logged yet/);
  });
});

describe('other and damaged databases', () => {
  it('of other programs are named, and pass by in a directory', async () => {
    const root = writeTree(temporaryDirectory(), {
      'x.db': mlflow.subarray(0, 512),
      'run/a.csv': 'step,kl\n1,0.1\n2,0.2\n',
    });
    expect(await message(join(root, 'x.db'))).toMatch(/SQLite database/);
    expect((await findRuns(root)).candidates.map(one => relative(root, one.path))).toEqual(['run']);
  });

  it('cut anywhere, or with any byte changed, end in a sentence or in fewer rows, soon', async () => {
    const root = temporaryDirectory();
    const started = performance.now();
    for (let i = 0; i < 150; i++) {
      const bytes = Buffer.from(i % 3 === 0 ? mlflow.subarray(0, (i * 271) % mlflow.length) : mlflow);
      for (let k = 0; i % 3 !== 0 && k < 1 + (i % 7); k++)
        bytes[(i * 7919 + k * 104_729) % bytes.length] = (i * 31 + k * 17) % 256;
      if (bytes.length < 100) continue;
      const file = join(writeTree(root, { 'x.db': bytes }), 'x.db');
      try {
        for (const candidate of (await findRuns(file)).candidates) await readRun(candidate);
      } catch (error) {
        if (!(error instanceof ReadError)) throw error;
      }
    }
    expect(performance.now() - started).toBeLessThan(120_000);
  });

  it('pages that lead in a circle are refused', async () => {
    const bytes = Buffer.from(mlflow);
    // The root of the schema becomes an inner page whose right child is itself.
    bytes[100] = 5;
    bytes.writeUInt16BE(0, 103);
    bytes.writeUInt32BE(1, 108);
    const root = writeTree(temporaryDirectory(), { 'x.db': bytes });
    expect(await message(join(root, 'x.db'))).toMatch(/lead in a circle/);
  });
});

it('columns are named as SQLite would name them', () => {
  expect(
    columnsOf(
      'CREATE TABLE t (id INTEGER PRIMARY KEY, "a b" TEXT, [c] REAL DEFAULT (1, 2), `d` x, CHECK (a IN (1)), PRIMARY KEY (id))',
    ),
  ).toEqual({
    columns: ['id', 'a b', 'c', 'd'],
    rowid: 0,
  });
});
