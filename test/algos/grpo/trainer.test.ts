import { expect, test } from 'vitest';
import { penalised } from '../../../src/algos/grpo/iteration.ts';
import { grpoSettings } from '../../../src/algos/grpo/settings.ts';
import { requireMetric } from '../../../src/metrics/index.ts';
import { resolveSettings } from '../../../src/settings/resolve.ts';
import { clearGrade, sumParts } from '../../../src/tasks/index.ts';
import { echoTask, trainerFor } from './support.ts';

type Row = Record<string, number>;

async function iterations(trainer: ReturnType<typeof trainerFor>, count: number) {
  const rows: Row[] = [];
  const types: string[] = [];
  for (let i = 0; i < count; i++) {
    const { row, events } = await trainer.iterate();
    rows.push(row);
    types.push(...events.map(({ type }) => type));
  }
  return { rows, types };
}

test('before the first step the ratio is 1 and every KL is 0; each metric is declared', async () => {
  const trainer = trainerFor({
    learningRate: 1e-30,
    temperature: 0.7,
    topK: 4,
    topP: 0.9,
    entropyCoef: 0.01,
    klCap: 50,
  });
  const { rows } = await iterations(trainer, 2);
  for (const row of rows) {
    for (const id of Object.keys(row)) expect(requireMetric(id)).toBeDefined();
    expect(row['kl/sampler']).toBeLessThan(1e-9);
    expect(row['sampler/logp_diff_max']).toBeLessThan(1e-5);
    expect(row['kl/step']).toBeLessThan(1e-7);
    expect(row['kl/ref']).toBeLessThan(1e-7);
    expect(row['policy/ratio_mean']).toBeCloseTo(1, 6);
    expect(row['policy/clip_fraction']).toBe(0);
  }
  expect(rows[0]['train/step']).toBe(32);
  expect(rows[1]['reward/mean']).toBeCloseTo(
    rows[1]['reward/part/right'] + rows[1]['reward/part/length'],
    12,
  );
  await trainer.dispose();
});

test('it learns: reward rises, KL stays in the bound, sampler and scorer agree throughout', async () => {
  const trainer = trainerFor({ learningRate: 5e-3, klRefCoef: 0.001, epochs: 2, minibatchSize: 16, seed: 3 });
  const { rows } = await iterations(trainer, 40);
  const mean = (part: Row[]): number => part.reduce((sum, row) => sum + row['reward/mean'], 0) / part.length;
  expect(mean(rows.slice(-5))).toBeGreaterThan(mean(rows.slice(0, 5)) + 0.4);
  for (const row of rows) {
    expect(row['kl/step']).toBeLessThanOrEqual(0.05);
    expect(row['kl/sampler']).toBeLessThan(1e-9);
  }
  expect(rows.at(-1)!['kl/ref']).toBeGreaterThan(0.01);
  await trainer.dispose();
});

test('the guard holds its bound at a wild rate, by doing it again and by stepping back', async () => {
  const trainer = trainerFor({ learningRate: 0.3, guard: 0.01, guardRetries: 1, epochs: 3 });
  const { rows, types } = await iterations(trainer, 4);
  for (const row of rows) expect(row['kl/step']).toBeLessThanOrEqual(0.01);
  expect(Math.max(...rows.map(row => row['kl/step_raw']))).toBeGreaterThan(0.01);
  expect(types).toContain('guard');
  expect(types).toContain('rate-change');
  expect(Math.max(...rows.map(row => row['guard/retries']))).toBe(1);
  await trainer.dispose();
});

test('k3 to the reference on request; the bound stays exact', async () => {
  const trainer = trainerFor({ learningRate: 0.05, guard: 0.02, klRefEstimator: 'k3', guardRetries: 0 });
  const { rows } = await iterations(trainer, 3);
  for (const row of rows) expect(row['kl/step']).toBeLessThanOrEqual(0.02);
  expect(rows[2]['kl/ref_k3']).toBeGreaterThan(0);
  expect(rows[2]['kl/ref']).toBeUndefined();
  await trainer.dispose();
});

