/**
 * Routing requests: the simulator's speed; a policy for each of five seeds, cloned and trained on four replicas, against
 * every rule, on the same requests, at 4, 8 and 16 replicas and on the code workload; and warm starts with the reference
 * schedule and without.
 *
 * `npm run bench -- router [directory]`: runs are kept in the directory (`runs/bench-router`) and used again where they are
 * whole, so that it can be stopped and gone on with. A picture of the warm starts is written to docs/pictures.
 */
import { join } from 'node:path';
import { clone, train } from '../src/algos/index.ts';
import { routerOfRun } from '../src/algos/policy-router.ts';
import {
  type ClusterReport,
  clusterScale,
  defaultReplica,
  drawWorkload,
  hardwareList,
  makeRouter,
  type Router,
  routerKinds,
  simulate,
  workloads,
} from '../src/envs/cluster/index.ts';
import { Rng } from '../src/random/index.ts';
import { listCheckpoints, listRuns } from '../src/runs/index.ts';
import { machine, median, report, round } from './measure.ts';
import { drawWarmStarts } from './router/warm-start-picture.ts';

const seeds = [0, 1, 2, 3, 4];
const loads = [0.7, 0.8, 0.9];
const FOUR = 'h100,2*a100,a40';
const REQUESTS = 20_000;
/** Steps of training after cloning; about two minutes on one core. */
const STEPS = 320_000;
const DEMONSTRATORS = ['least-finish', 'least-requests'];

const settings = [
  { name: '4 replicas', replicas: FOUR, workload: 'conversation' },
  { name: '8 replicas', replicas: [FOUR, FOUR].join(','), workload: 'conversation' },
  { name: '16 replicas', replicas: [FOUR, FOUR, FOUR, FOUR].join(','), workload: 'conversation' },
  { name: '4 replicas, code', replicas: FOUR, workload: 'code' },
] as const;

const specsOf = (list: string) => hardwareList(list).map(hardware => ({ ...defaultReplica, hardware }));

export async function run(): Promise<void> {
  const root = process.argv[3] ?? join('runs', 'bench-router');
  report({ bench: 'router', ...machine(), seeds: seeds.length, requests: REQUESTS, steps: STEPS });
  speed();
  const trained = new Map<number, string>();
  for (const seed of seeds) trained.set(seed, await policyOf(root, seed, 'with'));
  for (const setting of settings) for (const load of loads) await compare(setting, load, trained);
  await warmStarts(root);
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

type Reference = 'with' | 'without';

/** The run of a seed, trained now unless it is there. */
async function policyOf(root: string, seed: number, reference: Reference): Promise<string> {
  const places = { clone: join(root, 'clone'), with: join(root, 'with'), without: join(root, 'without') };
  const whole = (place: string): string | undefined =>
    listRuns([place]).runs.find(({ manifest }) => manifest.seed === seed && manifest.status === 'finished')
      ?.dir;
  const from =
    whole(places.clone) ??
    (
      await clone({
        env: 'cluster',
        config: { seed, steps: 60_000 },
        root: places.clone,
        demonstrators: DEMONSTRATORS,
      })
    ).dir;
  const done = whole(places[reference]);
  if (done !== undefined) return done;
  const { dir } = await train({
    env: 'cluster',
    from,
    root: places[reference],
    config: {
      seed,
      steps: STEPS,
      checkpointEvery: 4,
      keepEvery: 4,
      ...(reference === 'with'
        ? { klRefCoefInitial: 0.3, klRefDecaySteps: 1200 }
        : { reference: 'none' as const }),
    },
  });
  return dir;
}

/** All routers on the same requests, one set for each seed; the policy of that seed among them. */
async function compare(
  { name, replicas: list, workload }: (typeof settings)[number],
  load: number,
  trained: ReadonlyMap<number, string>,
): Promise<void> {
  const replicas = specsOf(list);
  const spec = workloads[workload];
  const scale = clusterScale(replicas, spec);
  const results = new Map<string, ClusterReport[]>();
  for (const seed of seeds) {
    const requests = drawWorkload(
      spec,
      { count: REQUESTS, ratePerS: load * scale.capacityPerS },
      new Rng(1000 + seed),
    );
    const play = (label: string, router: Router): void => {
      const own = simulate({ replicas, workload: requests, router });
      results.set(label, [...(results.get(label) ?? []), own]);
    };
    for (const kind of routerKinds) play(kind.name, makeRouter(kind.name, new Rng(seed)));
    const policy = await routerOfRun(trained.get(seed)!, { specs: replicas, scale });
    play('policy', policy);
    policy.dispose();
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
    report({
      setting: name,
      load,
      measure,
      bestRule: best,
      policyAgainstBestPercent: change(best),
      eachSeedPercent: results
        .get('policy')!
        .map((own, i) => round(100 * (of(own) / of(results.get(best)![i]!) - 1), 1)),
      policyAgainstRoundRobinPercent: change('round-robin'),
      policyAgainstLeastAddedPercent: change('least-added'),
    });
  }
}

/** Every kept checkpoint of the first seed's two warm starts, on requests of their own, beside what was cloned. */
async function warmStarts(root: string): Promise<void> {
  const replicas = specsOf(FOUR);
  const spec = workloads.conversation;
  const scale = clusterScale(replicas, spec);
  const sets = [0, 1, 2].map(seed =>
    drawWorkload(spec, { count: 6000, ratePerS: 0.8 * scale.capacityPerS }, new Rng(2000 + seed)),
  );
  const score = (router: Router): number =>
    average(sets.map(workload => simulate({ replicas, workload, router }).endToEnd.mean));
  const demonstrators = DEMONSTRATORS.map(name => ({ name, meanS: score(makeRouter(name, new Rng(0))) }));
  const curves: Record<Reference, { step: number; meanS: number }[]> = { with: [], without: [] };
  for (const reference of ['with', 'without'] as const) {
    const dir = await policyOf(root, 0, reference);
    for (const { step } of listCheckpoints(dir).sort((a, b) => a.step - b.step)) {
      const router = await routerOfRun(dir, { specs: replicas, scale, checkpoint: step });
      curves[reference].push({ step, meanS: score(router) });
      router.dispose();
    }
    const worst = curves[reference].reduce((a, b) => (b.meanS > a.meanS ? b : a));
    report({
      what: `warm start ${reference} the reference`,
      demonstrators: demonstrators.map(({ name, meanS }) => ({ name, meanS: round(meanS, 3) })),
      start: round(curves[reference][0]!.meanS, 3),
      worst: { step: worst.step, meanS: round(worst.meanS, 3) },
      end: round(curves[reference].at(-1)!.meanS, 3),
      curve: curves[reference].map(({ step, meanS }) => [step, round(meanS, 3)]),
    });
  }
  drawWarmStarts('docs/pictures/warm-start.svg', demonstrators, curves);
}

const average = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0) / values.length;

function spread(values: readonly number[]): number {
  const mean = average(values);
  return Math.sqrt(average(values.map(value => (value - mean) ** 2)));
}
