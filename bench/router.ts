/**
 * Routing requests: the simulator's speed; a policy for each of five seeds, trained on four replicas with the preset, against
 * every rule, on the same requests, at 4, 8 and 16 replicas and on the code workload; and warm starts from a rule with the
 * reference schedule and without.
 *
 * `npm run bench -- router [directory] [part] [--seeds 1000..1004] [--arms warm,plain]`: parts are `speed`, `policies`,
 * `warm-starts`; all unless one is named. Arms are those of the warm starts. Runs and simulations are kept in the directory (`runs/bench-router`) and used again where they are whole, so that
 * it can be stopped and gone on with. A picture of the warm starts is written to docs/pictures. The preset was tuned on
 * training seeds below 10 and on requests of seeds 7000 to 7002; the requests here are of other ones.
 */
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import { clone, openPolicy, train } from '../src/algos/runs.ts';
import { writeFileAtomic } from '../src/base/files.ts';
import {
  type ClusterReport,
  type ClusterScale,
  clusterScale,
  clusterSpaces,
  defaultReplica,
  drawWorkload,
  hardwareList,
  makeRouter,
  policyRouter,
  type ReplicaSpec,
  type Router,
  routerKinds,
  simulate,
  workloads,
} from '../src/envs/cluster/index.ts';
import { Rng } from '../src/random/index.ts';
import { listRuns } from '../src/runs/index.ts';
import { bootstrapInterval, interquartileMean } from '../src/studies/statistics.ts';
import { freshSeedsOf } from './figures/seeds.ts';
import { machine, median, report, round } from './measure.ts';
import { refuse } from './refuse.ts';
import { drawWarmStarts, type Evaluation } from './router/warm-start-picture.ts';

const FRESH_SEEDS = '1000..1004';
/** Requests are of seeds that no preset was tuned with, and no training draws from. */
const REQUEST_SEED = 500_000;
const loads = [0.7, 0.8, 0.9];
const FOUR = 'h100,2*a100,a40';
const REQUESTS = 20_000;
/** Warm starts learn what one rule does. */
const DEMONSTRATOR = 'least-finish';
const DEMONSTRATIONS = 100_000;
/** Of 10,000 requests each; they tell differences of .05 % from none. */
const EVALUATION_SETS = 8;
/**
 * Then they are trained as `keel train cluster --from` does it, near a reference and with small first steps; with small first
 * steps alone; and plainly, without either. And with three times the preset's learning rate, which a policy can lose by at first.
 */
const everyCheckpoint = { checkpointEvery: 1, keepEvery: 1 } as const;
const plain = { reference: 'none', warmupShare: 0 } as const;
const fast = { learningRate: 3e-3 } as const;
const warmStartArms = {
  warm: { ...everyCheckpoint },
  noReference: { ...everyCheckpoint, reference: 'none' },
  plain: { ...everyCheckpoint, ...plain },
  fastWarm: { ...everyCheckpoint, ...fast },
  fastPlain: { ...everyCheckpoint, ...fast, ...plain },
} as const;
type Arm = keyof typeof warmStartArms;
const everyArm = Object.keys(warmStartArms) as Arm[];
const armNames: Readonly<Record<Arm, string>> = {
  warm: 'reference and small first steps',
  noReference: 'small first steps',
  plain: 'neither',
  fastWarm: 'learning rate 3e-3, reference and small first steps',
  fastPlain: 'learning rate 3e-3, neither',
};
/** Steps that are evaluated: often at first, where drops are. */
const evaluated = [0, 4096, 8192, 12_288, 16_384, 24_576, 32_768, 65_536, 131_072, 200_704];

const settings = [
  { name: '4 replicas', replicas: FOUR, workload: 'conversation' },
  { name: '4 replicas, code', replicas: FOUR, workload: 'code' },
  { name: '8 replicas', replicas: [FOUR, FOUR].join(','), workload: 'conversation' },
  { name: '16 replicas', replicas: [FOUR, FOUR, FOUR, FOUR].join(','), workload: 'conversation' },
] as const;

const specsOf = (list: string) => hardwareList(list).map(hardware => ({ ...defaultReplica, hardware }));

const parts = { speed, policies, 'warm-starts': warmStarts } as const;

