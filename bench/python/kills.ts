/** A training whose processes are killed at random, and which is killed itself and resumed: it must learn what a calm one does. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as later } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { Rng } from '../../src/random/rng.ts';
import { listRuns } from '../../src/runs/index.ts';
import { machine, report } from '../measure.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const walker = join(root, 'test/envs/python/files/walker.py');
/** Of all kills, this share is Keel's own. */
const OWN_SHARE = 0.15;

export async function run(args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: { kills: { type: 'string', default: '200' }, seed: { type: 'string', default: '1' } },
  });
  const kills = Number(values.kills);
  const rng = new Rng(Number(values.seed));
  report({ bench: 'python kills', ...machine(), seed: values.seed });
  const runs = mkdtempSync(join(tmpdir(), 'keel-kills-'));
  try {
    let done = { children: 0, own: 0, resumed: 0, orphans: 0 };
    let rounds = 0;
    let [rows, wrong, notes] = [0, 0, 0];
    const calm = await calmRun(join(runs, 'calm'));
    while (done.children + done.own < kills) {
      const place = join(runs, `round-${rounds++}`);
      done = await struckRun(place, rng, kills, done);
      const found = rowsOf(place);
      rows += found.length;
      if (found.length !== calm.length) wrong++;
      wrong += found.filter((row, i) => row !== calm[i]).length;
      notes += notesOf(place);
      rmSync(place, { recursive: true, force: true });
    }
    report({
      what: 'kills',
      ...done,
      runs: rounds,
      rows,
      rows_that_differ: wrong,
      notes,
      temporary_folders_left: leftFolders(),
    });
    if (wrong > 0 || done.orphans > 0) process.exitCode = 1;
  } finally {
    rmSync(runs, { recursive: true, force: true });
  }
}

const common = (place: string): string[] => ['--exit', '--run-dir', place];
const settings = [
  ...['--steps', '81920', '--seed', '3', '--set', 'envs=4', '--set', 'stepsPerRollout=512'],
  ...[
    '--set',
    'workers=2',
    '--set',
    'record=false',
    '--set',
    'checkpointEvery=1',
    '--set',
    'envOptions.restarts=1000',
  ],
];

function keel(args: readonly string[]): ChildProcess {
  return spawn(process.execPath, [join(root, 'bin/keel.js'), ...args], { stdio: 'ignore' });
}

async function calmRun(place: string): Promise<string[]> {
  const child = keel(['train', `${walker}:Walker`, ...settings, ...common(place)]);
  await once(child, 'exit');
  return rowsOf(place);
}

async function struckRun(
  place: string,
  rng: Rng,
  kills: number,
  before: { children: number; own: number; resumed: number; orphans: number },
) {
  const done = { ...before };
  let child = keel(['train', `${walker}:Walker`, ...settings, ...common(place)]);
  let ended = false;
  /** Rows that there were at the last kill: the next waits for another, which says that all has started again. */
  let rowsThen = 0;
  const watch = (one: ChildProcess) =>
    one.once('exit', (_code, signal) => {
      ended = signal === null;
    });
  watch(child);
  while (!ended) {
    await later(50 + rng.integer(500));
    if (ended || done.children + done.own >= kills) {
      if (!ended) await once(child, 'exit');
      break;
    }
    const theirs = processesOf(child.pid!);
    // Kills at one and the same call, such as of a process that is starting again, are an error that is meant.
    const rows = rowsOf(place).length;
    if (theirs.length === 0 || rows <= rowsThen) continue;
    rowsThen = rows;
    if (rng.uniform() < OWN_SHARE) {
      const group = allOf(theirs);
      child.kill('SIGKILL');
      await once(child, 'exit').catch(() => {});
      done.own++;
      await later(1000);
      done.orphans += group.filter(isThere).length;
      const saved = listRuns([place]).runs[0];
      child = keel(
        saved === undefined || rowsOf(place).length === 0
          ? ['train', `${walker}:Walker`, ...settings, ...common(place)]
          : ['resume', saved.dir, '--exit'],
      );
      if (saved !== undefined && rowsOf(place).length === 0)
        rmSync(saved.dir, { recursive: true, force: true });
      else if (saved !== undefined) done.resumed++;
      ended = false;
      watch(child);
      continue;
    }
    // The minder or what it minds, as it comes.
    const group = allOf(theirs);
    if (group.length === 0) continue; // they have just been started anew
    const victim = group[rng.integer(group.length)];
    try {
      process.kill(victim, 'SIGKILL');
      done.children++;
    } catch {
      // It has ended by itself.
    }
  }
  const left = processesOf(child.pid!);
  done.orphans += left.length;
  return done;
}

/** All but what the clock says. */
function rowsOf(place: string): string[] {
  const [found] = listRuns([place]).runs;
  if (found === undefined) return [];
  let text = '';
  try {
    text = readFileSync(join(found.dir, 'metrics.jsonl'), 'utf8');
  } catch {
    return [];
  }
  return text
    .split('\n')
    .slice(0, -1)
    .map(line =>
      JSON.stringify(Object.entries(JSON.parse(line) as object).filter(([key]) => !key.startsWith('time/'))),
    );
}

function notesOf(place: string): number {
  const [found] = listRuns([place]).runs;
  if (found === undefined) return 0;
  const lines = readFileSync(join(found.dir, 'events.jsonl'), 'utf8').split('\n');
  return lines.filter(line => line.includes('was started again')).length;
}

function stat(pid: number): string[] {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ');
  } catch {
    return [];
  }
}
const isThere = (pid: number): boolean => !['Z', 'X', undefined].includes(stat(pid)[0]);
const pids = (): number[] => readdirSync('/proc').flatMap(name => (/^\d+$/.test(name) ? [Number(name)] : []));
/** Minders: children of Keel's that lead a group. */
const processesOf = (keelPid: number): number[] =>
  pids().filter(pid => stat(pid)[1] === String(keelPid) && stat(pid)[2] === String(pid) && isThere(pid));
/** With all of their groups. */
const allOf = (minders: readonly number[]): number[] =>
  pids().filter(pid => minders.includes(Number(stat(pid)[2])) && isThere(pid));
const leftFolders = (): number =>
  readdirSync(tmpdir()).filter(name => name.startsWith('keel-python-')).length;
