import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  chooseReplay,
  decodeReplay,
  discardReplaysAfter,
  encodeReplay,
  isReplayName,
  listReplays,
  loadReplay,
  pruneReplays,
  RunError,
  replayPath,
  saveReplay,
} from '../../src/runs/index.ts';
import { replayHeader, replayHeaderBytes } from '../../src/runs/replay-format.ts';
import { pictureReplay } from '../view/support/picture-replay.ts';
import { ballReplay } from '../view/support/replay.ts';
import { temporaryRoot } from './support/temporary.ts';

const root = temporaryRoot('replays');
let count = 0;
function newRun(): string {
  const dir = join(root, `run-${count++}`);
  mkdirSync(dir);
  return dir;
}

/** The file with a header that says something else. */
function withHeader(change: (header: Record<string, unknown>) => void, replay = ballReplay()): Uint8Array {
  const file = encodeReplay(replay);
  const end = 16 + replayHeaderBytes(file);
  const header = JSON.parse(Buffer.from(file.subarray(16, end)).toString('utf8')) as Record<string, unknown>;
  change(header);
  const text = Buffer.from(JSON.stringify(header));
  const padded = Buffer.alloc(Math.ceil(text.length / 4) * 4, ' ');
  text.copy(padded);
  const prefix = Buffer.from(file.subarray(0, 16));
  prefix.writeUInt32LE(padded.length, 12);
  return Buffer.concat([prefix, padded, file.subarray(end)]);
}

