/**
 * A study of tiny runs on workers of a queue, while workers, Redis and the conductor are killed; then the same study on the
 * local pool, and what differs. For `npm run bench -- sweep chaos` and a test.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';
import { Rng } from '../../src/random/rng.ts';
import { openRun } from '../../src/runs/store.ts';
import { verifyRun } from '../../src/runs/verify.ts';
import { readJournal } from '../../src/studies/journal.ts';
import type { Study, Trial } from '../../src/studies/schema.ts';
import { createStudy, openStudy, studyPaths } from '../../src/studies/store.ts';
import { makeStudy } from '../../src/sweep/make-study.ts';
import type { QueueTimes } from '../../src/sweep/redis/names.ts';
import type { OwnRedis } from '../../test/support/redis-server.ts';

/** What is done to it. */
export type Blow = 'kill-worker' | 'restart-redis' | 'empty-redis' | 'kill-conductor';

export interface Attack {
  /** A package that `buildPackage` made. */
  readonly built: string;
  /** A directory for all that is written. */
  readonly work: string;
  readonly redis: Pick<OwnRedis, 'url' | 'restart' | 'restartEmpty'>;
  /** Two seeds a trial. */
  readonly runs: number;
  readonly workers: number;
  /** What happens after so many outcomes, in order. */
  readonly blows: readonly { readonly after: number; readonly blow: Blow }[];
  /** Besides, a worker is killed at moments this far apart, in ms: at least, at most. */
  readonly killEvery?: readonly [number, number];
  readonly seed?: number;
  /** Shorter than usual, for tests: workers are then started from code, since the command line has no flag for it. */
  readonly times?: Partial<QueueTimes>;
  readonly onProgress?: (progress: { readonly outcomes: number; readonly blows: Counts }) => void;
}

type Counts = Readonly<Record<Blow, number>>;

export interface Attacked {
  readonly blows: Counts;
  /** Jobs that were begun again, as the conductors were told. */
  readonly retries: number;
  /** Workers that ended though nobody killed them, such as those that were started while Redis was away. */
  readonly givenUp: number;
  readonly seconds: number;
  readonly localSeconds: number;
  readonly trials: number;
  /** Runs that went on from a checkpoint at least once. */
  readonly resumed: number;
  /** What is wrong, in words; empty where every trial is there once, with the bits of the local pool. */
  readonly problems: readonly string[];
}

/** Four updates of a small network, with a checkpoint in the middle. */
const tiny = {
  envs: 2,
  stepsPerRollout: 32,
  minibatchSize: 32,
  epochs: 1,
  hidden: [8],
  steps: 256,
  checkpointEvery: 2,
  csv: false,
  tensorboard: false,
};

/** A study of so many tiny runs, and a copy of it elsewhere, whose runs have the same names. */
async function tinyStudy(work: string, runs: number): Promise<{ queued: string; local: string }> {
  const seeds = [0, 1];
  const { dir, study } = await makeStudy(
    {
      env: 'cartpole',
      config: tiny,
      space: { learningRate: { log: [1e-4, 1e-2] }, gamma: [0.98, 0.99] },
      method: 'random',
      trials: runs / seeds.length,
      seeds,
      constraints: { healthy: false },
    },
    { root: join(work, 'queued'), name: 'tiny' },
  );
  return { queued: dir, local: createStudy(study, join(work, 'local')).dir };
}

