/**
 * Runs that an earlier version of Keel wrote, and all that is done with them: by its command line and its server alone,
 * so that any version can be asked. `tools/make-old-runs.ts` made the runs and asked the version that wrote them;
 * `test/runs/old-runs.test.ts` asks this one.
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { cpus } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Packed runs, what the version that wrote them made of them, and the environment that some of them name. */
export const fixtures = fileURLToPath(new URL('../fixtures/0.1.0/', import.meta.url));
export const packedRuns = join(fixtures, 'runs.tar.gz');
/** Stands in the packed manifests where a directory of the machine was. */
export const SOMEWHERE = '/somewhere';

export interface OldRun {
  readonly name: string;
  /** The command that made it; `from` is the old run that it began from. */
  readonly command: 'train' | 'clone';
  readonly task: string;
  readonly flags: readonly string[];
  readonly from?: string;
  /** Ctrl-C after so many rows; a run without it was left to finish, and has nothing to resume. */
  readonly stopAfter?: number;
  /** A setting that was changed from outside while it was trained. */
  readonly byHand?: { readonly key: string; readonly value: number };
  /** Other settings of a fork; without, the version that wrote the run could not fork it. */
  readonly fork?: readonly string[];
  /** What makes it longer than it was to be, of a run that could not be forked. */
  readonly longer?: readonly string[];
  /** What training from its weights is started with. */
  readonly trainFrom?: readonly string[];
  /** Evaluated with actions drawn as in training, instead of the most likely. */
  readonly sampled?: boolean;
  /** Its environment gives other numbers since: what is done with it works, to the same steps, and comes to other values. */
  readonly otherNumbers?: boolean;
  /** Whether it is of a language model: its checkpoints are model directories, and there is no ONNX file. */
  readonly text?: boolean;
}

const set = (...pairs: string[]): string[] => pairs.flatMap(pair => ['--set', pair]);
/** 32 steps an iteration. */
const small = set(
  ...['envs=2', 'stepsPerRollout=16', 'minibatchSize=16', 'epochs=2', 'hidden=[8]', 'checkpointEvery=3'],
  ...['csv=false', 'tensorboard=false', 'seed=7'],
);
const smallSet = [...small, ...set('network=set', 'envOptions.replicas=a100,a40', 'envOptions.requests=20')];
const text = set('taskOptions.digits=1', 'csv=false', 'tensorboard=false', 'seed=7', 'threads=1');
const grpo = [...text, ...set('promptsPerIteration=4', 'groupSize=4', 'learningRate=0.003')];

