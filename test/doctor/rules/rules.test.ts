import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { CanonicalRun } from '../../../src/doctor/canonical.ts';
import { diagnose } from '../../../src/doctor/diagnose.ts';
import { dialects } from '../../../src/doctor/dialects/all.ts';
import { unknownDialect } from '../../../src/doctor/dialects/unknown.ts';
import { typed, wordingOf } from '../../../src/doctor/dialects/wording.ts';
import { type Finding, lead, rootCauses, severities, tale, verdicts } from '../../../src/doctor/findings.ts';
import { rules, signalsOf } from '../../../src/doctor/rules/all.ts';
import { findMetric } from '../../../src/metrics/registry.ts';
import { Rng } from '../../../src/random/index.ts';
import { processorMs } from '../../support/processor-time.ts';
import { atLimits } from './limits/all.ts';
import { type More, rows, run } from './support/build.ts';

const findRule = (code: string) => rules.find(rule => rule.code === code);

const rng = new Rng(11);
/** Noise around a level, a few per cent. */
const about = (level: number, share = 0.05): number => level * (1 + share * rng.normal());
const N = 60;

/** A language model that learns: reward up, KL to the reference slowly up. */
const tuned = {
  'reward/mean': rows(N, (_, t) => about(0.2 + 0.6 * t)),
  'kl/ref': rows(N, (_, t) => about(0.001 + 0.05 * t)),
  'grad/norm': rows(N, () => about(0.4)),
  'loss/total': rows(N, () => 1e-4 * rng.normal()),
  'policy/entropy': rows(N, (_, t) => about(0.6 - 0.3 * t)),
  'reward/group_std': rows(N, () => about(0.3)),
  'reward/zero_std_groups': rows(N, () => Math.abs(0.2 * rng.normal())),
  'completion/truncated': rows(N, () => Math.abs(0.05 * rng.normal())),
  'train/lr': rows(N, () => 1e-6),
};

/** An agent that learns. */
const learning = {
  'episode/return': rows(N, (_, t) => about(20 + 400 * t)),
  'episode/length': rows(N, (_, t) => about(20 + 400 * t)),
  'kl/step': rows(N, () => about(0.006, 0.3)),
  'policy/clip_fraction': rows(N, () => about(0.06, 0.3)),
  'policy/entropy': rows(N, (_, t) => 0.69 - 0.3 * t),
  'value/explained_variance': rows(N, (_, t) => 0.9 * Math.min(1, 4 * t) + 0.05 * rng.normal()),
  'loss/value': rows(N, (_, t) => about(10 - 8 * t, 0.3)),
  'loss/policy': rows(N, () => -about(0.006)),
  'loss/total': rows(N, (_, t) => about(5 - 4 * t)),
  'train/lr': rows(N, () => 3e-4),
  'train/epochs_run': rows(N, () => 10),
};

const agent = (change: Record<string, readonly number[]> = {}, more: More = {}): CanonicalRun =>
  run({ ...learning, ...change }, { actions: 'discrete', maxEntropy: Math.LN2, ...more });
const model = (change: Record<string, readonly number[]> = {}, more: More = {}): CanonicalRun =>
  run(
    { ...tuned, ...change },
    { kind: 'language-model', actions: 'tokens', trainer: 'trl-grpo', unit: 'updates', ...more },
  );

const flat = (level: number): number[] => rows(N, () => about(level, 0.02));

/** For each rule a run in which it must speak, the cause that it must name, and how loud. */
const positives: Readonly<
  Record<string, readonly [made: CanonicalRun, cause: string | null, severity: string]>