/** Attacks a study until it is over, and compares. */
export async function attack(options: Attack): Promise<Attacked> {
  const { built, work, redis, runs, times } = options;
  const { queued, local } = await tinyStudy(work, runs);
  const { runs: shared } = studyPaths(queued);
  const rng = new Rng(options.seed ?? 0);
  const url = (name: string): string => JSON.stringify(pathToFileURL(join(built, 'dist', `${name}.js`)).href);
  const temporary = join(work, 'tmp');
  mkdirSync(temporary, { recursive: true });
  const { NODE_OPTIONS: _, ...inherited } = process.env;
  const env = { ...inherited, TMPDIR: temporary };
  const node = (args: readonly string[], output: 'pipe' | 'ignore' = 'ignore'): ChildProcess =>
    spawn(process.execPath, args, { env, cwd: work, stdio: ['ignore', output, 'pipe'] });
  const code = (text: string): string[] => ['--input-type=module', '--eval', text];

  const blows: Record<Blow, number> = {
    'kill-worker': 0,
    'restart-redis': 0,
    'empty-redis': 0,
    'kill-conductor': 0,
  };
  let [retries, givenUp, isOver] = [0, 0, false];
  const outcomes = new Set<string>();

  // Every other one shares the study's directory; the runs of the rest travel through Redis.
  const startWorker = (i: number): ChildProcess => {
    const root = i % 2 === 0 ? shared : undefined;
    const program = `const { startWorker } = await import(${url('sweep/worker')});
await startWorker(${JSON.stringify({ url: redis.url, root, concurrency: 1, times })});`;
    const flags = ['worker', '--queue', redis.url, '--jobs', '1', ...(root ? ['--run-dir', root] : [])];
    const child = node(times === undefined ? [join(built, 'bin/keel.js'), ...flags] : code(program));
    child.stderr!.resume();
    child.once('exit', (_, signal) => {
      if (isOver) return;
      if (signal !== 'SIGKILL') givenUp++;
      workers[i] = startWorker(i);
    });
    return child;
  };
  const workers: ChildProcess[] = [];
  for (let i = 0; i < options.workers; i++) workers.push(startWorker(i));

  let conductor: ChildProcess;
  const conduct = (): Promise<void> =>
    new Promise((done, failed) => {
      const program = `const { openQueuePlace } = await import(${url('sweep/places/queue')});
const { conductStudy } = await import(${url('sweep/sweep')});
const { openStudy, studyPaths } = await import(${url('studies/store')});
const { dir, study } = openStudy(${JSON.stringify(queued)});
const say = text => process.stdout.write(text + '\\n');
const place = await openQueuePlace(${JSON.stringify(redis.url)}, {
  study: study.name, runs: studyPaths(dir).runs, times: ${JSON.stringify(times ?? {})}, onRetried: () => say('retried') });
say('opened');
await conductStudy(dir, study, { place, onOutcome: (_, { run }) => say('outcome ' + run) });
await place.close();`;
      conductor = node(code(program), 'pipe');
      let [said, opened] = ['', false];
      conductor.stderr!.setEncoding('utf8').on('data', (text: string) => {
        said = (said + text).slice(-4000);
      });
      createInterface({ input: conductor.stdout! }).on('line', line => {
        const [kind, run] = line.split(' ');
        if (kind === 'retried') retries++;
        else if (kind === 'opened') opened = true;
        else heard(run);
      });
      conductor.once('close', (exit, signal) => {
        // One that was started while Redis was away says so and ends, as workers do.
        const cameTooSoon = !opened && said.includes('cannot use Redis');
        if (signal === 'SIGKILL' || cameTooSoon) conduct().then(done, failed);
        else if (exit === 0) done();
        else failed(new Error(`the conductor ended with ${exit ?? signal}: ${said}`));
      });
    });

  const killWorker = (): void => {
    // One that has just been killed is not there to be killed again.
    const alive = workers.filter(({ exitCode, signalCode }) => exitCode === null && signalCode === null);
    alive[rng.integer(alive.length)]?.kill('SIGKILL');
  };
  const strike = async (blow: Blow): Promise<void> => {
    if (isOver) return;
    if (blow === 'kill-worker') killWorker();
    else if (blow === 'kill-conductor') conductor.kill('SIGKILL');
    else if (blow === 'restart-redis') await redis.restart();
    else await redis.restartEmpty();
    blows[blow]++;
  };
  const waiting = [...options.blows].sort((a, b) => a.after - b.after);
  let striking: Promise<void> = Promise.resolve();
  const heard = (run: string): void => {
    outcomes.add(run);
    options.onProgress?.({ outcomes: outcomes.size, blows });
    while (waiting.length > 0 && waiting[0].after <= outcomes.size) {
      const { blow } = waiting.shift()!;
      striking = striking.then(() => strike(blow));
    }
  };
  let timer: NodeJS.Timeout | undefined;
  const killLater = ([least, most]: readonly [number, number]): void => {
    timer = setTimeout(
      () => {
        void strike('kill-worker');
        killLater([least, most]);
      },
      least + rng.uniform() * (most - least),
    );
  };
  if (options.killEvery !== undefined) killLater(options.killEvery);

  const startedAt = performance.now();
  try {
    await conduct();
    await striking;
  } finally {
    isOver = true;
    clearTimeout(timer);
    conductor!.kill('SIGKILL');
    for (const worker of workers) worker.kill('SIGKILL');
  }
  const seconds = (performance.now() - startedAt) / 1000;
  const localSeconds = await conductLocally(local, node, built);
  const { problems, ...compared } = compare(queued, local);
  const spared = waiting.map(({ blow, after }) => `${blow} after ${after} runs was not struck`);
  return {
    ...{ blows, retries, givenUp, seconds, localSeconds, ...compared },
    problems: [...problems, ...spared],
  };
}

