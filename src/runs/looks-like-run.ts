/** Whether a directory is a run, without the schema that a whole manifest is held to: searches ask it of every directory. */
import { closeSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import { readNames } from '../base/directories.ts';
import { openRegular, readAt, readBounded } from '../base/files.ts';
import { jsonOf, parseJson } from '../base/json.ts';
import { runPaths } from './layout.ts';

/** A config with a thousand keys has fifty kilobytes. */
export const maxManifestBytes = 8 * 2 ** 20;

/** Whether a directory says that it is a run of ours, whatever the state of the rest. */
export function looksLikeRun(directory: string): boolean {
  try {
    const path = join(directory, 'manifest.json');
    const json = parseJson(readBounded(path, maxManifestBytes), path);
    return (json as { kind?: unknown } | null)?.kind === 'keel-run';
  } catch {
    return false;
  }
}

/**
 * Whether a directory was a run of ours whose manifest is missing or broken: it has our checkpoints, or rows beside events
 * that are written as ours. What is in it is no run of its own.
 */
export function remainsOfRun(directory: string): boolean {
  const { checkpoints, metrics, events } = runPaths(directory);
  try {
    const has =
      (existsSync(checkpoints) && hasCheckpoint(checkpoints)) || (existsSync(metrics) && isOurs(events));
    return has && !looksLikeRun(directory);
  } catch {
    return false; // gone, or not ours to read
  }
}

const hasCheckpoint = (checkpoints: string): boolean =>
  readNames(checkpoints).some(
    name => /^\d+$/.test(name) && existsSync(join(checkpoints, name, 'checkpoint.json')),
  );

/** Whether the first line of a file is an event of ours. */
function isOurs(events: string): boolean {
  if (!existsSync(events)) return false;
  const file = openRegular(events);
  try {
    const bytes = Buffer.alloc(65_536);
    const [line] = bytes.toString('utf8', 0, readAt(file, bytes, bytes.length, 0)).split('\n');
    const event = jsonOf(line) as Readonly<Record<string, unknown>> | null;
    return typeof event?.type === 'string' && 'iteration' in event && 'time/unix_s' in event;
  } finally {
    closeSync(file);
  }
}
