/** Files from outside are data: whatever they say and are called, a terminal is not driven by it. */
import { cpSync, mkdirSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { KeelError } from '../../src/base/errors.ts';
import { reportError } from '../../src/cli/errors.ts';
import { entries, makeProgram } from '../../src/cli/program.ts';
import { diagnosePath, isUnreadable } from '../../src/doctor/index.ts';
import { JournalWriter } from '../../src/studies/journal.ts';
import type { Study } from '../../src/studies/schema.ts';
import { createStudy, studyPaths } from '../../src/studies/store.ts';
import { unpackRuns } from '../runs/support/old-runs.ts';
import { outcome, study } from '../studies/support/studies.ts';
import { until } from '../support/until.ts';
import { keel, type Outcome, scratch, tiny } from './support/keel.ts';

/** A title, a cleared screen, a colour that never ends, C1 controls, marks that turn text around or have no width. */
const evil = '\u001b]0;owned\u0007\u001b[2J\u001b[31m\u009b31m\u0085\r\b\u202e\u2066\u200b\ufeff';
/** All but line ends and tabs, and the marks. */
const controls = /[^\P{Cc}\n\t]|[\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/u;

const root = realpathSync(scratch());
const pristine = join(root, 'pristine');
const runDir = join(root, 'runs');
const logs = join(root, 'logs');
const studies = join(root, 'studies');

type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** A value for each of its texts, with that one made hostile; or one in which all of them are. */
function spoiled(value: Json): Json[] {
  if (typeof value === 'string') return [`${evil}${value}`];
  if (typeof value !== 'object' || value === null) return [];
  return Object.keys(value).flatMap(key =>
    spoiled((value as Record<string, Json>)[key]).map(changed =>
      Array.isArray(value)
        ? value.map((item, i) => (String(i) === key ? changed : item))
        : { ...value, [key]: changed },
    ),
  );
}
const allSpoiled = (value: Json): Json =>
  JSON.parse(JSON.stringify(value), (_, item) => (typeof item === 'string' ? `${evil}${item}` : item));

/** A copy of a run of which one file is somebody else's. */
function copyOf(from: string, name: string, file: string, change: (text: string) => string): string {
  const dir = join(runDir, name);
  cpSync(join(pristine, from), dir, { recursive: true });
  const path = join(dir, file);
  writeFileSync(path, change(readFileSync(path, 'utf8')));
  return dir;
}

const inJson =
  (change: (value: Record<string, Json>) => Json) =>
  (text: string): string =>
    JSON.stringify(change(JSON.parse(text)));

/** Runs whose manifests do load, those in which one text of it is hostile, and those with other files of the kind. */
let readable: string[];
let others: string[];
let odd: string;

beforeAll(() => {
  unpackRuns(pristine);
  const add =
    (key: string, more: Record<string, Json>) =>
    (manifest: Record<string, Json>): Json => ({
      ...manifest,
      [key]: { ...(manifest[key] as Record<string, Json>), ...more },
    });
  readable = [
    copyOf('ppo-discrete', 'key', 'manifest.json', inJson(add('config', { [`${evil}key`]: evil }))),
    copyOf('ppo-discrete', 'value', 'manifest.json', inJson(add('config', { learningRate: `${evil}1` }))),
    copyOf(
      'ppo-discrete',
      'option',
      'manifest.json',
      inJson(add('environment', { options: { [`${evil}o`]: `${evil}v` } })),
    ),
  ];
  const manifest = JSON.parse(readFileSync(join(pristine, 'ppo-discrete', 'manifest.json'), 'utf8')) as Json;
  others = spoiled(manifest).map((changed, i) =>
    copyOf('ppo-discrete', `text-${i}`, 'manifest.json', () => JSON.stringify(changed)),
  );
  const row = (text: string): string =>
    `${text}${JSON.stringify({ ...JSON.parse(text.trim().split('\n').at(-1)!), [`${evil}metric`]: 1 })}\n`;
  const [checkpoint] = readdirSync(join(pristine, 'ppo-discrete', 'checkpoints')).filter(name =>
    /^\d+$/.test(name),
  );
  others.push(
    copyOf('ppo-discrete', 'broken', 'manifest.json', text => `${evil}${text}`),
    copyOf('ppo-discrete', 'rows', 'metrics.jsonl', row),
    copyOf('ppo-discrete', 'half-row', 'metrics.jsonl', text => `${text}${evil}\n`),
    copyOf(
      'ppo-discrete',
      'events',
      'events.jsonl',
      text =>
        `${text}${['note', `${evil}kind`, 'checkpoint'].map(type => JSON.stringify({ type, iteration: 1, step: 1, message: evil, text: evil, reason: evil })).join('\n')}\n`,
    ),
    copyOf('ppo-discrete', 'state', `checkpoints/${checkpoint}/state.json`, inJson(allSpoiled)),
    copyOf('ppo-discrete', 'pointer', 'checkpoints/last', text => `${evil}${text}`),
    copyOf('grpo', 'completions', 'manifest.json', text => text),
  );
  writeFileSync(
    join(runDir, 'completions', 'completions.jsonl'),
    `${JSON.stringify({ iteration: 1, prompt: evil, completions: [{ text: evil, tokens: [evil] }] })}\n`,
  );
  writeFileSync(
    join(readable[0], 'notes.json'),
    JSON.stringify({ tags: [evil], note: evil, archived: false }),
  );
  // A name that no shell would write, on a run in which all is well.
  odd = join(runDir, `${evil.replaceAll('/', '')}run`);
  cpSync(join(pristine, 'ppo-discrete'), odd, { recursive: true });

  // Logs of others, in directories and files of such names, with configs beside them.
  const place = join(logs, `${evil}logs`);
  mkdirSync(place, { recursive: true });
  const names = [
    'time/total_timesteps',
    'rollout/ep_rew_mean',
    'train/approx_kl',
    `${evil}train/loss`,
    `train/${evil}`,
  ];
  const table = [names, ...Array.from({ length: 12 }, (_, i) => [i * 2048, 20 - i, 0.5 + i, 'nan', 1])];
  writeFileSync(join(place, 'progress.csv'), `${table.map(line => line.join(',')).join('\n')}\n`);
  writeFileSync(
    join(place, 'config.yaml'),
    `"\\e[2J\\u009b31mlearning_rate": "\\e[2J\\u202efast"\nbad: [\u001b[2J\n`,
  );
  writeFileSync(join(logs, `${evil}.jsonl`), `${JSON.stringify({ [evil]: evil, step: 1 })}\n{"${evil}`);
  writeFileSync(join(logs, 'only-names.csv'), `${evil}a,${evil}b\n1,2\n3,4\n5,6\n`);
  writeFileSync(join(root, 'config.yaml'), '"\\e[2J\\u009b31mkey": "\\e[2J\\u202evalue"\n');
  writeFileSync(join(root, 'study.json'), JSON.stringify({ env: 'cartpole', [evil]: evil, method: evil }));
  // A study of which every text that may be any text is hostile, and some that cannot be read.
  const space = [{ key: 'activation', domain: { kind: 'choice', values: [`${evil}tanh`, `${evil}relu`] } }];
  const bad = study({
    subject: { kind: 'env', reference: `${evil}env`, sha256: null, options: { [evil]: evil } },
    config: { [evil]: evil },
    space: space as Study['space'],
  });
  const { dir } = createStudy(bad, studies);
  const journal = new JournalWriter(studyPaths(dir).journal, bad);
  for (const problem of [null, `${evil}problem`]) {
    const { number } = journal.createTrial({ params: { activation: `${evil}tanh` }, seeds: [0] });
    const status = problem === null ? 'done' : 'failed';
    journal.setOutcome(
      number,
      outcome({ problem, status, worker: `${evil}host`, rootCause: `${evil}cause` }),
    );
    const value = problem === null ? 1 : null;
    journal.endTrial(number, {
      state: problem === null ? 'complete' : 'failed',
      value,
      violations: problem === null ? [] : [`${evil}violation`],
    });
  }
  journal.close();
  for (const [i, text] of [`{"${evil}`, JSON.stringify(allSpoiled(bad as unknown as Json))].entries()) {
    mkdirSync(join(studies, `broken-${i}`));
    writeFileSync(join(studies, `broken-${i}`, 'study.json'), text);
  }
  writeFileSync(join(root, 'trace.jsonl'), `${JSON.stringify({ [evil]: evil, arrival: evil })}\n`);
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

/** Runs a command that goes on until a signal, and gives it one when it has said something. */
async function untilSignal(args: readonly string[]): Promise<Outcome> {
  const before = process.rawListeners('SIGINT');
  const real = process.stdout;
  const ended = keel(args, { cwd: root });
  const said = (): string =>
    process.stdout === real ? '' : (process.stdout as unknown as { readonly text: string }).text;
  let over = false;
  void ended.finally(() => {
    over = true;
  });
  await until(() => over || said().length > 0, `${args[0]} says something`);
  for (const listener of process.rawListeners('SIGINT'))
    if (!before.includes(listener)) (listener as (signal: string) => void)('SIGINT');
  return ended;
}

const flags = (): string[] => ['--run-dir', runDir];
const ofRuns = (command: string, ...more: string[]): string[][] =>
  [...readable, others[0], join(runDir, 'events'), join(runDir, 'state'), `${evil}run`].map(run => [
    ...[command, run, ...flags(), ...more],
  ]);
const ofSettings = (command: string): string[][] => [
  [command, `${evil}env`],
  [command, 'cartpole', '-c', join(root, 'config.yaml')],
  [command, 'cartpole', '-c', join(root, `${evil}.yaml`)],
  [command, 'cartpole', '--set', `${evil}=1`],
  [command, 'cartpole', '--set', `learningRate=${evil}`],
  [command, 'cartpole', `--${evil}`],
];

/** Command lines by the command's name; for one of `runs` with both. */
const cases: Readonly<Record<string, () => readonly (readonly string[])[]>> = {
  train: () => [
    ...ofSettings('train'),
    ['train', 'cartpole', ...tiny(join(root, `${evil}dir`))],
    ['train', 'cartpole', ...tiny(join(root, `${evil}dir`)), '--json'],
    ['train', 'cartpole', '--from', readable[0]],
  ],
  clone: () => ofSettings('clone'),
  resume: () => ofRuns('resume', '--steps', '32'),
  fork: () => ofRuns('fork', '--steps', '32'),
  eval: () => [...ofRuns('eval', '-n', '1'), ['eval', odd, '-n', '1'], ['eval', odd, '-n', '1', '--json']],
  export: () => [...ofRuns('export'), ['export', odd]],
  play: () => ofRuns('play', '--port', '0', '--no-open').slice(0, 3),
  record: () => ofRuns('record'),
  render: () => ofRuns('render'),
  'runs list': () => [
    ['runs', ...flags()],
    ['runs', 'list', ...flags(), '--json'],
    ['runs', `${evil}list`],
  ],
  'runs show': () =>
    [...readable, ...others, odd].flatMap(run => [
      ['runs', 'show', run],
      ['runs', 'show', run, '--json'],
    ]),
  'runs compare': () => [
    ['runs', 'compare', ...readable, odd],
    ['runs', 'compare', ...readable, odd, '--json'],
  ],
  'runs verify': () => [
    ...[...readable, ...others, odd, `${evil}run`].map(run => ['runs', 'verify', run]),
    ['runs', 'verify', ...readable, '--json'],
  ],
  'runs delete': () => [
    ['runs', 'delete', `${evil}run`, '--yes'],
    ['runs', 'delete', odd, '--yes'],
  ],
  simulate: () => [
    ['simulate', `${evil}system`],
    ['simulate', 'cluster', '--trace', join(root, 'trace.jsonl')],
    ['simulate', 'cluster', '--set', `${evil}=1`],
  ],
  'sweep run': () => [
    ...ofSettings('sweep').filter(args => !args.includes('-c')),
    ['sweep', join(root, 'study.json')],
    ['sweep', join(root, `${evil}.yaml`)],
    ['sweep', 'cartpole', '--name', evil],
    ['sweep', 'cartpole', '--seeds', evil],
    ['sweep', 'cartpole', '--method', evil],
    ['sweep', 'cartpole', '--objective', evil],
    ['sweep', 'cartpole', '--emit', evil],
    ['sweep', 'cartpole', '--queue', `redis://${evil}`],
    ['sweep', join(studies, 'tune'), '--jobs', '1'],
    ['sweep', join(studies, 'broken-0')],
  ],
  'sweep show': () =>
    [[], ['tune'], ['broken-0'], ['broken-1'], [`${evil}study`]].flatMap(words => [
      ['sweep', 'show', ...words],
      ['sweep', 'show', ...words, '--json'],
    ]),
  'sweep compare': () => [
    ['sweep', 'compare', 'tune', 'tune'],
    ['sweep', 'compare', 'tune', 'tune', '--json'],
    ['sweep', 'compare', 'tune', evil],
  ],
  'sweep export': () => [
    ['sweep', 'export', 'tune'],
    ['sweep', 'export', 'tune', '--json'],
    ['sweep', 'export', 'tune', '--out', join(root, `${evil}out.yaml`)],
    ['sweep', 'export', evil],
  ],
  'sweep task': () => [
    ['sweep', 'task', 'tune', '--index', '0'],
    ['sweep', 'task', evil, '--index', '0'],
    ['sweep', 'task', 'tune', '--index', evil],
  ],
  worker: () => [
    ['worker', '--queue', `redis://${evil}`],
    ['worker', '--queue', `redis://:${evil}@127.0.0.1:1/`],
    ['worker', '--queue', 'redis://127.0.0.1:1', '--file', `${evil}.ts`],
    ['worker', '--queue', 'redis://127.0.0.1:1', '--failed'],
    ['worker', `--${evil}`],
  ],
  doctor: () => [
    ...[[], ['--json'], ['--md'], ['--all', '--verbose']].map(how => ['doctor', logs, runDir, ...how]),
    ['doctor', logs, '--html', join(root, 'report.html'), '--md', join(root, 'report.md')],
    ['doctor', join(logs, `${evil}.jsonl`)],
    ['doctor', logs, '--map', `${evil}=step`],
    ['doctor', logs, '--trainer', evil],
    ['doctor', '--explain', evil],
    ['doctor', logs, '--follow', '--interval', '0.05'],
  ],
  report: () => [
    ['report', logs, '--out', join(root, 'runs-report.html')],
    ['report', `${evil}log`, '--out', join(root, 'none.html')],
    ['report', logs, '--out', join(root, `${evil}none`, 'report.html')],
  ],
  import: () => [
    ['import', 'sb3', `${evil}.zip`],
    ['import', evil, 'model.zip'],
    ['import', 'sb3', join(logs, `${evil}.jsonl`), '--env', evil],
  ],
  dash: () => [
    ['dash', `${evil}root`],
    ['dash', join(root, `${evil}dir`), '--port', '0'],
  ],
  watch: () => [
    ['watch', join(root, `${evil}none`)],
    ['watch', logs, '--port', '0'],
  ],
  envs: () => [['envs', `--${evil}`], ['envs']],
  'check-env': () => [
    ['check-env', `${evil}env`],
    ['check-env', join(root, `${evil}env.ts`)],
  ],
  preflight: () => ofSettings('preflight'),
  config: () => ofSettings('config'),
};

test('every command has a case', async () => {
  const names = await Promise.all(
    entries.map(async ({ name }) => {
      const program = await makeProgram([name]);
      const below = program.commands.find(command => command.name() === name)!.commands;
      return below.length === 0 ? [name] : below.map(command => `${name} ${command.name()}`);
    }),
  );
  expect(Object.keys(cases).sort()).toEqual(names.flat().sort());
});

test.each(Object.keys(cases))(
  'keel %s writes no controls that a file, a name or a flag brought along',
  async name => {
    for (const args of cases[name]()) {
      const goesOn = ['dash', 'watch', 'play'].includes(args[0]) || args.includes('--follow');
      const { stdout, stderr } = await (goesOn ? untilSignal(args) : keel(args, { cwd: root }));
      expect(`${stdout}${stderr}`.length, JSON.stringify(args)).toBeGreaterThan(0);
      expect(stdout, JSON.stringify(args)).not.toMatch(controls);
      expect(stderr, JSON.stringify(args)).not.toMatch(controls);
    }
  },
);

test('files that are written for people have none either', () => {
  for (const name of ['report.html', 'report.md']) {
    const text = readFileSync(join(root, name), 'utf8');
    expect(text.length).toBeGreaterThan(100);
    expect(text).not.toMatch(controls);
  }
});

test('JSON says what the file said, whole', async () => {
  const { stdout } = await keel(['runs', 'show', readable[0], '--json']);
  expect(JSON.stringify(JSON.parse(stdout))).toContain(JSON.stringify(`${evil}key`).slice(1, -1));
});

test('nor have the sentences of the library', async () => {
  let failures = 0;
  for await (const outcome of diagnosePath([logs, runDir, `${evil}nowhere`])) {
    if (!isUnreadable(outcome)) continue;
    failures++;
    expect(outcome.error).not.toMatch(controls);
    expect(outcome.why).not.toMatch(controls);
  }
  expect(failures).toBeGreaterThan(0);
});

test('nor has what KEEL_DEBUG shows of where it was thrown', () => {
  let shown = '';
  vi.stubEnv('KEEL_DEBUG', '1');
  reportError(new KeelError('damaged', { cause: new SyntaxError(`not JSON: ${evil}`) }), text => {
    shown += text;
  });
  vi.unstubAllEnvs();
  expect(shown).toMatch(/^SyntaxError: not JSON: .*\n +at [\s\S]*\n\nwhich came up as\n.*Error: /m);
  expect(shown).not.toMatch(controls);
});
