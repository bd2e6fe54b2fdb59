import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { findRuns } from '../../../src/doctor/readers/find.ts';
import { readRun } from '../../../src/doctor/readers/read.ts';
import { crc32c } from '../../../src/metrics/sinks/crc32c.ts';
import { tensorboardSink } from '../../../src/metrics/sinks/tensorboard.ts';
import { points, readContent, readOnly, temporaryDirectory, values, writeTree } from '../support/files.ts';
import { bitwiseCrc, bytesField, doubleField, floatField, varintField } from '../support/proto.ts';
import {
  dtype,
  hparamsValue,
  packedFloats,
  packedVarints,
  scalarFile,
  sessionEvent,
  shape,
  simpleValue,
  summaryEvent,
  tensorValue,
  textValue,
  tfRecord,
  versionEvent,
} from '../support/tensorboard-file.ts';

const at = { wallTime: 1_700_000_001.5, step: 3 };

function file(...records: Buffer[]): Buffer {
  return Buffer.concat([versionEvent(1_700_000_000), ...records]);
}

/** The only value of tag `t` in a file with this one value. */
async function one(value: Buffer): Promise<number[]> {
  const run = await readContent(file(summaryEvent(at, simpleValue('other', 1), value)));
  return run.series.has('t') ? values(run, 't') : [];
}

describe('crc32c', () => {
  it('has the check value of its definition', () => {
    expect(crc32c(Buffer.from('123456789'), 0, 9)).toBe(0xe3069283);
  });

  it('agrees with the definition bit by bit, at any place and length', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 100 }), fc.nat(8), (bytes, before) => {
        const start = Math.min(before, bytes.length);
        expect(crc32c(bytes, start, bytes.length)).toBe(bitwiseCrc(bytes.subarray(start), 0x82f63b78));
      }),
    );
  });
});

