/** Tells logs of different trainings apart that lie in one directory. */
import type { LogFile } from './log-file.ts';

/** Environments of one run are started within minutes of each other. */
const togetherS = 600;

/**
 * Logs of one directory of which several tell of different trainings, in groups, the oldest first; what is there once
 * goes with the newest. Monitors are together if they began together; an event file goes on with the one before it unless
 * it begins where that began, with other values.
 */
export function separateLogs(logs: readonly LogFile[]): LogFile[][] {
  const parted: LogFile[][] = [];
  for (const kind of ['monitor', 'tensorboard'] as const) {
    const files = logs
      .filter(log => log.kind === kind)
      .sort((a, b) => a.firstWallTime - b.firstWallTime || (a.name < b.name ? -1 : 1));
    const groups: LogFile[][] = [];
    for (const log of files) {
      const home = groups.findLast(group =>
        kind === 'monitor'
          ? !(log.firstWallTime - group[0].firstWallTime > togetherS)
          : group.every(one => !beginsAgain(one, log)),
      );
      if (home === undefined) groups.push([log]);
      else home.push(log);
    }
    if (groups.length > 1) parted.push(...groups);
  }
  const rest = logs.filter(log => !parted.some(group => group.includes(log)));
  if (parted.length === 0) return [[...logs]];
  parted[parted.length - 1].push(...rest);
  return parted;
}

/** Whether a later event file has no later a start than an earlier one, with other values: another training. */
export function beginsAgain(before: LogFile, after: LogFile): boolean {
  for (const [tag, point] of after.firstPoints) {
    const first = before.firstPoints.get(tag);
    if (first === undefined) continue;
    if (point.step <= first.step && point.value !== first.value && Number.isFinite(point.value)) return true;
  }
  return false;
}