> = {
  'non-finite': [
    agent({ 'loss/policy': rows(N, i => (i < 50 ? -0.01 : Number.NaN)) }),
    'non-finite',
    'critical',
  ],
  'skipped-minibatches': [
    agent({ 'train/skipped': rows(N, i => (i % 10 === 5 ? 3 : 0)) }),
    'non-finite',
    'warning',
  ],
  'ends-in-burst': [
    agent(
      {
        'kl/step': rows(N, i => (i < N - 1 ? about(0.006, 0.3) : 0.2)),
        'policy/clip_fraction': rows(N, i => (i < N - 1 ? 0.05 : 0.5)),
      },
      { config: { totalSteps: 100_000 } },
    ),
    'non-finite',
    'critical',
  ],
  'kl-impossible': [
    agent({ 'kl/step': rows(N, () => 0.01 * rng.normal()) }),
    'kl-estimator-broken',
    'critical',
  ],
  'sampler-gap': [model({ 'kl/sampler': rows(N, () => about(0.3)) }), 'sampler-mismatch', 'critical'],
  'no-reward': [
    agent({
      'episode/return': rows(N, () => -500),
      'loss/value': rows(N, (_, t) => 1e-3 * Math.exp(-9 * t)),
    }),
    'no-reward-signal',
    'critical',
  ],
  'reward-scale-changed': [
    agent({
      'episode/return': rows(N, i => (i < 35 ? about(180, 0.01) : about(1800, 0.01))),
      'episode/length': flat(180),
    }),
    'reward-scale-changed',
    'critical',
  ],
  'reward-scale': [
    agent({
      'loss/value': flat(2e7),
      'value/explained_variance': rows(N, () => 1e-6 * rng.normal()),
      'kl/step': rows(N, () => about(5e-6, 0.4)),
      'episode/return': flat(25),
    }),
    'reward-scale-too-large',
    'critical',
  ],
  'target-kl-tight': [
    agent({
      'kl/step': rows(N, () => about(2e-5, 0.2)),
      'train/epochs_run': rows(N, () => 1),
      'episode/return': flat(25),
    }),
    'target-kl-too-tight',
    'critical',
  ],
  'policy-frozen': [
    agent({
      'kl/step': rows(N, () => about(5e-9, 0.2)),
      'policy/clip_fraction': rows(N, () => 0),
      'policy/entropy': rows(N, () => Math.LN2),
      'episode/return': flat(22),
      'train/lr': rows(N, () => 1e-7),
    }),
    'learning-rate-too-low',
    'critical',
  ],
  'kl-high': [
    agent({
      'kl/step': rows(N, () => about(0.2, 0.4)),
      'train/lr': rows(N, () => 0.03),
      'episode/return': rows(N, (_, t) => 100 + 90 * Math.sin(12 * t) + 3 * rng.normal()),
    }),
    'learning-rate-too-high',
    'critical',
  ],
  'kl-spikes': [
    agent({
      'kl/step': rows(N, i =>
        i === 30 || i === 40 || i === 47 || i === 53 ? 0.1 + i / 50 : about(0.006, 0.2),
      ),
      'episode/return': rows(N, i => (i < 31 ? 20 + 12 * i : 60) + 2 * rng.normal()),
      'train/lr': rows(N, () => 3e-3),
    }),
    'learning-rate-too-high',
    'critical',
  ],
  'clip-range-inert': [
    agent({
      'kl/step': flat(0.02),
      'policy/clip_fraction': rows(N, () => 0),
      'train/clip_range': rows(N, () => 4),
    }),
    'clip-range-too-large',
    'warning',
  ],
  'clip-fraction-high': [
    agent({ 'policy/clip_fraction': flat(0.45), 'train/epochs_run': rows(N, () => 60) }),
    'too-many-epochs',
    'warning',
  ],
  'critic-fading': [
    agent({
      'value/explained_variance': rows(N, (_, t) => 0.9 - 1.4 * t + 0.03 * rng.normal()),
      'episode/return': rows(N, () => about(20)),
      'loss/value': rows(N, () => about(20, 0.2)),
    }),
    'critic-not-learning',
    'warning',
  ],
  'critic-flat': [
    agent({
      'value/explained_variance': rows(N, () => 0.01 * rng.normal()),
      'loss/value': flat(50),
      'loss/total': rows(N, () => -0.01),
    }),
    'critic-not-learning',
    'critical',
  ],
  'critic-died': [
    agent({
      'value/explained_variance': rows(N, i => (i < 30 ? about(0.8) : 1e-9 * rng.normal())),
      'loss/value': rows(N, i => about(i < 30 ? 0.06 : 0.3)),
    }),
    'critic-not-learning',
    'critical',
  ],
  'critic-negative': [
    agent({ 'value/explained_variance': rows(N, () => -1 + 0.2 * rng.normal()), 'episode/return': flat(30) }),
    'critic-not-learning',
    'critical',
  ],
  'entropy-collapse': [
    agent({ 'policy/entropy': rows(N, i => 0.69 * Math.exp(-i)), 'episode/return': flat(9) }),
    'entropy-collapse',
    'critical',
  ],
  'entropy-stuck': [
    agent({ 'policy/entropy': flat(0.69), 'episode/return': flat(22) }, { config: { entropyCoef: 1 } }),
    'entropy-bonus-too-large',
    'critical',
  ],
  'std-growing': [
    agent(
      { 'policy/std': rows(N, (_, t) => Math.exp(3 * t)), 'episode/return': flat(-1200) },
      { actions: 'continuous' },
    ),
    'entropy-bonus-too-large',
    'critical',
  ],
  'return-collapse': [
    agent({
      'kl/step': rows(N, i => about(i < 30 ? 0.006 : 0.15, 0.2)),
      'episode/return': rows(N, i => (i < 30 ? 10 * i : 20) + 2 * rng.normal()),
    }),
    'learning-rate-too-high',
    'critical',
  ],
  'rate-pinned': [
    agent(
      { 'train/lr': rows(N, () => 1e-5), 'episode/return': flat(0.17) },
      {
        klProxy: { theirs: 'lr', id: 'train/lr', floor: 1e-5, ceiling: 1e-2, meaning: 'KL stays too large' },
      },
    ),
    null,
    'warning',
  ],
  'kl-coef-runaway': [
    agent({ 'kl/coef': rows(N, i => 0.2 * 1.5 ** i) }),
    'learning-rate-too-high',
    'warning',
  ],
  'guard-busy': [
    agent({ 'guard/backtracks': rows(N, () => 3), 'train/lr': rows(N, () => 0.02) }),
    'learning-rate-too-high',
    'warning',
  ],
  'gradient-explodes': [
    model({
      'grad/norm': rows(N, i => about(i < 45 ? 0.4 : 80)),
      'reward/mean': rows(N, i => about(i < 42 ? 0.2 + i / 60 : 0.05)),
    }),
    'learning-rate-too-high',
    'critical',
  ],
  'malformed-outputs': [
    model({ 'completion/truncated': flat(0.98), 'reward/mean': rows(N, () => -1) }),
    'malformed-outputs',
    'critical',
  ],
  'degenerate-groups': [
    model({
      'reward/zero_std_groups': rows(N, () => 1),
      'reward/group_std': rows(N, () => 0),
      'grad/norm': rows(N, () => 0),
      'reward/mean': rows(N, () => 0),
    }),
    'degenerate-groups',
    'critical',
  ],
  'reference-runaway': [
    model({
      'kl/ref': rows(N, i => (i < 35 ? about(0.02) : 0.02 * 1.3 ** (i - 34))),
      'reward/mean': rows(N, i => about(i < 38 ? 0.2 + i / 60 : 0.02)),
    }),
    'reference-too-weak',
    'critical',
  ],
  'reference-pinned': [
    model({ 'kl/ref': rows(N, () => about(2e-5)), 'reward/mean': flat(0.2) }, { config: { refCoef: 1 } }),
    'reference-too-strong',
    'critical',
  ],
  'token-entropy': [
    model({
      'policy/entropy': rows(N, (_, t) => 0.5 * Math.exp(3 * t)),
      'reward/mean': rows(N, i => about(i < 30 ? 0.2 + i / 60 : 0.02)),
    }),
    'entropy-bonus-too-large',
    'critical',
  ],
  'restart-criteria': [
    agent({
      'kl/step': rows(N, i => about(i < 20 ? 0.006 : 0.1, 0.2)),
      'episode/return': rows(N, i => (i < 30 ? 10 * i : 20) + 2 * rng.normal()),
      'loss/value': flat(2e7),
    }),
    null,
    'info',
  ],
  'unusual-settings': [agent({}, { config: { entropyCoef: 0.2 } }), 'entropy-bonus-too-large', 'info'],
  'return-flat': [agent({ 'episode/return': flat(20) }), null, 'warning'],
  'guard-off': [
    agent(
      { 'kl/step': rows(N, i => (i === 40 ? 0.06 : about(0.006))) },
      { trainer: 'keel', config: { guard: Number.POSITIVE_INFINITY } },
    ),
    null,
    'info',
  ],
  ...inside('reward-hacking', 'reward-hacking'),
  ...inside('length-explosion', 'length-explosion'),
  ...inside('truncation-zeroes-reward', 'truncation-zeroes-reward'),
  ...inside('ratio-biased', 'importance-ratio-biased'),
  ...inside('clip-range-tiny', 'clip-range-too-small', 'warning'),
  ...inside('clip-range-open', 'clip-range-too-large'),
  ...inside('many-epochs', 'too-many-epochs', 'warning'),
  ...inside('stands-still', 'learning-rate-too-low', 'warning'),
  ...inside('kl-sign', 'kl-sign-wrong'),
  ...inside('group-of-one', 'group-of-one'),
  ...inside('mask-counts-padding', 'wrong-mask'),
  ...inside('entropy-weight', 'entropy-bonus-too-large'),
  ...inside('reference-outweighs', 'reference-too-strong'),
  ...inside('reward-without-meaning', 'no-reward-signal', 'warning'),
  ...inside('cold-sampling', 'degenerate-groups'),
  ...inside('usual-in-grpo', null, 'info'),
  ...inside('kl-in-reward', 'kl-in-reward', 'warning'),
  ...inside('reward-collapse', 'peak-then-collapse', 'warning'),
  ...inside('value-over-estimates', 'value-over-estimation', 'warning'),
  ...inside('time-limits', 'time-limit-as-death', 'info'),
  ...inside('actions-saturated', 'action-saturation', 'warning'),
  ...inside('entropy-explodes', 'entropy-explosion', 'warning'),
  ...inside('state-lost', 'state-not-restored'),
  ...inside('inert-setting', 'inert-setting', 'warning'),
  ...inside('metric-impossible', 'metric-broken', 'info'),
  ...inside('units-dead', 'plasticity-lost', 'warning'),
  ...inside('usual-in-ppo', null, 'info'),
};

