import { describe, expect, it } from 'vitest';
import { builtIn } from '../../src/envs/built-in.ts';
import {
  box,
  type CheckCode,
  type CheckReport,
  checkEnv,
  createEnv,
  dict,
  discrete,
  type Env,
  formatCheckReport,
  makeEnv,
  prepareEnv,
  type Simulation,
  simulation,
  stepResult,
} from '../../src/envs/index.ts';
import faulty from './fixtures/files/faulty.ts';

type State = { x: number; t: number };

/** A sound environment, with changes. */
function changed(change: Partial<Simulation<State>> = {}, maxEpisodeSteps: number | null = 20): Env {
  const sound: Simulation<State> = {
    observationSpace: box({ shape: [2], low: -3, high: 3 }),
    actionSpace: discrete(2),
    start: rng => ({ x: rng.uniform() - 0.5, t: 0 }),
    observe: state => [state.x, state.t / 20],
    step(state, action, result, rng) {
      state.t++;
      state.x += (action[0] - 0.5) * 0.1 + 0.01 * rng.normal();
      result.reward = state.x;
      result.terminated = Math.abs(state.x) > 2;
    },
  };
  return createEnv({
    id: 'Sound-v0',
    description: 'x',
    maxEpisodeSteps,
    make: () => simulation({ ...sound, ...change }),
  });
}

const found = (report: CheckReport, code: CheckCode): string | undefined => {
  const finding = report.findings.find(f => f.code === code);
  return finding && `${finding.level}: ${finding.message}`;
};

