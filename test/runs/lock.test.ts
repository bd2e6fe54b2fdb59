import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { acquireLock, lockHolder } from '../../src/runs/lock.ts';
import { identify, type System, stateOf, thisSystem } from '../../src/runs/process-identity.ts';
import { RunError } from '../../src/runs/schema.ts';
import { compiledUrl } from '../support/compiled.ts';
import { temporaryRoot } from './support/temporary.ts';

const root = temporaryRoot('lock');
let number = 0;
let dir: string;
beforeEach(() => {
  dir = join(root, String(++number));
  mkdirSync(dir);
});

const lockModule = compiledUrl('runs/lock');

/** A process that takes the lock, says so, and does as told. */
function child(then: string): ChildProcess {
  const script = `import { acquireLock } from ${JSON.stringify(lockModule)};
    try { globalThis.lock = acquireLock(${JSON.stringify(dir)}); console.log('held'); }
    catch (error) { console.log(error.message); process.exit(3); }
    ${then}`;
  return spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
}

const says = (process: ChildProcess): Promise<string> =>
  new Promise(resolve => process.stdout!.once('data', data => resolve(String(data).trim())));
const ends = (process: ChildProcess): Promise<number | null> =>
  new Promise(resolve => process.once('close', code => resolve(code)));

function leave(holder: object, name = 'lock.1'): void {
  const whole = { ...identify(), since: '2026-01-01T00:00:00.000Z', token: 'x', ...holder };
  writeFileSync(join(dir, name), JSON.stringify(whole));
}

describe('a lock', () => {
  it('is held by one, and free after', () => {
    const lock = acquireLock(dir);
    expect(lockHolder(dir)?.pid).toBe(process.pid);
    expect(() => acquireLock(dir)).toThrow(RunError);
    expect(() => acquireLock(dir)).toThrow(
      /^.* is being written by this process since .*: wait for it or stop it first$/,
    );
    lock.release();
    lock.release();
    expect(readdirSync(dir)).toEqual([]);
    acquireLock(dir).release();
  });

  it('keeps another process out, which says who has it', async () => {
    const lock = acquireLock(dir);
    const other = child('');
    const over = ends(other);
    expect(await says(other)).toMatch(
      new RegExp(
        `^${dir} is being written by process ${process.pid} since [^\\n]+: wait for it or stop it first$`,
      ),
    );
    expect(await over).toBe(3);
    lock.release();
  });

  it('is given up when its process exits, and taken over when it was killed', async () => {
    const exiting = child('setTimeout(() => {}, 50);');
    const exited = ends(exiting);
    expect(await says(exiting)).toBe('held');
    expect(() => acquireLock(dir)).toThrow(`process ${exiting.pid}`);
    await exited;
    expect(readdirSync(dir)).toEqual([]);

    const killed = child('setInterval(() => {}, 1000);');
    const gone = ends(killed);
    expect(await says(killed)).toBe('held');
    killed.kill('SIGKILL');
    await gone;
    expect(readdirSync(dir)).toEqual(['lock.1']);
    expect(lockHolder(dir)).toBeUndefined();
    const lock = acquireLock(dir);
    expect(readdirSync(dir)).toEqual(['lock.2']);
    lock.release();
  });

  it('goes to exactly one of many who find it left behind', async () => {
    leave({ pid: spawnSync(process.execPath, ['-e', '']).pid });
    const racers = Array.from({ length: 4 }, () => child('setInterval(() => {}, 1000);'));
    const over = Promise.all(racers.map(ends));
    const words = await Promise.all(racers.map(says));
    expect(words.filter(word => word === 'held')).toHaveLength(1);
    racers[words.indexOf('held')].kill('SIGKILL');
    await over;
    expect(readdirSync(dir)).toEqual(['lock.2']);
  });

  it('gives way to a higher one that appears while it is taken', () => {
    leave({ pid: 1_000_000_007 });
    // Between the look at who holds the lock and the new file, two others take it and pass it on.
    const system: System = {
      ...thisSystem,
      probe(pid) {
        if (pid !== 1_000_000_007) return thisSystem.probe(pid);
        leave({ token: 'later' }, 'lock.5');
        throw Object.assign(new Error('no such process'), { code: 'ESRCH' });
      },
    };
    expect(() => acquireLock(dir, system)).toThrow(/is being written by this process/);
    expect(readdirSync(dir).sort()).toEqual(['lock.1', 'lock.5']);
  });

  it('of a process number that was used again is taken over', () => {
    leave({ start: '1' });
    expect(lockHolder(dir)).toBeUndefined();
    acquireLock(dir).release();
  });

  it('of an earlier boot is taken over', () => {
    if (identify().boot === null) return; // only Linux counts from the boot
    leave({ boot: 'another' });
    acquireLock(dir).release();
  });

  it('of another machine is respected, with the way out', () => {
    leave({ host: 'elsewhere', pid: 1 });
    expect(lockHolder(dir)?.host).toBe('elsewhere');
    expect(() => acquireLock(dir)).toThrow(
      /is being written by process 1 on elsewhere since .*: stop it there; if that machine is gone, delete .*lock\.1$/,
    );
  });

  it('that a kill left unreadable is taken over, unless it is just being written', () => {
    for (const text of ['', '{', '{"pid":"x"}', '[]', 'x'.repeat(1000)]) {
      writeFileSync(join(dir, 'lock.1'), text);
      utimesSync(join(dir, 'lock.1'), 1000, 1000);
      acquireLock(dir).release();
    }
    writeFileSync(join(dir, 'lock.1'), '{');
    const writtenAt = Date.now() / 1000 - 2.7; // it counts as being written for three seconds
    utimesSync(join(dir, 'lock.1'), writtenAt, writtenAt);
    acquireLock(dir).release();
    expect(Date.now() / 1000 - writtenAt).toBeGreaterThan(2.9);
  });

  it('does not delete one that another process made in its place', () => {
    const lock = acquireLock(dir);
    leave({ token: 'other' });
    lock.release();
    expect(readFileSync(join(dir, 'lock.1'), 'utf8')).toContain('other');
  });

  it('listens once however many are held', () => {
    const before = process.listenerCount('exit');
    const locks = Array.from({ length: 20 }, (_, i) => {
      mkdirSync(join(dir, String(i)));
      return acquireLock(join(dir, String(i)));
    });
    expect(process.listenerCount('exit')).toBe(before + 1);
    for (const lock of locks) lock.release();
    expect(process.listenerCount('exit')).toBe(before);
  });

  it('in a directory that is not there is an error', () => {
    expect(() => acquireLock(join(dir, 'no'))).toThrow(/^cannot lock .*no\/lock\.1: it does not exist/);
  });
});

