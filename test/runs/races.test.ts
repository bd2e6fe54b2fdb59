/** What two processes do at once: between a look and an act of one, the other acts. */
import { mkdirSync, readdirSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { openInbox } from '../../src/runs/inbox.ts';
import { acquireLock, lockHolder } from '../../src/runs/lock.ts';
import { temporaryRoot } from './support/temporary.ts';

/** What happens in place of the next deletions. */
const deletion = vi.hoisted(() => ({ instead: undefined as ((path: string) => void) | undefined }));

vi.mock('node:fs', async original => {
  const real = await original<typeof import('node:fs')>();
  const rmSync: typeof real.rmSync = (path, options) => {
    deletion.instead?.(String(path));
    real.rmSync(path, options);
  };
  return { ...real, rmSync, default: { ...real, rmSync } };
});

const root = temporaryRoot('races');
let dir: string;
let number = 0;
beforeEach(() => {
  dir = join(root, String(++number));
  mkdirSync(join(dir, 'inbox'), { recursive: true });
});
afterEach(() => {
  deletion.instead = undefined;
});

const id = '01234567-89ab-cdef-0123-456789abcdef';
const ask = (): void =>
  writeFileSync(join(dir, 'inbox', `${id}.json`), JSON.stringify({ type: 'stop', by: 'a test' }));

it('a request that is taken back while it is read is not done', () => {
  const inbox = openInbox(dir);
  ask();
  deletion.instead = path => {
    deletion.instead = undefined;
    unlinkSync(path);
  };
  expect(inbox.take()).toEqual([]);
  expect(readdirSync(join(dir, 'inbox'))).toEqual([]);
  ask();
  expect(inbox.take()).toEqual([{ id, request: { type: 'stop', by: 'a test' } }]);
});

it('a lock that was given up is free, although the disk would not delete its file', () => {
  const lock = acquireLock(dir);
  deletion.instead = () => {
    throw Object.assign(new Error('read-only'), { code: 'EROFS' });
  };
  lock.release();
  deletion.instead = undefined;
  expect(readdirSync(dir)).toContain('lock.1');
  expect(lockHolder(dir)).toBeUndefined();
  acquireLock(dir).release();
});