export async function run(): Promise<void> {
  const { values, positionals } = parseArgs({
    args: process.argv.slice(3),
    allowPositionals: true,
    options: {
      seeds: { type: 'string', default: FRESH_SEEDS },
      arms: { type: 'string', default: everyArm.join(',') },
    },
  });
  const [root = join('runs', 'bench-router'), part] = positionals;
  const seeds = freshSeedsOf(values.seeds);
  const arms = values.arms
    .split(',')
    .map(
      name =>
        everyArm.find(arm => arm === name) ??
        refuse(`--arms ${values.arms} has '${name}': use ${everyArm.join(', ')}`),
    );
  const names = Object.keys(parts) as (keyof typeof parts)[];
  if (part !== undefined && !names.some(name => name === part))
    throw new Error(`the part ${part} is unknown: use ${names.join(', ')}, or none for all`);
  report({ bench: 'router', ...machine(), seeds, requests: REQUESTS });
  for (const name of names) if (part === undefined || part === name) await parts[name](root, seeds, arms);
}

/** Events a second of processor time, of the median of five simulations. */
function speed(): void {
  const replicas = specsOf(FOUR);
  const spec = workloads.conversation;
  const { capacityPerS } = clusterScale(replicas, spec);
  const rates = Array.from({ length: 6 }, (_, seed) => {
    const workload = drawWorkload(spec, { count: 20_000, ratePerS: 0.8 * capacityPerS }, new Rng(seed));
    const router = makeRouter('least-requests', new Rng(seed));
    const before = process.cpuUsage().user;
    const { events } = simulate({ replicas, workload, router });
    return events / ((process.cpuUsage().user - before) / 1e6);
  });
  // The first one compiles.
  report({ what: 'simulator', eventsPerCpuSecond: Math.round(median(rates.slice(1))) });
}

/** The run of a seed in a directory, made now unless it is there whole. */
async function runOf(
  root: string,
  kind: string,
  seed: number,
  make: (place: string) => Promise<{ dir: string }>,
): Promise<string> {
  const place = join(root, kind);
  const whole = listRuns([place]).runs.find(
    ({ manifest }) => manifest.seed === seed && manifest.status === 'finished',
  );
  return whole?.dir ?? (await make(place)).dir;
}

async function policies(root: string, seeds: readonly number[]): Promise<void> {
  const trained = new Map<number, string>();
  for (const seed of seeds) {
    const dir = await runOf(root, 'policy', seed, place =>
      train({ env: 'cluster', root: place, config: { seed } }),
    );
    trained.set(seed, dir);
  }
  for (const setting of settings) for (const load of loads) await compare(root, setting, load, trained);
}

/** A report from its file, made now unless it is there. */
function kept(path: string, make: () => ClusterReport): ClusterReport {
  if (existsSync(path)) return JSON.parse(readFileSync(path, 'utf8')) as ClusterReport;
  const made = make();
  mkdirSync(dirname(path), { recursive: true });
  writeFileAtomic(path, JSON.stringify(made));
  return made;
}

/** Lends the policy of a run as a router. */
async function routing<T>(
  dir: string,
  on: { readonly specs: readonly ReplicaSpec[]; readonly scale: ClusterScale; readonly checkpoint?: number },
  work: (router: Router) => T,
): Promise<T> {
  const { specs, scale, checkpoint } = on;
  const policy = await openPolicy(dir, { checkpoint, spaces: clusterSpaces(specs.length) });
  try {
    return work(policyRouter({ name: policy.run.id, specs, scale, score: policy.score }));
  } finally {
    await policy.close();
  }
}

/** All routers on the same requests, one set for each seed; the policy of that seed among them. */
async function compare(
  root: string,
  { name, replicas: list, workload }: (typeof settings)[number],
  load: number,
  trained: ReadonlyMap<number, string>,
): Promise<void> {
  const replicas = specsOf(list);
  const spec = workloads[workload];
  const scale = clusterScale(replicas, spec);
  const results = new Map<string, ClusterReport[]>();
  for (const seed of trained.keys()) {
    const requests = drawWorkload(
      spec,
      { count: REQUESTS, ratePerS: load * scale.capacityPerS },
      new Rng(REQUEST_SEED + seed),
    );
    const play = (label: string, router: Router): void => {
      const path = join(root, 'simulations', name, `${load}-${seed}-${router.name}.json`);
      const own = kept(path, () => simulate({ replicas, workload: requests, router }));
      results.set(label, [...(results.get(label) ?? []), own]);
    };
    for (const kind of routerKinds) play(kind.name, makeRouter(kind.name, new Rng(seed)));
    await routing(trained.get(seed)!, { specs: replicas, scale }, router => play('policy', router));
  }
  const mean = (label: string, of: (own: ClusterReport) => number): number =>
    average(results.get(label)!.map(of));
  const [meanOf, p99Of] = [
    (own: ClusterReport) => own.endToEnd.mean,
    (own: ClusterReport) => own.endToEnd.p99,
  ];
  for (const [router, reports] of results) {
    report({
      setting: name,
      load,
      router,
      mean: round(mean(router, meanOf), 3),
      meanStd: round(spread(reports.map(meanOf)), 3),
      p99: round(mean(router, p99Of), 3),
      p99Std: round(spread(reports.map(p99Of)), 3),
      firstTokenP99: round(
        mean(router, own => own.timeToFirstToken.p99),
        3,
      ),
      growing: reports.filter(({ backlog }) => backlog.isGrowing).length,
    });
  }
  // The six rules that people use; `least-added`, ours, is reported apart.
  const common = routerKinds.map(kind => kind.name).filter(kind => kind !== 'least-added');
  for (const [measure, of] of [
    ['mean', meanOf],
    ['p99', p99Of],
  ] as const) {
    const best = common.reduce((a, b) => (mean(b, of) < mean(a, of) ? b : a));
    const change = (to: string): number => round(100 * (mean('policy', of) / mean(to, of) - 1), 1);
    const changes = results.get('policy')!.map((own, i) => 100 * (of(own) / of(results.get(best)![i]) - 1));
    const { low, high } = bootstrapInterval(changes);
    report({
      setting: name,
      load,
      measure,
      bestRule: best,
      policyAgainstBestPercent: change(best),
      iqmPercent: round(interquartileMean(changes), 1),
      intervalPercent: [round(low, 1), round(high, 1)],
      eachSeedPercent: changes.map(percent => round(percent, 1)),
      policyAgainstRoundRobinPercent: change('round-robin'),
      policyAgainstLeastAddedPercent: change('least-added'),
    });
  }
}

