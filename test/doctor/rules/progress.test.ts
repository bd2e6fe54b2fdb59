/** What a return says of how far a run has come. */
import { describe, expect, it } from 'vitest';
import { progressOf } from '../../../src/doctor/rules/progress.ts';
import { trackOf } from '../../../src/doctor/rules/track.ts';
import { rows, series } from './support/build.ts';
import { wave } from './support/learning.ts';

describe('what is learnt at once', () => {
  const values = rows(
    400,
    i => (i < 20 ? 2 + 0.65 * i : i < 200 ? 15 + i / 33 : 21 - (i - 200) / 50) + wave(i, 0.3),
  );

  it('is not lost by a small fall', () => {
    const progress = progressOf(trackOf({ id: 'episode/return', theirs: 'r', series: series(values) }));
    expect(progress.kept).toBe(true);
    expect(progress.collapsed).toBe(false);
  });

  // A CartPole of two million steps, solved after 24,000, was called sick: its first block was at the ceiling already.
  it('is solved, also where the first twentieth of the run has it', () => {
    const solved = rows(4_000, i => (i < 30 ? 15 + i : i < 45 ? 60 + 30 * (i - 30) : 500));
    const progress = progressOf(trackOf({ id: 'episode/return', theirs: 'r', series: series(solved) }));
    expect(progress.saturated).toBe(true);
    const level = rows(4_000, i => 20 + wave(i, 3));
    expect(progressOf(trackOf({ id: 'episode/return', theirs: 'r', series: series(level) })).saturated).toBe(
      false,
    );
  });

  it('and lost it is told', () => {
    const lost = rows(400, (i, t) => (t < 0.5 ? values[i] : 3 + wave(i, 0.3)));
    const progress = progressOf(trackOf({ id: 'episode/return', theirs: 'r', series: series(lost) }));
    expect(progress.kept).toBe(false);
    expect(progress.collapsed).toBe(true);
  });
});