test('a step that is not finite restores the weights to the bit, cuts the rate, and at last ends with a diagnosis', async () => {
  const trainer = trainerFor({
    learningRate: 1e30,
    learningRateSchedule: 'constant',
    gradientClip: null,
    epochs: 8,
    recoveries: 2,
    skipLimit: 3,
  });
  const before = trainer.model.weights.slice();
  const first = await trainer.iterate();
  expect(first.events.map(({ type }) => type)).toEqual(['restored']);
  expect(first.events[0]).toMatchObject({ attempt: 1, attempts: 2 });
  expect(trainer.model.weights).toEqual(before);
  expect(first.row['kl/step']).toBeLessThan(1e-7);
  const second = await trainer.iterate();
  expect(second.row['train/lr']).toBe(first.row['train/lr'] * 0.1);
  await expect(trainer.iterate()).rejects.toThrow(
    /after 2 restores with the learning rate cut to .*: lower learningRate/,
  );
  await trainer.dispose();
});

test('single tokens stay within bounds of their own, in every row, without doing anything again', async () => {
  const wild = { learningRate: 0.02, guard: null, epochs: 2 } as const;
  const free = trainerFor(wild);
  const { row: far } = await free.iterate();
  expect(far['kl/step_max']).toBeGreaterThan(far['kl/step_p99']);
  expect(far['kl/step_p99']).toBeGreaterThan(far['kl/step']);
  for (const [key, metric, field] of [
    ['guardP99', 'kl/step_p99', 'p99'],
    ['guardMax', 'kl/step_max', 'max'],
  ] as const) {
    const bound = far[metric] / 3;
    const trainer = trainerFor({ ...wild, [key]: bound });
    const { row, events } = await trainer.iterate();
    const { rows } = await iterations(trainer, 2);
    for (const row of rows) {
      expect(row[metric]).toBeLessThanOrEqual(bound);
      expect(row['guard/retries']).toBe(0);
    }
    expect(row[metric]).toBeLessThanOrEqual(bound);
    expect(row[metric]).toBeGreaterThan(bound / 2);
    expect(events).toMatchObject([
      { type: 'guard', [field]: { before: far[metric], after: row[metric], bound } },
    ]);
    expect(trainer.counters.guardedFactor).toBe(1);
    await trainer.dispose();
  }
  await free.dispose();
});

test('without a guard an update whose KL is no number is taken back as well', async () => {
  // One step to weights of 1e25: all finite, and nothing that they compute is.
  const trainer = trainerFor({
    learningRate: 1e25,
    learningRateSchedule: 'constant',
    gradientClip: null,
    guard: null,
    recoveries: 1,
  });
  const before = trainer.model.weights.slice();
  const { row, events } = await trainer.iterate();
  expect(events.map(({ type }) => type)).toEqual(['restored']);
  expect(trainer.model.weights).toEqual(before);
  expect(row['kl/step']).toBeLessThan(1e-7);
  await expect(trainer.iterate()).rejects.toThrow(/after 1 restores/);
  await trainer.dispose();
});

test('grades that throw or are NaN are counted and left out; a task that grades no more ends the run', async () => {
  let calls = 0;
  const faulty = echoTask({}, (prompt, completion, out) => {
    clearGrade(out);
    if (++calls % 5 === 0) throw new Error('the judge is ill');
    out.parsed = true;
    out.parts[0] = calls % 7 === 0 ? Number.NaN : completion.startsWith(String(prompt.data)) ? 1 : 0;
    sumParts(out);
  });
  const trainer = trainerFor({ learningRate: 1e-3 }, faulty);
  const { row, events } = await trainer.iterate();
  expect(row['reward/ungraded']).toBe(10); // 6 that throw, 4 of 32 that are NaN, none both
  expect(row['episode/count']).toBe(22);
  expect(row['completion/parse_rate']).toBe(1); // of those that could be graded
  expect(Number.isFinite(row['reward/mean'])).toBe(true);
  expect(Number.isFinite(row['loss/policy'])).toBe(true);
  expect(events[0]).toMatchObject({
    type: 'ungraded',
    count: 10,
    of: 32,
    reason: expect.stringContaining('the judge is ill'),
  });
  await trainer.dispose();

  let isAway = false;
  const away = trainerFor(
    { learningRate: 1e-3 },
    echoTask({}, (_, completion, out) => {
      if (isAway) throw new Error('no');
      clearGrade(out);
      out.parts[0] = completion.length;
      sumParts(out);
    }),
  );
  expect((await away.iterate()).row['reward/ungraded']).toBe(0);
  isAway = true;
  const weights = away.model.weights.slice();
  for (let i = 0; i < 4; i++) expect((await away.iterate()).row['reward/mean']).toBeUndefined();
  expect(away.model.weights).toEqual(weights);
  await expect(away.iterate()).rejects.toThrow(
    /no completion could be graded in 5 iterations in a row: .*no/,
  );
  await away.dispose();
});

