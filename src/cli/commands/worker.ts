import type { Command } from 'commander';
import { readQueue } from '../../sweep/places/queue.ts';
import { redisAddress, shownAddress } from '../../sweep/redis/address.ts';
import { type ShardWorker, startShardWorker } from '../../sweep/shard-queue.ts';
import { startWorker } from '../../sweep/worker.ts';
import { type Context, shownDir } from '../context.ts';
import { UsageError } from '../errors.ts';
import type { Examples } from '../examples.ts';
import { repeated, wholeNumber } from '../options.ts';

interface WorkerFlags {
  readonly queue?: string;
  readonly jobs?: number;
  readonly runDir?: string;
  readonly file?: readonly string[];
  readonly engine?: readonly string[];
  readonly failed?: boolean;
  readonly json?: boolean;
}

export function define(command: Command): void {
  command
    .option('--queue <address>', 'Redis or Valkey: redis://host:6379, rediss:// for TLS')
    .option('-j, --jobs <n>', 'runs at once (default: as many as cores and memory allow)', wholeNumber)
    .option('--run-dir <dir>', "the study's directory of runs, where this machine shares it")
    .option(
      '--file <file>',
      'an environment or task of your own that jobs may run; may be repeated',
      repeated,
    )
    .option('--engine <program>', 'a program that options of jobs may start; may be repeated', repeated)
    .option('--failed', 'list jobs that nobody could do, with why, and the workers that are there')
    .option('--json', 'the same as JSON');
}

export const help = `It trains runs of studies (\`keel sweep --queue\`) and collects shards of runs
(\`keel train --queue\`) until Ctrl-C, which stops its runs with a checkpoint and
hands them back. Jobs may only name what is built in, files that --file names
here, by the SHA-256 of their content, and programs that --engine names. Without
a shared directory, runs of up to 8 MB travel through Redis.

An address on a command line is seen by all users of the machine: user and
password can be in KEEL_REDIS_USERNAME and KEEL_REDIS_PASSWORD instead.`;

export const examples: Examples = [
  ['worker --queue redis://head:6379', 'as many runs as this machine has room for'],
  ['worker --queue rediss://head:6380 --jobs 4 --run-dir /shared/lr/runs'],
  ['worker --queue redis://head:6379 --file ./my-env.ts', 'jobs may run this file'],
  ['worker --queue redis://head:6379 --failed', 'what went wrong'],
];

export async function run(context: Context, flags: WorkerFlags): Promise<void> {
  const { queue, jobs, runDir, file = [], engine = [] } = flags;
  if (queue === undefined) throw new UsageError('a worker needs a queue: --queue redis://host:6379');
  if (jobs === 0) throw new UsageError('--jobs 0 does nothing: use 1 or more, or leave it out');
  if (flags.failed) return listFailed(context, queue, flags.json === true);
  if (flags.json) throw new UsageError('--json goes with --failed: leave it out, or add that');
  const ending = new AbortController();
  const end = (): void => ending.abort();
  // A second Ctrl-C ends it at once, as if it were killed: nothing but time is lost.
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, end);
  let busy = 0;
  let shards: ShardWorker | undefined;
  try {
    const worker = await startWorker({
      url: queue,
      root: runDir,
      concurrency: jobs,
      files: file,
      engines: engine,
      signal: ending.signal,
      onBusy: runs => {
        busy = runs;
        shards?.limit(worker.concurrency - busy);
      },
      say: line => context.print(line),
    });
    // Runs and shards share the cores; one shard is always taken, because a whole run waits for it.
    shards = await startShardWorker({
      url: queue,
      concurrency: worker.concurrency,
      files: file,
    });
    shards.limit(worker.concurrency - busy);
    const at = runDir === undefined ? '' : `, runs in ${shownDir(runDir)}`;
    const many = worker.concurrency === 1 ? '1 run' : `${worker.concurrency} runs`;
    context.print(
      `${context.paint('Keel', 'bold')} takes jobs from ${shownAddress(redisAddress(queue))}, ${many} at once${at}`,
    );
    context.print(context.paint('Ctrl-C hands them back and ends', 'dim'));
    await worker.done;
  } finally {
    await shards?.close();
    for (const name of ['SIGINT', 'SIGTERM'] as const) process.off(name, end);
  }
}

async function listFailed(context: Context, queue: string, asJson: boolean): Promise<void> {
  const state = await readQueue(queue);
  if (asJson) return context.json(state, 2);
  const { address, workers, counts, failed } = state;
  context.print(
    `${address}: ${counts.waiting} waiting, ${counts.active} under way, ${counts.failed} failed; workers: ${workers.length}`,
  );
  for (const { host, pid, version, jobs, doing, paused } of workers)
    context.print(
      `  ${host}:${pid}, Keel ${version}, ${doing.length} of ${jobs}${paused === null ? '' : `, paused: ${paused}`}`,
    );
  for (const { study, run, id, why, tries } of failed)
    context.print(
      `  ${run === null ? id : `${study} ${run}`}, ${tries === 1 ? '1 try' : `${tries} tries`}: ${why}`,
    );
}
