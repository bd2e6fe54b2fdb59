import type { Command } from 'commander';
import { Option } from 'commander';
import type { ClusterReport, Timeline } from '../../envs/cluster/index.ts';
import { Rng } from '../../random/index.ts';
import type { ClusterFlags } from '../cluster-workload.ts';
import { type Context, contextOf } from '../context.ts';
import { UsageError } from '../errors.ts';
import { countOption, numberOption } from '../options.ts';
import { bar, sparkline } from '../plots.ts';
import { number, table, toJson } from '../terminal.ts';

interface SimulateFlags extends ClusterFlags {
  readonly router: string;
  readonly json?: boolean;
}

export function addSimulate(program: Command): void {
  program
    .command('simulate')
    .description('simulate a cluster that serves a language model, with any router on any workload')
    .argument('<system>', 'what to simulate: cluster')
    .option('--router <names>', 'routers to compare, with commas between them; all for every rule', 'all')
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
    .addOption(
      numberOption('--load <share>', 'mean arrivals as a share of what the cluster bears (default: 0.8)'),
    )
    .addOption(numberOption('--rate <n>', 'mean arrivals a second, instead of a load'))
    .addOption(countOption('--requests <n>', 'how many requests (default: 10000, or all of a trace)'))
    .addOption(
      numberOption(
        '--length-error <s>',
        "how far off the routers' estimates of answers are: std of the log",
      ).default(0.3),
    )
    .option('--failures <up/down>', 'replicas fail: mean seconds up and down, such as 600/30')
    .addOption(countOption('--seed <n>', 'where all randomness comes from').default(0))
    .option('--json', 'the reports as JSON')
    .addHelpText(
      'after',
      `
All routers see the same requests at the same times.

Examples:
  $ keel simulate cluster
  $ keel simulate cluster --router least-finish,round-robin --load 0.9
  $ keel simulate cluster --workload ./AzureLLMInferenceTrace_conv.csv --json`,
    )
    .action(async (system: string, flags: SimulateFlags, command: Command) => {
      if (system !== 'cluster')
        throw new UsageError(`there is nothing to simulate called ${system}: use cluster`);
      const context = contextOf(command);
      const [{ makeRouter, routerKinds, simulate, TimelineRecorder }, { clusterTask }] = await Promise.all([
        import('../../envs/cluster/index.ts'),
        import('../cluster-workload.ts'),
      ]);
      const names =
        flags.router === 'all'
          ? routerKinds.map(({ name }) => name)
          : flags.router.split(',').map(name => name.trim());
      const routers = names.map((name, i) => makeRouter(name, new Rng(flags.seed).split(i + 3).at(-1)!));
      const task = clusterTask(flags);
      const results = routers.map(router => {
        const timeline = new TimelineRecorder(router.name, task.workload.count);
        const report = simulate({
          replicas: task.replicas,
          workload: task.workload,
          router,
          timeline,
          ...(task.outages ? { outages: task.outages } : {}),
        });
        return { router: router.name, report, timeline: timeline.timeline() };
      });
      if (flags.json) {
        const { ratePerS, capacityPerS } = task;
        context.raw(
          toJson(
            {
              workload: task.title,
              replicas: task.replicas.map(({ hardware }) => hardware.name),
              ratePerS,
              capacityPerS,
              load: capacityPerS === undefined ? null : ratePerS / capacityPerS,
              seed: flags.seed,
              routers: results.map(({ router, report }) => ({ router, ...report })),
            },
            2,
          ),
        );
        return;
      }
      const { ratePerS, capacityPerS, workload, title } = task;
      const load = capacityPerS === undefined ? '' : ` (${number(ratePerS / capacityPerS)} of what it bears)`;
      context.print(
        `${context.paint(title, 'bold')}: ${workload.count} requests at ${number(ratePerS)}/s${load} on ${task.replicas.map(({ hardware }) => hardware.name).join(', ')}`,
      );
      context.print();
      for (const line of routerTable(results)) context.raw(line);
      const growing = results.filter(({ report }) => report.backlog.isGrowing).map(({ router }) => router);
      if (growing.length > 0)
        context.print(
          context.paint(
            `queues grow without bound with ${growing.join(', ')}: the latencies above depend on how long one waits`,
            'yellow',
          ),
        );
      const best = results.reduce((a, b) => (b.report.endToEnd.mean < a.report.endToEnd.mean ? b : a));
      context.print();
      printDetail(context, best.router, best.report, best.timeline);
    });
}

function routerTable(results: readonly { router: string; report: ClusterReport }[]): string[] {
  const head = [
    'router',
    'mean s',
    'p50',
    'p90',
    'p99',
    'first token',
    'p99',
    'per token ms',
    'wait p99',
    'evicted',
    '$/1k',
  ];
  const rows = results.map(({ router, report }) => [
    router,
    number(report.endToEnd.mean),
    number(report.endToEnd.p50),
    number(report.endToEnd.p90),
    number(report.endToEnd.p99),
    number(report.timeToFirstToken.mean),
    number(report.timeToFirstToken.p99),
    number(1000 * report.timeBetweenTokens.mean),
    number(report.schedulingDelay.p99),
    String(report.preemptions),
    number(report.dollarsPerThousandRequests),
  ]);
  return table([head, ...rows], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
}

/** One router over time: what each replica did, and latency. */
function printDetail(
  { print, raw, paint, columns }: Context,
  router: string,
  report: ClusterReport,
  timeline: Timeline,
): void {
  print(`${paint(router, 'bold')}, the lowest mean, over ${number(report.seconds)} s`);
  const width = Math.max(20, columns - 44);
  const rows = report.replicas.map((replica, r) => [
    replica.hardware,
    `${number(100 * replica.utilisation)}%`,
    bar(replica.requests / Math.max(...report.replicas.map(({ requests }) => requests)), 8),
    String(replica.requests),
    sparkline(timeline.memory[r]!, width, 1),
  ]);
  for (const line of table([['replica', 'busy', 'requests', '', 'memory over time'], ...rows], [1, 3]))
    raw(line);
  const latency = timeline.latencyMeanS.map(value => value ?? 0);
  raw(`latency, mean s, up to ${number(Math.max(...latency))}`);
  raw(sparkline(latency, columns));
}