export const oldRuns: readonly OldRun[] = [
  {
    name: 'ppo-discrete',
    command: 'train',
    task: 'cartpole',
    flags: [
      ...small,
      ...set('learningRate=0.01', 'learningRateSchedule=linear', 'clipRangeSchedule=cosine'),
      ...set('targetKl=0.005', 'steps=288'),
    ],
    stopAfter: 2,
    fork: set('clipRange=0.1'),
  },
  {
    name: 'ppo-box',
    command: 'train',
    task: 'pendulum',
    // Shorter episodes, so that some end.
    flags: [
      ...small,
      ...set('envOptions.maxEpisodeSteps=40', 'logStdEnd=-1', 'entropyCoef=0.01', 'learningRate=0.01'),
      ...set('steps=288'),
    ],
    stopAfter: 2,
    fork: set('learningRate=0.001'),
  },
  {
    name: 'ppo-multi-discrete',
    command: 'train',
    task: 'switches.mjs',
    flags: [...small, ...set('learningRate=0.01', 'steps=288')],
    stopAfter: 2,
    fork: set('gamma=0.9'),
  },
  {
    name: 'ppo-multi-binary',
    command: 'train',
    task: 'switches.mjs',
    flags: [...small, ...set('envOptions.positions=binary', 'learningRate=0.01', 'steps=288')],
    stopAfter: 2,
    sampled: true,
    fork: set('epochs=3'),
  },
  {
    name: 'ppo-hybrid',
    command: 'train',
    task: 'courier',
    // A rate at which the guard acts.
    flags: [
      ...small,
      ...set('reference=refreshed', 'referenceEvery=2', 'learningRate=0.05', 'guard=0.005', 'steps=288'),
    ],
    stopAfter: 2,
    sampled: true,
    fork: set('klRefCoefInitial=0.1'),
  },
  {
    name: 'ppo-every-controller',
    command: 'train',
    task: 'pendulum',
    flags: [
      ...small,
      ...set('normaliseObservations=true', 'normaliseRewards=true', 'reference=averaged'),
      ...set(
        'klCoef=0.5',
        'klCoefRule=adaptive',
        'klCoefTarget=0.001',
        'adaptiveRate=true',
        'learningRate=0.005',
      ),
      ...set('adaptiveRateTarget=0.001', 'noiseCorrelation=0.7', 'learningRateSchedule=cosine', 'steps=288'),
    ],
    stopAfter: 2,
    sampled: true,
    fork: set('klCoef=0.2'),
  },
  {
    name: 'ppo-changed-by-hand',
    command: 'train',
    task: 'cartpole',
    flags: [...small, ...set('steps=384')],
    byHand: { key: 'learningRate', value: 0.002 },
    stopAfter: 4,
    fork: set('epochs=1'),
  },
  {
    name: 'clone-policy',
    command: 'clone',
    task: 'cluster',
    // Attention of a prefill was linear then.
    otherNumbers: true,
    flags: [...smallSet, '--steps', '600', '--epochs', '3'],
    longer: set('epochs=5'),
    trainFrom: [...smallSet, ...set('steps=96')],
  },
  {
    name: 'ppo-set-network',
    command: 'train',
    task: 'cluster',
    otherNumbers: true,
    from: 'clone-policy',
    flags: [...smallSet, ...set('rewardScale=0.1', 'learningRate=0.01', 'steps=288')],
    stopAfter: 2,
    fork: set('learningRate=0.001'),
  },
  {
    name: 'clone-text',
    command: 'clone',
    task: 'arithmetic',
    flags: [
      ...text,
      ...set('layers=1', 'width=8', 'heads=2', 'batchSize=16', 'batchesPerIteration=10'),
      ...set('learningRate=0.01', 'checkpointEvery=10', 'steps=3200'),
    ],
    stopAfter: 12,
    longer: ['--steps', '3520'],
    trainFrom: [...grpo, ...set('steps=48')],
    text: true,
  },
  {
    name: 'grpo',
    command: 'train',
    task: 'arithmetic',
    from: 'clone-text',
    flags: [
      ...grpo,
      ...set('epochs=2', 'minibatchSize=8', 'klRefCoefRule=adaptive', 'reference=refreshed'),
      ...set('referenceEvery=3', 'checkpointEvery=3', 'steps=128'),
    ],
    stopAfter: 2,
    longer: ['--steps', '144'],
    sampled: true,
    text: true,
  },
];

// ---- asking a command line ------------------------------------------------------------------------------------------

