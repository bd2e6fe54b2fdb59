/** What a run of Keel says of itself besides its rows: read from its directory here, known already to the server. */
import type { Manifest } from '../../runs/schema.ts';
import { addSettings } from './json.ts';
import type { RunBuilder } from './run-builder.ts';

export interface Said {
  readonly config: object;
  readonly environment: object;
  readonly other: object;
  /** Why it failed, if it did. */
  readonly error: string | null;
}

export function saidBy(manifest: Manifest): Said {
  const { config, environment, algorithm, seed, status, reason, versions } = manifest;
  return {
    config,
    environment,
    other: { algorithm, seed, status, versions },
    error: status === 'failed' ? reason : null,
  };
}

export function addSaid(run: RunBuilder, { config, environment, other, error }: Said): void {
  addSettings(run, config as Record<string, unknown>);
  addSettings(run, environment as Record<string, unknown>, 'environment');
  addSettings(run, other as Record<string, unknown>);
  if (error !== null) run.text('error', error);
}
