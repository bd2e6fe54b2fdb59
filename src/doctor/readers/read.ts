/** Reads one run. */
import { statSync } from 'node:fs';
import { join } from 'node:path';
import type { RawRun } from '../raw-run.ts';
import { type Reading, type ReadOptions, startReading } from './bytes.ts';
import type { Candidate, Source } from './candidate.ts';
import { readCharts } from './charts.ts';
import { readConsole } from './console.ts';
import { readCsv } from './csv.ts';
import { asReadError, ReadError } from './errors.ts';
import { readJsonDocument } from './json-document.ts';
import { readJsonLines } from './jsonl.ts';
import { readMlflow } from './mlflow.ts';
import { readMonitors } from './monitor.ts';
import { type Limits, RunBuilder } from './run-builder.ts';
import { readScalars } from './scalars.ts';
import { addSettingsFiles, addWandbFiles } from './settings-files.ts';
import { readEventFiles } from './tensorboard.ts';
import { readJsonList, readTrainerState } from './trainer-state.ts';
import { readWandb } from './wandb.ts';

/** Whose points have steps of their own. */
const ownSteps: readonly Source['kind'][] = [
  'tensorboard',
  'wandb',
  'mlflow',
  'sqlite',
  'scalars',
  'long',
  'npz',
];

/** Reads a run that {@link findRuns} found. Fails only with a {@link ReadError} (or the reason of `signal`). */
export async function readRun(
  candidate: Candidate,
  options: ReadOptions & { readonly limits?: Limits } = {},
): Promise<RawRun> {
  const { path, source, format } = candidate;
  const run = new RunBuilder(path, format, ownSteps.includes(source.kind) ? 'step' : 'row', options.limits);
  const reading = startReading(bytesOf(candidate.files), options);
  for (const file of candidate.files) run.files.add(file);
  for (const note of candidate.notes) run.note(note);
  try {
    switch (source.kind) {
      case 'tensorboard':
        await readEventFiles(source.groups, run, reading);
        break;
      case 'keel':
        // Its schemas take as long to load as all other readers together.
        await (await import('./keel.ts')).readKeel(source.directory, run, reading);
        break;
      case 'mlflow':
        await readMlflow(source.directory, run, reading);
        break;
      case 'wandb':
        await readWandb(source.file, run, reading);
        await addWandbFiles(run, candidate.directory);
        if (!run.hasNumbers)
          await readPrinted(run, join(candidate.directory, 'files', 'output.log'), reading);
        break;
      case 'monitor':
        await readMonitors(source.monitors, run, reading);
        break;
      case 'scalars':
        await readScalars(source.scalars, run, reading);
        break;
      case 'json-document':
        await readJsonDocument(source.file, run, reading);
        break;
      case 'trainer-state':
        await readTrainerState(source.file, run, reading);
        break;
      case 'json-list':
        await readJsonList(source.file, run, reading);
        break;
      case 'csv':
        await readCsv(source.file, run, reading);
        break;
      case 'jsonl':
        // One line may be a whole document, with the run in lists inside.
        if ((await readJsonLines(source.file, run, reading)) === 1) {
          run.series.clear();
          await readJsonDocument(source.file, run, reading);
        }
        break;
      case 'verl-console':
      case 'console':
        await readConsole(source.file, run, reading, source.training);
        break;
      case 'charts':
        await readCharts(source.charts, source.run, run, reading);
        break;
      case 'long':
        await (await import('./long-table.ts')).readLongTable(source.file, source.run, run, reading);
        break;
      case 'npz':
        (await import('./npz.ts')).readNpz(source.file, run);
        break;
      case 'sqlite':
        await (await import('./stored-runs.ts')).readStoredRun(source.file, source.run, run, reading);
        break;
      case 'sqlite-file':
        throw new ReadError(path, 'it has no runs: nothing was logged yet');
      case 'broken':
        throw new ReadError(path, source.why);
      default:
        source satisfies never;
    }
    if (!['keel', 'mlflow', 'wandb', 'sqlite'].includes(source.kind)) {
      await addSettingsFiles(run, candidate.directory);
    }
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw asReadError(error, path);
  }
  if (!run.hasNumbers) {
    throw new ReadError(
      path,
      `it is a log (${format}) without a single number: the run may not have begun, or it logs elsewhere`,
    );
  }
  return run.finish();
}

/** W&B keeps what was printed: all there is, where the log itself was not written before the end. */
async function readPrinted(run: RunBuilder, path: string, reading: Reading): Promise<void> {
  if (!(statSync(path, { throwIfNoEntry: false })?.isFile() ?? false)) return;
  await readConsole(path, run, reading);
  if (!run.hasNumbers) return;
  run.files.add(path);
  run.note(`the W&B log has no numbers: they are from ${path}`);
}

function bytesOf(files: readonly string[]): number {
  let total = 0;
  for (const file of files) {
    try {
      const stat = statSync(file);
      if (stat.isFile()) total += stat.size;
    } catch {
      // Told when it is read.
    }
  }
  return total;
}