export interface Outcome {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a version's command line to its end. */
export type Keel = (args: readonly string[]) => Promise<Outcome>;

/** The same, no more than so many at a time. */
export function limited(keel: Keel, most: number): Keel {
  const waiting: (() => void)[] = [];
  let running = 0;
  return async args => {
    if (running === most) await new Promise<void>(go => waiting.push(go));
    else running++;
    try {
      return await keel(args);
    } finally {
      const next = waiting.shift();
      if (next) next();
      else running--;
    }
  };
}

/** What it printed; that it failed is an error. */
async function asked(keel: Keel, args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await keel(args);
  if (code !== 0) throw new Error(`keel ${args.join(' ')} ended with ${code}: ${stderr || stdout}`);
  return stdout;
}

/** Of each metric its values over the rows, null where a row has none. */
export type Columns = Readonly<Record<string, readonly (number | null)[]>>;

/** What a run has learnt, for comparing. */
export interface Learnt {
  readonly status: string;
  readonly step: number;
  readonly parent: unknown;
  readonly rows: Columns;
  readonly events: readonly string[];
  readonly checkpoints: readonly string[];
  /** SHA-256 of the last checkpoint's files and of the completions. Another processor has other bits. */
  readonly bits: Readonly<Record<string, string>>;
}

export interface Results {
  readonly evaluated: Readonly<Record<string, unknown>>;
  readonly exported?: readonly { readonly action: number[]; readonly distribution: number[] }[];
  /** The last checkpoint taken as a model directory. */
  readonly asModel?: Readonly<Record<string, unknown>>;
  readonly resumed?: Learnt;
  readonly forked?: Learnt;
  readonly trainedFrom?: Learnt;
}

/** Unpacks the runs into a directory of runs, as if they had been made with the fixtures' own files. */
export function unpackRuns(root: string): void {
  mkdirSync(root, { recursive: true });
  execFileSync('tar', ['-xzf', packedRuns, '-C', root]);
  for (const name of readdirSync(root)) {
    const manifest = join(root, name, 'manifest.json');
    writeFileSync(manifest, readFileSync(manifest, 'utf8').replaceAll(SOMEWHERE, fixtures.slice(0, -1)));
  }
}

/** All that can be done with an old run, in a directory of runs of its own that is made for it. */
export async function resultsOf(keel: Keel, run: OldRun, pristine: string, root: string): Promise<Results> {
  cpSync(join(pristine, run.name), join(root, run.name), { recursive: true });
  const dir = join(root, run.name);
  const [runDir, last] = [
    ['--run-dir', root],
    ['--checkpoint', 'last'],
  ];
  const evaluate = async (...args: string[]): Promise<Record<string, unknown>> =>
    JSON.parse(await asked(keel, ['eval', ...args, '-n', '3', '--seed', '11', '--json']));
  const exporting = async (): Promise<Pick<Results, 'exported' | 'asModel'>> => {
    if (run.text) {
      const { model: _, ...result } = await evaluate(
        ...[run.task, '--from', lastCheckpoint(dir), ...set('taskOptions.digits=1')],
      );
      return { asModel: result };
    }
    const file = join(root, `${run.name}.onnx`);
    await asked(keel, ['export', dir, ...last, '-o', file]);
    return { exported: await outputsOf(file) };
  };

  const forking = async (): Promise<Learnt | undefined> => {
    if (!run.fork) return undefined;
    const id = `${run.name}-fork`;
    await asked(keel, ['fork', run.name, ...last, ...run.fork, '--id', id, ...runDir, '--json']);
    return learnt(join(root, id));
  };
  const trainingFrom = async (): Promise<Learnt | undefined> => {
    if (!run.trainFrom) return undefined;
    const own = join(root, 'from');
    await asked(keel, [
      ...['train', run.task, '--no-preset', '--from', dir, ...run.trainFrom],
      ...['--run-dir', own, '--json'],
    ]);
    return learnt(join(own, readdirSync(own)[0]));
  };
  // None of these changes the run.
  const [evaluated, exported, forked, trainedFrom] = await Promise.all([
    evaluate(dir, ...last, ...(run.sampled ? ['--sampled'] : [])),
    exporting(),
    forking(),
    trainingFrom(),
  ]);
  if (run.stopAfter !== undefined) await asked(keel, ['resume', run.name, ...runDir, '--json']);
  return {
    evaluated,
    ...exported,
    ...(forked ? { forked } : {}),
    ...(trainedFrom ? { trainedFrom } : {}),
    ...(run.stopAfter === undefined ? {} : { resumed: learnt(dir) }),
  };
}

// ---- reading a run ----------------------------------------------------------------------------------------------------

const json = (path: string): Record<string, unknown> => JSON.parse(readFileSync(path, 'utf8'));
const lines = (path: string): Record<string, unknown>[] =>
  readFileSync(path, 'utf8')
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line));
export const sha256 = (path: string): string => createHash('sha256').update(readFileSync(path)).digest('hex');

