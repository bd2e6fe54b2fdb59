/** Whether a fault did harm: the returns, against those of healthy runs at the same number of steps. */
import type { CachedLog, CachedRun } from './cache.ts';

/** The mean of the true returns in the last fifth of the rows up to `step`; null if no episode ended there. */
export function lastReturn({ rows, episodes }: CachedLog, step = Number.POSITIVE_INFINITY): number | null {
  const within = rows.filter(row => row['train/step'] <= step).length;
  const recent = episodes.slice(Math.floor(within * 0.8), within).flatMap(({ inner }) => inner);
  return recent.length === 0 ? null : recent.reduce((a, b) => a + b, 0) / recent.length;
}

/** How far below the worst healthy run still counts as no harm: returns are noisy. */
const slack: Readonly<Record<string, number>> = { 'CartPole-v1': 20, 'Pendulum-v1': 60, 'Acrobot-v1': 8 };

/** True when a faulty run is as good as the worst healthy one of its environment. */
export function harmless({ label, log }: CachedRun, all: readonly CachedRun[]): boolean {
  if (label.fault === null || label.error !== null) return false;
  // After larger rewards the critic is blind and the policy stands still: that it stands well is luck.
  if (label.rescale !== null && label.rescale.factor > 1) return false;
  const own = lastReturn(log);
  if (own === null) return false;
  const step = log.rows.at(-1)!['train/step'];
  const healthy = all
    .filter(other => other.label.variant === 'healthy' && other.label.env === label.env)
    .map(other => lastReturn(other.log, step))
    .filter(value => value !== null);
  return healthy.length > 0 && own >= Math.min(...healthy) - slack[label.env];
}
