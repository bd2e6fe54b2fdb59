/**
 * The attack on "killed at any moment, it goes on to the same bits": runs of every kind are killed at random times and at
 * the N-th call that changes the disk, also while they resume; each is then let to its end and compared with one that
 * nothing happened to. Processes are real and lose all that they had in memory.
 */
import { spawn } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Rng } from '../../src/random/rng.ts';
import { runPaths } from '../../src/runs/layout.ts';
import { lockPattern } from '../../src/runs/lock.ts';
import { readEvents, readTrajectory } from '../../src/runs/log.ts';
import { cleanRoot, deleteRun, listRuns, openRun } from '../../src/runs/store.ts';
import { verifyRun } from '../../src/runs/verify.ts';
import { compileInto } from '../../test/support/build-package.ts';
import { type Kind, kindsOf, parents, severalChoices } from './kinds.ts';

/** What is attacked, and how much. */
export interface AttackOptions {
  /** The compiled package. */
  readonly packageDir: string;
  /** An empty directory for runs; best in memory. */
  readonly scratch: string;
  readonly seed: number;
  /** It ends after so many kills. */
  readonly kills: number;
  /** Kinds of run, in turns; all of them unless given. */
  readonly kinds?: readonly string[];
  /** After each run. */
  readonly onRun?: (run: AttackedRun) => void;
}

/** What was done to one run, and what came of it. */
export interface AttackedRun {
  readonly kind: string;
  /** In their order. */
  readonly kills: readonly Deed[];
  /** What differs from a run that nothing happened to; none should. */
  readonly faults: readonly string[];
}

/** How a process is ended. */
export type Deed =
  | { readonly how: 'call'; readonly at: number; readonly when: 'before' | 'half' | 'after' }
  | { readonly how: 'time'; readonly ms: number; readonly signal: 'SIGKILL' | 'SIGTERM' | 'SIGINT' };

interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly output: string;
  readonly ms: number;
}

/** Kills until there were so many; gives what was done. */
export async function attack(options: AttackOptions): Promise<AttackedRun[]> {
  const rng = new Rng(options.seed);
  const world = await worldOf(options);
  const names = options.kinds ?? world.kinds;
  const done: AttackedRun[] = [];
  for (let kills = 0, turn = 0; kills < options.kills; turn++) {
    const run = await attackOne(world, names[turn % names.length], rng, options.kills - kills);
    kills += run.kills.length;
    done.push(run);
    options.onRun?.(run);
  }
  return done;
}

