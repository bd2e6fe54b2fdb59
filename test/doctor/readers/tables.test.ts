import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ReadError } from '../../../src/doctor/readers/errors.ts';
import { points, readContent, readOnly, temporaryDirectory, values, writeTree } from '../support/files.ts';

const sb3 = join(import.meta.dirname, '../fixtures/sb3');

describe('CSV', () => {
  it('has rows from 1; empty cells are missing, NaN is broken', async () => {
    const run = await readContent('a,b/c,d\n1,,x\n2,nan,\n3,0.5,inf\n');
    expect(run.format).toBe('csv');
    expect(run.axis).toBe('row');
    expect(points(run, 'a')).toEqual([
      [1, 1],
      [2, 2],
      [3, 3],
    ]);
    expect(points(run, 'b/c')).toEqual([
      [2, Number.NaN],
      [3, 0.5],
    ]);
    expect(points(run, 'd')).toEqual([[3, Number.POSITIVE_INFINITY]]);
    expect(run.texts.get('d')).toBe('x');
    expect(run.unfinished).toBe(false);
  });

  it.each([
    ['semicolons and decimal commas', 'a;b\r\n1;0,5\r\n2;-1,5e3\r\n', [0.5, -1500]],
    ['tabs', 'a\tb\n1\t2\n2\t3\n', [2, 3]],
    ['quotes', '"a","b"\n"1","2"\n"2","3"\n', [2, 3]],
    ['a byte-order mark', '\ufeffa,b\n1,2\n2,3\n', [2, 3]],
    ["pandas' index", ',a,b\n0,1,2\n1,2,3\n', [2, 3]],
    ['blank lines and comments', '# a comment\n\na,b\n1,2\n\n2,3\n\n', [2, 3]],
    ['wrapped numbers', 'a,b\n1,np.float64(2.5)\n2,tensor(3.5)\n', [2.5, 3.5]],
  ])('with %s', async (_, text, expected) => {
    const run = await readContent(text);
    expect(values(run, 'a')).toEqual([1, 2]);
    expect(values(run, 'b')).toEqual(expected);
  });

  it.each([
    ['UTF-16 LE', Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from('aä,b\r\n1,2\r\n', 'utf16le')])],
    [
      'UTF-16 BE',
      Buffer.concat([Buffer.from([0xfe, 0xff]), Buffer.from('aä,b\r\n1,2\r\n', 'utf16le').swap16()]),
    ],
    ['gzip', gzipSync('aä,b\n1,2\n')],
    [
      'gzip of UTF-16',
      gzipSync(Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from('aä,b\n1,2\n', 'utf16le')])),
    ],
  ])('in %s', async (_, bytes) => {
    const run = await readContent(bytes);
    expect(points(run, 'aä')).toEqual([[1, 1]]);
    expect(points(run, 'b')).toEqual([[1, 2]]);
  });

  it('has fields with delimiters, quotes and line breaks in them', async () => {
    const run = await readContent('a,"x, ""y""",t\n1,2,"one\ntwo, ""three"""\n3,4,\n');
    expect(points(run, 'x, "y"')).toEqual([
      [1, 2],
      [2, 4],
    ]);
    expect(run.texts.get('t')).toBe('one\ntwo, "three"');
  });

  it('a quote that never closes costs its own row only', async () => {
    const rows = Array.from({ length: 200 }, (_, i) => (i === 50 ? `${i},"cut` : `${i},${i}`));
    const run = await readContent(`a,b\n${rows.join('\n')}\n`);
    expect(values(run, 'b')).toEqual(rows.map((_, i) => i).filter(i => i !== 50));
    expect(run.notes.join()).toMatch(/one row that does not/);
  });

  it('rows that a kill glued together or cut are left out and counted', async () => {
    const run = await readContent('a,b,c\n1,2,3\n4,5.11,2,3\n7,8\n9,9,9\n');
    expect(values(run, 'a')).toEqual([1, 9]);
    expect(run.notes.join()).toMatch(/2 rows that do not have 3 fields/);
  });

  it('a header that comes again in mid-file begins anew, with its own columns', async () => {
    const run = await readContent('a,b\n1,2\n3,4\na,c,b\n5,6,7\n');
    expect(points(run, 'b')).toEqual([
      [1, 2],
      [2, 4],
      [3, 7],
    ]);
    expect(points(run, 'c')).toEqual([[3, 6]]);
    expect(run.restarts).toEqual([3]);
  });

  it('an end without its line break is unfinished, and its last cell may be half a number', async () => {
    const run = await readContent('a,b,c\n1,2,3\n4,5,67');
    expect(values(run, 'b')).toEqual([2, 5]);
    expect(values(run, 'c')).toEqual([3]);
    expect(run.unfinished).toBe(true);
    const shorter = await readContent('a,b,c\n1,2,3\n4,5');
    expect(values(shorter, 'a')).toEqual([1]);
    expect(shorter.unfinished).toBe(true);
  });

  it('cut anywhere gives a beginning of the whole, and no number that was not there', async () => {
    const text = readFileSync(join(sb3, 'pendulum-epochs-80/progress.csv'), 'utf8');
    const whole = await readContent(text);
    for (let length = 420; length < text.length; length += 61) {
      const part = await readContent(text.slice(0, length));
      for (const name of part.series.keys()) {
        const got = values(part, name);
        expect(got).toEqual(values(whole, name).slice(0, got.length));
      }
    }
  });

  it("RLlib's settings among the columns are settings", async () => {
    const run = await readContent(
      'episode_reward_mean,config/lr,config/env,timesteps_total\nnan,0.001,Pong,10\n5,0.001,Pong,20\n',
    );
    expect(Object.fromEntries(run.config)).toEqual({ lr: 0.001, env: 'Pong' });
    expect(points(run, 'episode_reward_mean')).toEqual([
      [1, Number.NaN],
      [2, 5],
    ]);
  });

  it("SB3's monitor says its environment and its clock", async () => {
    const run = await readContent(
      '#{"t_start": 1700000000.5, "env_id": "CartPole-v1"}\nr,l,t\n10.0,10,0.5\n20.0,20,1.5\n',
    );
    expect(run.config.get('env_id')).toBe('CartPole-v1');
    expect(values(run, 'r')).toEqual([10, 20]);
    expect([...run.series.get('r')!.wallTime]).toEqual([1_700_000_001, 1_700_000_002]);
  });

  it('several monitors are one run, in the order of time', async () => {
    const head = (t: number): string => `#{"t_start": ${t}, "env_id": "E"}\nr,l,t\n`;
    const root = writeTree(temporaryDirectory(), {
      '0.monitor.csv': `${head(1_700_000_000)}1,1,1\n3,1,3\n5,1,5\n`,
      '1.monitor.csv': `${head(1_700_000_001)}2,1,1\n4,1,3\n`,
    });
    const run = await readOnly(root);
    expect(values(run, 'r')).toEqual([1, 2, 3, 4, 5]);
    expect([...run.series.get('r')!.x]).toEqual([1, 2, 3, 4, 5]);
  });

  it('reads every number that was written, whatever the dialect', async () => {
    const cell = fc.option(fc.double(), { nil: null });
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(cell, cell, cell), { minLength: 1, maxLength: 30 }),
        fc.constantFrom(',', ';', '\t'),
        fc.constantFrom('\n', '\r\n'),
        fc.boolean(),
        async (rows, delimiter, lineBreak, quoted) => {
          const write = (value: unknown): string => (quoted ? `"${value}"` : String(value));
          const lines = [
            ['x/a', 'y', 'z'].map(write),
            ...rows.map(row => row.map(value => (value === null ? '' : write(value)))),
          ];
          const text = lines.map(line => line.join(delimiter) + lineBreak).join('');
          // A first row so that there is a number; a table without any is no log.
          const run = await readContent(
            text.replace(lineBreak, `${lineBreak}${['1', '1', '1'].join(delimiter)}${lineBreak}`),
          );
          const all = [[1, 1, 1] as (number | null)[], ...rows].filter(row =>
            row.some(value => value !== null),
          );
          ['x/a', 'y', 'z'].forEach((name, column) => {
            const expected = all.flatMap((row, i): [number, number][] =>
              row[column] === null ? [] : [[i + 1, row[column] === 0 ? 0 : row[column]]],
            );
            expect(points(run, name).map(([x, value]) => [x, value === 0 ? 0 : value])).toEqual(expected);
          });
        },
      ),
      { numRuns: 60 },
    );
  });
});