test('a task that can grade nothing of the first iteration ends the run with the first error of grade', async () => {
  let calls = 0;
  const never = trainerFor(
    {},
    echoTask({}, () => {
      throw new Error(`no judge ${++calls}`);
    }),
  );
  await expect(never.iterate()).rejects.toThrow(
    'no completion of the first iteration could be graded: grade of echo threw: no judge 1; correct the task',
  );
  await never.dispose();
});

test('prompts that do not fit are counted and replaced; if none fits, the run says what to do', async () => {
  const long = (share: number) =>
    echoTask({
      prompt: rng =>
        rng.uniform() < share ? { text: 'abcd'.repeat(20), data: 'a' } : { text: 'a', data: 'a' },
    });
  const trainer = trainerFor({}, long(0.5));
  const { row } = await trainer.iterate();
  expect(row['completion/prompts_skipped']).toBeGreaterThan(0);
  expect(row['completion/prompt_length']).toBe(2);
  await trainer.dispose();
  const never = trainerFor({}, long(1));
  await expect(never.iterate()).rejects.toThrow(
    /prompts of echo in a row are too long, the last with 81 tokens/,
  );
  await never.dispose();
  expect(() => trainerFor({ maxNewTokens: 16, context: 16 })).toThrow(/leaves no room for a prompt/);
});

test('a minibatch in several parts is the same minibatch', async () => {
  const [whole, parts] = await Promise.all(
    [32, 5].map(async microbatchSize => {
      // So large an epsilon makes Adam's first step the gradient itself, but for a factor: what differs in one shows in the other.
      const trainer = trainerFor({
        learningRate: 1e3,
        learningRateSchedule: 'constant',
        adamEpsilon: 1e3,
        guard: null,
        microbatchSize,
        entropyCoef: 0.01,
      });
      const before = trainer.model.weights.slice();
      const { row } = await trainer.iterate();
      await trainer.dispose();
      return { row, moved: trainer.model.weights.map((w, i) => w - before[i]) };
    }),
  );
  expect(parts.row['grad/norm']).toBeCloseTo(whole.row['grad/norm'], 5);
  expect(parts.row['loss/total']).toBeCloseTo(whole.row['loss/total'], 5);
  const most = (values: Float32Array): number => values.reduce((a, b) => Math.max(a, Math.abs(b)), 0);
  expect(most(whole.moved)).toBeGreaterThan(1e-3);
  expect(most(whole.moved.map((w, i) => w - parts.moved[i]))).toBeLessThan(1e-4 * most(whole.moved));
});

