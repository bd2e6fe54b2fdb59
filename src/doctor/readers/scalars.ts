/**
 * Single scalars as TensorBoard's page exports them: `Wall time,Step,Value` or a list of triples, one file a tag, whose
 * name says which: `run-PPO_1-tag-train_approx_kl.csv`.
 */
import { basename } from 'node:path';
import type { Reading } from './bytes.ts';
import { splitFields } from './csv.ts';
import { parseJson } from './json.ts';
import { triplesOf } from './json-shape.ts';
import { readNumber } from './numbers.ts';
import { replaceRepeated } from './restarts.ts';
import type { RunBuilder } from './run-builder.ts';
import { forEachLine } from './text.ts';

const mostFiles = 1024;
const exported = /^(?:run[-_])?(.*?)[-_]?tag[-_](.+)$/i;

/** Names that people give such files: `PPO_1_train_approx_kl.csv`. Only groups that no run is called by. */
const named = /^(.*[^_-])[-_]((?:train|rollout|eval|losses|charts)_.+)$/;

/** `run-PPO_1-tag-train_approx_kl.csv`: of which run, and which tag. The tag alone where a name says no more. */
export function exportedName(file: string): { readonly run: string | undefined; readonly tag: string } {
  const stem = basename(file)
    .replace(/\.gz$/i, '')
    .replace(/\.(?:csv|json|txt)$/i, '')
    .replace(/ ?\(\d+\)$/, '');
  const found = exported.exec(stem) ?? named.exec(stem);
  return found === null ? { run: undefined, tag: tagOf(stem) } : { run: found[1], tag: tagOf(found[2]) };
}

/** Slashes became underscores: the first stands where a trainer's group of names ends. */
const groups =
  /^(train|rollout|time|eval|losses|loss|charts|Loss|Policy|Train|Perf|Episode|Learning|Reward|info|rewards|episode_lengths|diagnostics|performance|objective|policy|val|actor|critic|Environment|environment|Losses|ray_tune)_(?! )/;

function tagOf(text: string): string {
  // skrl's groups have spaces around the slash.
  const spaced = text.replace(/^([A-Z][\w-]*) _ /, '$1 / ');
  return spaced.replace(groups, (_, group: string) => `${group === 'ray_tune' ? 'ray/tune' : group}/`);
}

/** Whether a line is the header of such a file. */
export function isScalarHeader(line: string): boolean {
  const names = splitFields(line, ',').map(name => name.trim().toLowerCase().replaceAll('_', ' '));
  return names.length === 3 && names[0] === 'wall time' && names[1] === 'step' && names[2] === 'value';
}

/** Reads the files of one run. */
export async function readScalars(
  files: readonly string[],
  run: RunBuilder,
  reading: Reading,
): Promise<void> {
  for (const file of files.slice(0, mostFiles)) {
    const { tag } = exportedName(file);
    let left = 0;
    const add = (wallTime: number, step: number, value: number): void =>
      run.number(tag, step, value, wallTime);
    let isHeader = true;
    await forEachLine(file, reading, run, (line, whole) => {
      if (line.trim() === '') return;
      if (line.startsWith('[')) {
        for (const triple of triplesOf(parseJson(line)) ?? []) add(...triple);
        return;
      }
      if (isHeader) {
        isHeader = false;
        return;
      }
      const [wallTime, step, value] = splitFields(line, ',').map(field => readNumber(field));
      if (typeof step === 'number' && Number.isFinite(step) && typeof value === 'number')
        add(typeof wallTime === 'number' ? wallTime : Number.NaN, step, value);
      else if (whole) left++;
    });
    if (left > 0) run.damage(`${file}: ${left} rows are not time, step and value and are left out`);
  }
  // The page keeps a sample, in order; what is not in order was put together from several runs.
  replaceRepeated(run);
  if (files.length > mostFiles) run.note(`only the first ${mostFiles} of ${files.length} files are read`);
}
