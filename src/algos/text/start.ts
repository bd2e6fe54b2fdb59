/** The language model that a run starts from. Which one it is, is known without loading what reads it. */
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { ConfigError, RunError } from '../../base/errors.ts';
import { checkpointDir } from '../../runs/layout.ts';
import { resolveRun } from '../../runs/store.ts';
import type { Start, WhichCheckpoint } from '../algorithm.ts';
import { chooseCheckpoint } from '../choose-checkpoint.ts';

/** A model to start from. */
export interface ModelStart extends Start {
  /** Its directory, absolute. */
  readonly directory: string;
}

/** What `from` names: a model's directory, or a run, whose checkpoints are such. */
export function modelStart(
  from: string,
  { checkpoint, root }: { readonly checkpoint?: WhichCheckpoint | undefined; readonly root: string },
): ModelStart {
  if (existsSync(join(from, 'config.json'))) {
    if (checkpoint !== undefined)
      throw new ConfigError(`${from} is a model, which has no checkpoints: leave out which one`);
    return { directory: resolve(from), parent: undefined, source: { path: resolve(from), step: null } };
  }
  const run = runNamed(from, root);
  const { found } = chooseCheckpoint(run, checkpoint);
  if (!found) throw new ConfigError(`${from}: ${run.id} has no checkpoint yet: train it first`);
  const directory = checkpointDir(run.dir, found.step);
  if (!existsSync(join(directory, 'config.json')))
    throw new ConfigError(
      `${from}: ${run.id} is a run of ${run.manifest.algorithm}, it has no language model`,
    );
  const { step } = found;
  return { directory, parent: { id: run.id, step }, source: { path: run.dir, step } };
}

function runNamed(from: string, root: string) {
  try {
    return resolveRun(from, [root]);
  } catch (error) {
    if (!(error instanceof RunError)) throw error;
    const text = `${from} is neither a model directory (it has no config.json) nor a run: ${error.message}`;
    throw new ConfigError([{ key: 'from', text }]);
  }
}
