/** What `keel simulate cluster` is asked to simulate, from its flags. */
import { readFileSync, statSync } from 'node:fs';
import { fileError } from '../base/files.ts';
import { drawOutages } from '../envs/cluster/arrivals.ts';
import { checkFits } from '../envs/cluster/fits.ts';
import { hardwareList } from '../envs/cluster/hardware.ts';
import { parseArrivals, parseLengths } from '../envs/cluster/parse.ts';
import {
  defaultReplica,
  type ReplicaSpec,
  replicaModel,
  type SchedulerKind,
} from '../envs/cluster/replica-model.ts';
import type { Workload } from '../envs/cluster/requests.ts';
import { type ClusterScale, clusterScale } from '../envs/cluster/scale.ts';
import type { Outages } from '../envs/cluster/simulator.ts';
import { atRate, parseTrace } from '../envs/cluster/trace.ts';
import { drawWorkload, estimate, type WorkloadSpec, workloads } from '../envs/cluster/workloads.ts';
import { Rng } from '../random/rng.ts';
import { UsageError } from './errors.ts';

export interface ClusterFlags {
  readonly replicas: string;
  readonly scheduler: string;
  readonly workload: string;
  readonly arrivals?: string;
  readonly prompt?: string;
  readonly decode?: string;
  readonly load?: number;
  readonly rate?: number;
  readonly requests?: number;
  readonly lengthError: number;
  readonly failures?: string;
  readonly seed: number;
}

export interface ClusterTask {
  readonly replicas: readonly ReplicaSpec[];
  readonly workload: Workload;
  /** For people. */
  readonly title: string;
  /** Mean requests a second. */
  readonly ratePerS: number;
  /** Requests a second that the cluster bears, and what else is usual there. */
  readonly scale: ClusterScale;
  readonly outages: Outages | undefined;
}

const DEFAULT_LOAD = 0.8;
const DEFAULT_REQUESTS = 10_000;
const MAX_TRACE_BYTES = 500_000_000;

/** Reads, draws and checks. Outages come from a stream of their own, so that requests are the same without them. */
export function clusterTask(flags: ClusterFlags): ClusterTask {
  if (flags.scheduler !== 'vllm' && flags.scheduler !== 'sarathi')
    throw new UsageError(`--scheduler ${flags.scheduler} is unknown: use vllm or sarathi`);
  const scheduler: SchedulerKind = flags.scheduler;
  const replicas = hardwareList(flags.replicas).map(hardware => ({ ...defaultReplica, scheduler, hardware }));
  if (flags.load !== undefined && flags.rate !== undefined)
    throw new UsageError('--load and --rate say the same in two ways: leave one out');
  const [workRng, outageRng] = new Rng(flags.seed).split(2);
  const named = Object.hasOwn(workloads, flags.workload)
    ? workloads[flags.workload as keyof typeof workloads]
    : undefined;
  const drawn = named ? drawnTask(flags, named, replicas, workRng) : traceTask(flags, replicas, workRng);
  const horizonS = 4 * drawn.workload.arrivalS.at(-1)! + 3600;
  const outages =
    flags.failures === undefined
      ? undefined
      : outagesOf(flags.failures, replicas.length, horizonS, outageRng);
  return { replicas, outages, ...drawn };
}

type Drawn = Omit<ClusterTask, 'replicas' | 'outages'>;

function drawnTask(
  flags: ClusterFlags,
  named: WorkloadSpec,
  replicas: readonly ReplicaSpec[],
  rng: Rng,
): Drawn {
  const spec: WorkloadSpec = {
    ...named,
    ...(flags.arrivals === undefined ? {} : { arrivals: parseArrivals(flags.arrivals) }),
    ...(flags.prompt === undefined ? {} : { prompt: parseLengths(flags.prompt) }),
    ...(flags.decode === undefined ? {} : { decode: parseLengths(flags.decode) }),
  };
  const scale = clusterScale(replicas, spec);
  const ratePerS = flags.rate ?? (flags.load ?? DEFAULT_LOAD) * scale.capacityPerS;
  const count = flags.requests ?? DEFAULT_REQUESTS;
  const workload = drawWorkload(spec, { count, ratePerS, lengthError: flags.lengthError }, rng);
  return { workload, ratePerS, scale, title: named.name };
}

function traceTask(flags: ClusterFlags, replicas: readonly ReplicaSpec[], rng: Rng): Drawn {
  if (!/[./\\]/.test(flags.workload))
    throw new UsageError(
      `the workload ${flags.workload} is unknown: use ${Object.keys(workloads).join(', ')} or a trace (./requests.csv)`,
    );
  for (const name of ['arrivals', 'prompt', 'decode'] as const) {
    if (flags[name] !== undefined)
      throw new UsageError(`--${name} has no effect on a trace, which has its own: remove it`);
  }
  let text: string;
  try {
    const { size } = statSync(flags.workload);
    if (size > MAX_TRACE_BYTES)
      throw new UsageError(`${flags.workload} has ${size} bytes, a trace at most ${MAX_TRACE_BYTES}: cut it`);
    text = readFileSync(flags.workload, 'utf8');
  } catch (error) {
    throw error instanceof UsageError ? error : fileError(error, 'read', flags.workload);
  }
  const trace = parseTrace(text, flags.workload);
  let workload: Workload = trace;
  if (flags.requests !== undefined) workload = firstOf(workload, flags.requests);
  checkFits(replicas.map(replicaModel), workload, id => `${flags.workload}:${trace.lines[id]}: the request`);
  estimate(workload, flags.lengthError, rng);
  const scale = clusterScale(replicas, quantileSpec(workload));
  const wanted = flags.rate ?? (flags.load === undefined ? undefined : flags.load * scale.capacityPerS);
  if (wanted !== undefined) workload = atRate(workload, wanted);
  const spanS = workload.arrivalS.at(-1)! - workload.arrivalS[0];
  const ratePerS = spanS > 0 ? (workload.count - 1) / spanS : Number.POSITIVE_INFINITY;
  return { workload, ratePerS, scale, title: flags.workload };
}

/** Requests as long as the trace's: its quantiles stand for it. */
function quantileSpec(workload: Workload): WorkloadSpec {
  const shares = Array.from({ length: 101 }, (_, i) => i / 100);
  const quantiles = (tokens: Int32Array) => {
    const sorted = tokens.slice().sort();
    return {
      kind: 'quantiles' as const,
      shares,
      tokens: shares.map(share => sorted[Math.round(share * (sorted.length - 1))]),
    };
  };
  return {
    name: 'trace',
    arrivals: { kind: 'poisson' },
    prompt: quantiles(workload.promptTokens),
    decode: quantiles(workload.decodeTokens),
  };
}

function firstOf(workload: Workload, requests: number): Workload {
  if (requests > workload.count)
    throw new UsageError(`the trace has ${workload.count} requests, ${requests} is more: use at most that`);
  return {
    count: requests,
    arrivalS: workload.arrivalS.slice(0, requests),
    promptTokens: workload.promptTokens.slice(0, requests),
    decodeTokens: workload.decodeTokens.slice(0, requests),
    estimatedTokens: workload.estimatedTokens.slice(0, requests),
  };
}

function outagesOf(text: string, replicas: number, horizonS: number, rng: Rng): Outages {
  const match = /^(\d+(?:\.\d+)?)\/(\d+(?:\.\d+)?)$/.exec(text);
  if (!match)
    throw new UsageError(`--failures ${text} cannot be read: write the mean seconds up and down, 600/30`);
  return drawOutages(replicas, { meanUpS: Number(match[1]), meanDownS: Number(match[2]) }, horizonS, rng);
}
