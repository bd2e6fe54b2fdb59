/** What is to be simulated, as people describe it: `keel simulate cluster`. */
import { readFileSync, statSync } from 'node:fs';
import { attempt } from '../../base/files.ts';
import { Rng } from '../../random/rng.ts';
import { fail } from '../errors.ts';
import { drawOutages } from './arrivals.ts';
import { checkFits } from './fits.ts';
import { hardwareList } from './hardware.ts';
import { parseArrivals, parseLengths } from './parse.ts';
import { defaultReplica, type ReplicaSpec, replicaModel, type SchedulerKind } from './replica-model.ts';
import type { Workload } from './requests.ts';
import { type ClusterScale, clusterScale } from './scale.ts';
import type { Outages } from './simulator.ts';
import { atRate, parseTrace } from './trace.ts';
import { drawWorkload, estimate, type WorkloadSpec, workloads } from './workloads.ts';

/** A cluster and what arrives there, each part by its name on the command line. */
export interface ClusterFlags {
  readonly replicas: string;
  readonly scheduler: SchedulerKind;
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

/** All that a simulation needs but the router. */
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
  const { scheduler } = flags;
  const replicas = hardwareList(flags.replicas).map(hardware => ({ ...defaultReplica, scheduler, hardware }));
  if (flags.load !== undefined && flags.rate !== undefined)
    fail('option-invalid', '--load and --rate say the same in two ways: leave one out');
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
    fail(
      'option-invalid',
      `the workload ${flags.workload} is unknown: use ${Object.keys(workloads).join(', ')} or a trace (./requests.csv)`,
    );
  for (const name of ['arrivals', 'prompt', 'decode'] as const) {
    if (flags[name] !== undefined)
      fail('option-invalid', `--${name} has no effect on a trace, which has its own: remove it`);
  }
  const { size } = attempt('read', flags.workload, () => statSync(flags.workload));
  if (size > MAX_TRACE_BYTES)
    fail('file-invalid', `${flags.workload} has ${size} bytes, a trace at most ${MAX_TRACE_BYTES}: cut it`);
  const text = attempt('read', flags.workload, () => readFileSync(flags.workload, 'utf8'));
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
    fail('option-invalid', `the trace has ${workload.count} requests, ${requests} is more: use at most that`);
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
    fail('option-invalid', `--failures ${text} cannot be read: write the mean seconds up and down, 600/30`);
  return drawOutages(replicas, { meanUpS: Number(match[1]), meanDownS: Number(match[2]) }, horizonS, rng);
}