describe('JSON lines', () => {
  it('nested names are joined, null is missing, NaN is broken however it is spelled', async () => {
    const run = await readContent(
      '{"a": 1, "b": {"c": {"d": 2}}, "t": "x", "l": [1, 2]}\n{"a": null, "b": {"c": {"d": NaN}}}\n{"a": "NaN", "b": {"c": {"d": -Infinity}}}\n',
    );
    expect(run.format).toBe('jsonl');
    expect(points(run, 'a')).toEqual([
      [1, 1],
      [3, Number.NaN],
    ]);
    expect(points(run, 'b/c/d')).toEqual([
      [1, 2],
      [2, Number.NaN],
      [3, Number.NEGATIVE_INFINITY],
    ]);
    expect([...run.series.keys()]).toEqual(['a', 'b/c/d']);
  });

  it("verl's file has its metrics in data", async () => {
    const run = await readContent(
      '{"step": 1, "data": {"actor/ppo_kl": 0.1}}\n{"step": 2, "data": {"actor/ppo_kl": 0.2}}\n',
    );
    expect(points(run, 'actor/ppo_kl')).toEqual([
      [1, 0.1],
      [2, 0.2],
    ]);
    expect(values(run, 'step')).toEqual([1, 2]);
  });

  it("RLlib's rows of megabytes: config goes to the settings once", async () => {
    const config = {
      lr: 0.001,
      model: { fcnet_hiddens: [64, 64] },
      filler: 'x'.repeat(300_000),
      env: 'Pong',
    };
    const rows = [1, 2, 3].map(i =>
      JSON.stringify({
        training_iteration: i,
        episode_reward_mean: i * 10,
        config,
        timestamp: 1_700_000_000 + i,
      }),
    );
    const run = await readContent(`${rows.join('\n')}\n`);
    expect(values(run, 'episode_reward_mean')).toEqual([10, 20, 30]);
    expect(run.config.get('lr')).toBe(0.001);
    expect(run.config.get('model/fcnet_hiddens')).toBe('[64,64]');
    expect(String(run.config.get('filler')).length).toBeLessThanOrEqual(2000);
    expect([...run.series.get('episode_reward_mean')!.wallTime]).toEqual([
      1_700_000_001, 1_700_000_002, 1_700_000_003,
    ]);
  });

  it('half a line at the end is unfinished, a whole object without a line break is not', async () => {
    const half = await readContent('{"a":1}\n{"a":2');
    expect(values(half, 'a')).toEqual([1]);
    expect(half.unfinished).toBe(true);
    expect(half.notes).toEqual([]);
    const whole = await readContent('{"a":1}\n{"a":2}');
    expect(values(whole, 'a')).toEqual([1, 2]);
    expect(whole.unfinished).toBe(false);
  });

  it('damaged lines in the middle are counted', async () => {
    const run = await readContent('{"a":1}\n{"a":\n[1]\n{"a":2}\n');
    expect(values(run, 'a')).toEqual([1, 2]);
    expect(run.notes.join()).toMatch(/2 lines/);
  });

  it('a list of objects in one document is a table too', async () => {
    const run = await readContent('[\n {"step": 1, "loss": 0.5},\n {"step": 2, "loss": NaN}\n]\n');
    expect(values(run, 'loss')).toEqual([0.5, Number.NaN]);
  });

  it('a lone step of a restart replaces what it repeats', async () => {
    const row = (step: number, v: number): string => `{"step": ${step}, "v": ${v}}\n`;
    const first = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map(step => row(step, 1)).join('');
    const second = [6, 7, 8].map(step => row(step, 2)).join('');
    const run = await readContent(first + second);
    expect(values(run, 'step')).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    expect(values(run, 'v')).toEqual([1, 1, 1, 1, 1, 2, 2, 2]);
    expect(run.restarts).toEqual([11]);
    expect(run.notes.join()).toMatch(/step goes back once, first from 10 to 6 at row 11.*5 rows/);
  });

  it('one row that comes late is no restart: nothing is dropped, and the counter never falls', async () => {
    const row = (step: number, name: string): string => `{"step": ${step}, "${name}": ${step}}\n`;
    const lines = Array.from(
      { length: 40 },
      (_, i) => row(i + 1, 'loss') + (i === 30 ? row(20, 'eval') : ''),
    );
    const run = await readContent(lines.join(''));
    expect(values(run, 'loss')).toHaveLength(40);
    expect(points(run, 'eval')).toEqual([[32, 20]]);
    expect(values(run, 'step')).toEqual(Array.from({ length: 40 }, (_, i) => i + 1));
    expect(run.restarts).toEqual([]);
    expect(run.notes.join()).toMatch(/1 rows that came late/);
  });

  it('a step within episodes is no counter of the run', async () => {
    const rows = Array.from({ length: 60 }, (_, i) => `{"step": ${i % 3}, "v": ${i}}`).join('\n');
    const run = await readContent(`${rows}\n`);
    expect(values(run, 'v')).toHaveLength(60);
    expect(run.restarts).toEqual([]);
  });

  it('a counter that begins anew is counted on: nothing that was logged before is lost', async () => {
    const line = (step: number, v: number): string => `{"step": ${step}, "v": ${v}}\n`;
    const first = Array.from({ length: 20 }, (_, i) => line(i + 1, i));
    const second = Array.from({ length: 5 }, (_, i) => line(i + 1, 100 + i));
    const run = await readContent([...first, ...second].join(''));
    expect(values(run, 'step')).toEqual(Array.from({ length: 25 }, (_, i) => i + 1));
    expect(values(run, 'v').slice(18)).toEqual([18, 19, 100, 101, 102, 103, 104]);
    expect(run.restarts).toEqual([21]);
    expect(run.notes.join()).toMatch(/step begins anew at row 21: it is counted on from 20/);
  });

  it('steps go back in any pattern: they ascend afterwards, and the newest of each is kept', async () => {
    await fc.assert(
      fc.asyncProperty(
        // So far from the beginning that none of them begins anew.
        fc.array(fc.tuple(fc.integer({ min: 20, max: 60 }), fc.integer({ min: 6, max: 30 })), {
          minLength: 1,
          maxLength: 4,
        }),
        async stretches => {
          const newest = new Map<number, number>();
          const lines: string[] = [];
          let value = 0;
          let last = -1;
          for (const [from, length] of stretches) {
            // The same step twice is no step back.
            fc.pre(from !== last);
            last = from + length - 1;
            for (const step of [...newest.keys()]) if (step >= from) newest.delete(step);
            for (let step = from; step < from + length; step++) {
              newest.set(step, value);
              lines.push(`{"step": ${step}, "v": ${value++}}`);
            }
          }
          // Only a step back replaces; a stretch that begins further on replaces nothing.
          const run = await readContent(`${lines.join('\n')}\n`);
          const expected = [...newest].sort(([a], [b]) => a - b);
          expect(values(run, 'step')).toEqual(expected.map(([step]) => step));
          expect(values(run, 'v')).toEqual(expected.map(([, v]) => v));
        },
      ),
      { numRuns: 100 },
    );
  });
});

