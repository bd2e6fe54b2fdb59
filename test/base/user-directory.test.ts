import { chmodSync, mkdirSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { makeUserDirectory, shownInUserDirectory, userDirectory } from '../../src/base/user-directory.ts';
import { temporaryRoot } from '../runs/support/temporary.ts';

const root = temporaryRoot('user-directory');
const modeOf = (path: string): number => statSync(path).mode & 0o777;
afterEach(() => vi.restoreAllMocks());

describe('the directory of a user', () => {
  test('is where its variable says, or where the system keeps settings', () => {
    expect(userDirectory({ KEEL_CONFIG_DIR: '/a/b', XDG_CONFIG_HOME: '/x' })).toBe('/a/b');
    expect(userDirectory({ XDG_CONFIG_HOME: '/x' })).toBe('/x/keel');
    expect(userDirectory({ XDG_CONFIG_HOME: 'relative' })).toBe(join(homedir(), '.config/keel'));
    expect(userDirectory({})).toBe(join(homedir(), '.config/keel'));
  });

  test('is shown to strangers without a path of the machine', () => {
    expect(shownInUserDirectory('token', {})).toBe('~/.config/keel/token');
    expect(shownInUserDirectory('token', { XDG_CONFIG_HOME: '/x' })).toBe('$XDG_CONFIG_HOME/keel/token');
    expect(shownInUserDirectory('token', { KEEL_CONFIG_DIR: '/x' })).toBe('$KEEL_CONFIG_DIR/token');
  });

  test('is made for the user alone, and others lose what lets them write there', () => {
    const made = makeUserDirectory({ KEEL_CONFIG_DIR: join(root, 'deep/new') });
    expect(made).toBe(join(root, 'deep/new'));
    expect(modeOf(made)).toBe(0o700);
    const wide = join(root, 'wide');
    mkdirSync(wide);
    chmodSync(wide, 0o777);
    makeUserDirectory({ KEEL_CONFIG_DIR: wide });
    expect(modeOf(wide)).toBe(0o755);
  });

  test("is refused if it is another's", () => {
    const theirs = join(root, 'theirs');
    mkdirSync(theirs);
    vi.spyOn(process as Required<NodeJS.Process>, 'getuid').mockReturnValue(statSync(theirs).uid + 1);
    expect(() => makeUserDirectory({ KEEL_CONFIG_DIR: theirs })).toThrow(
      /belongs to another user.*KEEL_CONFIG_DIR/,
    );
  });
});
