/** Which runs differ in nothing but their seed. */
import { createHash } from 'node:crypto';

/** Settings that say which run it is, not what is trained: its seed, its names, where it writes. */
const ofTheRun =
  /(^|[._-])(seed|env_?seed|seeds|name|run_?name|exp_?name|run_?id|id|output_?dir|log_?dir|logdir|save_?path|save_?dir|run_?dir|path|created_?at|start_?time|date|timestamp|hostname|host|pid|commit|git_?commit)$/i;

/**
 * The same for two runs of one trainer on one environment, begun from the same, whose settings differ in the seed alone.
 * Null where there are no settings, or no seed: nobody can tell then that all else is equal.
 */
export function groupOf(run: {
  readonly trainer: string;
  readonly environment: string | null;
  readonly seed: number | null;
  /** What it went on from, if not from its seed. */
  readonly beginning: unknown;
  readonly settings: Readonly<Record<string, unknown>>;
}): string | null {
  const settings = Object.entries(run.settings).filter(([key]) => !ofTheRun.test(key));
  if (run.seed === null || settings.length === 0) return null;
  settings.sort(([a], [b]) => (a < b ? -1 : 1));
  return createHash('sha256')
    .update(JSON.stringify([run.trainer, run.environment, run.beginning, settings]))
    .digest('base64url')
    .slice(0, 16);
}
