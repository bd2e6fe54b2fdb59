import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { RunError } from '../../../src/base/errors.ts';
import type { Row } from '../../../src/metrics/row.ts';
import type { Sink } from '../../../src/metrics/sinks/sink.ts';

/** What a sink is tested with. */
export interface SinkKind {
  readonly name: string;
  open(directory: string): Sink;
  /** The rows that can be read back, as far as this kind of file keeps them. */
  rows(directory: string): Row[];
  /** What this kind of file makes of a row. */
  kept(row: Row): Row;
  /** How many events it keeps; undefined if it keeps none. */
  events?(directory: string): number;
}

const row = (iteration: number, more: Row = {}): Row => ({
  'train/iteration': iteration,
  'train/step': 100 * iteration,
  'kl/step': 0.01 / iteration,
  ...more,
});

/** What every sink must do. */
export function testSink(kind: SinkKind): void {
  const root = mkdtempSync(join(tmpdir(), `keel-sink-${kind.name}-`));
  afterAll(() => rmSync(root, { recursive: true, force: true }));
  const fresh = (): string => mkdtempSync(join(root, 'x-'));

  const write = (directory: string, ...rows: Row[]): void => {
    const sink = kind.open(directory);
    for (const r of rows) sink.write(r);
    sink.close();
  };

  describe(`${kind.name}: sink contract`, () => {
    it('keeps rows in their order', () => {
      const directory = fresh();
      const rows = [row(1), row(2), row(3, { 'time/unix_s': 1.5e9 })];
      write(directory, ...rows);
      expect(kind.rows(directory)).toEqual(rows.map(kind.kept));
    });

    it('has a row as soon as write returns, without flush or close', () => {
      const directory = fresh();
      const sink = kind.open(directory);
      for (let i = 1; i <= 5; i++) {
        sink.write(row(i));
        expect(kind.rows(directory)).toHaveLength(i);
      }
      sink.close();
    });

    it('closes without a row, and twice', () => {
      const directory = fresh();
      const sink = kind.open(directory);
      sink.flush();
      sink.close();
      sink.close();
      expect(kind.rows(directory)).toEqual([]);
    });

    it('refuses to write after close, in one line', () => {
      const sink = kind.open(fresh());
      sink.write(row(1));
      sink.close();
      expect(() => sink.write(row(2))).toThrow(RunError);
      expect(() => sink.write(row(2))).toThrow(/^[^\n]*closed[^\n]*$/);
      expect(() => sink.flush()).toThrow(RunError);
    });

    it('goes on where it stopped, to the same bytes', () => {
      const [once, twice] = [fresh(), fresh()];
      const rows = [row(1), row(2, { 'loss/value': 1 }), row(3), row(4, { 'eval/return': 2 })];
      write(once, ...rows);
      write(twice, rows[0], rows[1]);
      write(twice, rows[2], rows[3]);
      expect(kind.rows(twice)).toEqual(rows.map(kind.kept));
      expect(readdirSync(twice)).toEqual(readdirSync(once));
      for (const name of readdirSync(once)) {
        expect(readFileSync(join(twice, name)).equals(readFileSync(join(once, name))), name).toBe(true);
      }
    });

    it('takes metrics that appear, vanish and come back', () => {
      const directory = fresh();
      const rows = [
        row(1),
        row(2, { 'eval/return': 5, 'reward/part/fall': -1 }),
        row(3, { 'adv/mean': 1 }),
        row(4, { 'eval/return': 6 }),
        { 'train/iteration': 5, 'train/step': 500 },
      ];
      write(directory, ...rows);
      expect(kind.rows(directory)).toEqual(rows.map(kind.kept));
    });

    it('keeps what is not finite', () => {
      const directory = fresh();
      const rows = [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 0].map((value, i) =>
        row(i + 1, { 'grad/norm': value }),
      );
      write(directory, ...rows);
      expect(kind.rows(directory)).toEqual(rows.map(kind.kept));
    });

    it('takes events, and keeps them or ignores them', () => {
      const directory = fresh();
      const sink = kind.open(directory);
      sink.event({ type: 'note', iteration: 0, step: 0, message: 'hello\nthere', text: '"quoted", 1' });
      sink.write(row(1));
      sink.event({ type: 'note', iteration: 1, step: 100, message: '', value: Number.NaN });
      sink.close();
      expect(kind.rows(directory)).toEqual([kind.kept(row(1))]);
      if (kind.events !== undefined) expect(kind.events(directory)).toBe(2);
    });

    it('says in one line where it cannot write', () => {
      const nowhere = join(fresh(), 'missing', 'directory');
      expect(() => kind.open(nowhere)).toThrow(RunError);
      expect(() => kind.open(nowhere)).toThrow(/^cannot open [^\n]*missing[^\n]*: [^\n]+$/);
    });
  });
}
