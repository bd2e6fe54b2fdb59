/**
 * `npm run bench -- sweep chaos [--runs 1000] [--workers 4] [--seed 0]`: a study of tiny runs on `keel worker` processes and a
 * Redis of its own. A worker is killed every few seconds, Redis is restarted five times, once of them empty, and the conductor is
 * killed once. At the end every trial must be in the journal once, with the weights that the local pool gives.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { buildPackage } from '../../test/support/build-package.ts';
import { startOwnRedis } from '../../test/support/redis-server.ts';
import { report, round } from '../measure.ts';
import { refuse } from '../refuse.ts';
import { attack, type Blow } from './attack.ts';

/** Over the whole study, by the share of its runs that are done. */
const blows: readonly (readonly [share: number, blow: Blow])[] = [
  [0.1, 'restart-redis'],
  [0.25, 'restart-redis'],
  [0.4, 'empty-redis'],
  [0.5, 'kill-conductor'],
  [0.6, 'restart-redis'],
  [0.8, 'restart-redis'],
];
/** Ms between two kills of a worker: every few seconds. */
const killEvery = [2000, 6000] as const;
const progressEvery = 50;

export async function run(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      runs: { type: 'string', default: '1000' },
      workers: { type: 'string', default: '4' },
      seed: { type: 'string', default: '0' },
    },
  });
  const [runs, workers, seed] = [values.runs, values.workers, values.seed].map(Number);
  if (!(runs >= 20 && runs % 2 === 0)) refuse(`--runs ${values.runs}: use an even number from 20 on`);
  if (!(Number.isInteger(workers) && workers >= 1)) refuse(`--workers ${values.workers}: use 1 or more`);
  const work = mkdtempSync(join(tmpdir(), 'keel-chaos-'));
  const redis = await startOwnRedis();
  try {
    const built = join(work, 'package');
    mkdirSync(built);
    await buildPackage(built);
    const startedAt = performance.now();
    const {
      blows: struck,
      seconds,
      localSeconds,
      problems,
      ...rest
    } = await attack({
      ...{ built, work, redis, runs, workers, seed, killEvery },
      blows: blows.map(([share, blow]) => ({ after: Math.floor(share * runs), blow })),
      onProgress({ outcomes, blows }) {
        if (outcomes % progressEvery !== 0) return;
        report({ runs_done: outcomes, seconds: round((performance.now() - startedAt) / 1000, 0), ...blows });
      },
    });
    report({
      ...{ runs, workers, ...struck, ...rest },
      ...{ seconds: round(seconds, 0), local_pool_seconds: round(localSeconds, 0) },
      ...{ problems: problems.length, first_problems: problems.slice(0, 10) },
    });
    if (problems.length > 0) process.exitCode = 1;
  } finally {
    await redis.end();
    rmSync(work, { recursive: true, force: true });
  }
}
