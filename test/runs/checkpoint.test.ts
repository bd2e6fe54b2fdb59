import { createHash } from 'node:crypto';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import {
  checkpointProblem,
  discardCheckpointsAfter,
  listCheckpoints,
  loadCheckpoint,
  pruneCheckpoints,
  saveCheckpoint,
  wholeCheckpointBefore,
  wouldBeBest,
} from '../../src/runs/checkpoint.ts';
import { checkpointDir, runPaths } from '../../src/runs/layout.ts';
import { RunError } from '../../src/runs/schema.ts';
import { thinned } from '../../src/runs/thinned.ts';
import { checkpointOf, spec } from './support/spec.ts';
import { temporaryRoot } from './support/temporary.ts';

const root = temporaryRoot('checkpoint');
let number = 0;
let dir: string;
beforeEach(() => {
  dir = join(root, String(++number));
  mkdirSync(dir);
});

const simple = (step: number, score?: number, keep = false) => ({
  step,
  iteration: Number.isSafeInteger(step) ? Math.max(0, Math.floor(step / 10)) : 0,
  files: { 'policy.safetensors': Uint8Array.of(step % 256, 1, 2, 3) },
  state: { step },
  score,
  keep,
});
const steps = (): number[] => listCheckpoints(dir).map(info => info.step);
const pointer = (name: 'best' | 'last'): string => readFileSync(runPaths(dir)[name], 'utf8');

describe('saving and loading', () => {
  it('gives back every bit', async () => {
    const input = { ...checkpointOf(3), environment: spec.environment };
    const info = await saveCheckpoint(dir, input, { now: () => new Date('2026-01-15T10:30:00Z') });
    expect(info).toMatchObject({ step: 768, problem: undefined, isBest: true, isLast: true });
    const { index, files, state } = loadCheckpoint(dir)!;
    expect(index).toMatchObject({
      step: 768,
      iteration: 3,
      savedAt: '2026-01-15T10:30:00.000Z',
      score: Math.sin(1),
      keep: false,
      environment: spec.environment,
    });
    expect([...files.keys()]).toEqual(['policy.safetensors', 'optimizer.safetensors']);
    for (const [name, bytes] of Object.entries(input.files)) expect(files.get(name)).toEqual(bytes);
    expect(state).toEqual(input.state);
    expect(Object.is(state.minusZero, -0)).toBe(true);
    expect(readdirSync(info.dir).sort()).toEqual([
      'checkpoint.json',
      'optimizer.safetensors',
      'policy.safetensors',
      'state.json',
    ]);
    expect(readdirSync(runPaths(dir).checkpoints).sort()).toEqual(['768', 'best', 'last']);
  });

  it('lets the caller write a file itself', async () => {
    const bytes = new Uint8Array(3_000_000).map((_, i) => i * 7);
    await saveCheckpoint(dir, {
      ...simple(10),
      files: { 'policy.safetensors': async path => writeFileSync(path, bytes), empty: new Uint8Array(0) },
    });
    const checkpoint = loadCheckpoint(dir, 10)!;
    expect(Buffer.from(checkpoint.files.get('policy.safetensors')!).equals(bytes)).toBe(true);
    expect(checkpoint.index.files['policy.safetensors'].sha256).toBe(
      createHash('sha256').update(bytes).digest('hex'),
    );
    expect(checkpoint.files.get('empty')).toEqual(new Uint8Array(0));
  });

  it('replaces one of the same step', async () => {
    await saveCheckpoint(dir, simple(10, 1));
    await saveCheckpoint(dir, { ...simple(10, 2), state: { again: true } });
    expect(loadCheckpoint(dir)!.state).toEqual({ again: true });
    expect(steps()).toEqual([10]);
  });

  it('has nothing to load at first', () => {
    expect(loadCheckpoint(dir)).toBeUndefined();
    expect(listCheckpoints(dir)).toEqual([]);
    expect(() => loadCheckpoint(dir, 'best')).toThrow(/has no best checkpoint: none was scored yet/);
    expect(() => loadCheckpoint(dir, 5)).toThrow(/there is no checkpoint 5 in .*: there are none/);
  });

  it('refuses a state that JSON would change, before it writes anything', async () => {
    const cases: [unknown, string][] = [
      [{ normaliser: { mean: [1, Number.NaN] } }, 'state.normaliser.mean[1] is NaN, which JSON cannot hold'],
      [{ best: Number.NEGATIVE_INFINITY }, 'state.best is -Infinity'],
      [
        { weights: new Float32Array(2) },
        'state.weights is a Float32Array, which JSON cannot hold: use Array.from',
      ],
      [{ list: [undefined] }, 'state.list[0] is undefined'],
      [{ big: 1n }, 'state.big is 1'],
      [{ when: new Date() }, 'state.when is a Date'],
    ];
    for (const [state, message] of cases) {
      await expect(saveCheckpoint(dir, { ...simple(10), state: state as never })).rejects.toThrow(message);
    }
    const cycle: Record<string, unknown> = {};
    cycle.self = cycle;
    await expect(saveCheckpoint(dir, { ...simple(10), state: cycle })).rejects.toThrow(
      /nested more than 64 deep/,
    );
    expect(readdirSync(dir)).toEqual([]);
  });

  it('refuses names and numbers that make no checkpoint', async () => {
    for (const name of ['../x', 'a/b', '', '.x', 'state.json', 'checkpoint.json', 'A', 'a b']) {
      const input = { ...simple(10), files: { [name]: new Uint8Array(1) } };
      await expect(saveCheckpoint(dir, input)).rejects.toThrow(/a file cannot be called/);
    }
    for (const step of [-1, 1.5, Number.NaN, 2 ** 60]) {
      await expect(saveCheckpoint(dir, simple(step))).rejects.toThrow(/must be a whole number from 0/);
    }
  });

  it('leaves nothing when a file fails', async () => {
    await saveCheckpoint(dir, simple(10, 1));
    const files = {
      'a.safetensors': new Uint8Array(5),
      'b.safetensors': () => {
        throw new Error('no');
      },
    };
    await expect(saveCheckpoint(dir, { ...simple(20), files })).rejects.toThrow(RunError);
    expect(readdirSync(runPaths(dir).checkpoints).sort()).toEqual(['10', 'best', 'last']);
    expect(loadCheckpoint(dir)!.index.step).toBe(10);
  });
});

