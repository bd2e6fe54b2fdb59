import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { show } from '../../base/errors.ts';
import { readBounded } from '../../base/files.ts';
import { csvSink } from '../../metrics/sinks/csv.ts';
import type { Sink } from '../../metrics/sinks/sink.ts';
import { runPaths } from '../layout.ts';
import { openTensorboard, tensorboardFiles } from '../projections.ts';
import type { Evidence, Tell } from './evidence.ts';

/** What one read may give. */
const mostBytes = 2 ** 31 - 1;

/** CSV and TensorBoard files say what the rows say, row by row: they are made again elsewhere and compared. */
export function verifyProjections(evidence: Evidence, tell: Tell): void {
  const { run } = evidence;
  const { csv } = runPaths(run.dir);
  const { csv: wantsCsv, tensorboard: wantsTensorboard } = run.manifest.config;
  const scratch = mkdtempSync(join(tmpdir(), 'keel-verify-'));
  try {
    const remade = (name: string, open: (path: string) => Sink): Buffer => {
      const path = join(scratch, name);
      const sink = open(path);
      for (const { item } of evidence.rows) sink.write(item);
      sink.close();
      return readBounded(path, mostBytes);
    };
    if (existsSync(csv)) compareLines(csv, remade('csv', csvSink), evidence, tell);
    else if (wantsCsv !== false) tell(csv, undefined, 'it is missing');
    const [name, ...more] = tensorboardFiles(run.dir).reverse();
    for (const other of more)
      if (evidence.isWhole)
        tell(join(run.dir, other), undefined, `a second event file, expected ${name} alone`);
    if (name !== undefined) {
      const expected = remade('tensorboard', path => openTensorboard(path, run.manifest));
      compareRecords(join(run.dir, name), expected, evidence, tell);
    } else if (wantsTensorboard !== false)
      tell(join(run.dir, 'events.out.tfevents'), undefined, 'it is missing');
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

/** Whether what is short by one row may be: a kill came between the row and its projection. */
const mayLack = ({ isWhole }: Evidence, missing: number): boolean => !isWhole && missing <= 1;

function compareLines(path: string, wanted: Buffer, evidence: Evidence, tell: Tell): void {
  const lines = (bytes: Buffer): string[] => bytes.toString('utf8').split('\n');
  const [found, expected] = [lines(readBounded(path, mostBytes)), lines(wanted)];
  const columns = expected[0].split(',');
  // The last of them is what follows the last line break.
  const missing = expected.length - found.length;
  for (let i = 0; i < Math.min(found.length, expected.length) - 1; i++) {
    if (found[i] === expected[i]) continue;
    const [cells, wantedCells] = [found[i].split(','), expected[i].split(',')];
    const at = wantedCells.findIndex((cell, column) => cell !== cells[column]);
    const column = columns[at] ?? `column ${at + 1}`;
    tell(
      path,
      `line ${i + 1}, ${column}`,
      `${show(cells[at] ?? '')}, expected ${show(wantedCells[at] ?? '')}, as metrics.jsonl has it`,
    );
    return;
  }
  if (missing !== 0 && !mayLack(evidence, missing))
    tell(
      path,
      undefined,
      `${found.length - 2} rows, expected ${expected.length - 2}, as metrics.jsonl has them`,
    );
  else if (missing === 0 && evidence.isWhole && found.at(-1) !== expected.at(-1))
    tell(path, undefined, 'half a line at its end, expected none');
}

function compareRecords(path: string, wanted: Buffer, evidence: Evidence, tell: Tell): void {
  const [found, expected] = [recordsOf(readBounded(path, mostBytes)), recordsOf(wanted)];
  // The first say when the file was made and with which settings, as they were then.
  const head = expected.records.length - evidence.rows.length;
  const rows = found.records.slice(head);
  for (const [i, { item }] of evidence.rows.entries()) {
    if (rows[i] === undefined || rows[i].equals(expected.records[head + i])) continue;
    tell(
      path,
      `the row of iteration ${item['train/iteration']}`,
      'its scalars are others, expected those of metrics.jsonl',
    );
    return;
  }
  const missing = evidence.rows.length - rows.length;
  if (missing !== 0 && !mayLack(evidence, missing))
    tell(path, undefined, `${rows.length} rows, expected ${evidence.rows.length}, as metrics.jsonl has them`);
  else if (evidence.isWhole && found.rest > 0)
    tell(path, undefined, `${found.rest} bytes at its end that are no record, expected none`);
}

/** The records of an event file by their lengths, sums included, and how many bytes are left. */
function recordsOf(bytes: Buffer): { records: Buffer[]; rest: number } {
  const records: Buffer[] = [];
  let at = 0;
  while (at + 12 <= bytes.length) {
    const end = at + 16 + Number(bytes.readBigUInt64LE(at));
    if (end > bytes.length) break;
    records.push(bytes.subarray(at, end));
    at = end;
  }
  return { records, rest: bytes.length - at };
}
