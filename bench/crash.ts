/**
 * Kills runs of every kind and compares them with ones that nothing happened to: `npm run bench -- crash [--kills 1000]
 * [--seed 1] [--kind grpo]`. Prints a line a hundred kills, one for each fault, and one at the end; exits 1 after a fault.
 */
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildPackage } from '../test/support/build-package.ts';
import { type AttackedRun, attack, type Deed, shown } from './crash/attack.ts';
import { machine, report, round } from './measure.ts';

function option(name: string): string | undefined {
  const at = process.argv.indexOf(name);
  return at < 0 ? undefined : process.argv[at + 1];
}

export async function run(): Promise<void> {
  const [kills, seed] = [Number(option('--kills') ?? 1000), Number(option('--seed') ?? 1)];
  const kind = option('--kind');
  report({ bench: 'crash', ...machine(), kills, seed });
  // In memory where there is such a place: runs are written with one sync after the other.
  const work = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'keel-crash-'));
  const [packageDir, scratch] = [join(work, 'package'), join(work, 'runs')];
  for (const dir of [packageDir, scratch]) mkdirSync(dir);
  const startedAt = performance.now();
  const done: AttackedRun[] = [];
  const summary = (): Record<string, unknown> => ({
    ...{ kills: killsOf(done), runs: done.length, faults: faultsOf(done).length },
    seconds: round((performance.now() - startedAt) / 1000, 0),
  });
  await buildPackage(packageDir);
  await attack({
    ...{ packageDir, scratch, seed, kills },
    ...(kind !== undefined && { kinds: [kind] }),
    onRun(attacked) {
      const hundreds = Math.floor(killsOf(done) / 100);
      done.push(attacked);
      for (const fault of attacked.faults)
        report({ kind: attacked.kind, kills: attacked.kills.map(shown), fault });
      if (Math.floor(killsOf(done) / 100) > hundreds) report(summary());
    },
  });
  for (const name of new Set(done.map(each => each.kind))) {
    const own = done.filter(each => each.kind === name);
    report({ kind: name, runs: own.length, kills: killsOf(own), faults: faultsOf(own).length });
  }
  const all = done.flatMap(each => each.kills);
  const by = (is: (deed: Deed) => boolean): number => all.filter(is).length;
  const sent = (signal: string): number => by(deed => deed.how === 'time' && deed.signal === signal);
  report({
    atACall: by(({ how }) => how === 'call'),
    ...Object.fromEntries(['SIGKILL', 'SIGTERM', 'SIGINT'].map(signal => [signal, sent(signal)])),
  });
  report(summary());
  if (faultsOf(done).length > 0) process.exitCode = 1;
  else rmSync(work, { recursive: true, force: true });
}

const killsOf = (runs: readonly AttackedRun[]): number => runs.flatMap(({ kills }) => kills).length;
const faultsOf = (runs: readonly AttackedRun[]): string[] => runs.flatMap(({ faults }) => faults);
