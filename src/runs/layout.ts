/** Where things are in a run's directory, and what a run is called. */
import { randomInt } from 'node:crypto';
import { join } from 'node:path';
import { fail, show } from '../base/errors.ts';

/** Where runs are kept unless told otherwise, relative to the working directory. */
export const defaultRoot = 'runs';

/**
 * ```
 * runs/<id>/
 *   manifest.json                  environment, config, seed, versions, parent, status
 *   metrics.jsonl                  one row an iteration: the truth
 *   events.jsonl                   what happened
 *   checkpoints/<step>/            policy.safetensors, optimizer.safetensors, state.json, checkpoint.json (checksums)
 *   checkpoints/best, last         the step that each stands for, as text
 *   completions.jsonl              groups of completions to look at, of language models
 *   replays/<step>.replay          episodes to look at, of environments that can be drawn
 *   policy.onnx                    the deployable policy
 *   metrics.csv                    projections of metrics.jsonl:
 *   events.out.tfevents.<n>.keel   made again on resume
 *   failure.txt                    the stack of the error that ended it
 *   process.log                    what its process printed, where the page started it
 *   cluster.json                   what a policy that routes requests did when it was last recorded or simulated
 *   lock.<n>                       while a process writes
 * ```
 */
export function runPaths(runDir: string) {
  return {
    manifest: join(runDir, 'manifest.json'),
    metrics: join(runDir, 'metrics.jsonl'),
    events: join(runDir, 'events.jsonl'),
    checkpoints: join(runDir, 'checkpoints'),
    best: join(runDir, 'checkpoints', 'best'),
    last: join(runDir, 'checkpoints', 'last'),
    replays: join(runDir, 'replays'),
    completions: join(runDir, 'completions.jsonl'),
    onnx: join(runDir, 'policy.onnx'),
    csv: join(runDir, 'metrics.csv'),
    cluster: join(runDir, 'cluster.json'),
    failure: join(runDir, 'failure.txt'),
    output: join(runDir, 'process.log'),
  };
}

/** The directory of one checkpoint. */
export function checkpointDir(runDir: string, step: number): string {
  return join(runPaths(runDir).checkpoints, String(step));
}

/** Our event files: a new number each time they are made again, so that a TensorBoard that is watching notices. */
export const tensorboardPattern = /^events\.out\.tfevents\.(\d{10,})\.keel$/;

/** The name of an event file that is made at this time. */
export function tensorboardName(unixS: number): string {
  return `events.out.tfevents.${String(Math.floor(unixS)).padStart(10, '0')}.keel`;
}

const idPattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,119}$/;
/** Names that Windows keeps for devices, with any ending. */
const reservedOnWindows = /^(con|prn|aux|nul|com\d|lpt\d)(\.|$)/i;

/** Whether a run may be called so: one plain directory name on every system. */
export function isRunId(id: string): boolean {
  return idPattern.test(id) && !id.endsWith('.') && !reservedOnWindows.test(id);
}

/** The id, if a run may be called so. */
export function requireRunId(id: string): string {
  if (isRunId(id)) return id;
  return fail(
    `run id ${show(id)}: use letters, digits, dot, dash and underscore, at most 120, beginning with a letter or digit`,
    'invalid-id',
  );
}

/**
 * A readable id that sorts by time within an environment: `cartpole-20260115-103000-seed1-k3f9` (UTC). The last four
 * characters keep two runs of one second apart.
 */
export function newRunId(environment: string, seed: number, when: Date): string {
  const stamp = when.toISOString().replace(/[-:]/g, '').replace('T', '-').slice(0, 15);
  return `${environmentSlug(environment)}-${stamp}-seed${seed}-${suffix()}`;
}

/** Whether an id is one that {@link newRunId} makes. */
export const isMadeId = (id: string): boolean => /-\d{8}-\d{6}-seed\d+-[2-9a-z]{4}$/.test(id);

/** `CartPole-v1` → `cartpole`, `./envs/my-env.ts` → `my-env`. */
function environmentSlug(environment: string): string {
  const name = environment
    .split(/[\\/]/)
    .at(-1)!
    .replace(/\.[cm]?[jt]s$/, '')
    .replace(/-v\d+$/, '');
  const slug = name
    .normalize('NFKD')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+|-+$/g, '')
    .slice(0, 40);
  return slug || 'run';
}

/** Without 0/o, 1/l/i: people read these aloud. Not a training decision, so not a seeded one. */
const letters = '23456789abcdefghjkmnpqrstuvwxyz';

function suffix(): string {
  return Array.from({ length: 4 }, () => letters[randomInt(letters.length)]).join('');
}
