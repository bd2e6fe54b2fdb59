/** Whose log it is: every dialect counts the signs of its trainer, and the most points win. */
import type { RawRun } from '../raw-run.ts';
import type { Dialect, Log } from './dialect.ts';
import { fits, logOf, spell } from './log.ts';

/** Fewer points than this say nothing. */
const enough = 3;

export interface Recognised {
  readonly dialect: Dialect;
  readonly log: Log;
  readonly points: number;
}

/** Points of a dialect for a log. */
function pointsOf(dialect: Dialect, log: Log): number {
  let points = 0;
  const names = [...log.series.keys()];
  for (const sign of dialect.signs) {
    if (names.some(name => fits(name, sign.name) !== undefined)) points += sign.points;
  }
  const settings = [...log.raw.config.keys()].map(spell);
  for (const sign of dialect.configSigns ?? []) {
    if (settings.some(setting => isSetting(setting, sign.name))) points += sign.points;
  }
  return points;
}

function isSetting(setting: string, pattern: string | RegExp): boolean {
  if (typeof pattern !== 'string') return fits(setting, pattern) !== undefined;
  const name = spell(pattern);
  return setting === name || setting.endsWith(`/${name}`);
}

/** All dialects that have enough points, the best first; of equals the one that is first in the list. */
export function recognise(raw: RawRun, dialects: readonly Dialect[]): Recognised[] {
  return dialects
    .map(dialect => {
      const log = logOf(raw, dialect);
      return { dialect, log, points: pointsOf(dialect, log) };
    })
    .filter(({ points }) => points >= enough)
    .sort((a, b) => b.points - a.points);
}