describe('processes', () => {
  const gone = (): never => {
    throw Object.assign(new Error('no such process'), { code: 'ESRCH' });
  };
  const stat = (state: string, start: number): string =>
    `42 (a) b) ${state} 1 1 1 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 11 0 ${start} 1000 200`;
  const linux = (state: string, start: number, boot = 'b1'): System => ({
    platform: 'linux',
    host: 'here',
    read: path => (path.endsWith('boot_id') ? `${boot}\n` : stat(state, start)),
    run: () => expect.unreachable(),
    probe: () => {},
  });

  it('on Linux are known by their start since boot', () => {
    const system = linux('S', 777);
    const identity = identify(42, system);
    expect(identity).toEqual({ pid: 42, start: '777', boot: 'b1', host: 'here' });
    expect(stateOf(identity, system)).toBe('alive');
    expect(stateOf(identity, linux('S', 778))).toBe('gone');
    expect(stateOf(identity, linux('Z', 777))).toBe('gone');
    expect(stateOf(identity, linux('S', 777, 'b2'))).toBe('gone');
    expect(stateOf(identity, { ...system, probe: gone })).toBe('gone');
    expect(stateOf(identity, { ...system, host: 'there' })).toBe('unknown');
  });

  it('on macOS and Windows are known by the time of their start', () => {
    const starts = { darwin: 'Thu Jan 15 10:30:00 2026', win32: '134129322000000000' } as const;
    for (const platform of ['darwin', 'win32'] as const) {
      const calls: string[][] = [];
      const system: System = {
        platform,
        host: 'here',
        read: () => expect.unreachable(),
        run: (program, args) => {
          calls.push([program, ...args]);
          return `${starts[platform]}\r\n`;
        },
        probe: () => {},
      };
      const identity = identify(42, system);
      expect(identity).toEqual({ pid: 42, start: starts[platform], boot: null, host: 'here' });
      expect(calls[0].join(' ')).toContain('42');
      expect(stateOf(identity, system)).toBe('alive');
      expect(stateOf(identity, { ...system, run: () => 'later' })).toBe('gone');
      expect(stateOf(identity, { ...system, probe: gone })).toBe('gone');
      // A system that does not answer must not cost a living process its lock.
      const silent = { ...system, run: () => expect.unreachable() };
      expect(stateOf(identity, silent)).toBe('alive');
      expect(stateOf(identify(42, silent), system)).toBe('alive');
    }
  });

  it('of others count as alive, and so do those that nobody can ask about', () => {
    for (const code of ['EPERM', 'EINVAL']) {
      const denied = (): never => {
        throw Object.assign(new Error('no answer'), { code });
      };
      const system = { ...linux('S', 1), probe: denied };
      expect(stateOf(identify(42, system), system)).toBe('alive');
    }
  });

  it('of this test are real', () => {
    expect(stateOf(identify())).toBe('alive');
    expect(identify()).toMatchObject({
      pid: process.pid,
      host: hostname(),
      start: expect.stringMatching(/\d/),
    });
    const dead = spawnSync(process.execPath, ['-e', '']).pid;
    expect(stateOf({ ...identify(), pid: dead })).toBe('gone');
    expect(stateOf({ ...identify(), start: '1' }, thisSystem)).toBe('gone');
  });
});
