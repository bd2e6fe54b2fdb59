import { appendFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { csvSink } from '../../src/metrics/sinks/csv.ts';

const root = mkdtempSync(join(tmpdir(), 'keel-csv-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));
const fresh = (): string => join(mkdtempSync(join(root, 'x-')), 'metrics.csv');

describe('csv sink', () => {
  it('has the registry’s columns, times last, and new ones after them', () => {
    const path = fresh();
    const sink = csvSink(path);
    sink.write({
      'time/unix_s': 5,
      'loss/value': 0.5,
      'train/step': 10,
      'train/iteration': 1,
      'kl/step': 1e-7,
    });
    sink.write({ 'train/iteration': 2, 'train/step': 20, 'loss/value': Number.NaN, 'time/unix_s': 6 });
    sink.write({ 'train/iteration': 3, 'train/step': 30, 'eval/return': 4, 'adv/std': 2, 'time/unix_s': 7 });
    sink.close();
    expect(readFileSync(path, 'utf8')).toBe(
      [
        'train/iteration,train/step,kl/step,loss/value,time/unix_s,eval/return,adv/std',
        '1,10,1e-7,0.5,5,,',
        '2,20,,NaN,6,,',
        '3,30,,,7,4,2',
        '',
      ].join('\n'),
    );
    expect(readdirSync(join(path, '..'))).toEqual(['metrics.csv']);
  });

  it('quotes what needs it and understands it again', () => {
    const path = fresh();
    const odd = { 'train/iteration': 1, 'a "b", c': 2 };
    const sink = csvSink(path);
    sink.write(odd);
    sink.close();
    const again = csvSink(path);
    again.write(odd);
    again.close();
    expect(readFileSync(path, 'utf8')).toBe('train/iteration,"a ""b"", c"\n1,2\n1,2\n');
  });

  it('cuts off half a line that a kill left', () => {
    const path = fresh();
    writeFileSync(path, 'train/iteration,train/step\n1,10\n');
    appendFileSync(path, '2,2');
    const sink = csvSink(path);
    sink.write({ 'train/iteration': 2, 'train/step': 20 });
    sink.close();
    expect(readFileSync(path, 'utf8')).toBe('train/iteration,train/step\n1,10\n2,20\n');
  });
});