/** A run that stands well inside of a rule's limits. */
function inside(code: string, cause: string | null, severity = 'critical') {
  return {
    [code]: [atLimits.find(one => one.code === code)!.make({}), cause, severity] as const,
  };
}

/** What is usual may be said of any run. */
const isNoNote = ({ severity }: Finding): boolean => severity !== 'info';

describe('each rule', () => {
  it('has a run in which it must speak', () => {
    expect(Object.keys(positives).sort()).toEqual(rules.map(r => r.code).sort());
  });

  it.each(Object.keys(positives))('%s speaks where it must', code => {
    const [made, cause, severity] = positives[code];
    const [found] = findRule(code)!.check(made, signalsOf(made), []);
    expect(found).toBeDefined();
    expect(found).toMatchObject({ code, cause, severity });
    expect(found.evidence.length).toBeGreaterThan(0);
    expect(found.evidence.join(' ')).toMatch(/\d/);
    expect(found.fix.length).toBeGreaterThan(0);
    expect(found.to).toBeGreaterThanOrEqual(found.from);
    expect(found.marks.length).toBeGreaterThan(0);
    expect([found.title, ...found.evidence].join(' ')).toContain('their/');
  });

  it.each(Object.keys(positives))('%s makes its sentences of its fixes, for every trainer', code => {
    const [made] = positives[code];
    const found = [...dialects, unknownDialect([])].flatMap(dialect => {
      const spoken = { ...made, wording: wordingOf(dialect.wording) };
      return findRule(code)!
        .check(spoken, signalsOf(spoken), [])
        .map(finding => ({ dialect, wording: spoken.wording, ...finding }));
    });
    expect(found.length).toBeGreaterThan(0);
    for (const { dialect, wording, fix, fixes } of found) {
      expect(fix).toEqual(fixes.map(({ text }) => text));
      for (const one of fixes) {
        if (one.kind === 'prose') continue;
        if (one.code !== undefined)
          expect(one.text).toBe(one.aside === undefined ? one.code : `${one.code} (${one.aside})`);
        if (one.kind === 'code') continue;
        expect(one.changes.length, one.text).toBeGreaterThan(0);
        for (const { setting, name, value } of one.changes) {
          expect(one.text).toContain(name);
          expect(one.text).toContain(typed(value));
          expect(wording.lacks?.(setting)).toBe(false);
          if (dialect.name === 'keel') expect(one.text).toContain(`--set ${name}=${typed(value)}`);
          else expect(name).toBe(wording.nameOf(setting));
        }
      }
    }
  });

  it.each(rules.map(r => r.code))('%s is silent on runs that learn, and on none', code => {
    const rule = findRule(code)!;
    for (const made of [agent(), model(), run({})])
      expect(rule.check(made, signalsOf(made), []).filter(isNoNote)).toEqual([]);
  });

  it('is documented, and looks only at what the registry knows', () => {
    expect(new Set(rules.map(r => r.code)).size).toBe(rules.length);
    for (const rule of rules) {
      expect(rule.code).toMatch(/^[a-z]+(-[a-z]+)*$/);
      for (const text of [rule.title, rule.text.means, rule.text.seen, rule.text.todo, rule.text.silent])
        expect(text.length, rule.code).toBeGreaterThan(10);
      expect(rule.text.references.length, rule.code).toBeGreaterThan(0);
      for (const id of rule.looksAt) expect(findMetric(id), `${rule.code}: ${id}`).toBeDefined();
      for (const cause of rule.causes) expect(rootCauses).toContain(cause);
    }
  });

  it('argues only for causes that it says it may', () => {
    for (const [code, [made]] of Object.entries(positives)) {
      const rule = findRule(code)!;
      for (const f of rule.check(made, signalsOf(made), []))
        if (f.cause !== null) expect(rule.causes).toContain(f.cause);
    }
  });

  it('needs rows: two or four of anything say nothing', () => {
    for (const [code, [made]] of Object.entries(positives)) {
      if (code === 'non-finite') continue;
      for (const n of [1, 2, 4]) {
        const short = run(
          Object.fromEntries([...made.series].map(([id, s]) => [id, [...s.series.values.subarray(0, n)]])),
          { kind: made.kind, config: made.config, actions: made.actions },
        );
        expect(findRule(code)!.check(short, signalsOf(short), []), code).toEqual([]);
      }
    }
  });
});

