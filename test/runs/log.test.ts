import { appendFileSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { encodeEvent, encodeRow } from '../../src/metrics/row.ts';
import { runPaths } from '../../src/runs/layout.ts';
import {
  iterateRows,
  readEvents,
  readLastRow,
  readRows,
  readTrajectory,
  truncateTo,
} from '../../src/runs/log.ts';
import { RunError } from '../../src/runs/schema.ts';
import { rowOf } from './support/spec.ts';
import { temporaryRoot } from './support/temporary.ts';

const root = temporaryRoot('log');
let number = 0;
let dir: string;
let [metrics, events] = ['', ''];
beforeEach(() => {
  dir = join(root, String(++number));
  mkdirSync(dir);
  ({ metrics, events } = runPaths(dir));
});

const rowLine = (i: number, time = 5): string => `${encodeRow({ ...rowOf(i), 'time/unix_s': time })}\n`;
const rowLines = (count: number): string => Array.from({ length: count }, (_, i) => rowLine(i + 1)).join('');
const eventLine = (type: string, iteration: number, more: object = {}): string =>
  `${encodeEvent({ type, iteration, step: iteration, message: 'm', ...more, 'time/unix_s': 1 })}\n`;
const guard = (i: number): string =>
  eventLine('guard', i, { klBefore: 1, klAfter: 0.05, bound: 0.05, backtracks: 1, scale: 0.5 });
const note = (i: number): string => eventLine('note', i, { text: 'hello' });

describe('reading', () => {
  it('follows a file as it grows, and waits for half a line', () => {
    expect(readRows(dir)).toEqual({ items: [], broken: [], end: 0 });
    writeFileSync(metrics, rowLines(2));
    const first = readRows(dir);
    expect(first.items).toHaveLength(2);
    const next = rowLine(3);
    appendFileSync(metrics, next.slice(0, 20));
    expect(readRows(dir, first.end)).toEqual({ items: [], broken: [], end: first.end });
    appendFileSync(metrics, next.slice(20));
    const second = readRows(dir, first.end);
    expect(second.items).toEqual([{ ...rowOf(3), 'time/unix_s': 5 }]);
    expect(second.end).toBe(statSync(metrics).size);
    expect(readLastRow(dir)?.['train/iteration']).toBe(3);
  });

  it('reports broken lines and goes on', () => {
    writeFileSync(metrics, `${rowLine(1)}garbage\n${rowLine(2)}{"train/step":1}\n\u0000\u0000\n`);
    const { items, broken } = readRows(dir);
    expect(items.map(row => row['train/iteration'])).toEqual([1, 2]);
    expect(broken.map(({ line }) => line)).toEqual([2, 4, 5]);
    expect(broken[1].reason).toContain('train/iteration is missing');
    expect(() => [...iterateRows(dir)]).toThrow(
      /metrics\.jsonl, line 2 is damaged \(not JSON: .*: repair or delete/,
    );
    expect(readLastRow(dir)).toBeUndefined();
    writeFileSync(events, `${guard(1)}{"type":"guard","iteration":1,"step":1,"message":""}\n${note(1)}`);
    expect(readEvents(dir).items.map(event => event.type)).toEqual(['guard', 'note']);
    expect(readEvents(dir).broken).toHaveLength(1);
  });

  it('of what is no file is an error', () => {
    mkdirSync(metrics);
    expect(() => readRows(dir)).toThrow(/is not a file: remove it or check the path/);
  });
});

describe('cutting back', () => {
  it('leaves what an uninterrupted run had at that iteration', () => {
    writeFileSync(metrics, rowLines(9));
    writeFileSync(events, [note(0), guard(3), guard(5), guard(6), guard(9)].join(''));
    expect(truncateTo(dir, 5)).toEqual({ droppedRows: 4, droppedEvents: 2 });
    expect(readFileSync(metrics, 'utf8')).toBe(rowLines(5));
    expect(readFileSync(events, 'utf8')).toBe([note(0), guard(3), guard(5)].join(''));
    expect(truncateTo(dir, 5)).toEqual({ droppedRows: 0, droppedEvents: 0 });
  });

  it('cuts half a line, at any byte', () => {
    const whole = rowLines(3);
    const line = rowLine(4);
    for (let length = 0; length <= line.length; length++) {
      writeFileSync(metrics, whole + line.slice(0, length));
      truncateTo(dir, 3);
      expect(readFileSync(metrics, 'utf8')).toBe(whole);
    }
  });

  it('cuts damage at the end, such as the zeros of a power cut', () => {
    for (const damage of [
      '\0'.repeat(500),
      `${'\0'.repeat(500)}\n`,
      `garbage\n${rowLine(5)}`,
      '{"a":1}\n\n',
    ]) {
      writeFileSync(metrics, rowLines(3) + damage);
      writeFileSync(events, guard(2) + damage);
      truncateTo(dir, 3);
      expect(readFileSync(metrics, 'utf8')).toBe(rowLines(3));
      expect(readFileSync(events, 'utf8')).toBe(guard(2));
    }
  });

  it('never drops what people did or what befell the process', () => {
    const kept = [note(0), guard(2), note(8), eventLine('stopped', 9, { reason: 'Ctrl-C' })];
    writeFileSync(metrics, rowLines(9));
    writeFileSync(events, [kept[0], kept[1], guard(7), kept[2], guard(8), kept[3], guard(9)].join(''));
    expect(truncateTo(dir, 4)).toEqual({ droppedRows: 5, droppedEvents: 3 });
    expect(readFileSync(events, 'utf8')).toBe(kept.join(''));
  });

  it('drops everything but that when the run begins again', () => {
    writeFileSync(metrics, rowLines(2));
    writeFileSync(events, eventLine('started', 0, { pid: 1 }) + eventLine('reference', 0) + guard(1));
    truncateTo(dir, -1);
    expect(readFileSync(metrics, 'utf8')).toBe('');
    expect(readFileSync(events, 'utf8')).toBe(eventLine('started', 0, { pid: 1 }));
  });

  it('works before there are files', () => {
    expect(truncateTo(dir, 0)).toEqual({ droppedRows: 0, droppedEvents: 0 });
  });

  it('refuses a log that has lost rows, or is damaged in what stays, and leaves it as it is', () => {
    writeFileSync(events, guard(9));
    const cases: [string, RegExp][] = [
      [rowLines(3), /ends at iteration 3, but the checkpoint is of iteration 5: rows are missing; restore/],
      ['', /has no rows, but the checkpoint is of iteration 5/],
      [`${rowLine(1)}garbage\n${rowLines(5)}`, /line 2 is damaged/],
      [`${rowLines(3)}${rowLine(2)}${rowLine(5)}`, /line 4 is damaged \(iteration 2 after 3\)/],
      [`${rowLines(3)}${rowLine(3)}${rowLine(5)}`, /line 4 is damaged \(iteration 3 after 3\)/],
    ];
    for (const [text, message] of cases) {
      writeFileSync(metrics, text);
      expect(() => truncateTo(dir, 5)).toThrow(RunError);
      expect(() => truncateTo(dir, 5)).toThrow(message);
      expect(readFileSync(metrics, 'utf8')).toBe(text);
      expect(readFileSync(events, 'utf8')).toBe(guard(9));
    }
  });
});

describe('the trajectory', () => {
  it('is the same for runs that differ in times and interruptions only', () => {
    writeFileSync(metrics, rowLine(1, 100) + rowLine(2, 200));
    writeFileSync(events, note(0) + guard(1) + note(1));
    const one = readTrajectory(dir);
    writeFileSync(metrics, rowLine(1, 7) + rowLine(2, 9));
    writeFileSync(events, guard(1));
    expect(readTrajectory(dir)).toEqual(one);
    expect(one.rows[0]).toBe(
      '{"train/iteration":1,"train/step":256,"kl/step":0.01,"loss/value":0.8414709848078965}',
    );
    expect(one.events).toHaveLength(1);
  });
});
