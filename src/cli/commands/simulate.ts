import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { type Command, Option } from 'commander';
import type { Policy } from '../../algos/policy.ts';
import { openPolicy } from '../../algos/runs.ts';
import { writeFileAtomic } from '../../base/files.ts';
import { number } from '../../base/numbers.ts';
import { sparkline } from '../../base/plots.ts';
import { typed } from '../../base/typed.ts';
import { clusterDefinition } from '../../envs/cluster/cluster-env.ts';
import type { ClusterReport } from '../../envs/cluster/metrics.ts';
import { clusterSpaces } from '../../envs/cluster/observation.ts';
import { policyRouter } from '../../envs/cluster/policy-router.ts';
import { measureTable, replicaTable, routerTable, shortName } from '../../envs/cluster/report-tables.ts';
import { makeRouter, type Router, routerKinds } from '../../envs/cluster/routers.ts';
import { simulate } from '../../envs/cluster/simulate.ts';
import { type ClusterFlags, type ClusterTask, clusterTask } from '../../envs/cluster/task.ts';
import { TimelineRecorder } from '../../envs/cluster/timeline.ts';
import { Rng } from '../../random/rng.ts';
import { runPaths } from '../../runs/layout.ts';
import { resolveRun } from '../../runs/store.ts';
import type { ClusterTimeline } from '../../view/cluster-timeline.ts';
import type { Context } from '../context.ts';
import { UsageError } from '../errors.ts';
import type { Examples } from '../examples.ts';
import {
  envFileOption,
  type PolicyFlags,
  positiveNumber,
  runDirOption,
  trustOption,
  wholeNumber,
} from '../options.ts';
import { trustOf } from '../trust.ts';

interface SimulateFlags extends ClusterFlags, PolicyFlags {
  readonly router: string;
}

/** What came of one router. */
interface Result {
  readonly router: string;
  readonly report: ClusterReport;
  readonly timeline: ClusterTimeline;
  /** The directory of the run whose policy it is, where it is one. */
  readonly run: string | undefined;
}

export function define(command: Command): void {
  command
    .argument('<system>', 'what to simulate: cluster')
    .option(
      '--router <names>',
      'rules and runs to compare, with commas between them; all for every rule',
      'all',
    )
    .option('--replicas <list>', 'hardware of each replica', 'h100,2*a100,a40')
    .addOption(
      new Option('--scheduler <name>', "the replicas' own scheduler")
        .choices(['vllm', 'sarathi'])
        .default('vllm'),
    )
    .option('--workload <name>', 'conversation, code, or a trace (./requests.csv)', 'conversation')
    .option('--arrivals <process>', 'instead of its own: poisson, static, gamma:CV, bursts:ON_S/OFF_S')
    .option('--prompt <lengths>', 'instead of its own: fixed:N, uniform:A-B, zipf:T/A-B, lognormal:M/S/MAX')
    .option('--decode <lengths>', 'the same of answers')
    .option(
      '--load <share>',
      'mean arrivals as a share of what the cluster bears (default: 0.8)',
      positiveNumber,
    )
    .option('--rate <n>', 'mean arrivals a second, instead of a load', positiveNumber)
    .option('--requests <n>', 'how many requests (default: 10000, or all of a trace)', wholeNumber)
    .option(
      '--length-error <s>',
      "how far off the routers' estimates of answers are: std of the log",
      positiveNumber,
      0.3,
    )
    .option('--failures <up/down>', 'replicas fail: mean seconds up and down, such as 600/30')
    .option('--seed <n>', 'where all randomness comes from', wholeNumber, 0)
    .addOption(envFileOption())
    .addOption(trustOption())
    .addOption(runDirOption())
    .option('--json', 'the reports as JSON');
}

export const help = `All routers see the same requests at the same times. A run's policy leaves a
recording beside the run, which the page shows (${typed('dash')}).`;

export const examples: Examples = [
  ['simulate cluster'],
  ['simulate cluster --router least-finish,round-robin --load 0.9'],
  ['simulate cluster --workload ./AzureLLMInferenceTrace_conv.csv --json'],
];

