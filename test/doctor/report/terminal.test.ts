/** The report in a terminal: what it says, that it fits, and that no log can drive the terminal. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { columnsOf, fit, fitMiddle, hang, paragraph } from '../../../src/base/terminal.ts';
import { type Finding, verdicts } from '../../../src/doctor/findings.ts';
import { type Fix, fixOf } from '../../../src/doctor/fixes.ts';
import { renderTerminalRuns } from '../../../src/doctor/report/many.ts';
import { runReport } from '../../../src/doctor/report/report-of-run.ts';
import { type Outcome, type RunReport, unreadable } from '../../../src/doctor/report/run-report.ts';
import { renderTerminal } from '../../../src/doctor/report/terminal.ts';
import { diagnosisOf, findingOf, healthyReport, runOf, sickReport } from './made.ts';

const ESCAPE = '\u001b';
const colours = new RegExp(`${ESCAPE}\\[(?:\\d{1,2};){0,2}\\d{1,2}m`, 'g');
const linesOf = (text: string): string[] => text.replaceAll(colours, '').split('\n');
const widest = (text: string): number => Math.max(...linesOf(text).map(columnsOf));

/** Text as a hostile or careless log has it. */
const wildText = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 200 }),
  fc.constantFrom(
    '漢字の長い名前'.repeat(20),
    'x'.repeat(500),
    '👩‍👩‍👧‍👦'.repeat(40),
    `${ESCAPE}[2J${ESCAPE}[1;31mred`,
    `${ESCAPE}]0;title\u0007name`,
    '\u009b31mname',
    'e\u0301'.repeat(100),
    '\u202etxt.exe',
    'a b '.repeat(100),
    '`tick` and `another',
  ),
);
const wildNumber = fc.oneof(
  fc.double(),
  fc.constantFrom(Number.NaN, Number.POSITIVE_INFINITY, 1e308, -1e308, 0, 5e-324),
);

const wildFix: fc.Arbitrary<Fix> = fc.oneof(
  wildText.map(text => fixOf(text)),
  fc.tuple(wildText, wildText).map(([code, aside]) => fixOf({ code: `${code}\n${code}`, aside })),
  wildText.map(code => fixOf({ code }, [{ setting: 'learningRate', name: code, from: null, value: 1 }])),
);

const wildFinding = fc
  .record({
    code: wildText,
    severity: fc.constantFrom('info', 'warning', 'critical'),
    title: wildText,
    from: wildNumber,
    to: wildNumber,
    evidence: fc.array(wildText, { maxLength: 3 }),
    cause: fc.constantFrom(null, 'learning-rate-too-high', 'non-finite'),
    confidence: fc.double({ min: 0, max: 1, noNaN: true }),
    fixes: fc.array(wildFix, { maxLength: 2 }),
    watch: wildText,
    marks: fc.array(
      fc.record({
        metric: fc.constantFrom('kl/step', 'other'),
        theirs: wildText,
        from: wildNumber,
        to: wildNumber,
      }),
      { maxLength: 2 },
    ),
    firstSeen: wildNumber,
    cites: fc.constant([]),
    facts: fc.constant([]),
  } as const satisfies { readonly [K in keyof Omit<Finding, 'fix'>]-?: unknown })
  .map(findingOf);

const wildReport = fc
  .record({
    path: wildText,
    trainer: wildText,
    steps: wildNumber,
    verdict: fc.constantFrom(...verdicts),
    summary: wildText,
    findings: fc.array(wildFinding, { maxLength: 40 }),
    notes: fc.array(wildText, { maxLength: 6 }),
    values: fc.array(wildNumber, { maxLength: 30 }),
    theirs: wildText,
    unit: wildText,
  } as const)
  .map(({ values, theirs, unit, ...diagnosis }) =>
    runReport(diagnosisOf(diagnosis), runOf({ 'kl/step': values }, { 'kl/step': theirs }, { unit })),
  );