describe('the file', () => {
  test('reads back bit for bit, wherever its bytes lie', () => {
    const replay = ballReplay();
    const file = encodeReplay(replay);
    expect(decodeReplay(file)).toEqual(replay);
    // At an odd place of a larger buffer, as Node hands out small files.
    const shifted = Buffer.alloc(file.length + 7).fill(255);
    shifted.set(file, 3);
    expect(decodeReplay(shifted.subarray(3, 3 + file.length))).toEqual(replay);
  });

  test('one frame, no joints, no terms', () => {
    const one = ballReplay({ frames: 1 });
    const bare = {
      ...one,
      actionSize: 0,
      terms: [],
      scene: { ...one.scene, joints: [] },
      joints: new Float32Array(0),
      actions: new Float32Array(0),
      rewardTerms: new Float32Array(0),
    };
    expect(decodeReplay(encodeReplay(bare))).toEqual(bare);
  });

  test('cut anywhere, or longer, it is refused', () => {
    const file = encodeReplay(ballReplay());
    for (let length = 0; length < file.length; length += length < 40 ? 1 : 97)
      expect(() => decodeReplay(file.subarray(0, length))).toThrow(/is damaged/);
    expect(() => decodeReplay(Buffer.concat([file, Buffer.alloc(1)]))).toThrow(/its header speaks of/);
  });

  test('lengths that were tampered with are refused before anything is made of them', () => {
    const huge = Buffer.from(encodeReplay(ballReplay()));
    huge.writeUInt32LE(0xfffffffc, 12);
    expect(() => decodeReplay(huge)).toThrow(/header has 4294967292 bytes, at most/);
    for (const [key, value, message] of [
      ['frames', 22, /its header speaks of/],
      ['frames', 4e9, /frames is 4000000000, not a whole number in 1\.\.20000/],
      ['frames', 0, /not a whole number/],
      ['frames', 1.5, /not a whole number/],
      ['actionSize', 1e6, /in 0\.\.1024/],
      ['actionSize', -1, /not a whole number/],
      ['terms', Array(65).fill('a'), /at most 64 names/],
      ['terms', null, /at most 64 names/],
      ['frameSeconds', 0, /frameSeconds is 0/],
      ['episodeReturn', null, /episodeReturn is null/],
      ['end', 'never', /it can be terminated/],
      ['environment', 5, /not a name/],
      ['scene', { bodies: [] }, /nothing to draw/],
      ['kind', 'other', /not that of a replay/],
    ] as const) {
      const file = withHeader(header => {
        header[key] = value;
      });
      expect(() => decodeReplay(file), key).toThrow(message);
    }
  });

  test('numbers that are not finite are refused, and never written', () => {
    const replay = ballReplay();
    const broken = { ...replay, positions: replay.positions.slice() };
    broken.positions[7] = Number.NaN;
    expect(() => encodeReplay(broken)).toThrow(/positions has NaN in frame 1/);
  });

  test('another version says what to do', () => {
    const file = Buffer.from(encodeReplay(ballReplay()));
    file.writeUInt32LE(4, 8);
    expect(() => decodeReplay(file)).toThrow(/version 4, this Keel reads up to 3/);
    // Its version says whether there are drawings or pictures.
    file.writeUInt32LE(2, 8);
    expect(() => decodeReplay(file)).toThrow(/drawingBytes is 0 in version 2/);
    file.writeUInt32LE(3, 8);
    expect(() => decodeReplay(file)).toThrow(/is damaged: width is undefined/);
  });

  test('pictures read back, and are refused before a browser would make room for them', () => {
    const replay = pictureReplay(10);
    expect(decodeReplay(encodeReplay(replay))).toEqual(replay);
    const pictures = replay.pictures!;
    const bytes = pictures.files.map(({ length }) => length);
    const said = (change: object) => () =>
      decodeReplay(
        withHeader(header => {
          header.pictures = { ...pictures, files: undefined, bytes, ...change };
        }, replay),
      );
    expect(said({})).not.toThrow();
    expect(said({ width: 31 })).toThrow(/picture 0 of replay is no PNG of 31x20/);
    expect(said({ height: 5000 })).toThrow(/height is 5000, not a whole number in 1\.\.4096/);
    expect(said({ every: 1 })).toThrow(/it has 3 pictures, 5 are right/);
    expect(said({ every: 3 })).toThrow(/it has 3 pictures, 2 are right/);
    expect(said({ bytes: [bytes[0] - 1, bytes[1] + 1, bytes[2]] })).toThrow(/picture 1 of replay is no PNG/);
    expect(said({ bytes: [bytes[0], bytes[1], 0] })).toThrow(/have no lengths/);
    expect(said({ bytes: [2 ** 31, bytes[1], bytes[2]] })).toThrow(/have no lengths/);
    const larger = Buffer.from(encodeReplay(replay));
    larger.writeUInt32BE(60_000, larger.lastIndexOf('IHDR') + 4);
    expect(() => decodeReplay(larger)).toThrow(/picture 2 of replay is no PNG of 30x20/);
  });

  test('the header alone can be read, and its length is checked against the file', () => {
    const file = encodeReplay(ballReplay());
    const start = file.subarray(0, 16 + replayHeaderBytes(file));
    expect(replayHeader(start, file.length)).toMatchObject({ step: 1000, frames: 21, episodeReturn: 20 });
    expect(() => replayHeader(start, file.length - 4)).toThrow(/its header speaks of/);
  });

  test('whatever bytes come, it is a replay or an error of ours', () => {
    for (const replay of [ballReplay(), pictureReplay(10)]) {
      const file = encodeReplay(replay);
      fc.assert(
        fc.property(
          fc.array(fc.tuple(fc.nat(file.length - 1), fc.nat(255)), { minLength: 1, maxLength: 8 }),
          changes => {
            const bytes = file.slice();
            for (const [at, value] of changes) bytes[at] = value;
            try {
              expect(decodeReplay(bytes).frames).toBe(replay.frames);
            } catch (error) {
              expect(error).toBeInstanceOf(RunError);
            }
          },
        ),
        { numRuns: 400 },
      );
    }
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), bytes => {
        expect(() => decodeReplay(bytes)).toThrow(RunError);
      }),
    );
  });
});