test('length, truncation, warm-up and the cap do what they say', async () => {
  const penal = trainerFor({
    lengthPenalty: 1,
    lengthFree: 1,
    truncated: 'penalise',
    truncatedPenalty: 0.25,
  });
  const { row } = await penal.iterate();
  expect(row['reward/penalised']).toBeLessThan(row['reward/mean']);
  const completion = (length: number, end: 'stop' | 'length' | 'kl') =>
    ({ tokens: Array.from({ length }, () => 2), end, reward: 1 }) as unknown as Parameters<
      typeof penalised
    >[0];
  // Of 6 tokens the first is free: the other five have a fifth of the penalty each.
  expect(penalised(completion(1, 'stop'), penal.config, 6)).toBe(1);
  expect(penalised(completion(3, 'stop'), penal.config, 6)).toBeCloseTo(0.6, 12);
  expect(penalised(completion(6, 'length'), penal.config, 6)).toBeCloseTo(-0.25, 12);
  expect(penalised(completion(2, 'kl'), penal.config, 6)).toBeCloseTo(0.55, 12);
  await penal.dispose();

  // Everything is cut off: masked, there is nothing to learn from, and nothing moves.
  const cutOff = { maxNewTokens: 1, learningRate: 0.1, reference: 'none' } as const;
  const unending = echoTask({ stop: [] });
  for (const truncated of ['mask', 'keep'] as const) {
    const trainer = trainerFor({ ...cutOff, truncated }, unending);
    // No end token is drawn: its embedding, which is its weight in the output layer, is far away.
    const { width } = trainer.model.options;
    const views = trainer.model.layout.views(trainer.model.weights);
    views['ln_f.bias'].fill(1);
    const end = trainer.model.tokenizer.end * width;
    views['wte.weight'].fill(-50, end, end + width);
    const before = trainer.model.weights.slice();
    const { row: cut } = await trainer.iterate();
    expect(cut['completion/truncated']).toBe(1);
    if (truncated === 'mask') expect(trainer.model.weights).toEqual(before);
    else expect(trainer.model.weights).not.toEqual(before);
    await trainer.dispose();
  }

  const warm = trainerFor({ rewardWarmup: 4, klRefCoef: 0.1, klRefCoefWarmup: 2, learningRate: 1e-3 });
  const { rows } = await iterations(warm, 4);
  expect(rows.map(r => r['train/reward_factor'])).toEqual([0.25, 0.5, 0.75, 1]);
  expect(rows.map(r => r['kl/ref_coef'])).toEqual([0, 0.05, 0.1, 0.1]);
  await warm.dispose();

  const capped = trainerFor({ klCap: 1e-9, learningRate: 1e-2 });
  const after = await iterations(capped, 2);
  expect(after.rows[1]['completion/kl_capped']).toBeGreaterThan(0.5);
  expect(after.rows[1]['completion/truncated']).toBeGreaterThanOrEqual(after.rows[1]['completion/kl_capped']);
  await capped.dispose();
});

test('a factor on rewards is one on the gradient', async () => {
  const norms: number[] = [];
  for (const settings of [{}, { rewardWarmup: 4 }]) {
    const trainer = trainerFor({ reference: 'none', gradientClip: null, ...settings });
    norms.push((await trainer.iterate()).row['grad/norm']);
    await trainer.dispose();
  }
  expect(norms[0]).toBeGreaterThan(0);
  expect(norms[1] / norms[0]).toBeCloseTo(0.25, 4);
});

test('the KL to the reference is the mean over the tokens that were drawn; its weight may be set by hand', async () => {
  const trainer = trainerFor({ learningRate: 5e-3, klRefCoef: 0.001, logGroups: 4 });
  const { rows } = await iterations(trainer, 3);
  // Before the only step of the update, as the records have it of each token.
  const kls = trainer.records.flatMap(({ completions }) => completions.flatMap(({ klRef }) => klRef!));
  expect(new Set(trainer.records.flatMap(r => r.completions.map(c => c.tokens.length))).size).toBeGreaterThan(
    1,
  );
  const mean = kls.reduce((a, b) => a + b, 0) / kls.length;
  expect(mean).toBeGreaterThan(1e-4);
  expect(rows[2]['kl/ref'] / mean).toBeCloseTo(1, 3);
  trainer.adjust({ klRefCoef: 0.5 });
  expect((await trainer.iterate()).row['kl/ref_coef']).toBe(0.5);
  await trainer.dispose();
});

test('a judge that recovers starts the count of those who never do again', async () => {
  let ill = false;
  const moody = echoTask({}, (_, __, out) => {
    clearGrade(out);
    if (ill) throw new Error('ill');
    sumParts(out);
  });
  const trainer = trainerFor({ promptsPerIteration: 1, groupSize: 2, microbatchSize: 2 }, moody);
  await iterations(trainer, 1);
  ill = true;
  await iterations(trainer, 4);
  ill = false;
  await iterations(trainer, 1);
  ill = true;
  await iterations(trainer, 4);
  await expect(trainer.iterate()).rejects.toThrow(/in 5 iterations in a row/);
  await trainer.dispose();
});