describe('event files', () => {
  it('give tags, steps, wall times and 32-bit values', async () => {
    const run = await readContent(
      scalarFile([
        { step: 10, wallTime: 100.25, values: { 'train/kl': 0.5, 'Loss / Value loss': -2 } },
        { step: 2 ** 33, wallTime: 101, values: { 'train/kl': 0.1 } },
      ]),
    );
    expect(run.format).toBe('tensorboard');
    expect(run.axis).toBe('step');
    expect(points(run, 'train/kl')).toEqual([
      [10, 0.5],
      [2 ** 33, Math.fround(0.1)],
    ]);
    expect(points(run, 'Loss / Value loss')).toEqual([[10, -2]]);
    expect([...run.series.get('train/kl')!.wallTime]).toEqual([100.25, 101]);
    expect(run.unfinished).toBe(false);
    expect(run.notes).toEqual([]);
  });

  it('keep broken values as broken points', async () => {
    const given = [1, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
    const run = await readContent(scalarFile(given.map((value, step) => ({ step, values: { t: value } }))));
    expect(values(run, 't')).toEqual(given);
    expect([...run.series.get('t')!.broken]).toEqual([0, 1, 1, 1]);
  });

  it('read what any of their fields can hold, in any order', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(
          fc.record({
            tag: fc.string({ minLength: 1, maxLength: 160 }),
            step: fc.maxSafeNat(),
            value: fc.float(),
          }),
          { minLength: 1, maxLength: 20 },
        ),
        async rows => {
          const steps = rows.map(row => row.step).sort((a, b) => a - b);
          const records = rows.map((row, i) => {
            const value = bytesField(1, Buffer.concat([floatField(2, row.value), bytesField(1, row.tag)]));
            const summary = bytesField(5, value);
            // The summary before its step and time, and an unknown field between them.
            return tfRecord(
              Buffer.concat([summary, varintField(2, steps[i]), bytesField(99, 'x'), doubleField(1, i)]),
            );
          });
          const run = await readContent(file(...records));
          const expected = new Map<string, [number, number][]>();
          rows.forEach((row, i) => {
            const tag = Buffer.from(row.tag).toString('utf8');
            expected.set(tag, [...(expected.get(tag) ?? []), [steps[i], row.value]]);
          });
          expect([...run.series.keys()].sort()).toEqual([...expected.keys()].sort());
          for (const [tag, list] of expected) expect(points(run, tag)).toEqual(list);
        },
      ),
      { numRuns: 50 },
    );
  });

  it('take negative steps and steps in ten bytes', async () => {
    const run = await readContent(
      file(
        summaryEvent({ step: -5, wallTime: 1 }, simpleValue('t', 1)),
        summaryEvent({ step: 2, wallTime: 2 }, simpleValue('t', 2)),
      ),
    );
    expect(points(run, 't')).toEqual([
      [-5, 1],
      [2, 2],
    ]);
  });

  describe('with tensors', () => {
    const content = (bytes: Buffer): Buffer => bytesField(4, bytes);
    const number = (
      method: 'writeFloatLE' | 'writeDoubleLE' | 'writeInt32LE' | 'writeUInt16LE',
      size: number,
      value: number,
    ): Buffer => {
      const bytes = Buffer.alloc(size);
      bytes[method](value);
      return bytes;
    };
    it.each([
      ['float_val packed', [varintField(1, dtype.float), packedFloats(5, 0.25)], 0.25],
      ['float_val not packed', [varintField(1, dtype.float), shape(), floatField(5, 0.25)], 0.25],
      ['double_val', [varintField(1, dtype.double), doubleField(6, 0.1)], 0.1],
      ['double_val NaN', [varintField(1, dtype.double), doubleField(6, Number.NaN)], Number.NaN],
      [
        'float content',
        [varintField(1, dtype.float), shape(1), content(number('writeFloatLE', 4, -0.5))],
        -0.5,
      ],
      ['double content', [varintField(1, dtype.double), content(number('writeDoubleLE', 8, 1e300))], 1e300],
      ['int32 content', [varintField(1, dtype.int32), content(number('writeInt32LE', 4, -7))], -7],
      ['int_val', [varintField(1, dtype.int32), packedVarints(7, 300)], 300],
      ['int64_val negative', [varintField(1, dtype.int64), varintField(10, -2)], -2],
      ['bool_val', [varintField(1, dtype.bool), varintField(11, 1)], 1],
      ['half_val', [varintField(1, dtype.half), packedVarints(13, 0x3555)], 0.333251953125],
      ['half content', [varintField(1, dtype.half), content(number('writeUInt16LE', 2, 0xc000))], -2],
      ['half infinity', [varintField(1, dtype.half), varintField(13, 0x7c00)], Number.POSITIVE_INFINITY],
      ['bfloat16', [varintField(1, dtype.bfloat16), varintField(13, 0x3fc0)], 1.5],
      ['a zero that was left out', [varintField(1, dtype.float), shape()], 0],
    ])('%s', async (_, parts, expected) => {
      expect(await one(tensorValue('t', 'scalars', ...parts))).toEqual([expected]);
      expect(await one(tensorValue('t', undefined, ...parts))).toEqual([expected]);
    });

    it('that hold more than one number are no scalars', async () => {
      expect(
        await one(tensorValue('t', undefined, varintField(1, 1), shape(2), packedFloats(5, 1, 2))),
      ).toEqual([]);
      expect(await one(tensorValue('t', undefined, varintField(1, 1), packedFloats(5, 1, 2)))).toEqual([]);
      expect(await one(tensorValue('t', 'histograms', varintField(1, 1), packedFloats(5, 1)))).toEqual([]);
      expect(
        await one(tensorValue('t', undefined, varintField(1, 1), bytesField(4, Buffer.alloc(3)))),
      ).toEqual([]);
    });

    it('name their plugin in the first value only', async () => {
      const value = (plugin?: string): Buffer =>
        tensorValue('t', plugin, varintField(1, 1), packedFloats(5, 1));
      const run = await readContent(
        file(
          summaryEvent({ step: 1 }, simpleValue('u', 0), value('pr_curves')),
          summaryEvent({ step: 2 }, value()),
        ),
      );
      expect(run.series.has('t')).toBe(false);
    });
  });

  it("split CleanRL's table of hyper-parameters into settings", async () => {
    const table =
      '|param|value|\n|-|-|\n|exp_name|ppo|\n|learning_rate|0.00025|\n|target_kl|None|\n|anneal_lr|True|\n|cmd|a \\| b|';
    const run = await readContent(
      file(summaryEvent(at, textValue('hyperparameters/text_summary', table), simpleValue('t', 1))),
    );
    expect(Object.fromEntries(run.config)).toEqual({
      exp_name: 'ppo',
      learning_rate: 0.00025,
      target_kl: null,
      anneal_lr: true,
      cmd: 'a | b',
    });
  });

  it("take Hugging Face's arguments, a JSON document, as settings; what is none stays text", async () => {
    const args =
      '{\n  "learning_rate": 1e-06,\n  "beta": 0.04,\n  "epsilon_high": null,\n  "use_vllm": true\n}';
    const run = await readContent(
      file(summaryEvent(at, textValue('args/text_summary', args), simpleValue('t', 1))),
    );
    expect(Object.fromEntries(run.config)).toEqual({
      learning_rate: 1e-6,
      beta: 0.04,
      epsilon_high: null,
      use_vllm: true,
    });
    const cut = await readContent(
      file(summaryEvent(at, textValue('args/text_summary', args.slice(0, -1)), simpleValue('t', 1))),
    );
    expect([cut.config.size, cut.texts.get('args')]).toEqual([0, args.slice(0, -1)]);
  });

  it('keep other texts, and the settings of the hparams plugin', async () => {
    const run = await readContent(
      file(
        summaryEvent(at, textValue('note/text_summary', 'hello | world'), simpleValue('t', 1)),
        summaryEvent(at, hparamsValue({ lr: 0.5, name: 'x', on: true })),
      ),
    );
    expect(run.texts.get('note')).toBe('hello | world');
    expect(Object.fromEntries(run.config)).toEqual({ lr: 0.5, name: 'x', on: true });
  });

  it("read Keel's own event files", async () => {
    const root = temporaryDirectory();
    const path = join(root, 'events');
    const sink = tensorboardSink(path, {
      startedUnixS: 1_700_000_000,
      hyperparameters: { lr: 0.1, net: { size: 64 } },
    });
    sink.write({ 'train/iteration': 1, 'train/step': 2048, 'kl/step': 0.01, 'time/unix_s': 1_700_000_009 });
    sink.close();
    const run = await readOnly(path);
    expect(points(run, 'kl/step')).toEqual([[2048, Math.fround(0.01)]]);
    expect(Object.fromEntries(run.config)).toEqual({ lr: 0.1, 'net.size': 64 });
  });

  it('agree with the CSV that Stable-Baselines3 wrote beside them', async () => {
    const root = join(import.meta.dirname, '../fixtures/sb3/cartpole-nan');
    const events = readdirSync(root).find(name => name.startsWith('events'))!;
    const [fromEvents, fromCsv] = [
      await readOnly(join(root, events)),
      await readOnly(join(root, 'progress.csv')),
    ];
    const names = [...fromCsv.series.keys()].filter(
      name => !/total_timesteps|iterations|time_elapsed|n_updates/.test(name),
    );
    expect(names.length).toBeGreaterThan(10);
    for (const name of names) {
      const [events32, csv] = [values(fromEvents, name), values(fromCsv, name)];
      expect(events32).toHaveLength(csv.length);
      csv.forEach((value, i) => {
        expect(Math.abs(events32[i] - value)).toBeLessThanOrEqual(1e-6 * Math.abs(value));
      });
    }
    expect([...fromEvents.series.get('train/loss')!.x]).toEqual(
      values(fromCsv, 'time/total_timesteps').slice(1),
    );
  });
});