describe('one run', () => {
  test('tells verdict, cause, evidence, change and what to watch, in this order', () => {
    const text = renderTerminal(sickReport());
    const parts = [
      'SICK  logs/ppo_1',
      'stable-baselines3, 122,880 steps',
      'Understood\n  60 rows, steps 2,048 to 122,880; 2 columns and 1 setting understood\n',
      'columns   train/approx_kl = kl/step, rollout/ep_rew_mean = episode/return',
      'settings  learning_rate 0.01',
      'The learning rate is too high (almost certain, 90%)',
      'KL spikes',
      'Why',
      'The largest, 4.2 at step 63,488',
      'KL of the update  train/approx_kl',
      'Change this\n    PPO(..., learning_rate=1e-4)',
      'Then watch\n  train/approx_kl should stay below 0.02.',
      'Also seen\n  !! The return fell from 480 to 22 (return-collapse, steps 61,440 to 122,880)',
      'About the log',
      'keel doctor --explain kl-spikes',
    ];
    let at = 0;
    for (const part of parts) {
      const found = text.indexOf(part, at);
      expect(found, `${part} after ${at} in\n${text}`).toBeGreaterThanOrEqual(at);
      at = found;
    }
    expect(text).not.toContain(ESCAPE);
  });

  test('a healthy run shows its curves and asks for nothing', () => {
    const text = renderTerminal(healthyReport());
    expect(text).toContain('HEALTHY  logs/ppo_2');
    expect(text).toContain('Episode return');
    expect(text).not.toMatch(/Change this|Then watch|explain/);
  });

  test('forty findings are told in brief, and in full with verbose', () => {
    const findings = Array.from({ length: 40 }, (_, i) =>
      findingOf({ code: `rule-${i}`, title: `thing ${i}` }),
    );
    const report = sickReport({ findings });
    const brief = renderTerminal(report);
    expect(brief).toContain('and 33 more: -v shows them');
    expect(brief).not.toContain('thing 39');
    expect(renderTerminal(report, { verbose: true })).toContain('thing 39');
  });

  test('a change with a reason is code to copy and a sentence beside it', () => {
    const text = renderTerminal(
      sickReport({
        findings: [
          findingOf({ fixes: [fixOf({ code: 'PPO(..., learning_rate=1e-4)', aside: 'a tenth of it' })] }),
        ],
      }),
    );
    expect(text).toContain('\n    PPO(..., learning_rate=1e-4)\n    a tenth of it\n');
  });

  test('names between backticks are coloured where there are colours', () => {
    const report = sickReport({ findings: [findingOf({ evidence: ['see `train/approx_kl` here'] })] });
    expect(renderTerminal(report, { colour: true })).toContain(
      `see ${ESCAPE}[36mtrain/approx_kl${ESCAPE}[39m here`,
    );
    expect(renderTerminal(report)).toContain('see `train/approx_kl` here');
  });
});

describe('width', () => {
  test('no line is wider than the terminal, or than 100, whatever is in the log', () => {
    fc.assert(
      fc.property(
        wildReport,
        fc.record({
          columns: fc.constantFrom(undefined, 40, 80, 93, 300),
          verbose: fc.boolean(),
          unicode: fc.boolean(),
        }),
        (report, { columns, ...options }) => {
          const text = renderTerminal(report, { ...options, ...(columns === undefined ? {} : { columns }) });
          expect(widest(text)).toBeLessThanOrEqual(Math.min(100, columns ?? 80));
        },
      ),
      { numRuns: 200 },
    );
  });

  test('nor is a table of many runs, readable or not', () => {
    const outcome: fc.Arbitrary<Outcome> = fc.oneof(
      wildReport,
      fc.record({ path: wildText, error: wildText, why: wildText }),
    );
    fc.assert(
      fc.property(fc.array(outcome, { maxLength: 6 }), fc.boolean(), (outcomes, all) => {
        expect(widest(renderTerminalRuns(outcomes, { all }))).toBeLessThanOrEqual(80);
      }),
      { numRuns: 60 },
    );
  });

  test('wide and combining characters count as a terminal counts them', () => {
    expect(columnsOf('漢字')).toBe(4);
    expect(columnsOf('e\u0301')).toBe(1);
    expect(columnsOf('한국')).toBe(4);
    expect(columnsOf('🙂')).toBe(2);
    expect(columnsOf('naïve – “x”')).toBe(11);
    expect(fit('漢字漢字', 5)).toBe('漢字…');
    expect(fitMiddle('/a/very/long/path/to/run-17', 15)).toBe('/a/v…/to/run-17');
  });

  test('wrapping keeps every character but spaces', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'grapheme', maxLength: 300 }),
        fc.integer({ min: 8, max: 90 }),
        (text, columns) => {
          const lines = paragraph(text, columns);
          expect(lines.join('').replaceAll(' ', '')).toBe(text.replaceAll(' ', ''));
          for (const line of lines) expect(columnsOf(line)).toBeLessThanOrEqual(columns);
        },
      ),
    );
    expect(hang('- ', 'one two three four', 10)).toEqual(['- one two', '  three', '  four']);
  });
});

