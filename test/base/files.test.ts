import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import {
  cleanLeftovers,
  makeDirectories,
  removeDirectory,
  writeDirectoryAtomic,
} from '../../src/base/directories.ts';
import { readBounded, writeFileAtomic } from '../../src/base/files.ts';
import { RunError } from '../../src/runs/schema.ts';
import { temporaryRoot } from '../runs/support/temporary.ts';
import { compiledUrl } from '../support/compiled.ts';
import { patienceMs } from '../support/until.ts';

const root = temporaryRoot('atomic');
let number = 0;
let dir: string;
beforeEach(() => {
  dir = join(root, String(++number));
  mkdirSync(dir);
});

describe('a file', () => {
  it('appears with its content, replaces another, and leaves nothing beside it', () => {
    const path = join(dir, 'file');
    for (const durable of [true, false]) {
      writeFileAtomic(path, 'one', durable);
      writeFileAtomic(path, Uint8Array.of(50, 51), durable);
      expect(readFileSync(path, 'utf8')).toBe('23');
    }
    expect(readdirSync(dir)).toEqual(['file']);
  });

  it('that cannot be written leaves the old one and nothing beside it', () => {
    mkdirSync(join(dir, 'taken'));
    writeFileSync(join(dir, 'taken', 'x'), '');
    expect(() => writeFileAtomic(join(dir, 'taken'), 'x')).toThrow(RunError);
    expect(readdirSync(dir)).toEqual(['taken']);
    expect(() => writeFileAtomic(join(dir, 'no', 'file'), 'x')).toThrow(
      /^cannot write .*no\/file: it does not exist: check the path \(ENOENT\)$/,
    );
    expect(() => writeFileAtomic(join(dir, 'taken', 'x', 'y'), 'x')).toThrow(/is a file, not a directory/);
    expect(() => writeFileAtomic(join(dir, 'n'.repeat(300)), 'x')).toThrow(/the name is too long/);
  });
});

describe('reading', () => {
  it('looks at the size first: a file of more than is expected is refused', () => {
    const path = join(dir, 'file');
    writeFileSync(path, 'twelve bytes');
    expect(readBounded(path, 12).toString()).toBe('twelve bytes');
    expect(() => readBounded(path, 11)).toThrow(/has 12 bytes, at most 11 are expected/);
    expect(() => readBounded(dir, 11)).toThrow(/is not a file/);
  });
});

describe('a directory', () => {
  const fill = (text: string) => async (temporary: string) => writeFileSync(join(temporary, 'file'), text);

  it('appears with its content and replaces another', async () => {
    const path = join(dir, '100');
    await writeDirectoryAtomic(path, async temporary => {
      writeFileSync(join(temporary, 'file'), 'one');
      expect(existsSync(path)).toBe(false);
    });
    expect(readFileSync(join(path, 'file'), 'utf8')).toBe('one');
    await writeDirectoryAtomic(path, fill('two'));
    expect(readFileSync(join(path, 'file'), 'utf8')).toBe('two');
    expect(readdirSync(dir)).toEqual(['100']);
  });

  it('that fails half way leaves the old one and nothing beside it', async () => {
    const path = join(dir, '100');
    await writeDirectoryAtomic(path, fill('one'));
    const failing = writeDirectoryAtomic(path, async temporary => {
      writeFileSync(join(temporary, 'file'), 'half');
      throw new Error('out\nof luck');
    });
    await expect(failing).rejects.toThrow(/^cannot write .*100: out of luck$/);
    expect(readFileSync(join(path, 'file'), 'utf8')).toBe('one');
    expect(readdirSync(dir)).toEqual(['100']);
  });

  it('is deleted as a whole', async () => {
    const path = join(dir, '100');
    await writeDirectoryAtomic(path, fill('one'));
    removeDirectory(path);
    expect(readdirSync(dir)).toEqual([]);
    expect(() => removeDirectory(path)).toThrow(RunError);
  });
});

describe('leftovers of a kill', () => {
  it('are deleted, and nothing else', () => {
    mkdirSync(join(dir, '.keel-tmp-100-abc'));
    writeFileSync(join(dir, '.keel-tmp-100-abc', 'half'), '');
    writeFileSync(join(dir, '.keel-tmp-manifest.json-abc'), '');
    writeFileSync(join(dir, '.other'), '');
    writeFileSync(join(dir, 'manifest.json'), '');
    cleanLeftovers(dir);
    expect(readdirSync(dir).sort()).toEqual(['.other', 'manifest.json']);
    cleanLeftovers(join(dir, 'not-there'));
  });

  it('come back if they were only set aside', () => {
    mkdirSync(join(dir, '.keel-tmp-aside-100'));
    writeFileSync(join(dir, '.keel-tmp-aside-100', 'file'), 'old');
    cleanLeftovers(dir);
    expect(readFileSync(join(dir, '100', 'file'), 'utf8')).toBe('old');
    mkdirSync(join(dir, '.keel-tmp-aside-100'));
    writeFileSync(join(dir, '.keel-tmp-aside-100', 'file'), 'older');
    cleanLeftovers(dir);
    expect(readFileSync(join(dir, '100', 'file'), 'utf8')).toBe('old');
    expect(readdirSync(dir)).toEqual(['100']);
  });
});

describe('directories', () => {
  it('are made with those above them, and may be there already', () => {
    const path = join(dir, 'a', 'b', 'c');
    for (let times = 0; times < 2; times++) makeDirectories(path);
    expect(readdirSync(join(dir, 'a', 'b'))).toEqual(['c']);
    symlinkSync(join(dir, 'a'), join(dir, 'link'));
    makeDirectories(join(dir, 'link', 'b', 'd'));
    expect(readdirSync(join(dir, 'a', 'b'))).toEqual(['c', 'd']);
  });

  it('are refused below a file, and below a link to nowhere', () => {
    writeFileSync(join(dir, 'file'), '');
    expect(() => makeDirectories(join(dir, 'file', 'x'))).toThrow(
      /^cannot create .*file\/x: part of the path is a file, not a directory: check the path \(ENOTDIR\)$/,
    );
    expect(() => makeDirectories(join(dir, 'file'))).toThrow(/is a file/);
    symlinkSync(join(dir, 'gone'), join(dir, 'broken'));
    for (const path of ['broken', 'broken/x'])
      expect(() => makeDirectories(join(dir, path))).toThrow(/^cannot create .*broken.*: it exists already/);
  });

  // In a process of its own: Node's way would never come back, and no time limit of ours would end it.
  it.skipIf(!existsSync('/proc/self'))('are refused where there can be none', () => {
    const atomic = compiledUrl('base/directories');
    const code = `import { makeDirectories } from ${JSON.stringify(atomic)};
try { makeDirectories('/proc/x/y'); } catch (error) { console.log(error.name, error.message); }`;
    const { stdout, signal } = spawnSync(process.execPath, ['--input-type=module', '-e', code], {
      encoding: 'utf8',
      timeout: patienceMs,
    });
    expect(signal).toBeNull();
    expect(stdout).toMatch(
      /^RunError cannot create \/proc\/x\/y: (\/proc takes no new directories: choose another run directory|permission denied: .*) \(\w+\)\n$/,
    );
  });
});
