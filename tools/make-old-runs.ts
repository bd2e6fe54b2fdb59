/**
 * Makes the runs of `test/runs/fixtures/0.1.0` with the version that wrote runs like them, and records what that version
 * makes of them: `npx tsx tools/make-old-runs.ts <checkout of that version, installed>`.
 *
 * With `--results` the runs stay, and only what they come to is recorded again. That is for another kind of processor,
 * which has other bits: `results` then has one more.
 */
import { execFileSync, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import {
  type Expected,
  expectedFile,
  fixtures,
  type Learnt,
  learnt,
  limited,
  type OldRun,
  type Outcome,
  oldRuns,
  packedRuns,
  processor,
  type Results,
  resultsOf,
  SOMEWHERE,
  shown,
  unpackRuns,
} from '../test/runs/support/old-runs.ts';

const [checkout = '', ...flags] = process.argv.slice(2);
if (!existsSync(join(checkout, 'src/cli/main.ts')))
  throw new Error(`${checkout || 'nothing'} is not a checkout of Keel: name one of the version to ask`);
const resultsOnly = flags.includes('--results');
const scratch = mkdtempSync(join(tmpdir(), 'keel-old-runs-'));

/** The old version's command line; `onLine` sees what it prints, while it runs. */
function start(args: readonly string[], onLine: (line: string) => void = () => {}) {
  // The working directory is where tsx is found; every path that is given is whole.
  const child = spawn(process.execPath, ['--import', 'tsx', 'src/cli/main.ts', ...args], {
    cwd: resolve(checkout),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const output = { stdout: '', stderr: '' };
  let seen = 0;
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (part: string) => {
      output[name] += part;
      if (name === 'stderr') return;
      const complete = output.stdout.split('\n').slice(0, -1);
      for (; seen < complete.length; seen++) onLine(complete[seen]);
    });
  }
  const done = new Promise<Outcome>((end, fail) => {
    child.on('error', fail).on('close', code => end({ code, ...output }));
  });
  return { child, done };
}
const keel = limited(args => start(args).done, 2);

// ---- making ---------------------------------------------------------------------------------------------------------

/** Trains a run in a directory of its own; with `stop`, until it is interrupted. */
async function trainOnce(run: OldRun, runs: string, stop: boolean): Promise<string> {
  const root = mkdtempSync(join(scratch, 'make-'));
  const task = existsSync(join(fixtures, run.task)) ? join(fixtures, run.task) : run.task;
  const from = run.from === undefined ? [] : ['--from', join(runs, run.from)];
  let rows = 0;
  const { child, done } = start(
    [run.command, task, '--no-preset', ...run.flags, ...from, '--run-dir', root, '--json'],
    line => {
      const { kind, dir } = JSON.parse(line) as { kind: string; dir: string };
      if (kind === 'start' && run.byHand) askFor(dir, { type: 'set', ...run.byHand, by: 'page' });
      if (kind === 'row' && ++rows === run.stopAfter && stop) child.kill('SIGINT');
    },
  );
  const { code, stderr } = await done;
  if (code !== 0 && code !== 130) throw new Error(`${run.name}: ${stderr}`);
  return join(root, readdirSync(root)[0]);
}

function askFor(dir: string, request: object): void {
  mkdirSync(join(dir, 'inbox'), { recursive: true });
  writeFileSync(join(dir, 'inbox', `${randomUUID()}.json`), `${JSON.stringify(request)}\n`);
}

/** Makes a run until it was interrupted in its middle, which a signal that comes late misses. */
async function make(run: OldRun, runs: string): Promise<void> {
  for (let attempt = 0; attempt < 20; attempt++) {
    const dir = await trainOnce(run, runs, run.stopAfter !== undefined);
    const { status, iteration, step, config } = JSON.parse(readFileSync(join(dir, 'manifest.json'), 'utf8'));
    const iterationsLeft = ((config.steps - step) / step) * iteration;
    const inTheMiddle = status === 'stopped' && iterationsLeft >= 2;
    const changed = run.byHand === undefined || existsSync(join(dir, 'adjustments.json'));
    if ((run.stopAfter === undefined || inTheMiddle) && changed) {
      cpSync(dir, join(runs, run.name), { recursive: true });
      neutralise(join(runs, run.name), runs);
      console.log(`${run.name}: ${status} after ${iteration} iterations, ${step} of ${config.steps} steps`);
      return;
    }
    console.log(`${run.name}: ${status} after ${iteration} iterations, again`);
  }
  throw new Error(`${run.name} was never interrupted in its middle`);
}

/** Another name, and nothing of this machine: a run that came from elsewhere. */
function neutralise(dir: string, runs: string): void {
  const path = join(dir, 'manifest.json');
  const manifest = JSON.parse(readFileSync(path, 'utf8'));
  const neutral = { ...manifest, id: basename(dir), host: 'elsewhere', pid: 1 };
  const text = JSON.stringify(neutral, null, 2)
    .replaceAll(fixtures.slice(0, -1), SOMEWHERE)
    .replaceAll(runs, `${SOMEWHERE}/runs`);
  writeFileSync(path, `${text}\n`);
  rmSync(join(dir, 'inbox'), { recursive: true, force: true });
  for (const name of readdirSync(dir, { recursive: true, encoding: 'utf8' })) {
    const file = join(dir, name);
    if (!statSync(file).isFile()) continue;
    const content = readFileSync(file, 'latin1');
    for (const own of [scratch, resolve(checkout), dirname(fixtures)])
      if (content.includes(own)) throw new Error(`${file} names ${own}`);
  }
}

// ---- checking -------------------------------------------------------------------------------------------------------

/** That a run which was never interrupted comes to the same. */
async function checkUninterrupted(run: OldRun, runs: string, { resumed }: Results): Promise<void> {
  if (resumed === undefined || run.byHand) return;
  const calm = learnt(await trainOnce(run, runs, false));
  const sides = [calm, resumed].map(({ rows, bits }: Learnt) => ({ rows, bits }));
  if (!isDeepStrictEqual(sides[0], sides[1]))
    throw new Error(`${run.name}: uninterrupted it comes to ${JSON.stringify(sides, null, 1)}`);
}

async function showAll(root: string): Promise<Expected['shown']> {
  let found = (_: string): void => {};
  const address = new Promise<string>(resolved => {
    found = resolved;
  });
  const { child, done } = start(['dash', root, '--port', '0', '--read-only'], line => {
    const url = /http:\/\/\S+/.exec(line)?.[0];
    if (url) found(url);
  });
  const { origin, searchParams } = new URL(await address);
  const headers = { authorization: `Bearer ${searchParams.get('token')}` };
  try {
    return await shown(keel, root, async path => {
      const answer = await fetch(`${origin}${path}`, { headers });
      return (await answer.json()) as Record<string, unknown>;
    });
  } finally {
    child.kill('SIGINT');
    await done;
  }
}

// ---- all of it --------------------------------------------------------------------------------------------------------

try {
  if (!resultsOnly) {
    const runs = join(scratch, 'runs');
    mkdirSync(runs);
    for (const run of oldRuns) await make(run, runs);
    execFileSync('tar', [
      ...['--sort=name', '--owner=0', '--group=0', '--numeric-owner'],
      ...['-czf', packedRuns, '-C', runs, ...readdirSync(runs)],
    ]);
  }
  const pristine = join(scratch, 'pristine');
  unpackRuns(pristine);
  const results: Record<string, Results> = {};
  for (const run of oldRuns) {
    results[run.name] = await resultsOf(keel, run, pristine, join(scratch, 'results', run.name));
    await checkUninterrupted(run, pristine, results[run.name]);
    console.log(`${run.name}: recorded`);
  }
  const before = resultsOnly ? (JSON.parse(readFileSync(expectedFile, 'utf8')) as Expected).results : {};
  const expected: Expected = {
    shown: await showAll(pristine),
    results: { ...before, [processor()]: results },
  };
  // Arrays of numbers and words in one line each.
  const text = JSON.stringify(expected, null, 1).replaceAll(/\[\s+([^[\]{}]*?)\s+\]/g, (_, inner: string) => {
    return `[${inner.replaceAll(/,\s+/g, ', ')}]`;
  });
  writeFileSync(expectedFile, `${text}\n`);
  console.log(
    `${statSync(packedRuns).size} bytes of runs, ${statSync(expectedFile).size} of what is expected`,
  );
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