describe('what a KL is decides what may be said of it', () => {
  const high = flat(0.4);
  it('does not measure the distance to a reference, a sequence or k1 with the bands of an update', () => {
    expect(diagnose(model({ 'kl/ref': high })).verdict).toBe('healthy');
    const sequence = agent({ 'kl/step': high }, { kl: { 'kl/step': { per: 'sequence' } } });
    expect(diagnose(sequence).verdict).toBe('healthy');
    const scattered = rows(N, () => 0.08 * rng.normal());
    expect(
      diagnose(run({ ...learning, 'kl/step': [], 'kl/step_k1': scattered }, { actions: 'discrete' })).verdict,
    ).toBe('healthy');
  });

  it('calls k3 below 0 broken, k1 below 0 not, and k1 cut off at 0 again', () => {
    const below = rows(N, () => 0.005 * rng.normal());
    const causes = (estimator: 'k1' | 'k3', values: readonly number[]): (string | null)[] =>
      findRule('kl-impossible')!
        .check(
          agent({ 'kl/step': values }, { kl: { 'kl/step': { estimator } } }),
          signalsOf(agent({ 'kl/step': values }, { kl: { 'kl/step': { estimator } } })),
          [],
        )
        .map(f => f.cause);
    expect(causes('k3', below)).toEqual(['kl-estimator-broken']);
    expect(causes('k1', below)).toEqual([]);
    expect(
      causes(
        'k1',
        below.map(v => Math.max(0, v)),
      ),
    ).toEqual(['kl-estimator-broken']);
  });

  it('sees a sequence KL that stays negative, and not one that dips', () => {
    const ref = (level: number): CanonicalRun =>
      model(
        { 'kl/ref': rows(N, () => level + 0.5 * rng.normal()) },
        { kl: { 'kl/ref': { estimator: 'k1', per: 'sequence' } } },
      );
    expect(diagnose(ref(-6)).rootCause).toBe('kl-estimator-broken');
    expect(diagnose(ref(-0.3)).verdict).toBe('healthy');
  });
});

