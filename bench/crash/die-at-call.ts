/**
 * Loaded before a program (`node --import`): the process kills itself at its N-th call that changes the disk, before it,
 * half-way through it or after it, so that nothing of it can tidy up. `KEEL_DIE_AT=12 KEEL_DIE_HOW=half`; with
 * `KEEL_COUNT_CALLS=file` it says there how many calls there were.
 */
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';

type Call = (...args: unknown[]) => unknown;

const { KEEL_DIE_AT, KEEL_DIE_HOW, KEEL_COUNT_CALLS } = process.env;
const dieAt = Number(KEEL_DIE_AT ?? 0);
let calls = 0;

function die(): never {
  process.kill(process.pid, 'SIGKILL');
  for (;;) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
}

/** What is done of a call before the process dies in the middle of it. */
function half(name: string, call: Call, args: unknown[]): void {
  const [target, data] = args as [string, Uint8Array | string];
  if (name === 'writeSync') call(target, data, args[2], Math.floor((args[3] as number) / 2), args[4]);
  else if (name === 'writeFileSync' || name === 'appendFileSync')
    call(target, data.slice(0, Math.floor(data.length / 2)), args[2]);
  else if (name === 'rmSync' && fs.statSync(target, { throwIfNoEntry: false })?.isDirectory()) {
    const [first] = fs.readdirSync(target);
    if (first !== undefined) call(join(target, first), args[1]);
  }
}

function deadly(name: string, call: Call): Call {
  return (...args) => {
    calls++;
    if (calls !== dieAt) return call(...args);
    if (KEEL_DIE_HOW === 'half') half(name, call, args);
    if (KEEL_DIE_HOW !== 'after') die();
    const result = call(...args);
    if (!(result instanceof Promise)) die();
    return result.then(die);
  };
}

const sync = [
  ...['writeSync', 'fsyncSync', 'renameSync', 'mkdirSync', 'linkSync', 'ftruncateSync', 'writeFileSync'],
  ...['appendFileSync', 'rmSync'],
];
for (const [home, names] of [
  [fs, sync],
  [fs.promises, ['open', 'rename', 'rm']],
] as const) {
  const calls = home as unknown as Record<string, Call>;
  for (const name of names) calls[name] = deadly(name, calls[name].bind(home));
}
syncBuiltinESMExports();

if (KEEL_COUNT_CALLS !== undefined)
  process.on('exit', () => fs.writeFileSync(KEEL_COUNT_CALLS, String(calls)));
