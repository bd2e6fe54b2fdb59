/** Causes that one rule each looks for: what is said of them, when they stay silent, and two faults in one run. */
import { describe, expect, it } from 'vitest';
import { diagnose } from '../../../src/doctor/diagnose.ts';
import { loud } from '../../../src/doctor/findings.ts';
import {
  renderHtml,
  renderJson,
  renderMarkdown,
  renderTerminal,
  reportSeries,
} from '../../../src/doctor/index.ts';
import { rules, signalsOf } from '../../../src/doctor/rules/all.ts';
import { resumed } from './limits/causes.ts';
import { rows, run } from './support/build.ts';
import { learning, N, wave } from './support/learning.ts';

const codes = (made: Parameters<typeof diagnose>[0]) => diagnose(made).findings.map(({ code }) => code);
const check = (code: string, made: Parameters<typeof diagnose>[0]) =>
  rules.find(rule => rule.code === code)!.check(made, signalsOf(made), []);

describe('a resume', () => {
  it('that lost nothing, and a fall without a resume, are no lost state', () => {
    expect(check('state-lost', resumed({ drop: 0 }))).toEqual([]);
    expect(check('state-lost', { ...resumed({}), restarts: [] })).toEqual([]);
  });

  it('at which the rewards changed their scale is that, and no lost state', () => {
    const scaled = rows(N, i => (i < N / 2 ? 1 : 0.1) * (100 + wave(i, 2)));
    const { agent } = learning(3);
    const made = agent(
      { 'episode/return': scaled, 'loss/value': rows(N, i => (i < N / 2 ? 20 : 0.2) * (1 + wave(i, 0.05))) },
      { restarts: [1000 * (N / 2 + 1)] },
    );
    expect(codes(made)).not.toContain('state-lost');
  });
});

it('values of scaled rewards that rise with the return are no over-estimation', () => {
  const { agent } = learning(4);
  expect(codes(agent({ 'value/mean': rows(N, (_, t) => 10 + 9000 * t) }))).not.toContain(
    'value-over-estimates',
  );
});

it('a trainer that tells time limits and deaths apart is not told to', () => {
  const { agent } = learning(5);
  const length = rows(N, () => 1000);
  expect(codes(agent({ 'episode/length': length }, { trainer: 'cleanrl' }))).toContain('time-limits');
  expect(codes(agent({ 'episode/length': length }, { trainer: 'stable-baselines3' }))).not.toContain(
    'time-limits',
  );
});

describe('what is usual', () => {
  const shownIn = (report: ReturnType<typeof reportSeries>) => [
    renderTerminal(report),
    renderMarkdown([report]),
    renderHtml([report]),
    renderJson([report]),
  ];

  it('of GRPO with one iteration is said in the terminal, in Markdown, on the page and in JSON', () => {
    const report = reportSeries({
      loss: rows(40, i => wave(i, 1e-8)),
      grad_norm: rows(40, i => 0.3 + wave(i, 0.05)),
      reward: rows(40, (i, t) => 0.1 + 0.6 * t + wave(i, 0.01)),
      'completions/mean_length': rows(40, () => 200),
      'clip_ratio/region_mean': rows(40, () => 0),
    });
    expect(report.diagnosis.verdict).toBe('healthy');
    for (const shown of shownIn(report)) expect(shown).toMatch(/usual[\s\\n]+in[\s\\n]+GRPO/);
  });

  it('of PPO, a loss and an entropy below 0, is said there too', () => {
    const report = reportSeries({
      'rollout/ep_rew_mean': rows(40, (i, t) => 10 + 300 * t + wave(i, 2)),
      'train/approx_kl': rows(40, i => 0.006 + wave(i, 0.001)),
      'train/loss': rows(40, i => -0.05 + wave(i, 0.01)),
      'train/entropy_loss': rows(40, (_, t) => 4 * t - 1),
      'train/std': rows(40, (_, t) => 1 - 0.8 * t),
      'train/policy_gradient_loss': rows(40, () => -0.005),
    });
    expect(report.diagnosis.verdict).toBe('healthy');
    for (const shown of shownIn(report))
      expect(shown).toMatch(/below[\s\\n]+0:[\s\\n]+that[\s\\n]+is[\s\\n]+usual/);
  });
});

describe('several faults in one run', () => {
  const told = (made: Parameters<typeof diagnose>[0]) => {
    const { verdict, rootCause, findings, summary } = diagnose(made);
    return {
      verdict,
      rootCause,
      causes: loud(findings).map(({ cause }) => cause),
      head: findings[0],
      summary,
    };
  };

  it('a critic without weight and a bonus of 1: both are named, the surer one at the head', () => {
    const { agent } = learning(6);
    const both = told(
      agent(
        {
          'episode/return': rows(N, i => 22 + wave(i, 1)),
          'policy/entropy': rows(N, i => 0.69 + wave(i, 1e-3)),
          'value/explained_variance': rows(N, i => wave(i, 0.01)),
          'loss/value': rows(N, i => 200 + wave(i, 10)),
        },
        { actions: 'discrete', maxEntropy: Math.LN2, config: { entropyCoef: 1, valueCoef: 0 } },
      ),
    );
    expect(both.verdict).toBe('sick');
    expect(both.causes).toEqual(expect.arrayContaining(['entropy-bonus-too-large', 'critic-not-learning']));
    expect(both.head.cause).toBe(both.rootCause);
  });

  it('steps that are too large, and a resume that lost state: both', () => {
    const { agent } = learning(7);
    const both = told(
      agent(
        {
          'episode/return': rows(N, (i, t) => (i < 50 ? 20 + 300 * t : 30) + wave(i, 3)),
          'kl/step': rows(N, i => 0.15 + wave(i, 0.05)),
        },
        { config: { learningRate: 0.01 }, restarts: [51_000] },
      ),
    );
    expect(both.verdict).toBe('sick');
    expect(both.causes).toEqual(expect.arrayContaining(['learning-rate-too-high', 'state-not-restored']));
    expect(both.head.cause).toBe(both.rootCause);
    expect(both.summary).toContain('resumed');
  });

  it('a language model: a sampler that disagrees and groups of one', () => {
    const n = 60;
    const both = told(
      run(
        {
          'reward/mean': rows(n, i => 0.2 + wave(i, 0.02)),
          'kl/ref': rows(n, () => 0.01),
          'kl/sampler': rows(n, i => 0.5 + wave(i, 0.05)),
          'sampler/prob_diff': rows(n, i => 0.2 + wave(i, 0.02)),
          'policy/entropy': rows(n, i => 0.5 + wave(i, 0.02)),
        },
        {
          kind: 'language-model',
          trainer: 'verl',
          unit: 'updates',
          actions: 'tokens',
          config: { groupSize: 1 },
        },
      ),
    );
    expect(both.causes).toEqual(expect.arrayContaining(['sampler-mismatch', 'group-of-one']));
    expect(both.head.cause).toBe(both.rootCause);
  });
});