describe("Stable-Baselines3's runs", () => {
  it.each(readdirSync(sb3))('%s reads', async name => {
    const text = readFileSync(join(sb3, name, 'progress.csv'), 'utf8');
    const run = await readOnly(join(sb3, name, 'progress.csv'));
    const header = text.split('\n')[0].split(',');
    expect([...run.series.keys()].sort()).toEqual([...header].sort());
    const rows = text.trimEnd().split('\n').length - 1;
    expect(run.series.get('time/total_timesteps')!.length).toBe(rows);
    // The first row is written before anything was trained.
    expect(run.series.get('train/approx_kl')!.x[0]).toBe(2);
    expect(run.series.get('train/approx_kl')!.length).toBe(rows - 1);
    expect(run.restarts).toEqual(name.includes('resume') ? [60] : []);
    expect(run.unfinished).toBe(false);
  });

  it('the CSV and the JSON of one run say the same', async () => {
    const root = join(sb3, 'pendulum-healthy');
    const [csv, json] = [
      await readOnly(join(root, 'progress.csv')),
      await readOnly(join(root, 'progress.json')),
    ];
    expect([...json.series.keys()].sort()).toEqual([...csv.series.keys()].sort());
    for (const name of csv.series.keys()) {
      const [a, b] = [points(csv, name), points(json, name)];
      expect(b.map(([x]) => x)).toEqual(a.map(([x]) => x));
      a.forEach(([, value], i) => {
        expect(Math.abs(b[i][1] - value)).toBeLessThanOrEqual(1e-6 * Math.abs(value));
      });
    }
  });
});

