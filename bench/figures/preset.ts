/** Which preset it was: a name that changes with anything that the file sets, and with nothing else of it. */
import { createHash } from 'node:crypto';
import { loadPreset } from '../../src/settings/files.ts';

/** Twelve hexadecimal digits of the preset of an environment, whatever the order of its keys and its comments. */
export const presetHash = (env: string): string => hashOf(loadPreset(env));

export function hashOf(settings: Readonly<Record<string, unknown>>): string {
  const sorted = Object.entries(settings).sort(([a], [b]) => (a < b ? -1 : 1));
  return createHash('sha256').update(JSON.stringify(sorted)).digest('hex').slice(0, 12);
}