describe('damaged and unfinished event files', () => {
  const rows = Array.from({ length: 200 }, (_, step) => ({ step, values: { t: step, u: -step } }));
  const whole = scalarFile(rows);

  it('that end anywhere give what was whole, and are unfinished unless a record ends there', async () => {
    const ends = new Set([0]);
    for (let end = 0; end < whole.length; ) {
      end += 16 + Number(whole.readBigUInt64LE(end));
      ends.add(end);
    }
    let before = 0;
    for (let length = 150; length < 900; length += 7) {
      const run = await readContent(whole.subarray(0, length));
      expect(run.unfinished).toBe(!ends.has(length));
      const got = values(run, 't');
      expect(got).toEqual(rows.slice(0, got.length).map(row => row.step));
      expect(got.length).toBeGreaterThanOrEqual(before);
      before = got.length;
      expect(run.notes).toEqual([]);
    }
  });

  it('lose only the record whose data is wrong, and say so', async () => {
    const damaged = Buffer.from(whole);
    const at = damaged.indexOf(Buffer.from('t')) + 40 * 30;
    damaged[at] = damaged[at] ^ 0x10;
    const run = await readContent(damaged);
    const total = run.series.get('t')!.length + run.series.get('u')!.length;
    expect(total).toBeGreaterThanOrEqual(398);
    expect(total).toBeLessThan(400);
    expect(run.notes.join()).toMatch(/checksum|passed over/);
  });

  it('find the next record after damaged lengths', async () => {
    const second = versionEvent(1_700_000_000).length;
    const damaged = Buffer.concat([
      whole.subarray(0, second),
      Buffer.from('rubbish in between'),
      whole.subarray(second),
    ]);
    const run = await readContent(damaged);
    expect(run.series.get('t')!.length).toBe(200);
    expect(run.notes.join()).toMatch(/damaged in 1 places; 18 bytes/);
  });

  it('skip a record that is too large without keeping it', async () => {
    const large = tfRecord(Buffer.concat([doubleField(1, 1), bytesField(4, Buffer.alloc(5 * 2 ** 20))]));
    const run = await readContent(
      Buffer.concat([whole, large, scalarFile([{ step: 999, values: { t: 1 } }])]),
    );
    expect(values(run, 't').at(-1)).toBe(1);
    expect(run.unfinished).toBe(false);
  });

  it('believe no length that a checksum does not confirm', async () => {
    const head = Buffer.alloc(12, 0xff);
    const run = await readContent(Buffer.concat([whole, head, whole]));
    expect(run.notes.join()).toMatch(/damaged in 1 places/);
    expect(run.series.get('t')!.length).toBe(200);
  });
});

