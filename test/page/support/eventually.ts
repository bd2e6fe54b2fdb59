import { expect } from 'vitest';

/** What a page will show in a moment; a busy machine is given time, a broken page never gets there. */
export const eventually = <T>(read: () => T | Promise<T>) =>
  expect.poll(read, { timeout: 20_000, interval: 40 });