describe('what is no log', () => {
  it.each([
    ['', /looked for .* and found an empty file/],
    [' \n\n', /only white space/],
    ['Hello, world.\nThis is a letter, and not a log.\n', /first line is "Hello, world\."/],
    ['{"name": "package", "version": "1.0.0"}\n', /first line is/],
    ['a,b\nx,y\nz,w\n', /first line is "a,b"/],
    [Buffer.from([0, 1, 2, 3, 255]), /binary data that begins 000102/],
    ['SQLite format 3\0rest', /SQLite database.*export/],
    ['PK\x03\x04rest of it', /zip archive/],
    [Buffer.from('800495aabbccddeeff0011', 'hex'), /pickle.*can run code/],
    [gzipSync(''), /empty file/],
  ])('%j is refused with a sentence', async (content, expected) => {
    const failure = await readContent(content).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(ReadError);
    expect((failure as Error).message).toMatch(expected);
    expect((failure as Error).message).not.toContain('\n');
  });

  it('a bomb of gzip is refused before it fills the memory', async () => {
    const bomb = gzipSync(Buffer.concat([Buffer.from('a,b\n1,2\n'), Buffer.alloc(100 * 2 ** 20, '1')]));
    expect(bomb.length).toBeLessThan(200_000);
    const before = process.memoryUsage().arrayBuffers;
    const failure = await readContent(bomb).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(ReadError);
    expect((failure as Error).message).toMatch(/unpack to more than/);
    // By what went in so far, not by the length of all of it.
    expect(Number(/unpack to more than (\d+)/.exec((failure as Error).message)![1])).toBeLessThan(
      32 * 2 ** 20,
    );
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(64 * 2 ** 20);
  });

  it('a gzip file that is cut gives what it has', async () => {
    const rows = Array.from({ length: 20_000 }, (_, i) => `${i},${Math.sin(i)}`).join('\n');
    const packed = gzipSync(`a,b\n${rows}\n`);
    const run = await readContent(packed.subarray(0, packed.length >> 1));
    expect(run.unfinished).toBe(true);
    const a = values(run, 'a');
    expect(a.length).toBeGreaterThan(1000);
    expect(a).toEqual(a.map((_, i) => i));
  });
});