describe('restarts in event files', () => {
  const steps = (from: number, to: number, value: number, wall: number) =>
    Array.from({ length: to - from }, (_, i) => ({
      step: from + i,
      wallTime: wall + i,
      values: { t: value, u: value },
    }));

  it('a second file goes on from an earlier step: its values count', async () => {
    const root = writeTree(temporaryDirectory(), {
      // In the order of their names the newer would come first.
      'events.b': scalarFile(steps(0, 10, 1, 1000), 1000),
      'events.a': scalarFile(steps(6, 12, 2, 5000), 5000),
    });
    const run = await readOnly(root);
    expect(run.files).toHaveLength(2);
    expect(points(run, 't')).toEqual(
      [0, 1, 2, 3, 4, 5].map(x => [x, 1]).concat([6, 7, 8, 9, 10, 11].map(x => [x, 2])),
    );
    expect(run.restarts).toEqual([6]);
    expect(run.notes.join()).toMatch(/steps of 2 series go back.*8 values/);
  });

  it('a second file that only goes on is a restart without loss', async () => {
    const root = writeTree(temporaryDirectory(), {
      a: scalarFile(steps(0, 10, 1, 1000), 1000),
      b: scalarFile(steps(10, 20, 2, 5000), 5000),
    });
    const run = await readOnly(root);
    expect(run.series.get('t')!.length).toBe(20);
    expect(run.restarts).toEqual([10]);
  });

  it('steps that go back in one file are a restart', async () => {
    const run = await readContent(scalarFile([...steps(0, 20, 1, 1000), ...steps(5, 15, 2, 2000)], 1000));
    expect(values(run, 't')).toEqual([...Array(5).fill(1), ...Array(10).fill(2)]);
    expect(run.restarts).toEqual([5]);
  });

  it('a session that starts takes back later steps, as TensorBoard does', async () => {
    const run = await readContent(
      Buffer.concat([
        scalarFile(steps(0, 10, 1, 1000), 1000),
        sessionEvent({ wallTime: 2000, step: 4 }, 1),
        scalarFile(steps(8, 10, 2, 2000), 2000).subarray(versionEvent(0).length),
      ]),
    );
    expect(points(run, 't')).toEqual([0, 1, 2, 3].map(x => [x, 1]).concat([8, 9].map(x => [x, 2])));
    expect(run.restarts).toEqual([8]);
  });

  it('equal steps are kept: several environments end an episode at once', async () => {
    const run = await readContent(scalarFile([1, 1, 1, 2].map((step, i) => ({ step, values: { t: i } }))));
    expect(points(run, 't')).toEqual([
      [1, 0],
      [1, 1],
      [1, 2],
      [2, 3],
    ]);
    expect(run.restarts).toEqual([]);
  });

  it('two files that begin at one step with other values are two runs', async () => {
    const root = writeTree(temporaryDirectory(), {
      a: scalarFile(steps(0, 500, 1, 1000), 1000),
      b: scalarFile(steps(0, 500, 2, 1100), 1100),
      // Goes on with the second.
      c: scalarFile(steps(400, 600, 3, 9000), 9000),
    });
    const { candidates } = await findRuns(root);
    const runs = await Promise.all(candidates.map(one => readRun(one)));
    expect(runs.map(run => run.files.map(file => basename(file)))).toEqual([['b', 'c'], ['a']]);
    expect(new Set(values(runs[1], 't'))).toEqual(new Set([1]));
    expect(new Set(values(runs[0], 't'))).toEqual(new Set([2, 3]));
    expect(runs[0].restarts).toEqual([400]);
  });

  it('files with other tags that were written at the same time are one run', async () => {
    const evaluation = [{ step: 0, wallTime: 1200, values: { 'eval/x': 5 } }];
    const root = writeTree(temporaryDirectory(), {
      a: scalarFile(steps(0, 500, 1, 1000), 1000),
      b: scalarFile(evaluation, 1200),
    });
    const run = await readOnly(root);
    expect([...run.series.keys()].sort()).toEqual(['eval/x', 't', 'u']);
    expect(run.restarts).toEqual([]);
  });

  it('each tag has steps of its own', async () => {
    // rl_games: frames, epochs and seconds.
    const rows = Array.from({ length: 10 }, (_, i) => [
      { step: 1000 * i, values: { 'rewards/step': i } },
      { step: i, values: { 'rewards/iter': i } },
    ]).flat();
    const run = await readContent(scalarFile(rows));
    expect(run.restarts).toEqual([]);
    expect([...run.series.get('rewards/iter')!.x]).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  });

  it('steps that go back and forth all the time are put in order', async () => {
    const rows = Array.from({ length: 200 }, (_, i) => ({ step: i % 2 === 0 ? i + 3 : i, values: { t: i } }));
    const run = await readContent(scalarFile(rows));
    const { x, length } = run.series.get('t')!;
    expect(length).toBe(200);
    for (let i = 1; i < length; i++) expect(x[i]).toBeGreaterThanOrEqual(x[i - 1]);
  });
});

