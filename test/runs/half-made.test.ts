/** What a kill leaves in a root: runs that were never made whole, and temporary files of processes that are gone. */
import { existsSync, mkdirSync, readdirSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { temporaryBeside } from '../../src/base/files.ts';
import { isHalfMade } from '../../src/runs/half-made.ts';
import { adjustmentsPath, readAdjustments } from '../../src/runs/inbox.ts';
import { acquireLock } from '../../src/runs/lock.ts';
import { createRun, deleteRun, listRuns, resolveRun, resolveToDelete } from '../../src/runs/store.ts';
import { RunWriter } from '../../src/runs/writer.ts';
import { spec } from './support/spec.ts';
import { temporaryRoot } from './support/temporary.ts';

const top = temporaryRoot('half-made');
let number = 0;
let root: string;
beforeEach(() => {
  root = join(top, String(++number));
  mkdirSync(root);
});

/** More than any system gives. */
const deadPid = 2 ** 31 - 2;
const madeId = 'cartpole-20260115-103000-seed1-k3f9';
const lockOfDead = JSON.stringify({
  ...{ pid: deadPid, start: null, boot: null, host: (await import('node:os')).hostname() },
  ...{ since: '2026-01-15T10:30:00.000Z', token: 'x' },
});
const ofDead = (path: string): string => temporaryBeside(path).replace(`.${process.pid}.`, `.${deadPid}.`);

/** A directory with these files. */
function directory(name: string, files: Readonly<Record<string, string>> = {}): string {
  const dir = join(root, name);
  mkdirSync(dir);
  for (const [file, text] of Object.entries(files)) writeFileSync(join(dir, file), text);
  return dir;
}

describe('a directory that a process died in before it was a run', () => {
  const halves: Record<string, [string, Readonly<Record<string, string>>]> = {
    'with nothing in it': [madeId, {}],
    'with half a lock': [madeId, { '.keel-tmp-lock.1-abc': '' }],
    'with a name of its own, and a lock': ['mine', { 'lock.1': lockOfDead }],
    'with half a manifest': ['mine', { 'lock.1': lockOfDead, '.keel-tmp-manifest.json-abc': '{' }],
  };
  it.each(Object.entries(halves))('%s is listed as such, and deleted', (_, [name, files]) => {
    const dir = directory(name, files);
    expect(isHalfMade(dir)).toBe(true);
    const { runs, broken } = listRuns([root]);
    expect(runs).toEqual([]);
    expect(broken).toMatchObject([{ dir, problem: expect.stringContaining('is half made') }]);
    expect(broken[0].problem).toContain(`keel runs delete ${join(root, name)} `);
    expect(() => resolveRun(name, [root])).toThrow(/half made.*keel runs delete/);
    expect(() => resolveRun('last', [root])).toThrow(/half made/);
    expect(resolveToDelete(name, [root])).toEqual({ id: name, dir, run: undefined });
    expect(resolveToDelete(name.slice(0, 3), [root]).dir).toBe(dir);
    expect(resolveToDelete(dir).dir).toBe(dir);
    deleteRun(dir, root);
    expect(readdirSync(root)).toEqual([]);
  });

  it.each(Object.entries(halves))('%s is taken by a run of that name', (_, [name, files]) => {
    directory(name, files);
    expect(createRun(spec, { root, id: name }).id).toBe(name);
    expect(readdirSync(join(root, name))).toContain('manifest.json');
    expect(() => createRun(spec, { root, id: name })).toThrow(/exists already.*keel resume/);
  });

  it('is not one while a process is making it', () => {
    const dir = directory(madeId);
    const lock = acquireLock(dir);
    expect(listRuns([root]).broken).toEqual([]);
    expect(() => deleteRun(dir, root)).toThrow(/not a run/);
    expect(() => createRun(spec, { root, id: madeId })).toThrow(/exists already|being written/);
    lock.release();
    expect(listRuns([root]).broken).toHaveLength(1);
  });
});

describe("a stranger's directory", () => {
  const strangers: Record<string, [string, Readonly<Record<string, string>>]> = {
    'that is empty': ['data', {}],
    'with a file': ['data', { 'thesis.txt': 'years' }],
    'of our name, with a file': [madeId, { 'thesis.txt': 'years' }],
    'with a lock of theirs': ['data', { 'lock.1': 'held' }],
    'with our lock, and a file': ['data', { 'lock.1': lockOfDead, 'thesis.txt': 'years' }],
  };
  it.each(Object.entries(strangers))('%s is never listed or deleted', (_, [name, files]) => {
    const dir = directory(name, files);
    expect(isHalfMade(dir)).toBe(false);
    expect(listRuns([root])).toEqual({ runs: [], broken: [] });
    expect(() => resolveToDelete(name, [root])).toThrow();
    expect(() => deleteRun(dir, root)).toThrow(/is not a run/);
    expect(readdirSync(dir)).toEqual(Object.keys(files).sort());
    if (Object.keys(files).length > 0)
      expect(() => createRun(spec, { root, id: name })).toThrow(/exists already: choose another name$/);
  });

  it('that a link leads to, or that is called as a temporary file is, is not one of ours', () => {
    const dir = directory('elsewhere', { 'lock.1': lockOfDead });
    symlinkSync(dir, join(root, 'link'));
    expect(isHalfMade(join(root, 'link'))).toBe(false);
    mkdirSync(join(root, madeId, '.keel-tmp-x', 'deep'), { recursive: true });
    expect(isHalfMade(join(root, madeId))).toBe(false);
  });
});

describe('temporary files of a process', () => {
  /** In a root and in its run: of a dead process, of this one, of another machine, now and a day ago. */
  function leave(place: string): { gone: string[]; left: string[] } {
    mkdirSync(place, { recursive: true });
    const path = join(place, 'file');
    const elsewhere = (): string => temporaryBeside(path).replace(/-[0-9a-f]{6}\./, '-zzzzzz.');
    const [dead, alive, young, old, unsigned] = [
      ...[ofDead(path), temporaryBeside(path), elsewhere(), elsewhere()],
      join(place, '.keel-tmp-file-abc'),
    ];
    for (const name of [dead, alive, young, old, unsigned]) writeFileSync(name, '');
    for (const name of [old, unsigned]) utimesSync(name, 1e9, 1e9);
    return { gone: [dead, old, unsigned], left: [alive, young] };
  }

  it.each([
    ['when another run begins', () => void createRun(spec, { root })],
    ['when another run is deleted', () => deleteRun(createRun(spec, { root }).dir, root)],
    [
      'when another run is resumed',
      () => RunWriter.resume(createRun(spec, { root }).dir).writer.end('stopped'),
    ],
  ])('are deleted once it is gone, %s', (_, act) => {
    const run = createRun(spec, { root, id: 'killed' });
    const places = [root, run.dir, join(run.dir, 'checkpoints'), join(run.dir, 'replays')].map(leave);
    // A run that was being deleted.
    const half = ofDead(join(root, 'run'));
    mkdirSync(half);
    writeFileSync(join(half, 'metrics.jsonl'), '');
    act();
    for (const { gone, left } of [...places, { gone: [half], left: [] }]) {
      for (const path of gone) if (existsSync(path)) throw new Error(`${basename(path)} is left`);
      for (const path of left) if (!existsSync(path)) throw new Error(`${basename(path)} is gone`);
    }
  });
});

describe('a damaged adjustments.json', () => {
  it.each([
    ['', /it is empty/],
    ['{', /it: /],
    ['{"changes":[{"iteration":0,"key":"guard","value":1,"by":"x"}]}', /changes\.0\.iteration: /],
  ])('%s is refused with what is wrong and the remedy', (text, what) => {
    const { dir } = createRun(spec, { root });
    writeFileSync(adjustmentsPath(dir), text);
    const read = (): unknown => readAdjustments(dir);
    expect(read).toThrow(what);
    expect(read).toThrow(/repair it, or delete it to go on without the changes made by hand$/);
  });
});