function lastCheckpoint(dir: string): string {
  return join(dir, 'checkpoints', readFileSync(join(dir, 'checkpoints', 'last'), 'utf8').trim());
}

/** A run as it lies on the disk, without times and what a process is called. */
export function learnt(dir: string): Learnt {
  const { status, step, parent } = json(join(dir, 'manifest.json'));
  const checkpoint = lastCheckpoint(dir);
  const files = readdirSync(checkpoint).filter(name => name !== 'checkpoint.json');
  const hasCompletions = readdirSync(dir).includes('completions.jsonl');
  return {
    status: status as string,
    step: step as number,
    parent,
    rows: columnsOf(lines(join(dir, 'metrics.jsonl'))),
    events: lines(join(dir, 'events.jsonl')).map(
      ({ type, iteration, step: at }) => `${type} ${iteration} ${at}`,
    ),
    checkpoints: readdirSync(join(dir, 'checkpoints')).sort(),
    bits: Object.fromEntries([
      ...files.sort().map(name => [name, sha256(join(checkpoint, name))]),
      ...(hasCompletions ? [['completions.jsonl', sha256(join(dir, 'completions.jsonl'))]] : []),
    ]),
  };
}

function columnsOf(rows: readonly Record<string, unknown>[]): Columns {
  const names = [...new Set(rows.flatMap(row => Object.keys(row)))].filter(name => !name.startsWith('time/'));
  return Object.fromEntries(
    names.sort().map(name => [name, rows.map(row => (row[name] ?? null) as number | null)]),
  );
}

const ort = createRequire(import.meta.url)('onnxruntime-node') as typeof import('onnxruntime-node');
const OBSERVATIONS = 3;

/** What an exported policy answers to some observations, one at a time. */
async function outputsOf(file: string): Promise<NonNullable<Results['exported']>> {
  const session = await ort.InferenceSession.create(file);
  const [input] = session.inputMetadata as unknown as [{ readonly shape: readonly (number | string)[] }];
  const size = Number(input.shape.at(-1));
  const answers = [];
  for (let k = 0; k < OBSERVATIONS; k++) {
    const observation = Float32Array.from({ length: size }, (_, i) => Math.sin(1 + i + 7 * k));
    const out = await session.run({ observation: new ort.Tensor('float32', observation, [1, size]) });
    const numbers = (name: string): number[] => [...(out[name].data as Float32Array)];
    answers.push({ action: numbers('action'), distribution: numbers('distribution') });
  }
  await session.release();
  return answers;
}

// ---- showing --------------------------------------------------------------------------------------------------------

export interface Shown {
  /** Of `keel runs --json`. */
  readonly listed: unknown;
  /** Of the server. */
  readonly checkpoints: unknown;
  readonly summary: unknown;
  readonly config: unknown;
  readonly metrics: unknown;
  readonly series: unknown;
  readonly events: unknown;
  readonly completions?: unknown;
  /** The parts of what a policy that routes requests was recorded doing. */
  readonly recordedRouting?: unknown;
}

type Answers = Record<string, unknown>;