/** Where everything is, and how a program is started there. */
async function worldOf({ packageDir, scratch }: AttackOptions) {
  const preload = await compileInto(packageDir, 'bench/crash/die-at-call.ts');
  await compileInto(packageDir, 'test/runs/support/spec.ts');
  const writer = await compileInto(packageDir, 'test/runs/support/train.ts');
  const keel = join(packageDir, 'dist/cli/main.js');
  const several = join(scratch, 'several.js');
  writeFileSync(several, severalChoices(pathToFileURL(join(packageDir, 'dist/envs/index.js')).href));
  const home = join(scratch, 'home');
  mkdirSync(home);

  const start = (args: readonly string[], deed?: Deed, more: NodeJS.ProcessEnv = {}): Promise<Ended> => {
    const fatal = deed?.how === 'call' ? { KEEL_DIE_AT: String(deed.at), KEEL_DIE_HOW: deed.when } : {};
    const startedAt = performance.now();
    const child = spawn(process.execPath, ['--import', pathToFileURL(preload).href, ...args], {
      cwd: scratch,
      env: { PATH: process.env.PATH, HOME: home, XDG_CONFIG_HOME: home, ...fatal, ...more },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => {
        output = (output + text).slice(-4000);
      });
    const timer =
      deed?.how === 'time' ? setTimeout(() => child.kill(deed.signal), deed.ms) : setTimeout(() => {}, 0);
    return new Promise((resolve, reject) => {
      child.on('error', reject).on('close', (code, signal) => {
        clearTimeout(timer);
        resolve({ code, signal, output, ms: performance.now() - startedAt });
      });
    });
  };

  const commands = kindsOf(several);
  const parentDirs = new Map<string, string>();
  /** Makes the run that others begin from, once. */
  async function makeParent(name: keyof typeof parents): Promise<void> {
    if (parentDirs.has(name)) return;
    const root = join(scratch, `parent-${name}`);
    mkdirSync(root);
    succeed(await start([keel, ...parents[name], '--run-dir', root]), name);
    parentDirs.set(name, join(root, readdirSync(root)[0]));
  }
  const parentOf = ({ parent }: Kind): string => parentDirs.get(parent ?? '') ?? '';

  /** The command that begins a run of a kind, or goes on with the one in `root`. */
  function command(kind: string, root: string, dir: string | undefined): string[] {
    if (kind === writerKind) return [writer, join(root, 'run'), '16', '0'];
    const { begin, goesOn = false } = commands[kind];
    const isBegun = dir !== undefined && (!goesOn || openRun(dir).manifest.resumes > 0);
    const args = isBegun ? ['resume', 'last'] : begin(parentOf(commands[kind]));
    return [keel, ...args, '--run-dir', root];
  }

  /** A root for a run of a kind, with what it goes on with. */
  function newRoot(kind: string, name: string): string {
    const root = join(scratch, name);
    mkdirSync(root);
    if (kind !== writerKind && commands[kind].goesOn) {
      const parent = parentOf(commands[kind]);
      cpSync(parent, join(root, basename(parent)), { recursive: true });
    }
    return root;
  }

  const calm = new Map<string, Calm>();
  /** A run of a kind that nothing happens to. */
  async function undisturbed(kind: string): Promise<Calm> {
    const known = calm.get(kind);
    if (known !== undefined) return known;
    const { parent } = commands[kind] ?? {};
    if (parent !== undefined) await makeParent(parent);
    const root = newRoot(kind, `calm-${calm.size}`);
    const counts = join(scratch, 'calls');
    const ended = await start(command(kind, root, undefined), undefined, { KEEL_COUNT_CALLS: counts });
    succeed(ended, kind);
    const dir = join(root, readdirSync(root)[0]);
    const found = { dir, ms: ended.ms, calls: Number(readFileSync(counts, 'utf8')) };
    calm.set(kind, found);
    return found;
  }
  return { kinds: [writerKind, ...Object.keys(commands)], start, command, newRoot, undisturbed };
}

interface Calm {
  readonly dir: string;
  readonly ms: number;
  readonly calls: number;
}

type World = Awaited<ReturnType<typeof worldOf>>;

/** A trainer without a policy, for the log, checkpoints and projections alone: it takes a tenth as long. */
export const writerKind = 'no policy';

function succeed({ code, output }: Ended, what: string): void {
  if (code !== 0) throw new Error(`${what} ended with ${code}: ${output}`);
}

let number = 0;

/** Begins a run, kills it once or a few times in a row, lets it end, and compares. */
async function attackOne(world: World, kind: string, rng: Rng, most: number): Promise<AttackedRun> {
  const calm = await world.undisturbed(kind);
  const root = world.newRoot(kind, `attacked-${++number}`);
  const wanted = Math.min(most, 1 + rng.integer(4));
  const kills: Deed[] = [];
  const faults: string[] = [];
  let isStopped = false;
  let isLocked = false;
  for (let tries = 0; faults.length === 0; tries++) {
    const dir = soleRun(root, faults);
    // A kill may also come when all is done, before the lock is given up.
    isLocked = isDone(dir, calm);
    if (isLocked) break;
    const deed = kills.length < wanted && tries < 8 ? drawn(rng, calm) : undefined;
    const { code, signal, output } = await world.start(world.command(kind, root, dir), deed);
    const isEnded = signal !== null || code === 143 || code === 130;
    if (isEnded && deed !== undefined) kills.push(deed);
    else if (code !== 0) faults.push(`it ended with ${signal ?? code}: ${output}`);
    isStopped ||= code === 143 || code === 130;
    if (code === 0) break;
  }
  if (faults.length === 0) {
    // Of the last process, if it died; the next start in its root deletes them.
    if (isLocked) cleanRoot(root);
    faults.push(...leftovers(root, isLocked));
    const { dir } = listRuns([root]).runs[0];
    faults.push(...differences(dir, calm.dir, isStopped));
    // What it writes is made up, and says nothing of an update.
    if (kind !== writerKind) faults.push(...verifyRun(dir).problems.map(({ text }) => `verify: ${text}`));
  }
  // What went wrong stays, to be looked at.
  if (faults.length === 0) rmSync(root, { recursive: true });
  return { kind, kills, faults: faults.map(fault => `${fault} (${root})`) };
}

/** Whether a run has ended as the one that nothing happened to, which may have gone on with one that was finished. */
function isDone(dir: string | undefined, calm: Calm): boolean {
  if (dir === undefined) return false;
  const [{ status, step }, whole] = [openRun(dir).manifest, openRun(calm.dir).manifest];
  return status === 'finished' && step === whole.step;
}

/** The run in a root. What a kill left before it was one is listed and can be deleted. */
function soleRun(root: string, faults: string[]): string | undefined {
  const { runs, broken } = listRuns([root]);
  for (const { dir } of broken) deleteRun(dir, root);
  if (runs[0]?.status === 'running') faults.push('its process is gone, and it says that it is running');
  const strange = readdirSync(root).filter(name => !name.startsWith('.keel-tmp-') && name !== runs[0]?.id);
  if (strange.length > 0 && !strange.every(name => isEmpty(join(root, name))))
    faults.push(`${strange.join(', ')} is neither a run nor listed as half made`);
  return runs[0]?.dir;
}

const isEmpty = (dir: string): boolean => readdirSync(dir).length === 0;

function drawn(rng: Rng, { ms, calls }: Calm): Deed {
  const kind = rng.uniform();
  if (kind < 0.55)
    return {
      how: 'call',
      at: 1 + rng.integer(calls),
      when: (['before', 'half', 'after'] as const)[rng.integer(3)],
    };
  const signal = kind < 0.86 ? 'SIGKILL' : kind < 0.93 ? 'SIGTERM' : 'SIGINT';
  return { how: 'time', ms: rng.uniform() * ms, signal };
}

/** A kill in words. */
export const shown = (deed: Deed): string =>
  deed.how === 'call' ? `call ${deed.at} ${deed.when}` : `${deed.signal} at ${Math.round(deed.ms)} ms`;

/**
 * What is not the same in two runs. One that was asked to stop saves a checkpoint of its own there, so that it may have
 * other checkpoints; what it learnt is the same.
 */
function differences(dir: string, calm: string, isStopped: boolean): string[] {
  const faults: string[] = [];
  const compare = (what: string, [ours, theirs]: readonly [string, string]): void => {
    if (ours !== theirs) faults.push(`${what} differs`);
  };
  const [run, whole] = [readTrajectory(dir), readTrajectory(calm)];
  compare('metrics.jsonl', [run.rows.join('\n'), whole.rows.join('\n')]);
  const kept = (lines: readonly string[]): string =>
    lines.filter(line => !isStopped || !line.startsWith('{"type":"checkpoint"')).join('\n');
  compare('events.jsonl', [kept(run.events), kept(whole.events)]);
  const { status, manifest } = openRun(dir);
  if (status !== 'finished') faults.push(`it is ${status}, not finished`);
  const { items, broken } = readEvents(dir);
  for (const { line, reason } of broken) faults.push(`events.jsonl, line ${line} is damaged: ${reason}`);
  const resumed = items.filter(({ type }) => type === 'resumed').length;
  if (resumed > manifest.resumes)
    faults.push(`${resumed} events say that it was resumed, ${manifest.resumes} times by its manifest`);
  const [files, expected] = [dir, calm].map(checkpointFiles) as [Map<string, string>, Map<string, string>];
  if (!isStopped) compare('the list of checkpoints', [[...files.keys()].join(), [...expected.keys()].join()]);
  const last = readFileSync(runPaths(calm).last, 'utf8').trim();
  for (const [name, bytes] of expected)
    if (!isStopped || name.startsWith(`${last}/`)) compare(name, [files.get(name) ?? 'absent', bytes]);
  if (!isStopped)
    for (const name of ['best', 'last']) {
      const [ours, theirs] = [dir, calm].map(run => textOf(runPaths(run).checkpoints, name));
      compare(`checkpoints/${name}`, [ours, theirs]);
    }
  // Event files are named after the time, and a lock may be left of the last process.
  const names = (run: string): string =>
    readdirSync(run)
      .filter(name => !lockPattern.test(name))
      .map(name => name.replace(/\d{10}/, 'n'))
      .sort()
      .join();
  compare('what is in its directory', [names(dir), names(calm)]);
  for (const name of ['policy.onnx', 'completions.jsonl'])
    compare(name, [textOf(dir, name), textOf(calm, name)]);
  return faults;
}

const textOf = (dir: string, name: string): string =>
  existsSync(join(dir, name)) ? readFileSync(join(dir, name), 'latin1') : 'absent';

/** Every file of every checkpoint, but that which says when it was saved. */
function checkpointFiles(dir: string): Map<string, string> {
  const { checkpoints } = runPaths(dir);
  const names = readdirSync(checkpoints)
    .filter(step => /^\d+$/.test(step))
    .flatMap(step => readdirSync(join(checkpoints, step)).map(file => `${step}/${file}`))
    .filter(name => !name.endsWith('checkpoint.json'));
  return new Map(names.sort().map(name => [name, textOf(checkpoints, name)]));
}

function leftovers(root: string, isLocked: boolean): string[] {
  return readdirSync(root, { recursive: true, encoding: 'utf8' })
    .filter(name => /^(\.keel-tmp-.*|lock\.\d+|.*\.tmp)$/.test(basename(name)))
    .filter(name => !(isLocked && lockPattern.test(basename(name))))
    .map(name => `${name} is left`);
}
