import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { decodeEvent, decodeRow, type Row } from '../../src/metrics/row.ts';
import { csvSink } from '../../src/metrics/sinks/csv.ts';
import { jsonlSink } from '../../src/metrics/sinks/jsonl.ts';
import { tensorboardSink } from '../../src/metrics/sinks/tensorboard.ts';
import { parseCsv } from './support/parse-csv.ts';
import { decodeEvents } from './support/read-events.ts';
import { testSink } from './support/sink-contract.ts';

const lines = (path: string): string[] => {
  const text = readFileSync(path, 'utf8');
  if (text !== '' && !text.endsWith('\n')) throw new Error(`${path} ends in half a line`);
  return text.split('\n').slice(0, -1);
};

testSink({
  name: 'jsonl',
  open: directory =>
    jsonlSink({ metrics: join(directory, 'metrics.jsonl'), events: join(directory, 'events.jsonl') }),
  rows: directory => lines(join(directory, 'metrics.jsonl')).map(decodeRow),
  kept: row => row,
  events: directory => lines(join(directory, 'events.jsonl')).map(decodeEvent).length,
});

testSink({
  name: 'csv',
  open: directory => csvSink(join(directory, 'metrics.csv')),
  rows(directory) {
    const [header = [], ...records] = parseCsv(readFileSync(join(directory, 'metrics.csv'), 'utf8'));
    return records.map(record => {
      if (record.length !== header.length) throw new Error(`${record.length} fields, not ${header.length}`);
      const present = header.map((name, i) => [name, record[i]] as const).filter(([, text]) => text !== '');
      return Object.fromEntries(present.map(([name, text]) => [name, Number(text)])) as Row;
    });
  },
  kept: row => row,
});

testSink({
  name: 'tensorboard',
  open: directory => tensorboardSink(join(directory, 'events.out.tfevents.1'), { startedUnixS: 1.25e9 }),
  rows(directory) {
    const events = readdirSync(directory).flatMap(name => decodeEvents(readFileSync(join(directory, name))));
    return events
      .filter(({ scalars }) => scalars.size > 0)
      .map(({ scalars, step, wallTime }) => ({
        ...Object.fromEntries(scalars),
        'train/step': Number(step),
        'time/unix_s': wallTime,
      }));
  },
  // Scalars are float32; step and time are the event's own.
  kept: row =>
    Object.fromEntries(
      Object.entries({ 'time/unix_s': 1.25e9, ...row }).map(([id, value]) => [
        id,
        id === 'train/step' || id === 'time/unix_s' ? value : Math.fround(value),
      ]),
    ),
});