test('the reference stays, is refreshed or follows; its weight follows its target', async () => {
  const kls: Record<string, number> = {};
  for (const [name, settings] of Object.entries({
    frozen: {},
    refreshed: { reference: 'refreshed', referenceEvery: 1 },
    averaged: { reference: 'averaged', referenceDecay: 0.5 },
  } as const)) {
    const trainer = trainerFor({ learningRate: 5e-3, ...settings });
    const { rows, types } = await iterations(trainer, 5);
    kls[name] = rows[4]['kl/ref'];
    expect(types.filter(type => type === 'reference')).toHaveLength(name === 'refreshed' ? 5 : 0);
    await trainer.dispose();
  }
  expect(kls.refreshed).toBeLessThan(1e-6);
  expect(kls.averaged).toBeLessThan(kls.frozen);
  expect(kls.averaged).toBeGreaterThan(kls.refreshed);

  const adaptive = trainerFor({
    learningRate: 5e-3,
    klRefCoefRule: 'adaptive',
    klRefTarget: 1e-6,
    klRefCoefMax: 0.03,
  });
  const { rows } = await iterations(adaptive, 5);
  expect(rows.at(-1)!['kl/ref_coef']).toBe(0.03);
  await adaptive.dispose();
  // At the start the KL is 0 whatever the weight: it must not vanish for that.
  const patient = trainerFor({ learningRate: 1e-5, klRefCoefRule: 'adaptive', klRefCoefMin: 0.004 });
  const { rows: calm } = await iterations(patient, 4);
  expect(calm.map(row => row['kl/ref_coef'])).toEqual([0.01, 0.005, 0.004, 0.004]);
  await patient.dispose();
  const none = trainerFor({ reference: 'none' });
  expect(Object.keys((await none.iterate()).row).filter(id => id.startsWith('kl/ref'))).toEqual([]);
  await none.dispose();
});

test('settings that cannot be, or do nothing, are refused with what to do', () => {
  const refused = (settings: object): string => {
    try {
      resolveSettings(grpoSettings, { given: settings });
      return '';
    } catch (error) {
      return (error as Error).message;
    }
  };
  expect(refused({ minibatchSize: 20 })).toBe(
    'minibatchSize 20 does not divide 64 (promptsPerIteration 8 x groupSize 8): try 16',
  );
  expect(refused({ num_generations: 4 })).toBe(
    'num_generations is not a config key: did you mean groupSize?',
  );
  expect(refused({ klRefCoefRule: 'adaptive', klRefCoefMin: 20 })).toBe(
    'klRefCoefMin 20 is above klRefCoefMax 10: exchange them',
  );
  expect(refused({ groupSize: 1 })).toMatch(/groupSize is 1, below its least value 2/);
  expect(refused({ referenceEvery: 3 })).toBe(
    'referenceEvery has no effect without reference refreshed: add that, or remove referenceEvery',
  );
  expect(refused({ reference: 'none', klRefCoef: 0.1 })).toMatch(
    /klRefCoef has no effect without a reference/,
  );
  expect(refused({ reference: 'none', klCap: 1 })).toMatch(/klCap has no effect without a reference/);
  // What is switched off contradicts nothing.
  const off = { reference: 'none', klRefCoef: 0, klRefCoefWarmup: 0, klCap: null, lengthFree: 0 } as const;
  expect(resolveSettings(grpoSettings, { given: off })).toMatchObject(off);
  expect(refused({ learningRateSchedule: 'constant', learningRateEnd: 0 })).toMatch(
    /learningRateEnd has no effect/,
  );
  expect(refused({ width: 100, heads: 8 })).toBe('width 100 is no multiple of heads 8: try 104');
  expect(refused({ temperature: 0 })).toMatch(/temperature is 0, not above 0/);
  expect(refused({ klRefCoefRule: 'adaptive', klRefCoef: 0 })).toMatch(/has nothing to adapt at klRefCoef 0/);
  const trainer = trainerFor();
  expect(() => trainer.adjust({ groupSize: 4 })).toThrow(
    /groupSize cannot change in a run that is under way/,
  );
  expect(() => trainer.adjust({ learningRate: -1 })).toThrow(/learningRate is -1, not above 0/);
});
