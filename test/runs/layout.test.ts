import { describe, expect, it } from 'vitest';
import {
  isRunId,
  newRunId,
  requireRunId,
  tensorboardName,
  tensorboardPattern,
} from '../../src/runs/layout.ts';
import { RunError } from '../../src/runs/schema.ts';

const when = new Date('2026-01-15T10:30:00.999Z');

describe('run ids', () => {
  it('are readable, and valid names', () => {
    expect(newRunId('CartPole-v1', 1, when)).toMatch(/^cartpole-20260115-103000-seed1-[2-9a-z]{4}$/);
    const slugs: [string, string][] = [
      ['./envs/my-env.ts', 'my-env'],
      ['C:\\envs\\My Env.mjs', 'my-env'],
      ['MountainCarContinuous-v0', 'mountaincarcontinuous'],
      ['../../etc/passwd', 'passwd'],
      ['日本', 'run'],
      ['Café', 'cafe'],
      ['', 'run'],
      ['x'.repeat(500), 'x'.repeat(40)],
      ['CON', 'con'],
    ];
    for (const [environment, slug] of slugs) {
      const id = newRunId(environment, 7, when);
      expect(id.slice(0, -5)).toBe(`${slug}-20260115-103000-seed7`);
      expect(isRunId(id)).toBe(true);
    }
  });

  it('sort by time, and differ within a second', () => {
    const later = newRunId('a', 1, new Date('2026-01-15T10:30:01Z'));
    const ids = Array.from({ length: 200 }, () => newRunId('a', 1, when));
    expect(new Set(ids).size).toBeGreaterThan(195);
    for (const id of ids) expect(id < later).toBe(true);
  });

  it('that are no plain directory name are refused', () => {
    for (const id of [
      '',
      '.',
      '..',
      'a/b',
      'a\\b',
      '.hidden',
      '-x',
      'a b',
      'nul',
      'COM1.x',
      'a.',
      'x'.repeat(121),
      'a\n',
    ]) {
      expect(isRunId(id), id).toBe(false);
      expect(() => requireRunId(id)).toThrow(RunError);
      expect(() => requireRunId(id)).toThrow(/^[^\n]+$/);
    }
    expect(requireRunId('my-run_2.b')).toBe('my-run_2.b');
  });
});

describe('event files', () => {
  it('have names that TensorBoard looks for, in the order of time', () => {
    expect(tensorboardName(1_768_473_000.9)).toBe('events.out.tfevents.1768473000.keel');
    expect(tensorboardName(0)).toMatch(tensorboardPattern);
  });
});
