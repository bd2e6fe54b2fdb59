/** Keel's own run directories. */
import { existsSync } from 'node:fs';
import { RunError } from '../../base/errors.ts';
import { runPaths } from '../../runs/layout.ts';
import { readManifest } from '../../runs/manifest.ts';
import { parseEventLine, type StoredEvent } from '../../runs/schema.ts';
import type { Reading } from './bytes.ts';
import { readJsonLines } from './jsonl.ts';
import type { RunBuilder } from './run-builder.ts';
import { addSaid, saidBy } from './said.ts';
import { forEachLine } from './text.ts';

/** Keel has some twenty kinds of event. */
const mostKinds = 64;

export async function readKeel(directory: string, run: RunBuilder, reading: Reading): Promise<void> {
  const paths = runPaths(directory);
  try {
    addSaid(run, saidBy(readManifest(directory)));
  } catch (error) {
    if (!(error instanceof RunError)) throw error;
    run.note(`its settings cannot be read: ${error.message}`);
  }
  if (existsSync(paths.metrics)) await readJsonLines(paths.metrics, run, reading);
  if (existsSync(paths.events)) await addEvents(paths.events, run, reading);
}

/** What happened, a line for each kind of event; a resume is a restart at the first row after its checkpoint. */
async function addEvents(path: string, run: RunBuilder, reading: Reading): Promise<void> {
  const kinds = new Map<string, { count: number; last: StoredEvent }>();
  const steps = run.series.get('train/step')?.build();
  let broken = 0;
  await forEachLine(path, reading, run, (line, whole) => {
    if (line === '') return;
    let event: StoredEvent;
    try {
      event = parseEventLine(line);
    } catch {
      if (whole) broken++;
      return;
    }
    const before = kinds.get(event.type);
    if (before !== undefined || kinds.size < mostKinds) {
      kinds.set(event.type, { count: (before?.count ?? 0) + 1, last: event });
    }
    if (event.type !== 'resumed' || steps === undefined) return;
    const from = typeof event.checkpoint === 'number' ? event.checkpoint : 0;
    const at = steps.values.findIndex(step => step > from);
    if (at > 0) run.restarts.add(steps.x[at]);
  });
  if (broken > 0) run.note(`events.jsonl: ${broken} lines are damaged and are left out`);
  for (const [type, { count, last }] of kinds) {
    const times = count === 1 ? 'once' : `${count} times, last`;
    run.text(`events/${type}`, `${times} at step ${last.step}: ${last.message}`);
  }
}
