/** A trainer without a policy, to be killed: `train.js <run dir, or root for a new run> <iterations> <pause ms>`. */
import { existsSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { RunWriter } from '../../../src/runs/index.ts';
import { checkpointOf, rowOf, spec } from './spec.ts';

const [dir, iterations, pauseMs] = process.argv.slice(2);
let clock = 1.7e12;
const options = { now: () => (clock += 1000) };
const isNew = !existsSync(join(dir, 'manifest.json'));
const { writer, checkpoint } = isNew
  ? {
      writer: RunWriter.create(spec, { root: dirname(dir), id: basename(dir) }, options),
      checkpoint: undefined,
    }
  : RunWriter.resume(dir, options);
for (let i = (checkpoint?.index.iteration ?? 0) + 1; i <= Number(iterations); i++) {
  if (i % 4 === 0) {
    writer.event({
      type: 'guard',
      iteration: i,
      step: i,
      message: 'stepped back',
      klBefore: Number.POSITIVE_INFINITY,
      klAfter: 0.05,
      bound: 0.05,
      backtracks: i,
      scale: 0.5,
    });
  }
  writer.row(rowOf(i));
  if (i % 3 === 0) await writer.checkpoint(checkpointOf(i, 20_000));
  process.stdout.write('.');
  if (Number(pauseMs) > 0) await pause(Number(pauseMs));
}
writer.end('finished');
