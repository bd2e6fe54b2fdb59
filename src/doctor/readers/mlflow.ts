/** MLflow's file store: `metrics/<key>` with lines `timestamp_ms value step`, `params/<key>`, `meta.yaml`. */
import { readdirSync } from 'node:fs';
import { join, relative, sep } from 'node:path';
import type { Reading } from './bytes.ts';
import { typed } from './markdown-table.ts';
import { readNumber } from './numbers.ts';
import { replaceRepeated } from './restarts.ts';
import type { RunBuilder } from './run-builder.ts';
import { readSmall } from './settings-files.ts';
import { forEachLine } from './text.ts';

const mostFiles = 4096;
const deepest = 8;

/** The files below a directory of metrics or params: a `/` in a key makes directories. */
export function filesBelow(directory: string): string[] {
  const files: string[] = [];
  const visit = (path: string, depth: number): void => {
    let entries: import('node:fs').Dirent[];
    try {
      entries = readdirSync(path, { withFileTypes: true });
    } catch {
      return;
    }
    for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
      if (files.length >= mostFiles) return;
      const child = join(path, entry.name);
      if (entry.isFile()) files.push(child);
      else if (entry.isDirectory() && depth < deepest) visit(child, depth + 1);
    }
  };
  visit(directory, 0);
  return files;
}

/** Values of a metric that was logged without a step are all at 0: they are counted. */
export function renumberUnstepped(run: RunBuilder): void {
  let unstepped = 0;
  for (const builder of run.series.values()) {
    const { x, length } = builder.build();
    if (length < 2 || x.some(step => step !== 0)) continue;
    builder.renumber();
    unstepped++;
  }
  if (unstepped > 0)
    run.note(`${unstepped} metrics were logged without a step: their values are counted instead`);
}

export async function readMlflow(directory: string, run: RunBuilder, reading: Reading): Promise<void> {
  const metrics = join(directory, 'metrics');
  const files = filesBelow(metrics);
  if (files.length >= mostFiles) run.note(`${metrics} has ${mostFiles} files or more: the rest is left out`);
  let broken = 0;
  for (const file of files) {
    const name = relative(metrics, file).replaceAll(sep, '/');
    const builder = run.of(name);
    if (builder === undefined) continue;
    await forEachLine(file, reading, run, (line, whole) => {
      if (line === '') return;
      const [time, value, step] = line.split(/\s+/);
      const [timeMs, number] = [readNumber(time ?? ''), readNumber(value ?? '')];
      const at = step === undefined || step === '' ? 0 : readNumber(step);
      if (
        typeof timeMs !== 'number' ||
        typeof number !== 'number' ||
        typeof at !== 'number' ||
        !Number.isFinite(at)
      ) {
        if (whole) broken++;
        else run.unfinished = true;
        return;
      }
      // Digits of the last step may still be to come.
      if (!whole) {
        run.unfinished = true;
        return;
      }
      builder.append(at, number, timeMs / 1000);
      run.counted(1);
    });
  }
  if (broken > 0) run.damage(`${metrics}: ${broken} lines are not "time value step" and are left out`);
  renumberUnstepped(run);
  replaceRepeated(run);
  const params = join(directory, 'params');
  for (const file of filesBelow(params)) {
    const text = readSmall(file);
    if (text !== undefined) run.setting(relative(params, file).replaceAll(sep, '/'), typed(text.trim()));
  }
  for (const line of (readSmall(join(directory, 'meta.yaml')) ?? '').split('\n', 100)) {
    const found = /^(run_name|status|run_id):\s*(.{1,200})$/.exec(line.trimEnd());
    if (found !== null) run.text(found[1], found[2].replace(/^['"]|['"]$/g, ''));
  }
}