/** The same study on processes of this machine, with nobody killed. */
async function conductLocally(
  dir: string,
  node: (args: readonly string[]) => ChildProcess,
  built: string,
): Promise<number> {
  const startedAt = performance.now();
  const child = node([join(built, 'bin/keel.js'), 'sweep', dir]);
  let said = '';
  child.stderr!.setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
  const exit = await new Promise<number | null>(done => child.once('close', done));
  if (exit !== 0) throw new Error(`the local study ended with ${exit}: ${said}`);
  return (performance.now() - startedAt) / 1000;
}

/** Whether every trial of a study is there once, whole, with the weights that another directory of the same study has. */
function compare(queued: string, local: string): Pick<Attacked, 'trials' | 'resumed' | 'problems'> {
  const { study } = openStudy(queued);
  const problems = journalProblems(studyPaths(queued).journal, study);
  const trials = readJournal(studyPaths(queued).journal).trials;
  const wanted = readJournal(studyPaths(local).journal).trials;
  if (wanted.length !== study.trials) problems.push(`the local pool has ${wanted.length} trials`);
  const outcomesOf = (all: readonly Trial[]) => all.flatMap(({ outcomes }) => outcomes);
  const weights = new Map(outcomesOf(wanted).map(outcome => [outcome.run, outcome]));
  let resumed = 0;
  for (const { run, status, finished, weights: mine, value, step } of outcomesOf(trials)) {
    const theirs = weights.get(run);
    if (status !== 'done' || !finished || mine === null)
      problems.push(`${run} is ${status}, at step ${step}`);
    if (theirs?.weights !== mine || theirs.value !== value)
      problems.push(`${run} has other weights or another value`);
    const dir = join(studyPaths(queued).runs, run);
    if (!existsSync(dir)) {
      problems.push(`${run} is not in the study's directory`);
      continue;
    }
    const { manifest, status: now } = openRun(dir);
    if (now !== 'finished') problems.push(`${run} is ${now} on disk`);
    if (manifest.resumes > 0) resumed++;
    problems.push(...verifyRun(dir).problems.map(problem => `${run}: ${JSON.stringify(problem)}`));
  }
  const dirs = readdirSync(studyPaths(queued).runs).filter(name => !name.startsWith('.'));
  const strangers = dirs.filter(name => !weights.has(name));
  if (strangers.length > 0) problems.push(`runs of no trial: ${strangers.join(', ')}`);
  return { trials: trials.length, resumed, problems };
}

/** Every trial is created, told of each of its seeds and ended once: by the lines themselves, not by what they add up to. */
function journalProblems(path: string, { trials, seeds }: Study): string[] {
  const [created, ended, told] = [[] as number[], new Map<number, number>(), new Map<string, number>()];
  const count = <T>(map: Map<T, number>, key: T): void => void map.set(key, (map.get(key) ?? 0) + 1);
  let number = 0;
  for (const text of readFileSync(path, 'utf8').split('\n').filter(Boolean)) {
    const line = JSON.parse(text) as Record<string, unknown>;
    if (line.op_code === 4) created.push(number++);
    // Optuna's states: 1 complete, 2 pruned, 3 failed.
    else if (line.op_code === 6 && [1, 2, 3].includes(line.state as number))
      count(ended, line.trial_id as number);
    else if (line.op_code === 8)
      for (const key of Object.keys(line.user_attr as object))
        if (key.startsWith('keel:outcome:')) count(told, `${line.trial_id}/${key}`);
  }
  const problems: string[] = [];
  if (created.length !== trials) problems.push(`${created.length} trials were created, ${trials} wanted`);
  if (ended.size !== trials) problems.push(`${ended.size} trials ended, ${trials} wanted`);
  if (told.size !== trials * seeds.length)
    problems.push(`${told.size} runs have an outcome, ${trials * seeds.length} wanted`);
  for (const [what, counts] of [
    ['ended', ended],
    ['was told', told],
  ] as const)
    for (const [key, times] of counts) if (times !== 1) problems.push(`trial ${key} ${what} ${times} times`);
  return problems;
}
