/** Kinds of mistakes that were made on logs of other people, one by one: none of them again. */
import { describe, expect, it } from 'vitest';
import { diagnose } from '../../../src/doctor/diagnose.ts';
import { documentOf } from '../../../src/doctor/report/document.ts';
import { runReport } from '../../../src/doctor/report/report-of-run.ts';
import { rows, run } from './support/build.ts';

const N = 200;
/** Noise that repeats itself, of about this standard deviation. */
const noise = (size: number) => (i: number) => size * Math.SQRT2 * Math.sin(12.9898 * i * i + 4.1 * i);
const agent = (returns: readonly number[], others: Readonly<Record<string, readonly number[]>> = {}) =>
  run({
    'episode/return': returns,
    'kl/step': rows(returns.length, i => 0.006 + Math.abs(noise(0.001)(i))),
    ...others,
  });
const verdict = (made: Parameters<typeof diagnose>[0]) => diagnose(made).verdict;
const wobble = noise(5);

describe.each([0, -1000, 50_000])('a return that is not learnt, with %d added to every reward', shift => {
  it.each([
    ['flat for thousands of updates', rows(3000, i => 20 + wobble(i))],
    ['falling slowly but surely', rows(N, (i, t) => 100 - 20 * t + wobble(i))],
    ['a fifth of its best, for good', rows(N, (i, t) => (t < 0.3 ? 400 * t : 24) + wobble(i))],
    ['a random agent', rows(N, i => 22 + noise(10)(i))],
  ])('%s is not healthy', (_, returns) => {
    expect(verdict(agent(returns.map(v => v + shift)))).not.toBe('healthy');
  });

  it('while one that rises is', () => {
    expect(verdict(agent(rows(N, (i, t) => 100 * t + wobble(i) + shift)))).toBe('healthy');
  });
});

describe('hard facts are said although the return rises', () => {
  const rises = rows(N, (i, t) => 20 + 200 * t + wobble(i));
  it.each([
    ['a KL of 1e-7 for the whole run', { 'kl/step': rows(N, () => 1e-7) }],
    ['a value loss of 7e7', { 'loss/value': rows(N, () => 7e7) }],
    ['an entropy of 0 from the second row on', { 'policy/entropy': rows(N, i => (i === 0 ? 0.6 : 0)) }],
  ])('%s', (_, others) => {
    expect(verdict(agent(rises, others))).not.toBe('healthy');
  });

  it('and without a return there is no verdict', () => {
    expect(verdict(run({ 'kl/step': rows(N, () => 0.006) }))).toBe('cannot-tell');
  });
});

describe('the bands', () => {
  const high = (rise: number) =>
    diagnose(
      agent(
        rows(120, (i, t) => 20 + rise * t + wobble(i)),
        { 'kl/step': rows(120, (_, t) => 0.031 + 0.012 * t) },
      ),
    );

  it('a KL above .03 for a hundred updates is a watch where the return rises, with the reason, and names the return', () => {
    const { verdict: said, findings } = high(300);
    expect(said).toBe('watch');
    expect(findings[0].code).toBe('kl-high');
    expect(findings[0].evidence.join('\n')).toContain('`their/episode/return`');
  });

  it('and no silence where it does not', () => {
    expect(['watch', 'sick']).toContain(high(0).verdict);
  });
});

describe('a task that was solved before the log began', () => {
  const solved = (count: number, values: (i: number) => number) =>
    run(
      {
        'episode/return': rows(count, values),
        'kl/step': rows(count, () => 0.002),
        'policy/entropy': rows(count, () => 0.35),
        'value/explained_variance': rows(count, () => 0.1),
        'loss/value': rows(count, () => 20),
      },
      { actions: 'discrete', maxEntropy: Math.LN2 },
    );
  it.each([
    ['500 in every row', 200, () => 500],
    ['500 in every row of a short log', 8, () => 500],
    ['500 with a dip now and then', 200, (i: number) => (i % 40 === 7 ? 460 : 500)],
  ])('%s is healthy', (_, count, values) => {
    expect(verdict(solved(count, values))).toBe('healthy');
  });

  it('is nothing that one can tell from the return alone, and never sick', () => {
    expect(verdict(run({ 'episode/return': rows(200, () => 500) }))).toBe('cannot-tell');
  });

  it('that begins solved and rises no more is no flat return', () => {
    const codes = diagnose(solved(200, i => (i < 3 ? 480 : 500))).findings.map(({ code }) => code);
    expect(codes).not.toContain('return-flat');
    expect(codes).not.toContain('no-reward');
  });
});

