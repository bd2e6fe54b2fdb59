/** The bench's damaged inputs, a few hundred a reader: `npm run bench -- fuzz` reads more, and says how one is read alone. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { logSamples } from '../bench/fuzz/logs.ts';
import { openFuzz } from '../bench/fuzz.ts';
import { findRuns } from '../src/doctor/readers/find.ts';
import { readRun } from '../src/doctor/readers/read.ts';
import { temporaryDirectory } from './doctor/support/files.ts';

const seed = Number(process.env.KEEL_FUZZ_SEED ?? 1);
const inputs = Number(process.env.KEEL_FUZZ_CASES ?? 200);
/** Only what hangs meets it: a busy machine must not make this fail. */
const limitMs = 60_000;
/** What a damaged length may ask for. */
const largestBuffer = 32 * 2 ** 20;

const fuzz = openFuzz();
afterAll(() => fuzz.close());
const names = await fuzz.names();
const logs = Object.keys(logSamples);

describe('damaged inputs are read or refused', () => {
  it.each(names)('%s', async name => {
    expect(await fuzz.sound(name)).toBeGreaterThan(0);
    // A model is mostly files with check sums inside of files with check sums: little damage is read.
    const to = name === 'sb3' ? 5 * inputs : inputs;
    const { read, resumed, faults, largest } = await fuzz.read(name, seed, { from: 0, to }, limitMs);
    expect(faults).toEqual([]);
    expect(largest).toBeLessThan(largestBuffer);
    // If everything were refused nothing would have been tried.
    expect(read).toBeGreaterThan(logs.includes(name) ? inputs / 12 : 0);
    if (name !== 'run') return;
    expect(inputs - read).toBeGreaterThan(inputs / 8);
    expect(resumed).toBeGreaterThan(inputs / 20);
  });

  it.each(logs)('the sample of %s is taken for what it is, and read whole', async kind => {
    const file = join(temporaryDirectory(), 'log');
    writeFileSync(file, logSamples[kind]);
    const { candidates } = await findRuns(file);
    expect(candidates[0].source.kind).toBe(kind);
    const { series } = await readRun(candidates[0]);
    expect([...series.values()][0].length).toBeGreaterThan(7);
  });
});