describe('what is no fault', () => {
  it('a KL that falls to 0 because the rate is annealed', () => {
    const fade = (t: number): number => Math.max(1e-9, 1 - t);
    const said = diagnose(
      agent({
        'kl/step': rows(N, (_, t) => 0.008 * fade(t) ** 2),
        'train/lr': rows(N, (_, t) => 3e-4 * fade(t)),
        'policy/clip_fraction': rows(N, (_, t) => 0.1 * fade(t)),
      }),
    );
    expect(said.verdict).toBe('healthy');
  });

  it('an explained variance of -45, or NaN, on a task that is solved', () => {
    const solved = rows(N, i => Math.min(500, 20 + 25 * i));
    for (const late of [-45, Number.NaN]) {
      const said = diagnose(
        agent({
          'episode/return': solved,
          'value/explained_variance': rows(N, i => (i < 25 ? 0.8 : late)),
          'loss/value': rows(N, i => (i < 25 ? 5 : 1e-4)),
        }),
      );
      expect(said.verdict, said.summary).toBe('healthy');
    }
  });

  it('early spikes, a negative differential entropy, and rewards that are missing at first', () => {
    const said = diagnose(
      agent(
        {
          'kl/step': rows(N, i => (i === 1 || i === 3 ? 0.2 : about(0.006, 0.2))),
          'policy/entropy': rows(N, (_, t) => 1.4 - 3 * t),
          'policy/std': rows(N, (_, t) => 1 - 0.7 * t),
          'episode/return': rows(N, (i, t) => (i < 4 ? Number.NaN : 20 + 400 * t)),
        },
        { actions: 'continuous' },
      ),
    );
    expect(said.verdict, said.summary).toBe('healthy');
  });

  it('a form reward that never fires while the reward improves, and one KL spike of a language model', () => {
    const said = diagnose(
      model({
        'reward/part/strict_format': rows(N, () => 0),
        'kl/ref': rows(N, (i, t) => (i === 40 ? 0.93 : 0.05 * t)),
      }),
    );
    expect(said.verdict, said.summary).toBe('healthy');
  });
});

