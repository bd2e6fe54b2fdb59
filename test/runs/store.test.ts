import { cpSync, existsSync, mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { differences } from '../../src/runs/differences.ts';
import { acquireLock } from '../../src/runs/lock.ts';
import { readManifest, updateManifest, writeManifest } from '../../src/runs/manifest.ts';
import { RunError } from '../../src/runs/schema.ts';
import { createRun, deleteRun, listRuns, openRun, resolveRun } from '../../src/runs/store.ts';
import { spec } from './support/spec.ts';
import { temporaryRoot } from './support/temporary.ts';

const top = temporaryRoot('store');
let number = 0;
let root: string;
beforeEach(() => {
  root = join(top, String(++number));
});

const at = (second: number): Date => new Date(Date.UTC(2026, 0, 15, 10, 30, second));
const make = (id: string, second = 0) => createRun(spec, { root, id }, at(second));

describe('creating', () => {
  it('makes a directory with a manifest, and its root', () => {
    const run = createRun(spec, { root }, at(0));
    expect(run.id).toMatch(/^cartpole-20260115-103000-seed1-/);
    expect(run.status).toBe('killed'); // nobody writes it
    expect(readdirSync(run.dir)).toEqual(['manifest.json']);
    expect(readManifest(run.dir)).toEqual(run.manifest);
    expect(run.manifest.id).toBe(run.id);
  });

  it('never gives two runs one directory', () => {
    const runs = Array.from({ length: 50 }, () => createRun(spec, { root }, at(0)));
    expect(new Set(runs.map(run => run.dir)).size).toBe(50);
    make('mine');
    expect(() => make('mine')).toThrow(
      /mine exists already: choose another name, or resume it with `keel resume \/.*\/mine`$/,
    );
    expect(() => make('../mine')).toThrow(/run id/);
  });

  it('refuses a wrong specification before it makes anything', () => {
    expect(() => createRun({ ...spec, seed: -1 }, { root })).toThrow('manifest of new: seed is -1');
    expect(() => createRun({ ...spec, config: { lr: Number.NaN } }, { root, id: 'x' })).toThrow(
      'manifest.config.lr is NaN, which JSON cannot hold',
    );
    expect(existsSync(join(root, 'x'))).toBe(false);
  });

  it('says when the root cannot be one', () => {
    mkdirSync(root);
    writeFileSync(join(root, 'file'), '');
    expect(() => createRun(spec, { root: join(root, 'file', 'runs') })).toThrow(
      /^cannot create .*not a directory/,
    );
  });
});

describe('the manifest', () => {
  it('can be changed in parts', () => {
    const { dir, manifest } = make('a');
    const changed = updateManifest(dir, { status: 'finished', step: 10 }, at(9));
    expect(changed).toEqual({ ...manifest, status: 'finished', step: 10, updatedAt: at(9).toISOString() });
    expect(readManifest(dir)).toEqual(changed);
    expect(() => writeManifest(dir, { ...manifest, status: 'odd' as never })).toThrow(RunError);
    expect(readManifest(dir)).toEqual(changed);
  });

  it('that is not there or damaged says so', () => {
    expect(() => readManifest(join(root, 'no'))).toThrow(/no does not exist; `keel runs` lists/);
    const { dir } = make('a');
    expect(() => readManifest(root)).toThrow(/is not a run: it has no manifest.json/);
    writeFileSync(join(dir, 'manifest.json'), '{"kind":');
    expect(() => readManifest(dir)).toThrow(/manifest\.json is damaged: /);
    writeFileSync(join(dir, 'manifest.json'), Buffer.alloc(9 * 2 ** 20, ' '));
    expect(() => readManifest(dir)).toThrow(/has 9437184 bytes, at most 8388608 are expected/);
  });
});

describe('listing and finding', () => {
  it('has the newest first, and those that cannot be read apart', () => {
    make('b', 1);
    make('c', 3);
    make('a', 2);
    make('broken');
    writeFileSync(join(root, 'broken', 'manifest.json'), 'x');
    mkdirSync(join(root, 'other'));
    writeFileSync(join(root, 'file'), '');
    const { runs, broken } = listRuns([root, root, join(root, 'not-there')]);
    expect(runs.map(run => run.id)).toEqual(['c', 'a', 'b']);
    expect(broken).toEqual([{ dir: join(root, 'broken'), problem: expect.stringContaining('is damaged') }]);
  });

  it('knows running from killed', () => {
    const { dir } = make('a');
    expect(openRun(dir).status).toBe('killed');
    const lock = acquireLock(dir);
    expect(openRun(dir).status).toBe('running');
    lock.release();
    updateManifest(dir, { status: 'finished' });
    expect(openRun(dir).status).toBe('finished');
  });

  it('finds a run by path, id, beginning, ending or as the last', () => {
    make('cartpole-20260115-103000-seed1-k3f9', 0);
    make('cartpole-20260115-103001-seed2-x7yz', 1);
    make('pendulum-20260115-103002-seed1-abcd', 2);
    const id = (reference: string): string => resolveRun(reference, [root]).id;
    expect(id('last')).toBe('pendulum-20260115-103002-seed1-abcd');
    expect(id('pend')).toBe('pendulum-20260115-103002-seed1-abcd');
    expect(id('cartpole-20260115-103001')).toBe('cartpole-20260115-103001-seed2-x7yz');
    expect(id('k3f9')).toBe('cartpole-20260115-103000-seed1-k3f9');
    expect(id(join(root, 'pendulum-20260115-103002-seed1-abcd'))).toBe('pendulum-20260115-103002-seed1-abcd');
    make('pend', 3);
    expect(id('pend')).toBe('pend');
    expect(() => id('cart')).toThrow(/"cart" could be cartpole-.*-x7yz, cartpole-.*-k3f9: write more of it$/);
    expect(() => id('')).toThrow(RunError);
    expect(() => id('acrobot')).toThrow(/^there is no run "acrobot" in .*: `keel runs` lists what there is$/);
    expect(() => id('pendulum-20260115-103002-seed1-abce')).toThrow(
      /did you mean pendulum-20260115-103002-seed1-abcd\?/,
    );
    expect(() => id('./nowhere')).toThrow(/nowhere does not exist/);
    expect(() => resolveRun('last', [join(root, 'empty')])).toThrow(/there are no runs in .*: start one/);
  });

  it('says what is damaged instead of passing it over', () => {
    const find = (reference: string) => resolveRun(reference, [root]).id;
    const spoil = (id: string): void => writeFileSync(join(root, id, 'manifest.json'), '{"kind":');
    const old = 'pendulum-20260115-103000-seed1-k3f9';
    const newer = 'cartpole-20260115-103001-seed1-x7yz';
    make(newer, 1);
    spoil(newer);
    const damaged = new RegExp(`${newer}/manifest\\.json is damaged: `);
    for (const reference of ['last', newer, 'cart', 'x7yz']) expect(() => find(reference)).toThrow(damaged);
    make(old, 0);
    expect(() => find('last')).toThrow(
      new RegExp(
        `^the last run cannot be read: .*x7yz/manifest\\.json is damaged: .*; the newest .* is ${old}$`,
      ),
    );
    expect(find('pend')).toBe(old);
    // An older one that is damaged is not the last.
    make('acrobot-20260115-103002-seed1-abcd', 2);
    expect(find('last')).toBe('acrobot-20260115-103002-seed1-abcd');
    rmSync(join(root, newer, 'manifest.json'));
    expect(() => find(newer)).toThrow(/x7yz is no run: it is half made/);
    writeFileSync(join(root, newer, 'metrics.jsonl'), '');
    expect(() => find(newer)).toThrow(/x7yz is not a run: it has no manifest\.json/);
  });
});

describe('deleting', () => {
  it('removes a run and nothing else', () => {
    const { dir } = make('a');
    make('b');
    deleteRun(dir, root);
    expect(readdirSync(root)).toEqual(['b']);
  });

  it('refuses what is not a run in its root', () => {
    const { dir } = make('a');
    mkdirSync(join(root, 'plain'));
    writeFileSync(join(root, 'plain', 'manifest.json'), '{"kind":"other"}');
    mkdirSync(join(root, 'nested'));
    cpSync(dir, join(root, 'nested', 'a'), { recursive: true });
    symlinkSync(dir, join(root, 'link'));
    const refused: [string, RegExp][] = [
      [join(root, 'plain'), /is not a run: it has no readable manifest.json of Keel/],
      [join(root, 'nested', 'a'), /is not a directory in .*: only runs directly in their root/],
      [root, /only runs directly in their root/],
      [join(root, 'a', '..'), /only runs directly in their root/],
      [join(root, 'link'), /is a link: delete what it leads to/],
      [join(root, 'none'), /^cannot delete .*none: it does not exist/],
      ['/', /only runs directly in their root/],
    ];
    for (const [path, message] of refused) {
      expect(() => deleteRun(path, root)).toThrow(RunError);
      expect(() => deleteRun(path, root)).toThrow(message);
    }
    expect(readdirSync(root).sort()).toEqual(['a', 'link', 'nested', 'plain']);
    expect(existsSync(join(dir, 'manifest.json'))).toBe(true);
  });

  it('refuses a run that is being written', () => {
    const { dir } = make('a');
    const lock = acquireLock(dir);
    expect(() => deleteRun(dir, root)).toThrow(/a is being written by this process/);
    lock.release();
    deleteRun(dir, root);
    expect(existsSync(dir)).toBe(false);
  });

  it('takes a root that is a link, and a run whose manifest is of no use', () => {
    const { dir } = make('a');
    symlinkSync(root, `${root}-link`);
    writeFileSync(join(dir, 'manifest.json'), '{"kind":"keel-run"}');
    expect(() => openRun(dir)).toThrow(RunError);
    deleteRun(join(`${root}-link`, basename(dir)), `${root}-link`);
    expect(readdirSync(root)).toEqual([]);
  });
});

describe('differences', () => {
  it('name every place that differs', () => {
    const saved = spec.environment;
    const wanted = { ...saved, version: '2', reward: { scale: 10, clip: 10, normalise: true } };
    expect(differences(saved, wanted)).toEqual([
      { path: 'version', saved: '1', wanted: '2' },
      { path: 'reward.scale', saved: 1, wanted: 10 },
      { path: 'reward.normalise', saved: undefined, wanted: true },
    ]);
    expect(differences(saved, structuredClone(saved))).toEqual([]);
    expect(differences([1, 2], [1])).toEqual([{ path: '1', saved: 2, wanted: undefined }]);
    expect(differences({ a: [] }, { a: {} })).toHaveLength(1);
    expect(differences(Number.NaN, Number.NaN)).toEqual([]);
  });
});