describe('the replays of a run', () => {
  test('are listed with the oldest policy first; damaged ones and other files are left out', () => {
    const run = newRun();
    expect(listReplays(run)).toEqual([]);
    for (const step of [3000, 500, 20_000]) saveReplay(run, ballReplay({ step, episodeReturn: step }));
    saveReplay(run, ballReplay({ step: 3000 }), 2);
    writeFileSync(join(run, 'replays', 'notes.txt'), 'x');
    writeFileSync(join(run, 'replays', '77.replay'), 'x');
    const cache = new Map();
    expect(listReplays(run, cache).map(({ name }) => name)).toEqual(['500', '3000', '3000-2', '20000']);
    expect(listReplays(run, cache)).toEqual(listReplays(run));
    truncateSync(replayPath(run, '500'), 100);
    expect(listReplays(run, cache).map(({ name }) => name)).toEqual(['3000', '3000-2', '20000']);
    expect(loadReplay(replayPath(run, '3000'))).toEqual(ballReplay({ step: 3000, episodeReturn: 3000 }));
    expect(readdirSync(join(run, 'replays')).some(name => name.startsWith('.keel-tmp'))).toBe(false);
  });

  test('names are steps and nothing else', () => {
    for (const name of ['5', '123-4']) expect(isReplayName(name)).toBe(true);
    for (const name of ['', '../5', '5/6', '-1', '5.replay', 'best', '1e5', '5-1234', '٣'])
      expect(isReplayName(name), name).toBe(false);
    expect(() => replayPath(newRun(), '../../x')).toThrow(/is not a step/);
  });

  test('the newest stay, of the others a thin history with the first and the best', () => {
    const run = newRun();
    for (let i = 1; i <= 40; i++)
      saveReplay(run, ballReplay({ step: 100 * i, frames: 2, episodeReturn: i === 17 ? 1000 : i }));
    const steps = listReplays(run).map(({ step }) => step / 100);
    expect(steps.length).toBeLessThanOrEqual(8 + 24 + 1);
    expect(steps.slice(-8)).toEqual([33, 34, 35, 36, 37, 38, 39, 40]);
    expect(steps[0]).toBe(1);
    expect(steps).toContain(17);
    pruneReplays(run, 2, 3);
    const few = listReplays(run).map(({ step }) => step / 100);
    expect(few).toHaveLength(6);
    expect(few).toEqual(expect.arrayContaining([1, 17, 39, 40]));
  });

  test('choosing one: best, last, a step; or what there is', () => {
    const run = newRun();
    expect(() => chooseReplay(run)).toThrow(/it has none; keel record/);
    for (const [step, episodeReturn] of [
      [10, 1],
      [20, 9],
      [30, 2],
    ] as const)
      saveReplay(run, ballReplay({ step, episodeReturn }));
    expect(chooseReplay(run).step).toBe(30);
    expect(chooseReplay(run, 'best').step).toBe(20);
    expect(chooseReplay(run, 10).step).toBe(10);
    expect(() => chooseReplay(run, 15)).toThrow(/there are 10, 20, 30/);
  });

  test('going back to a checkpoint drops the replays after it', () => {
    const run = newRun();
    for (const step of [10, 20, 30]) saveReplay(run, ballReplay({ step }));
    writeFileSync(join(run, 'replays', '.keel-tmp-40.replay-abc'), 'half');
    discardReplaysAfter(run, 20);
    expect(readdirSync(join(run, 'replays')).sort()).toEqual(['10.replay', '20.replay']);
    discardReplaysAfter(newRun(), 5); // none there: nothing to do
  });

  test('a link to elsewhere is read as what it is: checked like any other', () => {
    const [run, other] = [newRun(), newRun()];
    saveReplay(run, ballReplay({ step: 1 }));
    saveReplay(other, ballReplay({ step: 2 }));
    writeFileSync(join(other, 'secret'), 'do not read');
    symlinkSync(join(other, 'secret'), join(run, 'replays', '9.replay'));
    expect(listReplays(run).map(({ name }) => name)).toEqual(['1']);
    expect(existsSync(replayPath(run, '9'))).toBe(true);
    expect(readFileSync(join(other, 'secret'), 'utf8')).toBe('do not read');
  });
});
