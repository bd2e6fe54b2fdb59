/** Real full and read-only disks, where the system lets us mount one (root on Linux); faults.test.ts needs none. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  loadCheckpoint,
  openRun,
  RunError,
  RunWriter,
  readEvents,
  readRows,
  runPaths,
} from '../../src/runs/index.ts';
import { checkpointOf, rowOf, spec } from './support/spec.ts';
import { temporaryRoot } from './support/temporary.ts';

const mountPoint = join(temporaryRoot('disk'), 'mount');
const mount = (...args: string[]): void => void execFileSync('mount', args, { stdio: 'ignore' });

let mounted = false;
beforeAll(() => {
  mkdirSync(mountPoint);
  try {
    mount('-t', 'tmpfs', '-o', 'size=256k', 'tmpfs', mountPoint);
    mounted = true;
  } catch {
    // Not root, or not Linux.
  }
});
afterAll(() => {
  if (mounted) execFileSync('umount', [mountPoint]);
});

/** Leaves this many bytes on the disk. */
function fillUp(leave: number): void {
  for (let size = 256 * 1024; size >= 1; size = Math.floor(size / 2)) {
    try {
      writeFileSync(join(mountPoint, 'ballast'), Buffer.alloc(size), { flag: 'a' });
    } catch {}
  }
  const ballast = join(mountPoint, 'ballast');
  const size = statSync(ballast).size;
  rmSync(ballast);
  writeFileSync(ballast, Buffer.alloc(Math.max(0, size - leave)));
}

describe('a disk', () => {
  it('that is full costs nothing that was saved', async context => {
    if (!mounted) return context.skip();
    const writer = RunWriter.create(spec, { root: mountPoint, id: 'full' });
    for (let i = 1; i <= 3; i++) writer.row(rowOf(i));
    await writer.checkpoint(checkpointOf(3));

    fillUp(8192);
    writer.row(rowOf(4));
    const failing = writer.checkpoint(checkpointOf(4, 60_000));
    await expect(failing).rejects.toThrow(RunError);
    await expect(failing).rejects.toThrow(
      /^cannot write .*: the disk is full: free some space or choose another run directory; what was saved before is intact \(ENOSPC\)$/,
    );
    const { checkpoints, metrics } = runPaths(writer.dir);
    expect(readdirSync(checkpoints).sort()).toEqual(['768', 'best', 'last']);

    fillUp(0);
    let failed = 0;
    for (let i = 5; i < 200 && failed === 0; i++) {
      try {
        writer.row(rowOf(i));
      } catch (error) {
        expect(error).toBeInstanceOf(RunError);
        expect((error as RunError).code).toBe('ENOSPC');
        failed = i;
      }
    }
    expect(failed).toBeGreaterThan(0);
    expect(readFileSync(metrics, 'utf8').endsWith('\n')).toBe(true);
    expect(readRows(writer.dir).broken).toEqual([]);
    const rows = readRows(writer.dir).items.length;
    expect([failed - 1, failed]).toContain(rows); // the projection may be what did not fit
    writer.end('failed', 'the disk is full'); // does not throw: the caller has the error

    rmSync(join(mountPoint, 'ballast'));
    expect(openRun(writer.dir).status).toMatch(/killed|failed/);
    expect(loadCheckpoint(writer.dir)!.index.iteration).toBe(3);
    const { writer: again, checkpoint } = RunWriter.resume(writer.dir);
    expect(checkpoint?.state).toEqual(checkpointOf(3).state);
    for (let i = 4; i <= 6; i++) again.row(rowOf(i));
    await again.checkpoint(checkpointOf(6));
    again.end('finished');
    expect(readRows(writer.dir).items).toHaveLength(6);
    expect(readEvents(writer.dir).broken).toEqual([]);
    rmSync(writer.dir, { recursive: true });
  });

  it('that is full from the start leaves no half-made run', context => {
    if (!mounted) return context.skip();
    fillUp(0);
    expect(() => RunWriter.create(spec, { root: mountPoint, id: 'none' })).toThrow(/disk is full/);
    rmSync(join(mountPoint, 'ballast'));
    expect(readdirSync(mountPoint)).toEqual([]);
  });

  it('that is read-only says so', async context => {
    if (!mounted) return context.skip();
    const writer = RunWriter.create(spec, { root: mountPoint, id: 'fixed' });
    writer.row(rowOf(1));
    await writer.checkpoint(checkpointOf(1));
    writer.end('stopped');
    mount('-o', 'remount,ro', mountPoint);
    try {
      const message =
        /^cannot .*: the file system is read-only: choose another run directory or mount it for writing \(EROFS\)$/;
      expect(() => RunWriter.create(spec, { root: mountPoint, id: 'other' })).toThrow(message);
      expect(() => RunWriter.resume(writer.dir)).toThrow(message);
      expect(openRun(writer.dir).status).toBe('stopped');
      expect(loadCheckpoint(writer.dir)!.index.iteration).toBe(1);
    } finally {
      mount('-o', 'remount,rw', mountPoint);
    }
  });
});
