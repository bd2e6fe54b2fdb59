/** The names that the Python side writes are those that the doctor reads in the same trainer's own log. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { cleanrl } from '../../src/doctor/dialects/cleanrl.ts';
import type { Dialect, Mapping } from '../../src/doctor/dialects/dialect.ts';
import { stableBaselines3 } from '../../src/doctor/dialects/stable-baselines3.ts';
import { trlGrpo } from '../../src/doctor/dialects/trl-grpo.ts';
import { trlPpo } from '../../src/doctor/dialects/trl-ppo.ts';
import { findMetric } from '../../src/metrics/registry.ts';
import { python } from '../envs/python/support/files.ts';

const program =
  'import json, keel._names as n; print(json.dumps({"SB3": n.SB3, "TRL": n.TRL, "CLEANRL": n.CLEANRL}))';
const dialects: Readonly<Record<string, readonly Dialect[]>> = {
  SB3: [stableBaselines3],
  TRL: [trlGrpo, trlPpo],
  CLEANRL: [cleanrl],
};

const fits = ({ theirs }: Mapping, name: string): boolean =>
  typeof theirs === 'string'
    ? theirs === name
    : new RegExp(`^(?:${theirs.source})$`, theirs.flags).test(name);

/** What the doctor calls it: a KL with its estimator, where the name alone says which. */
function nameOf({ id, kl }: Mapping): string {
  if (kl === undefined || typeof kl === 'function') return id;
  return kl.estimator === 'exact' || id.endsWith(kl.estimator) ? id : `${id}_${kl.estimator}`;
}

test('one name has one meaning on both sides', () => {
  const { stdout, stderr, status } = spawnSync(python || 'python3', ['-c', program], {
    env: { ...process.env, PYTHONPATH: fileURLToPath(new URL('../../python', import.meta.url)) },
    encoding: 'utf8',
  });
  expect(status, stderr).toBe(0);
  const maps = JSON.parse(stdout) as Record<string, Record<string, string | [string, number]>>;
  let compared = 0;
  for (const [kind, names] of Object.entries(maps)) {
    for (const [theirs, said] of Object.entries(names)) {
      const [ours, times] = typeof said === 'string' ? [said, 1] : said;
      expect(findMetric(ours), `${theirs} is written as ${ours}`).toBeDefined();
      const found = dialects[kind].flatMap(({ mappings }) => mappings.filter(one => fits(one, theirs)))[0];
      if (found === undefined) continue;
      compared++;
      const theDoctors = nameOf(found);
      expect([theirs, typeof found.kl === 'function' ? ours.startsWith(theDoctors) : ours, times]).toEqual([
        theirs,
        typeof found.kl === 'function' ? true : theDoctors,
        found.times ?? 1,
      ]);
    }
  }
  expect(compared).toBeGreaterThan(40);
});
