/** What a search passes by: directories and files that are no logs, or look like one and are none. */
import { join } from 'node:path';
import { type Reading, readHead } from './bytes.ts';
import { trainingsIn } from './console.ts';
import { headBytes } from './detect.ts';
import { isFile } from './places.ts';
import { decodeHead } from './text.ts';

/** Directories that are never searched. */
export const skippedDirectories = new Set([
  'node_modules',
  '.git',
  '__pycache__',
  '.venv',
  'site-packages',
  '.ipynb_checkpoints',
  // What W&B keeps of pictures and tables that a run logged.
  'media',
]);
/** Never logs, and not worth opening when a directory is searched. A file that is named outright is always opened. */
const skippedFiles =
  /(?:^\.)|\.(?:py|pyc|pyi|ts|js|mjs|cjs|svelte|c|h|cpp|cu|so|o|rs|go|java|rst|html?|css|svg|sh|toml|ya?ml|png|jpe?g|gif|mp4|webm|avi|pdf|pt|pth|ckpt|bin|safetensors|onnx|npy|pkl|pickle|7z|whl|lock|xml|urdf|stl|obj|parquet|arrow|h5|msgpack)$/i;
/** Settings, vocabularies and what a study is kept in: objects of numbers too, but nobody's log. */
const notLogs =
  /^(?:params|args|config|hparams|label|manifest|package|tsconfig|wandb-summary|wandb-metadata|vocab|merges|tokenizer|tokenizer_config|special_tokens_map|added_tokens|generation_config|adapter_config|preprocessor_config|study|workers|timers|training_status)\.json$|\.table\.json$|^journal\.log$|^(?:experiment_state|basic-variant-state|searcher-state).*\.json$|\.index\.json$/;

/** A file of one object is settings rather than a log, unless it counts something or names metrics. */
export function isLoneObject(head: Buffer): boolean {
  const text = head.toString('utf8').trim();
  return (
    !text.includes('\n') &&
    !/"(?:step|_step|global_step|training_iteration|timesteps_total|[\w.-]+\/[^"]+)"\s*:/.test(text)
  );
}

/** Why a directory that was a run of ours cannot be read as one; undefined if it never was. */
export async function brokenKeel(path: string, names: readonly string[]): Promise<string | undefined> {
  if (!names.includes('metrics.jsonl') || !(names.includes('events.jsonl') || names.includes('checkpoints')))
    return undefined;
  const metrics = join(path, 'metrics.jsonl');
  const first = isFile(metrics)
    ? decodeHead((await readHead(metrics, headBytes)).head).split('\n', 1)[0]
    : '';
  if (first !== '' && !first.includes('"train/iteration"')) return undefined;
  const what = names.includes('manifest.json') ? 'is damaged' : 'is missing';
  return `a run of Keel whose manifest.json ${what}, so that nobody knows what was trained: restore it from a copy, or give its metrics.jsonl, whose rows can be read without`;
}

export const isDocument = /\.(?:md|markdown)$/i;

const fewestRows = 3;

/** Whether a document has a log in it: a counter, a name of training, and more rows than an example has. */
export async function hasRows(path: string, text: string, reading: Reading): Promise<boolean> {
  if (
    !/timesteps|iteration|episode|epoch|\bsteps?\b/i.test(text) ||
    !/rew|return|loss|_kl|entropy/i.test(text)
  )
    return false;
  return (await trainingsIn(path, reading)).rows.length >= fewestRows;
}

/** Whether a file's name says that it is no log. */
export const isSkipped = (name: string): boolean => skippedFiles.test(name) || notLogs.test(name);