/** What `keel runs` and a server over the directory of all old runs tell of each. */
export async function shown(
  keel: Keel,
  root: string,
  get: (path: string) => Promise<Answers>,
): Promise<Record<string, Shown>> {
  const { runs: listed, broken } = JSON.parse(await asked(keel, ['runs', '--json', '--run-dir', root])) as {
    runs: Answers[];
    broken: unknown[];
  };
  if (broken.length > 0) throw new Error(`keel runs cannot read ${JSON.stringify(broken)}`);
  const runs = await loadedRuns(get);
  const one = async ({ name }: OldRun): Promise<[string, Shown]> => {
    const { id, dir, ...rest } = listed.find(run => run.id === name) ?? {};
    const summary = runs.find(run => run.name === name);
    if (summary === undefined) throw new Error(`the server does not show ${name}`);
    const at = `/api/runs/${summary.id}`;
    const { metrics, config } = (await get(at)) as { metrics: Answers[]; config: Answers };
    const drawn = metrics.map(metric => String(metric.id)).filter(metric => SERIES.includes(metric));
    const { series } = (await get(`${at}/series?metrics=${drawn.map(encodeURIComponent).join(',')}`)) as {
      series: { metric: string; x: number[]; mean: number[] }[];
    };
    const { checkpoints } = (await get(`${at}/checkpoints`)) as { checkpoints: Answers[] };
    const { counts } = await get(`${at}/events`);
    const { groups } = (await get(`${at}/completions`)) as { groups?: Answers[] };
    const { timeline } = (await get(`${at}/cluster`)) as { timeline?: Answers | null };
    return [
      name,
      {
        listed: rest,
        checkpoints: checkpoints.map(checkpoint =>
          pick(checkpoint, ['step', 'iteration', 'score', 'isBest', 'isLast']),
        ),
        summary: pick(summary, SUMMARY),
        config: Object.fromEntries(
          Object.entries(config).filter(([, value]) => !String(value).includes(fixtures.slice(0, -1))),
        ),
        metrics: Object.fromEntries(
          metrics
            .filter(metric => !String(metric.id).startsWith('time/'))
            .map(metric => [metric.id, [metric.points, metric.last]]),
        ),
        series: Object.fromEntries(series.map(({ metric, x, mean }) => [metric, { x, mean }])),
        events: counts,
        ...(groups && groups.length > 0 ? { completions: groups[0] } : {}),
        ...(timeline ? { recordedRouting: Object.keys(timeline) } : {}),
      },
    ];
  };
  const all: [string, Shown][] = [];
  for (const run of oldRuns) all.push(await one(run));
  return Object.fromEntries(all);
}

/** Once the server has read them all. */
async function loadedRuns(get: (path: string) => Promise<Answers>): Promise<Answers[]> {
  for (let waits = 0; waits < 600; waits++) {
    const { runs } = (await get('/api/runs')) as { runs: Answers[] };
    if (runs.filter(({ loaded }) => loaded === true).length === oldRuns.length) return runs;
    await new Promise(resolve => setTimeout(resolve, 100));
  }
  throw new Error(`the server has not read all ${oldRuns.length} runs within a minute`);
}

const SERIES = ['kl/step', 'loss/policy', 'loss/value', 'loss/clone', 'episode/return', 'reward/mean'];
const SUMMARY = [
  ...['name', 'trainer', 'state', 'environment', 'algorithm', 'seed', 'step', 'totalSteps', 'startedAt'],
  ...['sparkline', 'lastReturn', 'lastKl', 'klBand', 'problem', 'notes'],
];
const pick = (from: Answers, keys: readonly string[]): Answers =>
  Object.fromEntries(keys.map(key => [key, from[key]]));

// ---- what is expected ---------------------------------------------------------------------------------------------------

/** ONNX Runtime picks its kernels by the processor: bits are those of one kind. */
export function processor(): string {
  const model = cpus()[0]?.model.trim() ?? 'unknown';
  return `${model}${hasAvx512() ? ', AVX-512' : ''}`;
}

function hasAvx512(): boolean {
  try {
    return readFileSync('/proc/cpuinfo', 'utf8').includes('avx512f');
  } catch {
    return false; // not Linux: the model says enough
  }
}

export interface Expected {
  readonly shown: Readonly<Record<string, Shown>>;
  /** By processor, then by run. */
  readonly results: Readonly<Record<string, Readonly<Record<string, Results>>>>;
}

export const expectedFile = join(fixtures, 'expected.json');
