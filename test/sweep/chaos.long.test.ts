/** The attack of `npm run bench -- sweep chaos` with few runs: nothing is lost, nothing is done twice, the bits are the same. */
import { expect, test } from 'vitest';
import { attack } from '../../bench/sweep/attack.ts';
import { scratch } from '../cli/support/keel.ts';
import { packageDir } from '../support/compiled.ts';
import { startRedis } from '../support/redis.ts';

test('20 runs on two workers that are killed, a Redis that restarts and comes back empty, a conductor that is killed', async () => {
  const { blows, trials, problems } = await attack({
    built: packageDir,
    work: scratch(),
    redis: await startRedis(),
    runs: 20,
    workers: 2,
    blows: [
      { after: 2, blow: 'kill-worker' },
      { after: 4, blow: 'restart-redis' },
      { after: 7, blow: 'kill-worker' },
      { after: 9, blow: 'kill-conductor' },
      { after: 12, blow: 'empty-redis' },
      { after: 15, blow: 'kill-worker' },
    ],
    // What takes a minute by itself, in moments.
    times: {
      lockMs: 2000,
      stalledMs: 300,
      backoffMs: 50,
      beatMs: 100,
      leaseMs: 2000,
      pollMs: 100,
      handBackMs: 50,
    },
  });
  expect(problems).toEqual([]);
  expect(trials).toBe(10);
  expect(blows).toEqual({ 'kill-worker': 3, 'restart-redis': 1, 'empty-redis': 1, 'kill-conductor': 1 });
});