describe('safety', () => {
  test('nothing but our own colours reaches the terminal', () => {
    fc.assert(
      fc.property(wildReport, fc.boolean(), (report, colour) => {
        const text = renderTerminal(report, { colour, verbose: true });
        const rest = colour ? text.replaceAll(colours, '') : text;
        expect(rest).not.toMatch(/(?!\n)\p{Cc}|[\u202a-\u202e\u2066-\u2069\u200b-\u200f]|\p{Surrogate}/u);
      }),
      { numRuns: 200 },
    );
  });

  test('an escape sequence in a name goes whole', () => {
    const name = `${ESCAPE}[31mkl${ESCAPE}[0m${ESCAPE}]8;;http://x${ESCAPE}\\${ESCAPE}c`;
    const text = renderTerminal(sickReport({ path: `runs/${name}` }));
    expect(text).toContain('SICK  runs/kl ');
  });

  test('where there is only ASCII, there is only ASCII', () => {
    fc.assert(
      fc.property(wildReport, report => {
        const text = renderTerminal(report, { unicode: false, colour: true });
        expect(text.replaceAll(ESCAPE, '')).toMatch(/^[\n -~]*$/);
        expect(widest(text)).toBeLessThanOrEqual(80);
      }),
      { numRuns: 100 },
    );
  });
});

describe('many runs', () => {
  const unread = unreadable('z.bin', 'a binary file that is no log');

  test('a line each, worst first, and the story of the sick ones alone', () => {
    const text = renderTerminalRuns([healthyReport(), unread, sickReport(), healthyReport('c')]);
    const lines = text.split('\n');
    expect(lines[0]).toBe('4 runs');
    expect(lines[1]).toBe('1 sick, 2 healthy, 1 could not be read');
    expect(lines[3]).toMatch(/^sick {5}logs\/ppo_1 {2}122,880 steps {2}The learning rate is too high$/);
    expect(lines[4]).toMatch(/^healthy {2}logs\/ppo_2 {2}102,400 steps$/);
    expect(lines[6]).toMatch(/^unread {3}z\.bin .* a binary file that is no log$/);
    expect(text.match(/Change this/g)).toHaveLength(1);
    expect(text).not.toContain('Nothing wrong');
    expect(renderTerminalRuns([healthyReport(), sickReport()], { all: true })).toContain('Nothing wrong');
  });

  test('beside long paths what is wrong is said in fewer words, and whole', () => {
    const long = (name: string): RunReport => healthyReport(`${name}/${'long'.repeat(20)}`);
    const sick = sickReport();
    const deep = { ...sick, diagnosis: { ...sick.diagnosis, path: `${'deep/'.repeat(20)}ppo_1` } };
    expect(renderTerminalRuns([long('a'), deep])).toMatch(/^sick .* {2}learning rate too high$/m);
  });

  test('what all paths share is said once', () => {
    const text = renderTerminalRuns(['a', 'b', 'b2/c'].map(name => healthyReport(`/data/logs/${name}`)));
    expect(text).toMatch(
      /^3 runs in \/data\/logs\/\n3 healthy\n\nhealthy {2}a {5}102,400 steps\nhealthy {2}b {5}102,400 steps\nhealthy {2}b2\/c /,
    );
  });

  test('one run has no table; one that could not be read is a sentence', () => {
    expect(renderTerminalRuns([sickReport()])).toBe(renderTerminal(sickReport()));
    expect(renderTerminalRuns([unread])).toBe('z.bin: a binary file that is no log\n');
  });

  test('a thousand runs make a page, not a book', () => {
    const outcomes = Array.from({ length: 1000 }, (_, i) => sickReport({ path: `runs/${i}` }));
    const text = renderTerminalRuns(outcomes);
    expect(text).toContain('and 800 runs more: --all shows them');
    expect(text).toContain('and 990 sick runs more: --all shows them');
    expect(text.split('\n').length).toBeLessThan(800);
  });
});