describe('checkEnv', () => {
  it('passes a sound environment without warnings', () => {
    const report = checkEnv(() => changed());
    expect(report.findings.filter(f => f.level !== 'info')).toEqual([]);
    expect(report).toMatchObject({ id: 'Sound-v0', passed: true });
    expect(report.findings.map(f => f.code)).toEqual(['spaces', 'episodes', 'speed']);
  });

  it.each(builtIn.map(({ id }) => id))('passes %s', async id => {
    await prepareEnv(id);
    const report = checkEnv(() => makeEnv(id), {
      steps: builtIn.find(env => env.id === id)?.slow ? 200 : 600,
    });
    expect(report.findings.filter(f => f.level === 'error')).toEqual([]);
    expect(report.passed).toBe(true);
  });

  let calls = 0;
  let shared = 0;
  // One environment for every code.
  const cases: [CheckCode, RegExp, () => Env][] = [
    ['env-threw', /^error: Faulty-v0 threw in step 5/, () => createEnv(faulty, { fault: 'throw' })],
    [
      'observation-not-finite',
      /^error: .*observation\[0\] is NaN/,
      () => createEnv(faulty, { fault: 'nan' }),
    ],
    ['observation-size', /^error: .*observe returned 3 numbers/, () => createEnv(faulty, { fault: 'shape' })],
    ['reward-not-finite', /^error: .*Infinity/, () => createEnv(faulty, { fault: 'reward' })],
    ['flags-invalid', /^error: .*both true/, () => createEnv(faulty, { fault: 'both' })],
    [
      'definition-invalid',
      /^error: .*make returned null/,
      () => createEnv({ id: 'X-v0', description: 'x', maxEpisodeSteps: 1, make: () => null as never }),
    ],
    [
      'observation-outside',
      /^error: observation\[0\] is -?0\.\d+ after .*, not a number in -0\.1\d*\.\.0\.1\d*: widen/,
      () => changed({ observationSpace: box({ shape: [2], low: -0.1, high: 0.1 }) }),
    ],
    [
      'action-changed',
      /^error: step writes to the action/,
      () =>
        changed({
          step: (s, action, result) => {
            result.reward = s.x;
            action[0] = 7;
          },
        }),
    ],
    [
      'reward-terms',
      /^error: the reward is 2, its terms 1 sum to 1/,
      () => {
        const env = simulation<State>({
          observationSpace: box({ shape: [1] }),
          actionSpace: discrete(2),
          start: () => ({ x: 0, t: 0 }),
          observe: () => [0],
          step() {},
        });
        const result = stepResult(1);
        const wrong: Env = {
          ...env,
          observationSpace: env.observationSpace,
          actionSpace: env.actionSpace,
          rewardTerms: ['bonus'],
          reset: (options, obs) => env.reset(options, obs),
          step(action, obs) {
            env.step(action, obs);
            result.reward = 2;
            result.rewardTerms[0] = 1;
            return result;
          },
          state: () => env.state(),
          restore: state => env.restore(state),
        };
        return createEnv({ id: 'Terms-v0', description: 'x', maxEpisodeSteps: 9, make: () => wrong });
      },
    ],
    [
      'seed-ignored',
      /^error: the same seed and actions gave reward/,
      () => changed({ start: () => ({ x: (calls++ % 97) / 97, t: 0 }) }),
    ],
    [
      'not-deterministic',
      /^error: two environments with the same seed and actions gave/,
      () => {
        const mine = shared++ / 1000;
        return changed({ start: rng => ({ x: mine + rng.uniform(), t: 0 }) });
      },
    ],
    [
      'state-not-exact',
      /^error: after restore, a new environment gave reward .* the random generator included/,
      () => {
        let hidden = 0; // what state() does not know of
        return changed({
          start: rng => {
            hidden = 0;
            return { x: rng.uniform(), t: 0 };
          },
          step(s, a, r) {
            s.x += a[0] * 0.01;
            r.reward = hidden++ / 10;
          },
        });
      },
    ],
    [
      'state-invalid',
      /^error: .*is a Map, which JSON cannot hold/,
      () => changed({ start: rng => ({ x: rng.uniform(), t: 0, memory: new Map() }) as State }),
    ],
    [
      'seeds-alike',
      /^warning: five seeds gave the same walk/,
      () =>
        changed({
          start: () => ({ x: 0, t: 0 }),
          step(s, a, r) {
            s.x += a[0] * 0.01;
            r.reward = 0.1;
          },
        }),
    ],
    [
      'action-ignored',
      /^warning: four different series of actions/,
      () =>
        changed({
          step(s, _, r, rng) {
            s.x = rng.uniform();
            r.reward = s.x;
          },
        }),
    ],
    [
      'action-range',
      /^warning: action move is Box\(2 float32: 0..5\)/,
      () => changed({ actionSpace: dict({ move: box({ shape: [2], low: 0, high: 5 }), act: discrete(2) }) }),
    ],
    [
      'action-unbounded',
      /^warning: the action has no limits/,
      () =>
        changed({
          actionSpace: box({ shape: [1] }),
          step(s, a, r) {
            s.x = Math.tanh(a[0]);
            r.reward = s.x;
          },
        }),
    ],
    [
      'observation-categorical',
      /^warning: the observation is Discrete\(40\)/,
      () => changed({ observationSpace: discrete(40), observe: s => [s.t] }),
    ],
    [
      'observation-large',
      /^warning: observation\[1\] reaches 2\d{3}: scale it/,
      () => changed({ observationSpace: box({ shape: [2] }), observe: s => [s.x, 2500 + s.x] }),
    ],
    [
      'observation-constant',
      /^info: 1 of 2 observation numbers never changed in 500 random steps: 1$/,
      () => changed({ observe: s => [s.x, 1] }),
    ],
    [
      'reward-large',
      /^warning: rewards go from .* to .*: beyond ±10/,
      () =>
        changed({
          step(s, a, r) {
            s.x = a[0];
            r.reward = 100 * s.x;
          },
        }),
    ],
    [
      'reward-small',
      /^warning: no reward is above 0.0001/,
      () =>
        changed({
          step(s, a, r) {
            s.x = a[0];
            r.reward = 1e-4 * s.x;
          },
        }),
    ],
    [
      'reward-zero',
      /^warning: the reward was 0 in all/,
      () =>
        changed({
          step(s, a) {
            s.x = a[0];
          },
        }),
    ],
    [
      'reward-constant',
      /^info: the reward was 1 in all/,
      () =>
        changed({
          step(s, a, r) {
            s.x = a[0];
            r.reward = 1;
          },
        }),
    ],
    [
      'never-ends',
      /^warning: no episode ended in 500 random steps and there is no time limit/,
      () =>
        changed(
          {
            step(s, a, r) {
              s.x = a[0];
              r.reward = s.x;
            },
          },
          null,
        ),
    ],
    [
      'episodes',
      /^info: no episode ended in 500 random steps; the time limit is 9000/,
      () =>
        changed(
          {
            step(s, a, r) {
              s.x = a[0];
              r.reward = s.x;
            },
          },
          9_000,
        ),
    ],
    [
      'episodes',
      /^info: 25 episodes of random actions \(0 terminated, 25 truncated\): length mean 20, 20 to 20/,
      () => changed(),
    ],
    ['speed', /^info: .* steps\/s in one thread/, () => changed()],
    ['spaces', /^info: observations Box\(2 float32: -3..3\), actions Discrete\(2\)/, () => changed()],
  ];
  it.each(cases)('finds %s', (code, message, make) => {
    const report = checkEnv(make, { steps: 500 });
    expect(found(report, code)).toMatch(message);
    expect(report.passed).toBe(!report.findings.some(f => f.level === 'error'));
    if (message.source.startsWith('^error')) expect(report.passed).toBe(false);
  });

  it('an environment written by hand gets the same checks', () => {
    const byHand: Env = {
      observationSpace: box({ shape: [2], low: -1, high: 1 }),
      actionSpace: discrete(2),
      rewardTerms: [],
      reset(_, obs) {
        obs[0] = 0;
      },
      step: () => stepResult(),
      state: () => ({}),
      restore() {},
    };
    const report = checkEnv(() => byHand);
    expect(report).toMatchObject({ id: 'environment', passed: false });
    expect(found(report, 'observation-not-finite')).toMatch(
      /observation\[1\] is NaN after reset: .*never written/,
    );
    expect(checkEnv(() => ({ ...byHand, actionSpace: 3 }) as never).passed).toBe(false);
    expect(checkEnv(() => undefined as never).findings[0].message).toMatch(/observationSpace is undefined/);
  });

  it('stops when time is up', () => {
    const slow = (): Env =>
      changed({
        step(s, a, r) {
          const end = performance.now() + 2;
          while (performance.now() < end);
          s.x = a[0];
          r.reward = s.x;
        },
      });
    const report = checkEnv(slow, { steps: 1e6, maxMs: 50 });
    expect(found(report, 'speed')).toMatch(/worker threads will help/);
    expect(report.passed).toBe(true);
  });

  it('is printed with errors first', () => {
    const report = checkEnv(() =>
      changed({
        observationSpace: box({ shape: [2], low: -0.1, high: 0.1 }),
        step(s, a) {
          s.x = a[0];
        },
      }),
    );
    const lines = formatCheckReport(report).split('\n');
    expect(lines[0]).toBe('Sound-v0: failed, 1 error, 1 warning');
    expect(lines[1]).toMatch(/^ {2}error {4}observation-outside {3}observation\[0\]/);
    expect(lines[2]).toMatch(/^ {2}warning {2}reward-zero +the reward was 0/);
    expect(formatCheckReport(report, { colour: true })).toContain('\u001b[31merror');
    expect(formatCheckReport(checkEnv(() => changed())).split('\n')[0]).toBe(
      'Sound-v0: passed, 0 errors, 0 warnings',
    );
  });
});
