/** A worker that is woken for a turn that it has taken already, because its vector was slow to wake it, must not step twice. */
import { setTimeout as pause } from 'node:timers/promises';
import { MessageChannel, Worker } from 'node:worker_threads';
import { expect, it } from 'vitest';
import { makeEnv } from '../../src/envs/index.ts';
import { bytesFor, vectorMemory } from '../../src/envs/vector/arrays.ts';
import {
  COMMAND,
  commands,
  controlLength,
  PENDING,
  type ThreadData,
  turnOf,
} from '../../src/envs/vector/protocol.ts';
import { shapeFor } from '../../src/envs/vector/vector.ts';
import { workerEntry } from '../../src/envs/vector/workers.ts';

it('a wake-up without a new turn changes nothing', async () => {
  const shape = shapeFor(makeEnv('CartPole-v1'), 1);
  const [shared, controlBuffer] = [
    new SharedArrayBuffer(bytesFor(shape)),
    new SharedArrayBuffer(4 * controlLength(1)),
  ];
  const memory = vectorMemory(shape, shared);
  const control = new Int32Array(controlBuffer);
  control[PENDING] = 1;
  const { port1, port2 } = new MessageChannel();
  const data: ThreadData = {
    worker: 0,
    id: 'CartPole-v1',
    file: null,
    options: {},
    first: 0,
    end: 1,
    shape,
    control: controlBuffer,
    memory: shared,
    port: port2,
    spinMs: 0,
  };
  const worker = new Worker(workerEntry(), { workerData: data, transferList: [port2], execArgv: [] });
  const done = async (): Promise<void> => {
    while (Atomics.load(control, PENDING) !== 0) await pause(1);
  };
  const call = async (command: keyof typeof commands, message?: unknown): Promise<void> => {
    Atomics.store(control, PENDING, 1);
    Atomics.store(control, COMMAND, commands[command]);
    if (message !== undefined) port1.postMessage(message);
    Atomics.add(control, turnOf(0), 1);
    Atomics.notify(control, turnOf(0));
    await done();
  };
  await done();
  await call('reset', [7]);
  for (let step = 1; step <= 3; step++) {
    await call('step');
    await pause(20); // until it sleeps
    Atomics.notify(control, turnOf(0)); // late
    await pause(20);
    expect(memory.steps[0]).toBe(step);
    expect(Atomics.load(control, PENDING)).toBe(0);
  }
  await call('close');
  port1.close();
  await worker.terminate();
});
