/** Whether a directory is a run, without the schema that a whole manifest is held to: searches ask it of every directory. */
import { join } from 'node:path';
import { readBounded } from '../base/files.ts';
import { parseJson } from '../base/json.ts';

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
