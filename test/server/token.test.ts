/** The user's token: kept, agreed on, and not taken from where others could have put or read it. */
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { userToken } from '../../src/server/token.ts';
import { compiledUrl } from '../support/compiled.ts';

let dir: string;
let file: string;
const said: string[] = [];
const taken = () => userToken(sentence => said.push(sentence));

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'keel-token-'));
  file = join(dir, 'token');
  said.length = 0;
  vi.stubEnv('KEEL_CONFIG_DIR', dir);
});
afterEach(() => {
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
  rmSync(dir, { recursive: true, force: true });
});

test('is made once, for its owner alone, and found again', () => {
  const { token, file: shown } = taken();
  expect(token).toMatch(/^[\w-]{32}$/);
  expect(shown).toBe('$KEEL_CONFIG_DIR/token');
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(readdirSync(dir)).toEqual(['token']);
  expect(taken().token).toBe(token);
  expect(said).toEqual([]);
});

test('is one where many start at once', async () => {
  const program = `
    import { workerData, parentPort } from 'node:worker_threads';
    import { userToken } from ${JSON.stringify(compiledUrl('server/token'))};
    const gate = new Int32Array(workerData);
    parentPort.postMessage('ready');
    Atomics.wait(gate, 0, 0);
    parentPort.postMessage(userToken().token);`;
  const gate = new Int32Array(new SharedArrayBuffer(4));
  const next = (worker: Worker) => new Promise<string>(done => worker.once('message', done));
  const workers = Array.from(
    { length: 6 },
    () =>
      new Worker(new URL(`data:text/javascript,${encodeURIComponent(program)}`), {
        workerData: gate.buffer,
        execArgv: [],
        env: { ...process.env },
      }),
  );
  await Promise.all(workers.map(next));
  const tokens = Promise.all(workers.map(next));
  Atomics.store(gate, 0, 1);
  Atomics.notify(gate, 0);
  expect(new Set(await tokens)).toEqual(new Set([readFileSync(file, 'utf8').trim()]));
  expect(readdirSync(dir)).toEqual(['token']);
});

const old = 'a'.repeat(32);

test.each([
  ['could be read by others', () => chmodSync(file, 0o640)],
  ['could be read by others', () => chmodSync(file, 0o602)],
  ['holds no token', () => writeFileSync(file, 'short\n')],
  ['holds no token', () => writeFileSync(file, `${'<b>'.repeat(20)}\n`)],
  [
    'is a link',
    () => {
      writeFileSync(join(dir, 'elsewhere'), old, { mode: 0o600 });
      rmSync(file);
      symlinkSync('elsewhere', file);
    },
  ],
])('a file that %s is replaced, and that is said', (wrong, spoil) => {
  writeFileSync(file, `${old}\n`, { mode: 0o600 });
  expect(taken().token).toBe(old);
  spoil();
  const { token } = taken();
  expect(token).toMatch(/^[\w-]{32}$/);
  expect(token).not.toBe(old);
  expect(said).toHaveLength(1);
  expect(said[0]).toContain(`${file} ${wrong}`);
  expect(said[0]).not.toContain(token);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(taken().token).toBe(token);
  expect(said).toHaveLength(1);
});

test("where the directory is another's, or none can be made, there is one for this start alone", () => {
  vi.stubEnv('KEEL_CONFIG_DIR', join(file, 'below-a-file'));
  writeFileSync(file, 'x');
  const first = taken();
  expect(first).toEqual({ token: expect.stringMatching(/^[\w-]{32}$/) });
  expect(taken().token).not.toBe(first.token);
  expect(said[0]).toMatch(/cannot be kept: .*part of the path is a file.*this start alone/);
  const theirs = join(dir, 'theirs');
  mkdirSync(theirs);
  vi.stubEnv('KEEL_CONFIG_DIR', theirs);
  vi.spyOn(process as Required<NodeJS.Process>, 'getuid').mockReturnValue(statSync(theirs).uid + 1);
  expect(taken().file).toBeUndefined();
  expect(said.at(-1)).toMatch(/belongs to another user/);
  expect(existsSync(join(theirs, 'token'))).toBe(false);
});

test("another user's file in it counts for nothing", () => {
  writeFileSync(file, `${old}\n`, { mode: 0o600 });
  const { uid } = statSync(dir);
  // The directory is looked at first, as its owner; the file that is there belongs to somebody else then.
  vi.spyOn(process as Required<NodeJS.Process>, 'getuid')
    .mockReturnValueOnce(uid)
    .mockReturnValueOnce(uid + 1)
    .mockReturnValue(uid);
  expect(taken().token).not.toBe(old);
  expect(said[0]).toMatch(/belongs to another user/);
});