describe('one story', () => {
  it('names its cause once: in the summary, not in what is said beside it', () => {
    const sick = diagnose(agent({ 'kl/step': flat(0.3) }, { config: { learningRate: 0.03 } }));
    expect(sick.rootCause).toBe('learning-rate-too-high');
    expect(sick.summary).toBe(`learning rate too high: ${lead(sick)}`);
    expect(lead(sick)).toContain(sick.findings[0].title);
    const { findings } = sick;
    const [first] = findings;
    expect(tale([first])).toBe(`${first.title}.`);
    expect(tale([])).toBe('');
    const quiet = { ...first, severity: 'info' as const, title: 'by the way' };
    const many = ['a', 'b', 'c', 'd', 'e'].map(title => ({ ...first, title }));
    expect(tale([quiet, ...many])).toBe('a; then b; c; and 2 more.');
    const healthy = diagnose(agent());
    expect(lead(healthy)).toBe(healthy.summary);
  });

  it('a NaN after a KL of 20 after a learning rate of .1 is a learning rate', () => {
    const said = diagnose(
      agent({
        'kl/step': rows(N, i => (i < 45 ? about(20, 0.4) : Number.NaN)),
        'loss/policy': rows(N, i => (i < 45 ? 0.1 : Number.NaN)),
        'episode/return': rows(N, i => (i < 45 ? 20 + 5 * rng.normal() : 9)),
        'train/lr': rows(N, () => 0.1),
      }),
    );
    expect(said.rootCause).toBe('learning-rate-too-high');
    expect(said.findings.map(f => f.code).indexOf('non-finite')).toBeGreaterThan(0);
    expect(said.summary).toMatch(/^learning rate too high: .*; then /);
  });

  it('a NaN out of a calm run is its own cause', () => {
    const said = diagnose(agent({ 'loss/policy': rows(N, i => (i < 50 ? -0.01 : Number.NaN)) }));
    expect(said).toMatchObject({ verdict: 'sick', rootCause: 'non-finite' });
  });

  it('without reward everything else is a consequence', () => {
    const said = diagnose(
      agent({
        'episode/return': rows(N, () => 0),
        'loss/value': rows(N, () => 1e-10),
        'value/explained_variance': rows(N, () => -3),
        'policy/entropy': rows(N, () => Math.LN2),
        'kl/step': rows(N, () => 1e-7),
      }),
    );
    expect(said.rootCause).toBe('no-reward-signal');
  });

  it('an error text beside the log is enough', () => {
    const said = diagnose(
      agent({}, { error: 'ValueError: Expected parameter logits … found invalid values: tensor([[nan' }),
    );
    expect(said).toMatchObject({ verdict: 'sick', rootCause: 'non-finite' });
  });
});

