/**
 * A process of the pool, started by here.ts: does one job after the other. It ends with its parent, however that ends: the
 * channel closes, and the run under way stops with a checkpoint.
 */
import * as z from 'zod/mini';
import { elsewhere } from '../elsewhere.ts';
import { asSentence, parseJob } from '../job.ts';
import { doJob } from '../work.ts';
import { type Order, orderSchema, type Report } from './messages.ts';

let current: AbortController | undefined;

const tell = (report: Report): void => {
  // The parent may be gone: then nobody is left to tell.
  if (process.connected) process.send?.(report, undefined, undefined, () => {});
};

async function work({ job: given, root, files, engines }: Order & { kind: 'job' }): Promise<void> {
  current = new AbortController();
  const { signal } = current;
  try {
    const job = parseJob(given, 'the parent process');
    const onStart = (): void => tell({ kind: 'started' });
    const outcome = await doJob(job, { root, files, engines, signal, onStart });
    tell({ kind: 'outcome', outcome, rss: process.memoryUsage.rss() });
  } catch (error) {
    const machine = elsewhere(error);
    if (machine !== undefined)
      tell({ kind: 'elsewhere', message: asSentence(machine.message), code: machine.code ?? '' });
    else if (signal.aborted && error === signal.reason) tell({ kind: 'stopped' });
    else throw error; // a fault of ours: the process ends, and the parent says what it wrote
  } finally {
    current = undefined;
    if (!process.connected) process.exit();
  }
}

process.on('message', message => {
  const order = z.parse(orderSchema, message);
  if (order.kind === 'stop') current?.abort(new Error('stopped'));
  else void work(order);
});
process.on('disconnect', () => {
  if (current === undefined) process.exit();
  current.abort(new Error('its parent is gone'));
});
// Ctrl-C in a terminal reaches all of its processes: the parent says when to stop.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
  process.on(signal, () => current?.abort(new Error(signal)));
tell({ kind: 'ready' });