describe('best, last and pruning', () => {
  it('keeps the newest, the best, those to keep and a thin history', async () => {
    const scores = [1, 5, 2, 3, undefined, Number.NaN, 5, ...Array<number>(73).fill(4)];
    for (const [i, score] of scores.entries()) {
      const step = 10 * (i + 1);
      expect(wouldBeBest(dir, { score })).toBe(i < 2);
      await saveCheckpoint(dir, simple(step, score, step === 40), { keepLast: 2 });
      expect(pointer('last')).toBe(`${step}\n`);
      expect(pointer('best')).toBe(i === 0 ? '10\n' : '20\n');
      expect(steps().length).toBeLessThanOrEqual(2 + 1 + 1 + 6);
    }
    const left = steps();
    for (const step of [10, 20, 40, 790, 800]) expect(left).toContain(step);
    // Whenever it went wrong, something from before is left: no more than about three times as long ago.
    for (let harm = 20; harm <= 800; harm += 10) {
      const healthy = left.filter(step => step < harm).at(-1)!;
      expect((810 - healthy) / (810 - harm + 10)).toBeLessThan(4);
    }
    const infos = listCheckpoints(dir);
    expect(infos.filter(({ isBest }) => isBest).map(({ step }) => step)).toEqual([20]);
    expect(infos.filter(({ isLast }) => isLast).map(({ step }) => step)).toEqual([800]);
    expect(loadCheckpoint(dir, 'best')!.index.step).toBe(20);
    pruneCheckpoints(dir, 2);
    expect(steps()).toEqual(left); // nothing more goes
    pruneCheckpoints(dir, 0);
    expect(steps()).toContain(800);
    expect(steps().length).toBeLessThanOrEqual(1 + 1 + 1 + 6);
  });

  it('a history has the first, no more than it may, and is the same for the same steps', () => {
    expect(thinned([], 5, 6)).toEqual([]);
    expect(thinned([1, 2, 3], 9, 6)).toEqual([1, 2, 3]);
    expect(thinned([10, 20, 30, 40, 50, 60, 70, 80], 100, 3)).toEqual([10, 50, 80]);
    let left: number[] = [];
    for (let step = 1; step <= 1000; step++) {
      left = thinned([...left, step], step + 1, 6);
      expect(left).toEqual(thinned(left, step + 1, 6));
      expect(left[0]).toBe(1);
      expect(left.length).toBe(Math.min(step, 6));
    }
    // Distances shrink towards the newest, about by half.
    const ages = left.map(step => 1001 - step);
    for (let i = 1; i < ages.length; i++) expect(ages[i] / ages[i - 1]).toBeLessThan(0.7);
    expect(ages[1]).toBeGreaterThan(200);
  });

  it('gives back the pointers that a kill did not get to write', async () => {
    await saveCheckpoint(dir, simple(10, 1));
    writeFileSync(runPaths(dir).best, '');
    rmSync(runPaths(dir).last);
    expect(loadCheckpoint(dir, 'best')!.index.step).toBe(10);
    expect(loadCheckpoint(dir)!.index.step).toBe(10);
    discardCheckpointsAfter(dir, 10);
    expect([pointer('best'), pointer('last')]).toEqual(['10\n', '10\n']);
  });

  it('forgets what comes after a step', async () => {
    for (const [step, score] of [
      [10, 1],
      [20, 2],
      [30, 3],
    ] as const) {
      await saveCheckpoint(dir, simple(step, score), { keepLast: 9 });
    }
    discardCheckpointsAfter(dir, 20);
    expect(steps()).toEqual([10, 20]);
    expect([pointer('best'), pointer('last')]).toEqual(['20\n', '20\n']);
    discardCheckpointsAfter(dir, 0);
    expect(readdirSync(runPaths(dir).checkpoints)).toEqual([]);
  });

  it('looks at steps as numbers, and not at other names', async () => {
    for (const step of [100, 20, 3000]) await saveCheckpoint(dir, simple(step), { keepLast: 9 });
    for (const name of ['007', '1e3', 'x', '-5', '99999999999999999999'])
      mkdirSync(join(runPaths(dir).checkpoints, name));
    expect(steps()).toEqual([20, 100, 3000]);
  });
});

