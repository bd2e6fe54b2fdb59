import { appendFileSync, copyFileSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { JournalReader, JournalWriter, readJournal } from '../../src/studies/journal.ts';
import { fromPythonJson, localIso, pythonJson, timeOf } from '../../src/studies/optuna-format.ts';
import type { ParamValue, RunOutcome, Trial } from '../../src/studies/schema.ts';
import { temporaryRoot } from '../runs/support/temporary.ts';
import { newDirectory, outcome, space, study } from './support/studies.ts';

const root = temporaryRoot('journal');
const newJournal = (): string => join(newDirectory(root), 'journal.log');

/** Some trials of all kinds. */
function write(path: string): readonly Trial[] {
  let now = 1_700_000_000_000;
  const writer = new JournalWriter(path, study(), () => ++now);
  writer.createTrial({ params: { learningRate: 1e-3, hidden: [64, 64] }, seeds: [0, 1] });
  writer.createTrial({ params: { epochs: 4 }, seeds: [0], state: 'waiting' });
  writer.setOutcome(0, outcome({ value: null, klLargest: Number.POSITIVE_INFINITY }));
  writer.setRung(0, 1000, Number.NaN);
  writer.setOutcome(0, outcome({ seed: 1, problem: 'says "NaN", \u2028 and 🦜\n' }));
  writer.startTrial(1);
  writer.endTrial(1, { state: 'complete', value: -0, violations: ['seed 0 is sick', 'KL 0.3'] });
  writer.createTrial({ params: {}, seeds: [1000], purpose: 'confirm-default' });
  writer.endTrial(2, { state: 'failed', value: null, violations: [] });
  writer.close();
  return writer.trials;
}

describe('a journal', () => {
  it('reads back as what was written', () => {
    const path = newJournal();
    const written = write(path);
    const { name, trials, problems } = readJournal(path);
    expect(problems).toEqual([]);
    expect(name).toBe('tune');
    expect(trials).toEqual(written);
    expect(trials).toEqual([
      {
        number: 0,
        state: 'running',
        params: { learningRate: 1e-3, hidden: [64, 64] },
        purpose: 'search',
        seeds: [0, 1],
        value: null,
        rungs: [{ steps: 1000, value: Number.NaN }],
        outcomes: [
          outcome({ value: null, klLargest: Number.POSITIVE_INFINITY }),
          outcome({ seed: 1, problem: 'says "NaN", \u2028 and 🦜\n' }),
        ],
        violations: [],
        startedAt: 1_700_000_000_001,
        endedAt: null,
      },
      {
        number: 1,
        state: 'complete',
        params: { epochs: 4 },
        purpose: 'search',
        seeds: [0],
        value: -0,
        rungs: [],
        outcomes: [],
        violations: ['seed 0 is sick', 'KL 0.3'],
        startedAt: 1_700_000_000_003,
        endedAt: 1_700_000_000_004,
      },
      {
        number: 2,
        state: 'failed',
        params: {},
        purpose: 'confirm-default',
        seeds: [1000],
        value: null,
        rungs: [],
        outcomes: [],
        violations: [],
        startedAt: 1_700_000_000_005,
        endedAt: 1_700_000_000_006,
      },
    ]);
  });

  it('is read and gone on with, cut off at every byte', () => {
    const whole = newJournal();
    write(whole);
    const bytes = readFileSync(whole);
    const cut = newJournal();
    const ends = [...bytes].flatMap((byte, i) => (byte === 10 ? [i + 1] : []));
    const atLine = new Map<number, readonly Trial[]>();
    for (let length = 0; length <= bytes.length; length++) {
      writeFileSync(cut, bytes.subarray(0, length));
      const { trials, problems } = readJournal(cut);
      if (problems.length > 0) throw new Error(`cut at ${length}: ${problems[0].text}`);
      const lines = ends.filter(end => end <= length).length;
      // A part of a line changes nothing.
      const before = atLine.get(lines);
      if (before === undefined) atLine.set(lines, trials);
      else if (JSON.stringify(trials) !== JSON.stringify(before)) throw new Error(`cut at ${length} differs`);
      // One that is about to be a line, and one that has just begun.
      const edge = ends.some(end => Math.abs(end - length) <= 1) || length % 97 === 0;
      if (!edge) continue;
      const writer = new JournalWriter(cut, study());
      const { number } = writer.createTrial({ params: { hidden: [32] }, seeds: [5] });
      writer.close();
      const after = readJournal(cut);
      if (after.problems.length > 0) throw new Error(`cut at ${length}: ${after.problems[0].text}`);
      expect(after.name).toBe('tune');
      expect(after.trials.slice(0, -1)).toEqual(trials);
      expect(after.trials.at(-1)).toMatchObject({ number, params: { hidden: [32] }, seeds: [5] });
    }
    expect(atLine.size).toBe(ends.length + 1);
  });

  it('has one writer', () => {
    const path = newJournal();
    const writer = new JournalWriter(path, study());
    expect(() => new JournalWriter(path, study())).toThrow(/is being written by this process/);
    writer.close();
    new JournalWriter(path, study()).close();
  });

  it('is of one study', () => {
    const path = newJournal();
    new JournalWriter(path, study()).close();
    expect(() => new JournalWriter(path, study({ name: 'other' }))).toThrow(
      /is the journal of "tune", not of "other": choose another directory/,
    );
    // The lock was given back.
    new JournalWriter(path, study()).close();
  });

  it('is of one space', () => {
    const path = newJournal();
    new JournalWriter(path, study()).close();
    expect(() => new JournalWriter(path, study({ space: space.slice(1) }))).toThrow(/another search space/);
  });

  it('whose study Optuna deleted is not written to', () => {
    const path = newJournal();
    write(path);
    appendFileSync(path, '{"op_code": 1, "worker_id": "x", "study_id": 0}\n');
    expect(readJournal(path).trials).toEqual([]);
    expect(() => new JournalWriter(path, study())).toThrow(/its study was deleted with Optuna/);
  });

  it('lets nothing of a trial change that is over, nor one that is not there', () => {
    const path = newJournal();
    write(path);
    const writer = new JournalWriter(path, study());
    expect(() => writer.setOutcome(1, outcome())).toThrow(/trial 1 is over \(complete\)/);
    expect(() => writer.setRung(7, 1, 1)).toThrow(/has no trial 7: it has 3/);
    expect(() => writer.endTrial(0, { state: 'complete', value: null, violations: [] })).toThrow(
      /cannot be complete with the value null: end it as failed/,
    );
    expect(() => writer.endTrial(0, { state: 'pruned', value: Number.NaN, violations: [] })).toThrow(/NaN/);
    expect(() => writer.createTrial({ params: { gamma: 1 }, seeds: [0] })).toThrow(/gamma = 1 is not in/);
    expect(() => writer.createTrial({ params: { hidden: [7] }, seeds: [0] })).toThrow(
      /not in the study's space/,
    );
    expect(() => writer.createTrial({ params: { epochs: 3.5 }, seeds: [0] })).toThrow(
      /epochs = 3.5 is not in/,
    );
    writer.close();
    expect(readJournal(path).trials).toHaveLength(3);
  });

  it('that was deleted under its writer is not written to', () => {
    const path = newJournal();
    const writer = new JournalWriter(path, study());
    rmSync(path);
    expect(() => writer.createTrial({ params: {}, seeds: [0] })).toThrow(/was deleted while/);
    writer.close();
  });

  it('with damage in the middle is read around, and not written to', () => {
    const path = newJournal();
    write(path);
    const lines = readFileSync(path, 'utf8').split('\n');
    lines.splice(4, 0, '{"op_code": 4, "study_id"');
    writeFileSync(path, lines.join('\n'));
    const { trials, problems } = readJournal(path);
    expect(problems).toEqual([{ line: 5, text: 'line 5 is not JSON', damaged: true }]);
    expect(trials).toHaveLength(3);
    expect(() => new JournalWriter(path, study())).toThrow(
      /line 5 is not JSON, so that .* put a whole copy back/,
    );
  });

  it.each([
    ['an unknown operation', '{"op_code": 77, "worker_id": "x"}', /operation 77, which is not known here/],
    ['no operation', '[1, 2]', /is \[1,2\], not an operation/],
    ['a trial that is not there', '{"op_code": 8, "trial_id": 99, "user_attr": {}}', /about trial 99/],
    ['a trial id of another kind', '{"op_code": 8, "trial_id": "0", "user_attr": {}}', /about trial "0"/],
    ['a state that is none', '{"op_code": 6, "trial_id": 0, "state": 9, "values": null}', /the state 9/],
    ['a value that is none', '{"op_code": 6, "trial_id": 0, "state": 1, "values": ["x"]}', /the value "x"/],
    [
      'a step that is none',
      '{"op_code": 7, "trial_id": 0, "step": 0.5, "intermediate_value": 1}',
      /at step 0.5/,
    ],
    [
      'an outcome that is none',
      '{"op_code": 8, "trial_id": 0, "user_attr": {"keel:outcome:0": {"seed": 0}}}',
      /as keel:outcome:0/,
    ],
    [
      'an outcome of another seed',
      `{"op_code": 8, "trial_id": 0, "user_attr": {"keel:outcome:3": ${JSON.stringify(outcome())}}}`,
      /as keel:outcome:3/,
    ],
    [
      'a purpose that is none',
      '{"op_code": 8, "trial_id": 0, "user_attr": {"keel:purpose": "steal"}}',
      /keel:purpose/,
    ],
    ['seeds that are none', '{"op_code": 8, "trial_id": 0, "user_attr": {"keel:seeds": [-1]}}', /keel:seeds/],
    [
      'a choice that is not there',
      String.raw`{"op_code": 5, "trial_id": 0, "param_name": "a", "param_value_internal": 9, "distribution": "{\"name\": \"CategoricalDistribution\", \"attributes\": {\"choices\": [1]}}"}`,
      /sets a of trial 0: its value is choice 9/,
    ],
    [
      'a distribution that is none',
      String.raw`{"op_code": 5, "trial_id": 0, "param_name": "a", "param_value_internal": 9, "distribution": "{\"name\": \"Evil\"}"}`,
      /"Evil", which is not one of Optuna's/,
    ],
    ['nesting without end', '['.repeat(100_000), /is not JSON/],
  ])('tells of %s, and reads on', (_, line, problem) => {
    const path = newJournal();
    write(path);
    appendFileSync(path, `${line}\n{"op_code": 7, "trial_id": 0, "step": 5, "intermediate_value": 2}\n`);
    const { trials, problems } = readJournal(path);
    expect(problems).toHaveLength(1);
    expect(problems[0].text).toMatch(problem);
    expect(trials[0].rungs[0]?.steps ?? trials[0].state).toBe(trials[0].state === 'complete' ? 1000 : 5);
  });

  it('tells of a hundred problems, and keeps no more', () => {
    const path = newJournal();
    writeFileSync(path, 'x\n'.repeat(2000));
    expect(readJournal(path).problems).toHaveLength(101);
  });

  it('keeps names such as __proto__ as names', () => {
    const path = newJournal();
    write(path);
    appendFileSync(
      path,
      `${String.raw`{"op_code": 5, "trial_id": 0, "param_name": "__proto__", "param_value_internal": 0.5, "distribution": "{\"name\": \"FloatDistribution\", \"attributes\": {}}"}`}\n`,
    );
    const { params } = readJournal(path).trials[0];
    expect(Object.getPrototypeOf(params)).toBe(Object.prototype);
    expect(Object.entries(params)).toContainEqual(['__proto__', 0.5]);
  });

  it('that is not there says nothing', () => {
    expect(readJournal(newJournal())).toEqual({ name: undefined, trials: [], problems: [] });
  });
});

describe('a reader of what is appended', () => {
  it('sees as much as one that reads from the beginning, after every piece', () => {
    const whole = newJournal();
    write(whole);
    const bytes = readFileSync(whole);
    const growing = newJournal();
    const reader = new JournalReader(growing);
    for (let from = 0; from < bytes.length; from += 61) {
      appendFileSync(growing, bytes.subarray(from, from + 61));
      expect(reader.read()).toEqual(readJournal(growing));
    }
    expect(reader.read().trials).toEqual(readJournal(whole).trials);
    expect(reader.offset).toBe(bytes.length);
  });

  it('does not make trials anew that have not changed', () => {
    const path = newJournal();
    write(path);
    const reader = new JournalReader(path);
    const before = reader.read().trials;
    appendFileSync(path, '{"op_code": 7, "trial_id": 0, "step": 5, "intermediate_value": 2}\n');
    const after = reader.read().trials;
    expect(after[0]).not.toBe(before[0]);
    expect(after[1]).toBe(before[1]);
  });

  it('begins again where the file was cut or replaced', () => {
    const path = newJournal();
    write(path);
    const reader = new JournalReader(path);
    expect(reader.read().trials).toHaveLength(3);
    truncateSync(path, 0);
    expect(reader.read().trials).toEqual([]);
    const other = newJournal();
    write(other);
    rmSync(path);
    expect(reader.read().trials).toEqual([]);
    copyFileSync(other, path);
    expect(reader.read().trials).toHaveLength(3);
  });
});

describe('what is drawn', () => {
  const number = fc.double();
  const valuesOf = (axis: (typeof space)[number]): fc.Arbitrary<ParamValue> => {
    const { domain } = axis;
    switch (domain.kind) {
      case 'choice':
        return fc.constantFrom(...domain.values);
      case 'float':
        return fc.double({ min: domain.low, max: domain.high, noNaN: true });
      case 'int':
        return fc.integer({ min: domain.low, max: domain.high });
      default:
        return domain satisfies never;
    }
  };
  const params = fc.record(Object.fromEntries(space.map(axis => [axis.key, valuesOf(axis)])), {
    requiredKeys: [],
  }) as fc.Arbitrary<Record<string, ParamValue>>;
  const text = fc.string({ unit: 'binary', maxLength: 30 });
  const outcomes: fc.Arbitrary<RunOutcome> = fc.record({
    run: fc.constantFrom('t0001-seed0', 'winner-seed1003'),
    seed: fc.nat({ max: 3 }),
    status: fc.constantFrom('done', 'failed'),
    step: fc.nat(),
    finished: fc.boolean(),
    value: fc.option(number),
    verdict: fc.constantFrom('healthy', 'watch', 'sick', null),
    rootCause: fc.option(text),
    klMedian: fc.option(number),
    klLargest: fc.option(number),
    seconds: number,
    weights: fc.option(fc.stringMatching(/^[0-9a-f]{64}$/)),
    worker: text,
    problem: fc.option(text),
  });
  const end = fc.oneof(
    fc.record({
      state: fc.constant('complete' as const),
      value: fc.double({ noNaN: true }),
      violations: fc.array(text, { maxLength: 3 }),
    }),
    fc.record({
      state: fc.constantFrom('pruned' as const, 'failed' as const),
      value: fc.option(fc.double({ noNaN: true })),
      violations: fc.array(text, { maxLength: 3 }),
    }),
  );

  it('is read as it was written', () => {
    const life = fc.record({
      params,
      seeds: fc.uniqueArray(fc.nat({ max: 2000 }), { maxLength: 4 }),
      purpose: fc.constantFrom('search' as const, 'confirm-winner' as const, 'confirm-default' as const),
      outcomes: fc.array(outcomes, { maxLength: 4 }),
      rungs: fc.array(fc.tuple(fc.nat(), number), { maxLength: 3 }),
      end: fc.option(end),
    });
    fc.assert(
      fc.property(fc.array(life, { maxLength: 4 }), lives => {
        const path = newJournal();
        const writer = new JournalWriter(path, study());
        for (const { outcomes, rungs, end, ...fresh } of lives) {
          const { number } = writer.createTrial(fresh);
          for (const one of outcomes) writer.setOutcome(number, one);
          for (const [steps, value] of rungs) writer.setRung(number, steps, value);
          if (end !== null) writer.endTrial(number, end);
        }
        writer.close();
        const { trials, problems } = readJournal(path);
        expect(problems).toEqual([]);
        expect(trials).toEqual(writer.trials);
        for (const [i, { params, seeds, purpose, outcomes, rungs, end }] of lives.entries()) {
          const newest = new Map(outcomes.map(one => [one.seed, one]));
          expect(trials[i]).toMatchObject({
            params,
            seeds,
            purpose,
            outcomes: [...newest.values()].sort((a, b) => a.seed - b.seed),
            rungs: [...new Map(rungs)].sort(([a], [b]) => a - b).map(([steps, value]) => ({ steps, value })),
            ...(end ?? { state: 'running', value: null, violations: [] }),
          });
        }
      }),
      { numRuns: 60 },
    );
  });

  it("is Python's JSON, and back", () => {
    const texts = ['NaN', '-Infinity', '"NaN": Infinity', '\\', '\\"', '"'];
    fc.assert(
      fc.property(
        fc.array(fc.oneof(fc.constantFrom(...texts), fc.string(), number, fc.boolean())),
        values => {
          const expected = values.map(value =>
            typeof value === 'number' && !Number.isFinite(value) ? String(value) : value,
          );
          expect(fromPythonJson(pythonJson(values))).toEqual(expected);
          expect(fromPythonJson(pythonJson(values, 'floats'))).toEqual(expected);
        },
      ),
    );
  });

  it('is a time, to the millisecond', () => {
    fc.assert(
      fc.property(fc.date({ min: new Date(0), max: new Date(4e12), noInvalidDate: true }), date => {
        const back = timeOf(localIso(date.getTime()))!;
        // Where clocks are set back, an hour has two meanings.
        expect([0, 3_600_000, 1_800_000]).toContain(Math.abs(back - date.getTime()));
      }),
    );
    expect(timeOf('2026-03-04T05:06:07.123456')).toBe(new Date(2026, 2, 4, 5, 6, 7, 123).getTime());
    for (const wrong of [null, 5, 'yesterday', '2026-99-99T00:00:00']) expect(timeOf(wrong)).toBeNull();
  });
});
