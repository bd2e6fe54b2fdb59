/** A worker thread of `workerVectorEnv`: makes its environments, then sleeps and steps them by turns. */
import { writeSync } from 'node:fs';
import { receiveMessageOnPort, workerData } from 'node:worker_threads';
import { createEnv } from '../definition.ts';
import { type EnvError, errorCode, messageOf } from '../errors.ts';
import { loadEnvFile } from '../load.ts';
import { findEnv } from '../registry.ts';
import { vectorMemory } from './arrays.ts';
import {
  COMMAND,
  commands,
  currentOf,
  type ErrorReply,
  FAILED,
  NOTICED,
  type NoticeReply,
  PENDING,
  type ThreadData,
  turnOf,
} from './protocol.ts';
import { EnvSlice } from './slice.ts';
import { spinUntil } from './spin.ts';

const data = workerData as ThreadData;
const control = new Int32Array(data.control);
const turn = turnOf(data.worker);
const current = currentOf(data.worker);

// A worker's output goes through the main thread when both are idle, which this one hardly is: what an environment prints
// would appear when all is over. So it goes straight out.
for (const [stream, descriptor] of [
  [process.stdout, 1],
  [process.stderr, 2],
] as const) {
  stream.write = (chunk: string | Uint8Array): boolean => {
    try {
      writeSync(descriptor, chunk as Uint8Array);
    } catch {
      // A full pipe or a closed terminal: a lost line is no reason to stop.
    }
    return true;
  };
}

/** Tells the vector that this worker is done, after what it may have posted. */
function finish(): void {
  if (Atomics.sub(control, PENDING, 1) === 1) Atomics.notify(control, PENDING);
}

/** Posts an error, with the stack of what the environment threw. */
function reply(error: unknown): void {
  const place = (error as EnvError | null)?.place;
  let root = error;
  while (root instanceof Error && root.cause !== undefined) root = root.cause;
  const stack = root instanceof Error ? root.stack : undefined;
  data.port.postMessage({
    error: { code: errorCode(error) ?? 'env-threw', message: messageOf(error), stack, place },
  } satisfies ErrorReply);
  Atomics.store(control, FAILED, 1);
}

async function makeSlice(): Promise<EnvSlice> {
  const { definition, file } = data.file ? await loadEnvFile(`${data.file}#${data.id}`) : findEnv(data.id);
  await definition.prepare?.();
  const envs = Array.from({ length: data.end - data.first }, () => createEnv(definition, data.options, file));
  return new EnvSlice(envs, data.first, data.shape, vectorMemory(data.shape, data.memory), index => {
    Atomics.store(control, current, index);
  });
}

/** Works until it is told to close. Sleeps in between, so nothing else runs in this thread. */
function serve(slice: EnvSlice): void {
  let last = 0;
  for (;;) {
    // The vector wakes this thread after it has counted the turn up. Who saw the new turn before that may have taken it, and be
    // asleep again, when the wake-up comes: without a look at the turn it would step twice.
    spinUntil(control, turn, 'other', last, data.spinMs);
    while (Atomics.load(control, turn) === last) Atomics.wait(control, turn, last);
    last = Atomics.load(control, turn);
    const command = Atomics.load(control, COMMAND);
    try {
      switch (command) {
        case commands.step:
          slice.step();
          break;
        case commands.reset:
          slice.reset(receiveMessageOnPort(data.port)?.message as number[] | undefined);
          break;
        case commands.state:
          data.port.postMessage(slice.state());
          break;
        case commands.restore:
          slice.restore(receiveMessageOnPort(data.port)?.message as unknown[]);
          break;
        case commands.close:
          slice.close();
          break;
      }
    } catch (error) {
      reply(error);
    }
    const notices = slice.takeNotices();
    if (notices.length > 0) {
      data.port.postMessage({ notices } satisfies NoticeReply);
      Atomics.store(control, NOTICED, 1);
    }
    finish();
    if (command === commands.close) return;
  }
}

try {
  const slice = await makeSlice();
  finish();
  serve(slice);
} catch (error) {
  reply(error);
  finish();
}
data.port.close();
