/** The thread of aside.ts: sleeps until it is asked, executes the program, says that it is done. */
import { workerData } from 'node:worker_threads';
import { type AsideData, signal } from './aside.ts';
import { instantiate } from './module.ts';

const { code, memory, control } = workerData as AsideData;
const signals = new Int32Array(control);
const { run } = instantiate<{ run(): void }>(code, memory);

Atomics.store(signals, signal.done, 0);
for (let done = 0; ; ) {
  Atomics.wait(signals, signal.asked, done);
  const asked = Atomics.load(signals, signal.asked);
  if (asked === -1) break;
  if (asked === done) continue;
  done = asked;
  try {
    run();
  } catch {
    Atomics.store(signals, signal.failed, 1);
  }
  Atomics.store(signals, signal.done, done);
  Atomics.notify(signals, signal.done);
}