/** A clone of the rule, trained on. */
async function warmStartOf(root: string, seed: number, arm: Arm): Promise<string> {
  const from = await runOf(root, 'clone', seed, place =>
    clone({
      env: 'cluster',
      config: { seed, steps: DEMONSTRATIONS, demonstrators: [DEMONSTRATOR] },
      root: place,
    }),
  );
  return runOf(root, arm, seed, place =>
    train({ env: 'cluster', from, root: place, config: { seed, ...warmStartArms[arm] } }),
  );
}

/** Checkpoints of the warm starts, on requests of their own, beside what was cloned, on the same. */
async function warmStarts(root: string, seeds: readonly number[], arms: readonly Arm[]): Promise<void> {
  const replicas = specsOf(FOUR);
  const spec = workloads.conversation;
  const scale = clusterScale(replicas, spec);
  const sets = Array.from({ length: EVALUATION_SETS }, (_, seed) =>
    drawWorkload(spec, { count: 10_000, ratePerS: 0.8 * scale.capacityPerS }, new Rng(2000 + seed)),
  );
  const means = (router: Router, place: string): number[] =>
    sets.map((workload, i) => {
      const path = join(root, 'simulations', 'warm starts', `${place}-${i}.json`);
      return kept(path, () => simulate({ replicas, workload, router })).endToEnd.mean;
    });
  const theirs = means(makeRouter(DEMONSTRATOR, new Rng(0)), DEMONSTRATOR);
  const demonstratorS = average(theirs);
  /** Against the demonstrator, in percent, and what the sets of requests leave open of it. */
  const score = (router: Router, place: string): Omit<Evaluation, 'step'> => {
    const differences = means(router, place).map((meanS, i) => meanS - theirs[i]);
    const error = spread(differences) / Math.sqrt(sets.length - 1);
    const percent = (seconds: number): number => round((100 * seconds) / demonstratorS, 2);
    return { percent: percent(average(differences)), error: percent(error) };
  };
  const curves: Record<Arm, Evaluation[][]> = {
    warm: [],
    noReference: [],
    plain: [],
    fastWarm: [],
    fastPlain: [],
  };
  for (const seed of seeds) {
    for (const arm of arms) {
      const dir = await warmStartOf(root, seed, arm);
      const curve: Evaluation[] = [];
      for (const step of evaluated) {
        const own = await routing(dir, { specs: replicas, scale, checkpoint: step }, router =>
          score(router, `${router.name}-${step}`),
        );
        curve.push({ step, ...own });
      }
      curves[arm].push(curve);
      report({
        what: `warm start: ${armNames[arm]}`,
        seed,
        demonstrator: round(demonstratorS, 3),
        worst: curve.slice(1).reduce((a, b) => (b.percent > a.percent ? b : a)),
        curve: curve.map(({ step, percent, error }) => [step, percent, error]),
      });
    }
    drawWarmStarts('docs/pictures/warm-start.svg', DEMONSTRATOR, {
      with: curves.warm,
      without: curves.plain,
    });
  }
}

const average = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0) / values.length;

function spread(values: readonly number[]): number {
  const mean = average(values);
  return Math.sqrt(average(values.map(value => (value - mean) ** 2)));
}
