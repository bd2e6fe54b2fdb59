/** The settings of all runs, for a search in them; and what is known of those of one. */
import { tableOf } from '../algos/settings.ts';
import type { AllSettings, SettingsAnswer } from './api.ts';
import { settingOf } from './runs/flatten.ts';
import { KeelRun } from './runs/keel-run.ts';
import type { WatchedRun } from './runs/run.ts';

/** Characters of a setting that are searched. */
const longest = 120;

export function allSettings(runs: Iterable<WatchedRun>): AllSettings {
  const places = new Map<string, number>();
  const has: Record<string, number[]> = {};
  for (const run of runs) {
    has[run.id] = Object.entries(run.config).map(([key, value]) => {
      const text = `${key}=${value}`.slice(0, longest);
      let place = places.get(text);
      if (place === undefined) {
        place = places.size;
        places.set(text, place);
      }
      return place;
    });
  }
  return { settings: [...places.keys()], runs: has };
}

export function settingsOf(run: WatchedRun): SettingsAnswer {
  const table = run instanceof KeelRun ? tableOf(run.manifest?.algorithm ?? '') : undefined;
  return {
    settings: Object.fromEntries(
      Object.entries(table?.keys ?? {}).map(([key, { doc, fallback }]) => [
        key,
        { doc, fallback: settingOf(fallback) },
      ]),
    ),
  };
}