it('a reward of 0 in every row is no reward, and no matter of groups without spread', () => {
  const { rootCause } = diagnose(
    run(
      {
        'reward/mean': rows(60, () => 0),
        'reward/zero_std_groups': rows(60, () => 1),
        'kl/ref': rows(60, () => 0.001),
      },
      { kind: 'language-model', trainer: 'trl-grpo' },
    ),
  );
  expect(rootCause).toBe('no-reward-signal');
});

it('a step that earns the same each time is no return that stands still', () => {
  const steps = { 'reward/mean': rows(60, () => 1), 'kl/step': rows(60, () => 0.006) };
  expect(verdict(run({ ...steps, 'value/mean': rows(60, (_, t) => 1 + 40 * t) }))).toBe('cannot-tell');
});

it('the KL of the states that moved most is not taken for that of the update', () => {
  const returns = rows(N, (i, t) => 20 + 200 * t + wobble(i));
  expect(verdict(run({ 'episode/return': returns, 'kl/step_p99': rows(N, () => 0.2) }))).toBe('healthy');
});

it('a few points that happen to ascend at the end are no run that improves', () => {
  const returns = [-0.28, -0.77, -0.42, -0.08, -0.06, -0.51, -0.26, -0.26, -0.15, -0.02];
  expect(verdict(run({ 'episode/return': returns }))).toBe('cannot-tell');
});

it('a policy that does not move, and is clipped all the same, is not said to be clipped in none of the rows', () => {
  const made = agent(
    rows(N, (i, t) => 20 + 200 * t + wobble(i)),
    {
      'kl/step': rows(N, () => 1e-7),
      'policy/clip_fraction': rows(N, () => 0.06),
      'policy/entropy': rows(N, () => 0.5),
    },
  );
  const said = diagnose(made).findings.flatMap(({ evidence }) => evidence);
  expect(said.join()).toContain('`their/kl/step` is at most');
  expect(said.filter(text => text.includes('in 0% of'))).toEqual([]);
});

it('two settings that are far from usual are both named', () => {
  const { findings } = diagnose({
    ...agent(
      rows(N, i => 20 + wobble(i)),
      { 'kl/step': rows(N, i => 0.3 + noise(0.05)(i)) },
    ),
    config: { learningRate: 0.05, epochs: 60, clipRange: 0.2 },
  });
  const text = findings.flatMap(({ title, evidence }) => [title, ...evidence]).join('\n');
  expect(text).toContain('the learning rate of 0.05 is 50 times');
  expect(text).toContain('60 epochs go over the same samples');
});

it('a cause that is next to a guess is no headline', () => {
  const { diagnosis, plots, unit, restarts } = runReport(
    diagnose(
      agent(
        rows(N, (i, t) => 20 + 200 * t + wobble(i)),
        { 'kl/step': rows(N, () => 1e-7) },
      ),
    ),
    agent(
      rows(N, (i, t) => 20 + 200 * t + wobble(i)),
      { 'kl/step': rows(N, () => 1e-7) },
    ),
  );
  const told = (confidence: number): string =>
    documentOf({ diagnosis: { ...diagnosis, confidence }, plots, unit, restarts }).headline;
  expect(told(0.19)).toBe('The policy does not move: `their/kl/step` has a median of 1e-7');
  expect(told(0.2)).toBe('The learning rate is too low');
});

it('a return that stands still is not said not to rise where it ends above its start', () => {
  const still = (sign: number): string =>
    diagnose(agent(rows(3000, i => 20 + sign * wobble(i)))).findings.find(
      ({ code }) => code === 'return-flat',
    )?.title ?? '';
  expect(still(1)).toMatch(/goes from \S+ to \S+ over the whole run, which is within its noise/);
  expect(still(-1)).toMatch(/does not rise over the whole run/);
});
