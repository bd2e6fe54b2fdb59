import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { RunError } from '../../src/base/errors.ts';
import { metrics } from '../../src/metrics/registry.ts';
import {
  decodeEvent,
  decodeNumber,
  decodeRow,
  encodeEvent,
  encodeRow,
  jsonNumber,
  rowFromJson,
  withoutTimes,
} from '../../src/metrics/row.ts';

const ids = metrics
  .map(metric => metric.id.replace('<name>', 'x'))
  .filter(id => !/^train\/(step|iteration)$/.test(id));
const progress = { 'train/iteration': 3, 'train/step': 6144 };

describe('rows', () => {
  it('are lines with progress first and times last, whatever the order they were made in', () => {
    const row = {
      'time/unix_s': 7.5,
      'loss/value': 0.25,
      'kl/step': 0.003,
      'train/step': 6144,
      'train/iteration': 3,
    };
    const line =
      '{"train/iteration":3,"train/step":6144,"kl/step":0.003,"loss/value":0.25,"time/unix_s":7.5}';
    expect(encodeRow(row)).toBe(line);
    expect(encodeRow(Object.fromEntries(Object.entries(row).reverse()))).toBe(line);
    expect(withoutTimes(line)).toBe(
      '{"train/iteration":3,"train/step":6144,"kl/step":0.003,"loss/value":0.25}',
    );
  });

  it('read back every number bit for bit', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.constantFrom(...ids), fc.double(), { noNullPrototype: true }), values => {
        const row = { ...values, ...progress };
        const line = encodeRow(row);
        const read = decodeRow(line);
        expect(Object.keys(read).sort()).toEqual(Object.keys(row).sort());
        for (const [id, value] of Object.entries(row))
          expect(Object.is(read[id], value), `${id} ${value}`).toBe(true);
        expect(line).not.toContain('\n');
        expect(encodeRow(read)).toBe(line);
      }),
    );
  });

  it('write what is not finite as text, and -0 as it is', () => {
    const line = encodeRow({ ...progress, 'kl/step': Number.NaN, 'kl/ref': -Infinity, 'adv/mean': -0 });
    expect(line).toBe(
      '{"train/iteration":3,"train/step":6144,"kl/step":"NaN","kl/ref":"-Infinity","adv/mean":-0}',
    );
    expect(jsonNumber(Number.POSITIVE_INFINITY)).toBe('Infinity');
    expect(decodeNumber('Infinity')).toBe(Number.POSITIVE_INFINITY);
    for (const other of ['nan', 'inf', '1', null, undefined, true, {}])
      expect(decodeNumber(other)).toBeUndefined();
  });

  it('are refused with a reason if they are not rows', () => {
    const bad: [object, string][] = [
      [{ 'train/iteration': 1 }, 'train/step is missing, must be a whole number from 0'],
      [{ ...progress, 'train/step': 1.5 }, 'train/step is 1.5, must be a whole number'],
      [{ ...progress, 'train/step': -1 }, 'train/step is -1'],
      [{ ...progress, 'kl/stepp': 1 }, 'unknown metric "kl/stepp": did you mean kl/step?'],
      [{ ...progress, 'kl/step': undefined }, 'kl/step is undefined, must be a number: leave a metric out'],
      [{ ...progress, 'kl/step': '1' }, 'kl/step is "1", must be a number'],
    ];
    for (const [row, message] of bad) expect(() => encodeRow(row as never)).toThrow(message);
    const lines: [string, string][] = [
      ['', 'not JSON'],
      ['{"train/iteration":1,', 'not JSON'],
      ['null', 'a row is null, must be an object'],
      ['[1]', 'a row is [1], must be an object'],
      ['{"train/iteration":1,"train/step":2,"kl/step":null}', 'kl/step is null, must be a number'],
      ['{"train/iteration":1,"train/step":2,"__proto__":1}', 'is not a metric'],
      ['{"train/iteration":1,"train/step":"NaN"}', 'train/step is NaN'],
    ];
    for (const [line, message] of lines) expect(() => decodeRow(line)).toThrow(message);
  });

  it('keep well-formed names of a newer version when they are read', () => {
    expect(decodeRow('{"train/iteration":1,"train/step":2,"future/metric":3}')['future/metric']).toBe(3);
  });

  it('never fail with anything but a RunError of one line', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.json(),
          fc.string().map(s => `{"train/step":${s}`),
        ),
        line => {
          for (const decode of [decodeRow, decodeEvent, withoutTimes]) {
            try {
              decode(line);
            } catch (error) {
              expect(error).toBeInstanceOf(RunError);
              expect((error as Error).message).not.toContain('\n');
            }
          }
        },
      ),
      { numRuns: 500 },
    );
    expect(() => rowFromJson(new Map())).toThrow(RunError);
  });
});

describe('events', () => {
  it('are at most sixteen deep, in lists and in objects', () => {
    const nested = (depth: number, wrap: (inner: unknown) => unknown): unknown =>
      Array.from({ length: depth }).reduce<unknown>(inner => wrap(inner), 1);
    for (const wrap of [(inner: unknown) => [inner], (inner: unknown) => ({ inner })]) {
      expect(encodeEvent({ type: 'note', what: nested(16, wrap) })).toContain('1');
      expect(() => encodeEvent({ type: 'note', what: nested(17, wrap) })).toThrow(
        /is nested more than 16 deep: keep events flat/,
      );
    }
  });

  it('are lines with the type first and times last', () => {
    const event = {
      'time/unix_s': 5,
      message: 'a\nb',
      type: 'guard',
      klBefore: Number.POSITIVE_INFINITY,
      more: undefined,
    };
    expect(encodeEvent(event)).toBe(
      '{"type":"guard","message":"a\\nb","klBefore":"Infinity","time/unix_s":5}',
    );
    expect(withoutTimes(encodeEvent(event))).toBe('{"type":"guard","message":"a\\nb","klBefore":"Infinity"}');
    expect(decodeEvent(encodeEvent(event))).toMatchObject({ type: 'guard', klBefore: 'Infinity' });
  });

  it('are refused if JSON cannot hold them', () => {
    expect(() => encodeEvent({ type: 'note', at: new Date() })).toThrow(
      /^at is "[^\n]+", which JSON cannot hold/,
    );
    expect(() => encodeEvent({ type: 'note', list: [1, new Float32Array(1)] })).toThrow(/^list\[1\] is /);
    expect(() => encodeEvent({ type: 'note', big: 1n })).toThrow(/^big is 1, which/);
    const cycle: Record<string, unknown> = {};
    cycle.self = cycle;
    expect(() => encodeEvent({ type: 'note', cycle })).toThrow(RunError);
    expect(() => decodeEvent('{"message":"no type"}')).toThrow('must be an object with a "type"');
  });
});