describe('limits', () => {
  it('too many tags are named and left out', async () => {
    const tags = Object.fromEntries(Array.from({ length: 50 }, (_, i) => [`tag${i}`, i]));
    const limits = { series: 10, capacity: 100, points: 10_000, settings: 10, texts: 10 };
    const run = await readContent(scalarFile([{ step: 1, values: tags }]), limits);
    expect(run.series.size).toBe(10);
    expect(run.notes.join()).toMatch(/more than 10 names of series.*40 or more are left out, such as tag10/);
  });

  it('all series together stay within the limit of points', async () => {
    const limits = { series: 100, capacity: 4096, points: 4000, settings: 10, texts: 10 };
    const names = Array.from({ length: 10 }, (_, i) => `t${i}`);
    const rows = Array.from({ length: 2000 }, (_, step) => ({
      step,
      values: Object.fromEntries(names.map(name => [name, step === 1234 ? 99 : 0])),
    }));
    const run = await readContent(scalarFile(rows), limits);
    let total = 0;
    for (const series of run.series.values()) {
      total += series.length;
      expect(series.count).toBe(2000);
      expect(Math.max(...series.max)).toBe(99);
    }
    expect(total).toBeLessThan(2 * 4000);
    expect(run.notes.join()).toMatch(/merged/);
  });

  it('fixtures are whole', () => {
    const root = join(import.meta.dirname, '../fixtures/sb3');
    const names = readdirSync(root);
    expect(names).toHaveLength(12);
    for (const name of names)
      expect(JSON.parse(readFileSync(join(root, name, 'label.json'), 'utf8')).name).toBe(name);
  });
});
