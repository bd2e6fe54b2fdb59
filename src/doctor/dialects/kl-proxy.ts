/** What tells the KL of a run that logs none. */
import type { CanonicalSeries, KlProxy } from '../canonical.ts';
import type { KnownConfig } from '../known-settings.ts';
import type { Series } from '../series.ts';
import { rangeOf } from './derive.ts';
import type { Dialect, Log } from './dialect.ts';
import { scheduleOf } from './known-config.ts';

/** Such rates are multiplied or divided by 1.5, perhaps several times between two rows; no schedule does that. */
function isStepped(rate: Series, floor: number, ceiling: number): boolean {
  let changes = 0;
  let steps = 0;
  for (let i = 1; i < rate.length; i++) {
    const [before, after] = [rate.values[i - 1], rate.values[i]];
    if (!(before > 0 && after > 0) || Math.abs(after / before - 1) < 1e-5) continue;
    if (after <= floor * 1.01 || after >= ceiling * 0.99 || before <= floor * 1.01) continue;
    changes++;
    const power = Math.log(after / before) / Math.log(1.5);
    if (Math.abs(power - Math.round(power)) < 0.01) steps++;
  }
  return changes > 0 && steps >= 0.8 * changes;
}

/**
 * The learning rate of a trainer that lets it follow the KL: one that goes up and down, or rests at a bound. One that is
 * constant elsewhere, or only falls, follows a schedule and tells nothing.
 */
export function klProxyOf(
  dialect: Dialect,
  log: Log,
  series: ReadonlyMap<string, CanonicalSeries>,
  config: KnownConfig,
): KlProxy | undefined {
  const { klProxy } = dialect;
  if (klProxy === undefined || series.has('kl/step')) return undefined;
  const rate = series.get(klProxy.id);
  const range = rate === undefined ? undefined : rangeOf(rate.series);
  if (rate === undefined || range === undefined) return undefined;
  const set = (names: readonly string[] | undefined): number | undefined => {
    const value = names === undefined ? undefined : log.setting(names);
    return typeof value === 'number' && value > 0 ? value : undefined;
  };
  const floor = set(klProxy.settings.floor) ?? klProxy.floor;
  const ceiling = set(klProxy.settings.ceiling) ?? klProxy.ceiling;
  const near = (a: number, b: number): boolean => Math.abs(a - b) <= 0.01 * b;
  const moves = scheduleOf(rate.series) === 'adaptive' || isStepped(rate.series, floor, ceiling);
  if (!moves && !near(range[0], floor) && !near(range[1], ceiling)) return undefined;
  const named = config.learningRateSchedule;
  if (named !== undefined && /^(?:fixed|constant|linear|cosine)/i.test(named) && !near(range[0], floor))
    return undefined;
  const target = set(klProxy.settings.target);
  const { id, meaning } = klProxy;
  return { theirs: rate.theirs, id, floor, ceiling, meaning, ...(target === undefined ? {} : { target }) };
}
