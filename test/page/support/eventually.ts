import { expect } from 'vitest';
import { patienceMs } from '../../support/until.ts';

/** What a page will show in a moment; a busy machine is given time, a broken page never gets there. */
export const eventually = <T>(read: () => T | Promise<T>) =>
  expect.poll(read, { timeout: patienceMs, interval: 40 });
