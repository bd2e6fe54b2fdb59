import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { encodeEvent } from '../../src/metrics/row.ts';
import { newManifest } from '../../src/runs/manifest.ts';
import {
  describeEventType,
  eventTypes,
  isEvent,
  parseCheckpointIndex,
  parseEvent,
  parseEventLine,
  parseManifest,
  RunError,
  type RunEvent,
} from '../../src/runs/schema.ts';
import { spec } from './support/spec.ts';

const manifest = newManifest('cartpole-1', spec, new Date('2026-01-15T10:30:00Z'));

describe('manifest', () => {
  it('holds what the run was made from', () => {
    expect(manifest).toMatchObject({
      kind: 'keel-run',
      schema: 1,
      id: 'cartpole-1',
      status: 'running',
      environment: spec.environment,
      config: spec.config,
      seed: 1,
      parent: null,
      startedAt: '2026-01-15T10:30:00.000Z',
      pid: process.pid,
      versions: { keel: '0.1.0', onnxruntime: '1.30.0', node: process.version },
    });
  });

  it('is refused with the place, what is there and what should be', () => {
    const cases: [object, string][] = [
      [{ seed: 'one' }, 'manifest: seed is "one", expected'],
      [{ seed: -1 }, 'manifest: seed is -1, expected at least 0'],
      [{ status: 'killed' }, 'status is "killed", expected "running" or "finished" or "stopped" or "failed"'],
      [{ environment: { id: 'x' } }, 'manifest: environment.version is missing, expected string'],
      [{ startedAt: 'today' }, 'startedAt is "today", expected text like'],
      [{ versions: { keel: 1 } }, 'versions.keel is 1, expected string'],
      [{ kind: 'other' }, 'kind is "other", expected "keel-run"'],
      [{ schema: 2 }, 'manifest was written by a newer Keel (schema 2, this one reads 1): update Keel'],
    ];
    for (const [change, message] of cases)
      expect(() => parseManifest({ ...manifest, ...change })).toThrow(message);
    for (const value of [null, undefined, 1, 'x', [], {}])
      expect(() => parseManifest(value)).toThrow(RunError);
  });

  it('keeps what a newer version of the same schema added', () => {
    const newer = { ...manifest, tags: ['a'], environment: { ...manifest.environment, seed: 4 } };
    expect(parseManifest(newer)).toEqual(newer);
  });
});

describe('events', () => {
  const guard: RunEvent = {
    type: 'guard',
    iteration: 3,
    step: 768,
    message: 'stepped back twice',
    klBefore: Number.POSITIVE_INFINITY,
    klAfter: 0.049,
    bound: 0.05,
    backtracks: 2,
    scale: 0.25,
  };

  it('read back with their numbers, finite or not', () => {
    const read = parseEventLine(encodeEvent(guard));
    expect(read).toEqual(guard);
    if (isEvent(read, 'guard')) expect(read.klBefore).toBe(Number.POSITIVE_INFINITY);
    else expect.unreachable();
  });

  it('of every known kind say what they are', () => {
    for (const type of eventTypes) {
      const { title, doc, scope } = describeEventType(type);
      expect(title).toMatch(/^[A-Z]/);
      expect(doc).toMatch(/\.$/);
      expect(['training', 'process']).toContain(scope);
    }
    for (const type of [
      'early-stop',
      'guard',
      'skipped',
      'rate-change',
      'checkpoint',
      'restored',
      'rescaled',
      'finding',
      'note',
    ]) {
      expect(eventTypes).toContain(type);
    }
  });

  it('of unknown kinds and with unknown fields pass', () => {
    const future = { type: 'future', iteration: 1, step: 2, message: 'm', more: { x: ['NaN'] } };
    expect(parseEvent(future)).toEqual(future);
    expect(describeEventType('future')).toMatchObject({ title: 'future', scope: 'training' });
    expect(describeEventType('toString').title).toBe('toString');
    expect(parseEvent({ ...guard, more: 1 })).toEqual({ ...guard, more: 1 });
  });

  it('are refused with the field that is wrong', () => {
    expect(() => parseEvent({ ...guard, klAfter: 'nan' })).toThrow(
      'event "guard": klAfter is "nan", expected a number',
    );
    expect(() => parseEvent({ ...guard, iteration: -1 })).toThrow(
      'event: iteration is -1, expected at least 0',
    );
    expect(() => parseEvent({ type: 'note' })).toThrow(RunError);
    for (const value of [null, 1, [], '']) expect(() => parseEvent(value)).toThrow(RunError);
  });
});

describe('any JSON', () => {
  it('is read or refused in one line, never a crash', () => {
    const bad = fc.oneof(
      fc.json().map(text => JSON.parse(text) as unknown),
      fc
        .tuple(fc.constantFrom(...Object.keys(manifest)), fc.jsonValue())
        .map(([k, v]) => ({ ...manifest, [k]: v })),
      fc.tuple(fc.constantFrom(...eventTypes), fc.jsonValue()).map(([type, v]) => ({
        ...{ type, iteration: 1, step: 1, message: '' },
        ...(v as object),
      })),
    );
    fc.assert(
      fc.property(bad, value => {
        for (const parse of [parseManifest, parseEvent, parseCheckpointIndex]) {
          try {
            parse(value);
          } catch (error) {
            expect(error).toBeInstanceOf(RunError);
            expect((error as Error).message).toMatch(/^[^\n]{5,400}$/);
          }
        }
      }),
      { numRuns: 1000 },
    );
  });

  it('may be as deep as it likes', () => {
    let deep: unknown = 1;
    for (let i = 0; i < 100_000; i++) deep = [deep];
    expect(() => parseManifest({ ...manifest, status: deep })).toThrow(RunError);
    expect(() => parseEvent({ type: 'guard', message: deep })).toThrow(RunError);
  });
});