describe('damage', () => {
  const file = (step: number, name: string): string => join(checkpointDir(dir, step), name);
  beforeEach(async () => {
    for (const step of [4096, 8192]) await saveCheckpoint(dir, simple(step), { keepLast: 9 });
  });
  const advice = '; the one before it is whole: use checkpoint 4096';

  it('is refused with the file, what is wrong and the way back', () => {
    const policy = file(8192, 'policy.safetensors');
    const whole = readFileSync(policy);
    const expectMessage = (message: string): void => {
      expect(() => loadCheckpoint(dir)).toThrow(RunError);
      expect(() => loadCheckpoint(dir)).toThrow(`${message}${advice}`);
      expect(() => loadCheckpoint(dir)).toThrow(/^[^\n]+$/);
    };
    truncateSync(policy, 2);
    expectMessage(`${policy} has 2 bytes, 4 were saved: it was cut off or overwritten`);
    expect(listCheckpoints(dir)[1].problem).toBe(
      `${policy} has 2 bytes, 4 were saved: it was cut off or overwritten`,
    );
    rmSync(policy);
    expectMessage(`${policy} is missing`);
    writeFileSync(policy, whole.with(2, 99));
    expectMessage(`${policy} is damaged: it has the right size, but not the checksum that was saved`);
    writeFileSync(policy, whole);
    expect(loadCheckpoint(dir)!.index.step).toBe(8192);

    const index = file(8192, 'checkpoint.json');
    const text = readFileSync(index, 'utf8');
    writeFileSync(
      index,
      text.replace('"iteration": 819', '"iteration": 0').replace('"keep": false', '"keep": true'),
    );
    expectMessage(`${index} is damaged: its content is not what was saved`);
    writeFileSync(index, text.slice(0, 50));
    expect(() => loadCheckpoint(dir)).toThrow(/checkpoint\.json is damaged: .*use checkpoint 4096$/);
    writeFileSync(index, '');
    expectMessage(`${index} is damaged: it is empty`);
    rmSync(index);
    expectMessage(`${checkpointDir(dir, 8192)} is not whole: it has no checkpoint.json`);
    expect(() => loadCheckpoint(dir, 5)).toThrow(/there is no checkpoint 5 in .*: use one of 4096, 8192/);
    cpSync(checkpointDir(dir, 4096), checkpointDir(dir, 8192), { recursive: true });
    expectMessage(`${index} is of step 4096: the directory was renamed or copied`);
  });

  it('is looked for before a step, whether that one is whole or not', () => {
    expect(wholeCheckpointBefore(dir, 8192)).toBe(4096);
    expect(wholeCheckpointBefore(dir, 8193)).toBe(8192);
    expect(wholeCheckpointBefore(dir, 4096)).toBeUndefined();
  });

  it('of all is said too', () => {
    for (const step of [4096, 8192]) truncateSync(file(step, 'state.json'), 1);
    expect(wholeCheckpointBefore(dir, 8192)).toBeUndefined();
    expect(() => loadCheckpoint(dir)).toThrow(/no earlier checkpoint is whole: start a new run$/);
    expect(checkpointProblem(dir, 4096)).toMatch(/state\.json has 1 bytes/);
  });

  it('by a newer version is not called damage', () => {
    const index = file(8192, 'checkpoint.json');
    writeFileSync(index, readFileSync(index, 'utf8').replace('"schema": 1', '"schema": 9'));
    expect(() => loadCheckpoint(dir)).toThrow(
      /was written by a newer Keel \(schema 9, this one reads 1\): update Keel$/,
    );
  });

  it('of a single bit in any byte is found', () => {
    const found = { tried: 0, missed: [] as string[] };
    for (const name of readdirSync(checkpointDir(dir, 8192))) {
      const path = file(8192, name);
      const whole = readFileSync(path);
      for (let at = 0; at < whole.length; at++) {
        const bytes = Buffer.from(whole);
        bytes[at] ^= 1 << (at % 8);
        writeFileSync(path, bytes);
        found.tried++;
        const problem = checkpointProblem(dir, 8192);
        if (problem === undefined && !sameJson(whole, bytes)) found.missed.push(`${name} byte ${at}`);
      }
      writeFileSync(path, whole);
    }
    expect(found.missed).toEqual([]);
    expect(found.tried).toBeGreaterThan(400);
    expect(existsSync(file(8192, 'state.json'))).toBe(true);
  });

  /** A space that became another kind of space changes nothing. */
  function sameJson(a: Buffer, b: Buffer): boolean {
    try {
      return JSON.stringify(JSON.parse(a.toString())) === JSON.stringify(JSON.parse(b.toString()));
    } catch {
      return false;
    }
  }
});