export async function run(context: Context, system: string, flags: SimulateFlags): Promise<void> {
  if (system !== 'cluster')
    throw new UsageError(`there is nothing to simulate called ${system}: use cluster`);
  const task = clusterTask(flags);
  const routers = await routersOf(task, flags);
  const { replicas, workload, outages, title, ratePerS, scale } = task;
  const results: Result[] = [];
  try {
    for (const { router, policy } of routers) {
      const recorder = new TimelineRecorder(router.name, workload.count);
      const how = { replicas, workload, router, timeline: recorder, ...(outages ? { outages } : {}) };
      const report = simulate(how);
      const timeline = recorder.timeline();
      results.push({ router: router.name, report, timeline, run: policy?.run.dir });
    }
  } finally {
    for (const { policy } of routers) await policy?.close();
  }
  // The page shows what a run's policy did last.
  for (const { run, timeline } of results)
    if (run) writeFileAtomic(runPaths(run).cluster, JSON.stringify(timeline));
  if (!flags.json) return printResults(context, task, results);
  const cluster = {
    workload: title,
    replicas: replicas.map(({ hardware }) => hardware.name),
    ratePerS,
    capacityPerS: scale.capacityPerS,
    load: ratePerS / scale.capacityPerS,
    seed: flags.seed,
  };
  context.json({ ...cluster, routers: results.map(({ router, report }) => ({ router, ...report })) }, 2);
}

function printResults(context: Context, task: ClusterTask, results: readonly Result[]): void {
  const { print, raw, paint } = context;
  const { replicas, workload, title, ratePerS, scale } = task;
  const rate = Number.isFinite(ratePerS)
    ? `at ${number(ratePerS)}/s (${number(ratePerS / scale.capacityPerS)} of what it bears)`
    : 'all at once';
  const requests = `${workload.count} ${workload.count === 1 ? 'request' : 'requests'}`;
  const machines = replicas.map(({ hardware }) => hardware.name).join(', ');
  print(`${paint(title, 'bold')}: ${requests} ${rate} on ${machines}`);
  print();
  for (const line of routerTable(results)) raw(line);
  const growing = results.filter(({ report }) => report.backlog.isGrowing).map(({ router }) => router);
  const warning = `queues grow without bound with ${growing.join(', ')}: the latencies above depend on how long one waits`;
  if (growing.length > 0) print(paint(warning, 'yellow'));
  print();
  const best = results.reduce((a, b) => (b.report.endToEnd.mean < a.report.endToEnd.mean ? b : a));
  printDetail(context, best);
}

/** What routes; the policy behind it, where there is one, is closed when it has routed. */
interface Routing {
  readonly router: Router;
  readonly policy?: Policy;
}

/** Rules by their names; what is none is a run, whose policy routes. */
async function routersOf(task: ClusterTask, flags: SimulateFlags): Promise<Routing[]> {
  const rules = routerKinds.map(({ name }) => name);
  const names = flags.router === 'all' ? rules : flags.router.split(',').map(name => name.trim());
  const routers: Routing[] = [];
  for (const [i, name] of names.entries()) {
    if (rules.includes(name) || !(looksLikeRun(name) || existsSync(join(flags.runDir, name)))) {
      routers.push({ router: makeRouter(name, new Rng(flags.seed).split(i + 3).at(-1)!) });
      continue;
    }
    const { id, dir, manifest } = resolveRun(name, [flags.runDir]);
    // Before its network is made for spaces that are not its own.
    if (manifest.environment.id !== clusterDefinition.id)
      throw new UsageError(
        `${id} was trained in ${manifest.environment.id}, which routes nothing: use a run of ${clusterDefinition.id}`,
      );
    const { replicas: specs, scale } = task;
    const policy = await openPolicy(dir, {
      spaces: clusterSpaces(specs.length),
      envFile: flags.envFile,
      trust: trustOf(flags),
    });
    routers.push({ router: policyRouter({ name: id, specs, scale, score: policy.score }), policy });
  }
  return routers;
}

/** A path, an id with its date, the last one, or the four characters that ids end with; rules have longer names. */
const looksLikeRun = (name: string): boolean => /[/\\\d]|^last$|^\w{4}$/.test(name);

/** One router over time: what each replica did, and latency. */
function printDetail({ print, raw, paint, columns }: Context, { router, report, timeline }: Result): void {
  print(`${paint(shortName(router), 'bold')}, the lowest mean, over ${number(report.seconds)} s`);
  for (const line of measureTable(report)) raw(line);
  const rates = `${number(report.requestsPerSecond)} requests/s, ${number(report.tokensPerSecond)} tokens/s`;
  const again = report.reroutes > 0 ? `, ${report.reroutes} sent again after failures` : '';
  const cost = `${report.preemptions} evicted, $${number(report.dollars)}${again}`;
  print(`${rates}, ${number(100 * report.utilisation)}% busy, ${cost}`);
  print();
  for (const line of replicaTable(report, timeline, Math.max(20, columns - 44))) raw(line);
  const latency = timeline.latencyMeanS.map(value => value ?? 0);
  raw(`latency, mean s, up to ${number(Math.max(...latency))}`);
  raw(sparkline(latency, columns));
}
