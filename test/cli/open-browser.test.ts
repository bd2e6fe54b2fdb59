/** What a browser is started with is for all users of the machine to see. */
import { chmodSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, expect, test, vi } from 'vitest';
import { openBrowser } from '../../src/cli/page.ts';
import { until } from '../support/until.ts';
import { scratch } from './support/keel.ts';

afterEach(() => vi.unstubAllEnvs());

/** A program in the place of the browser, which writes down what it was started with. */
async function openedWith(url: string, config: string): Promise<string> {
  const bin = scratch();
  const [program, heard] = [
    join(bin, process.platform === 'darwin' ? 'open' : 'xdg-open'),
    join(bin, 'heard'),
  ];
  writeFileSync(program, `#!/bin/sh\nprintf '%s\\n' "$*" > ${heard}.part && mv ${heard}.part ${heard}\n`);
  chmodSync(program, 0o755);
  vi.stubEnv('PATH', `${bin}:${process.env.PATH}`);
  vi.stubEnv('KEEL_CONFIG_DIR', config);
  openBrowser(url);
  await until(() => existsSync(heard), 'the browser is started');
  return readFileSync(heard, 'utf8').trim();
}

test.runIf(process.platform !== 'win32')(
  'the token is not in the list of processes: a file of the user leads to the address',
  async () => {
    const url = 'http://127.0.0.1:7007/?token=abcdefgh%22%26#/runs/x';
    const config = scratch();
    for (let i = 0; i < 2; i++) {
      const opened = await openedWith(url, config);
      expect(opened).toMatch(/^file:.*\/open-7007\.html$/);
      const file = fileURLToPath(opened);
      expect(statSync(file).mode & 0o777).toBe(0o600);
      expect(readFileSync(file, 'utf8')).toContain(`content="0;url=${url}"`);
    }
    // Where there can be no such file, the page asks for the token, which the printed address has.
    expect(await openedWith(url, '/dev/null/none')).toBe('http://127.0.0.1:7007/#/runs/x');
    expect(await openedWith('http://127.0.0.1:7007/#/runs/x', config)).toBe('http://127.0.0.1:7007/#/runs/x');
  },
);
