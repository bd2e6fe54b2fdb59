/** The recording of a policy that routes requests, from the file beside its run. */
import { existsSync } from 'node:fs';
import { RunError } from '../base/errors.ts';
import { readBounded } from '../base/files.ts';
import { parseJson } from '../base/json.ts';
import { runPaths } from '../runs/layout.ts';
import type { ClusterTimeline } from '../view/cluster-timeline.ts';
import type { ClusterAnswer } from './api.ts';

/** 240 moments of 256 replicas take less. */
const maxBytes = 16 * 2 ** 20;

/** What was recorded; null where nothing was. A file that cannot be drawn is a problem in words, not an error. */
export function clusterOf(runDir: string): ClusterAnswer {
  const path = runPaths(runDir).cluster;
  if (!existsSync(path)) return { timeline: null, problem: null };
  try {
    const value = parseJson(readBounded(path, maxBytes), 'cluster.json');
    return isTimeline(value)
      ? { timeline: value, problem: null }
      : { timeline: null, problem: 'cluster.json is damaged or of another version: simulate the run again' };
  } catch (error) {
    if (!(error instanceof RunError)) throw error;
    return { timeline: null, problem: 'cluster.json is damaged: simulate the run again' };
  }
}

function isTimeline(value: unknown): value is ClusterTimeline {
  if (typeof value !== 'object' || value === null) return false;
  const t = value as Record<string, unknown>;
  const moments = Array.isArray(t.timeS) ? t.timeS.length : -1;
  const numbers = (list: unknown): boolean =>
    Array.isArray(list) && list.length === moments && list.every(v => v === null || Number.isFinite(v));
  const replicas = Array.isArray(t.replicas) ? t.replicas.length : -1;
  const table = (rows: unknown): boolean =>
    Array.isArray(rows) && rows.length === replicas && rows.every(numbers);
  return (
    t.version === 1 &&
    typeof t.router === 'string' &&
    (t.step === undefined || Number.isSafeInteger(t.step)) &&
    replicas >= 1 &&
    (t.replicas as unknown[]).every(name => typeof name === 'string') &&
    numbers(t.timeS) &&
    [t.waiting, t.running, t.memory, t.routed].every(table) &&
    numbers(t.latencyMeanS) &&
    numbers(t.latencyMaxS) &&
    Array.isArray(t.decisions) &&
    t.decisions.every(isDecision)
  );
}

function isDecision(value: unknown): boolean {
  const d = (value ?? {}) as Record<string, unknown>;
  return ['atS', 'promptTokens', 'estimatedTokens', 'replica', 'latencyS'].every(name =>
    Number.isFinite(d[name]),
  );
}
