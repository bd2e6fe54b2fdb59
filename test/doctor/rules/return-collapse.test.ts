/** Returns that are lost, and those that only seem to be. */
import { describe, expect, it } from 'vitest';
import { diagnose } from '../../../src/doctor/diagnose.ts';
import { rows } from './support/build.ts';
import { learning, loud, N } from './support/learning.ts';

const { about, agent } = learning(23);

describe('a return that is lost under a calm KL', () => {
  const lost = rows(N, i => about(i < 40 ? 20 + 4 * i : 180 - 4 * (i - 40)));

  it('is to be watched, and names no cause', () => {
    const d = diagnose(agent({ 'episode/return': lost }));
    expect(d).toMatchObject({ verdict: 'watch', rootCause: null });
    expect(loud(d)).toEqual(['return-collapse']);
  });

  it('is only told after the log was taken up again, perhaps with a harder task', () => {
    const resumed = diagnose(agent({ 'episode/return': lost }, { restarts: [45_000] }));
    expect(resumed.verdict).toBe('cannot-tell');
    expect(resumed.summary).toContain('perhaps the task changed');
  });

  it('is only told where it is on its way back', () => {
    const back = rows(N, i => about(i < 30 ? 20 + 6 * i : i < 45 ? 60 : 60 + 4 * (i - 45)));
    expect(diagnose(agent({ 'episode/return': back })).verdict).toBe('healthy');
  });
});