describe('whatever is in the series', () => {
  const ids = [...new Set(rules.flatMap(r => r.looksAt))];
  const value = fc.oneof(
    fc.double(),
    fc.constantFrom(
      0,
      1,
      -1,
      1e300,
      -1e300,
      1e-300,
      Number.NaN,
      Number.POSITIVE_INFINITY,
      Number.NEGATIVE_INFINITY,
    ),
    fc.double({ min: 0, max: 1, noNaN: true }),
  );
  const list = fc.oneof(
    fc.array(value, { maxLength: 70 }),
    fc.tuple(value, fc.integer({ min: 0, max: 70 })).map(([v, n]) => new Array<number>(n).fill(v)),
  );

  it('no rule throws, and what is said is well formed', () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.constantFrom(...ids), list, { maxKeys: ids.length }),
        fc.constantFrom('classic' as const, 'language-model' as const),
        fc.constantFrom('discrete' as const, 'continuous' as const, 'unknown' as const),
        fc.boolean(),
        (made, kind, actions, proxied) => {
          const said = diagnose(
            run(made, {
              kind,
              actions,
              config: { learningRate: 1e-3, refCoef: 0.5 },
              ...(proxied
                ? { klProxy: { theirs: 'lr', id: 'train/lr', floor: 1e-5, ceiling: 1e-2, meaning: 'm' } }
                : {}),
              ...(actions === 'discrete' ? { maxEntropy: Math.log(4) } : {}),
            }),
          );
          expect(verdicts).toContain(said.verdict);
          expect(said.confidence).toBeGreaterThanOrEqual(0);
          expect(said.confidence).toBeLessThanOrEqual(1);
          if (said.rootCause !== null) expect(said.verdict).not.toBe('healthy');
          for (const f of said.findings) {
            expect(severities).toContain(f.severity);
            expect(Number.isFinite(f.from) && Number.isFinite(f.to)).toBe(true);
            for (const line of [f.title, ...f.evidence, ...f.fix])
              expect(line).not.toMatch(/undefined|\[object/);
          }
        },
      ),
      { numRuns: 400 },
    );
  });

  it('takes a long series in a moment', () => {
    const n = 32_000;
    const long = agent(
      Object.fromEntries(
        Object.entries(learning).map(([id, v]) => [
          id,
          rows(n, i => v[Math.floor((i * N) / n)] * (1 + 0.1 * rng.normal())),
        ]),
      ),
    );
    const began = processorMs();
    expect(diagnose(long).verdict).toBe('healthy');
    expect(processorMs() - began).toBeLessThan(10_000);
  });
});
