/** `keel doctor` as a user runs it: exit codes, files, bad input, following, many runs. */
import { spawnSync } from 'node:child_process';
import { appendFileSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { reportSchema } from '../doctor/report/schema.ts';
import { processorMs } from '../support/processor-time.ts';
import { until } from '../support/until.ts';
import { keel, mainFile, scratch, startKeel, tiny } from './support/keel.ts';

const names = [
  'rollout/ep_rew_mean',
  'time/total_timesteps',
  'train/approx_kl',
  'train/clip_fraction',
  'train/entropy_loss',
  'train/explained_variance',
  'train/learning_rate',
  'train/value_loss',
];
const wave = (i: number): number => Math.sin(i * 1.7) + Math.sin(i * 0.37);

/** A row of Stable-Baselines3's progress.csv. */
const row = (i: number, more: { reward?: number; kl?: number; clip?: number; rate?: number }): string => {
  const { reward = 500 - 480 * Math.exp(-i / 12) + 4 * wave(i), kl = 0.006 + 0.002 * wave(i) } = more;
  const { clip = 0.08 + 0.02 * wave(i), rate = 3e-4 } = more;
  const entropy = -0.69 + 0.004 * i;
  const variance = Math.min(0.95, 0.02 * i) + 0.01 * wave(i);
  return [reward, (i + 1) * 2048, kl, clip, entropy, variance, rate, 40 * Math.exp(-i / 20) + 1].join(',');
};
const log = (length: number, more: (i: number) => Parameters<typeof row>[1] = () => ({})): string =>
  `${names.join(',')}\n${Array.from({ length }, (_, i) => `${row(i, more(i))}\n`).join('')}`;

const healthy = log(50);
/** Well for thirty rows, then torn apart. */
const torn = (i: number): Parameters<typeof row>[1] =>
  i < 30
    ? { rate: 0.03 }
    : { rate: 0.03, kl: 0.6 + 0.2 * wave(i), clip: 0.6, reward: Math.max(20, 460 - 40 * (i - 30)) };
const sick = log(60, torn);

function logs(files: Readonly<Record<string, string | Buffer>>): string {
  const dir = scratch();
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(join(dir, name, '..'), { recursive: true });
    writeFileSync(join(dir, name), text);
  }
  return dir;
}

const wholeJson = (stdout: string) => reportSchema.parse(JSON.parse(stdout)).runs;

describe('verdicts', () => {
  test('a healthy run exits 0', async () => {
    const dir = logs({ 'ppo_1/progress.csv': healthy });
    const { code, stdout, stderr } = await keel(['doctor', join(dir, 'ppo_1')]);
    expect({ code, stderr }, stdout).toEqual({ code: 0, stderr: '' });
    expect(stdout).toContain('HEALTHY');
    expect(stdout).toContain('stable-baselines3, 102,400 steps');
  });

  test('a sick one exits 2, and says why and what to type', async () => {
    const dir = logs({ 'progress.csv': sick });
    const { code, stdout, stderr } = await keel(['doctor', 'progress.csv'], { cwd: dir });
    expect({ code, stderr }, stdout).toEqual({ code: 2, stderr: '' });
    expect(stdout).toMatch(/^ SICK {2}progress\.csv {2,}stable-baselines3, 122,880 steps\n/);
    expect(stdout).toContain('The learning rate is too high');
    expect(stdout).toMatch(/Change this\n {4}PPO\(\.\.\., learning_rate=/);
    expect(stdout).not.toContain('\u001b');
    for (const line of stdout.split('\n')) expect([...line].length).toBeLessThanOrEqual(80);
  });

  test('--json is one document of the contract, and nothing else', async () => {
    const dir = logs({ 'a/progress.csv': sick, 'b/progress.csv': healthy, 'c/progress.csv': log(2) });
    const { code, stdout, stderr } = await keel(['doctor', '.', '--json'], { cwd: dir });
    expect(code).toBe(2);
    const runs = wholeJson(stdout);
    expect(runs).toHaveLength(3);
    expect(runs[0]).toMatchObject({
      path: 'a',
      trainer: 'stable-baselines3',
      steps: 122_880,
      verdict: 'sick',
      rootCause: 'learning-rate-too-high',
    });
    expect(runs[1]).toMatchObject({ path: 'b', verdict: 'healthy', rootCause: null, findings: [] });
    expect(runs[2]).toMatchObject({ path: 'c', verdict: null, error: expect.stringMatching(/found 2/) });
    expect(stderr).toMatch(/^keel: c: .*found 2.*\n$/);
  });

  test('several runs are a table, worst first', async () => {
    const dir = logs({ 'a/progress.csv': healthy, 'b/progress.csv': sick });
    const { code, stdout } = await keel(['doctor', 'a', 'b', './b/../a'], { cwd: dir });
    expect(code).toBe(2);
    expect(stdout).toMatch(
      /^2 runs\n1 sick, 1 healthy\n\nsick {5}b {2}122,880 steps {2}The learning rate is too high\nhealthy {2}a /,
    );
  });

  test('names in a log cannot drive the terminal', async () => {
    const name = '\u001b]0;owned\u0007\u001b[2Jtrain/evil\u009b31m';
    const text = healthy
      .split('\n')
      .map((line, i) => (line === '' ? line : `${line},${i === 0 ? name : i}`))
      .join('\n');
    const dir = logs({ 'progress.csv': text });
    for (const flags of [['-v'], ['--json'], ['--md'], ['--map', `${name}=loss/policy`, '-v']]) {
      const { stdout, stderr } = await keel(['doctor', 'progress.csv', ...flags], { cwd: dir });
      expect(stdout).toContain('stable-baselines3');
      expect(stdout + stderr).not.toMatch(/(?!\n)\p{Cc}/u);
    }
  });
});

describe('files', () => {
  test('--html before a path does not take the log for its name', async () => {
    const dir = logs({ 'progress.csv': sick });
    const { code, stderr } = await keel(['doctor', '--html', 'progress.csv'], { cwd: dir });
    expect({ code, stderr }).toEqual({ code: 2, stderr: 'wrote doctor-report.html\n' });
    expect(readFileSync(join(dir, 'progress.csv'), 'utf8')).toBe(sick);
    expect(readFileSync(join(dir, 'doctor-report.html'), 'utf8')).toMatch(
      /^<!doctype html>[\s\S]*<svg [\s\S]*<\/html>\n$/,
    );
  });

  test('--md prints, or writes; --json may go with files', async () => {
    const dir = logs({ 'progress.csv': sick });
    const printed = await keel(['doctor', 'progress.csv', '--md'], { cwd: dir });
    expect(printed).toMatchObject({ code: 2, stderr: '' });
    expect(printed.stdout).toContain('## sick: The learning rate is too high');
    const both = await keel(['doctor', 'progress.csv', '--json', '--md', 'r.md', '--html', 'r.html'], {
      cwd: dir,
    });
    expect(wholeJson(both.stdout)).toHaveLength(1);
    expect(readFileSync(join(dir, 'r.md'), 'utf8')).toBe(printed.stdout);
    expect(existsSync(join(dir, 'r.html'))).toBe(true);
  });

  test('keel report says which runs are not in its page, there and here', async () => {
    const many = Array.from({ length: 42 }, (_, i) => [`ppo_${i}/progress.csv`, log(4)]);
    const dir = logs({ ...Object.fromEntries(many), 'bad/progress.csv': `${names.join(',')}\n` });
    const { code, stdout, stderr } = await keel(['report', '.', '--out', 'r.html'], { cwd: dir });
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'wrote r.html: open it in a browser\n' });
    expect(stderr).toContain('keel: 43 runs were found, and the first 40 are in the page');
    const page = readFileSync(join(dir, 'r.html'), 'utf8');
    expect(page).toMatch(/<h2>Not read<\/h2><ul><li>43 runs were found, .*bad.*<\/li><\/ul>/);
  });

  test('a report that cannot be written is no verdict', async () => {
    const dir = logs({ 'progress.csv': healthy });
    const { code, stderr } = await keel(['doctor', 'progress.csv', '--html', 'no/such/r.html'], { cwd: dir });
    expect(code).toBe(3);
    expect(stderr).toMatch(/^keel: cannot write .*r\.html: it does not exist/);
  });
});

describe('what cannot be read', () => {
  const binary = Buffer.from(Array.from({ length: 5000 }, (_, i) => (i * 7919 + (i >> 3)) % 256));
  const cases: Record<string, { files: Record<string, string | Buffer>; path: string; says: RegExp }> = {
    'an empty directory': {
      files: { 'a/x': '' },
      path: 'b',
      says: /^keel: b: looked for .* and found an empty directory/,
    },
    'a directory without logs': {
      files: { 'd/readme.md': 'hello', 'd/model.zip': binary },
      path: 'd',
      says: /^keel: d: looked for .* and found none in 2 files/,
    },
    'a binary file': {
      files: { 'x.bin': binary },
      path: 'x.bin',
      says: /^keel: x\.bin: looked for .* and found /,
    },
    'an empty file': { files: { 'x.csv': '' }, path: 'x.csv', says: /^keel: x\.csv: .*empty/ },
    prose: {
      files: { 'x.txt': 'Dear all,\nthis is a letter.\n' },
      path: 'x.txt',
      says: /^keel: x\.txt: looked for /,
    },
    'two rows': {
      files: { 'x.csv': log(2) },
      path: 'x.csv',
      says: /^keel: x\.csv: looked for at least 3 rows.* found 2/,
    },
    'other numbers': {
      files: { 'x.csv': `temperature,rain\n${'20,1\n21,2\n'.repeat(30)}` },
      path: 'x.csv',
      says: /^keel: x\.csv: looked for metrics .* found none in temperature, rain: .*--map temperature=/,
    },
    'a file that is taken for a directory': {
      files: { 'x.csv': healthy },
      path: 'x.csv/y',
      says: /^keel: x\.csv\/y: part of the path is a file/,
    },
    'nothing at all': {
      files: { a: '' },
      path: 'no/such',
      says: /^keel: no\/such: there is no such file or directory/,
    },
    'a directory with the name of a log': {
      files: { 'progress.csv/x.md': '' },
      path: 'progress.csv',
      says: /^keel: progress\.csv: looked for /,
    },
    'a device': {
      files: { a: '' },
      path: '/dev/null',
      says: /^keel: \/dev\/null: looked for .* found a device/,
    },
  };
  for (const [what, { files, path, says }] of Object.entries(cases)) {
    test(`${what}: a sentence and exit code 3`, async () => {
      const dir = logs(files);
      if (path === 'b') mkdirSync(join(dir, 'b'));
      const [text, json] = await Promise.all([
        keel(['doctor', path], { cwd: dir }),
        keel(['doctor', path, '--json'], { cwd: dir }),
      ]);
      expect({ code: text.code, stdout: text.stdout }).toEqual({ code: 3, stdout: '' });
      expect(text.stderr).toMatch(says);
      expect(text.stderr.trimEnd().split('\n')).toHaveLength(1);
      expect(json.code).toBe(3);
      expect(wholeJson(json.stdout)).toMatchObject([{ path, verdict: null, error: expect.any(String) }]);
    });
  }

  test.skipIf(process.platform === 'win32')('a pipe does not make it wait', async () => {
    const dir = logs({ 'sub/progress.csv': healthy });
    spawnSync('mkfifo', [join(dir, 'pipe'), join(dir, 'sub/pipe.csv')]);
    const { code, stderr } = await keel(['doctor', 'pipe'], { cwd: dir });
    expect({ code, stderr }).toEqual({
      code: 3,
      stderr:
        'keel: pipe: looked for a log file or a directory, and found a pipe: write it to a file first\n',
    });
    expect(await keel(['doctor', 'sub'], { cwd: dir })).toMatchObject({ code: 0 });
  });

  test.skipIf(process.platform !== 'linux')('a file of the system without a size', async () => {
    const { code, stderr } = await keel(['doctor', '/proc/self/status']);
    expect(code).toBe(3);
    expect(stderr).toMatch(/^keel: \/proc\/self\/status: /);
  });

  test('some that can be read give the verdict, the others are told', async () => {
    const dir = logs({ 'a.csv': healthy, 'b.bin': binary });
    const { code, stdout, stderr } = await keel(['doctor', 'a.csv', 'b.bin', 'c'], { cwd: dir });
    expect(code).toBe(3);
    expect(stdout).toContain('1 healthy, 2 could not be read');
    expect(stderr.trimEnd().split('\n')).toHaveLength(2);
  });
});

describe('wrong use', () => {
  const cases: [string, string[], RegExp][] = [
    ['no path', [], /doctor needs a log file or a directory/],
    ['an unknown option', ['x', '--jsn'], /unknown option '--jsn'.*--json/],
    ['an unknown verdict', ['x', '--fail-on', 'bad'], /Allowed choices are watch, sick/],
    ['half a map', ['x', '--map', 'loss'], /--map loss: write theirs=ours/],
    ['a map to nothing', ['x', '--map', 'loss=loss/vale'], /--map .*did you mean loss\/value/],
    ['an unknown trainer', ['x', '--trainer', 'stable-baseline'], /did you mean stable-baselines3/],
    ['an interval of nothing', ['x', '--interval', '0'], /from 0\.05 to 86400/],
    ['two documents', ['x', '--json', '--md'], /--json and --md both write to stdout/],
    ['a document that never ends', ['x', '--follow', '--json'], /--follow tells what changes/],
    ['an unknown code', ['--explain', 'kl-spike'], /did you mean kl-spikes/],
  ];
  test.each(cases)('%s: exit code 3, never a verdict', async (_, args, says) => {
    const { code, stdout, stderr } = await keel(['doctor', ...args]);
    expect({ code, stdout }).toEqual({ code: 3, stdout: '' });
    expect(stderr).toMatch(says);
    expect(stderr).toMatch(/^keel: /);
  });
});

describe('names', () => {
  test('--map fills a gap', async () => {
    const theirs: Readonly<Record<string, string>> = {
      'train/approx_kl': 'div',
      'rollout/ep_rew_mean': 'score',
    };
    const text = sick.replaceAll(/train\/approx_kl|rollout\/ep_rew_mean/g, name => theirs[name]);
    const dir = logs({ 'x.csv': text });
    const { code, stdout } = await keel(
      ['doctor', 'x.csv', '--json', '--map', 'div=kl/step', '--map', 'score=episode/return'],
      { cwd: dir },
    );
    expect(code).toBe(2);
    const [run] = wholeJson(stdout);
    expect(run.rootCause).toBe('learning-rate-too-high');
    expect(run.findings.flatMap(({ marks }) => marks)).toContainEqual(
      expect.objectContaining({ metric: 'kl/step', theirs: 'div' }),
    );
    const wrong = await keel(['doctor', 'x.csv', '--map', 'dif=kl/step'], { cwd: dir });
    expect(wrong.code).toBe(3);
    expect(wrong.stderr).toContain('"div"');
  });

  test('--trainer says which it is', async () => {
    const dir = logs({ 'x.csv': healthy });
    const { stdout } = await keel(['doctor', 'x.csv', '--json', '--trainer', 'unknown'], { cwd: dir });
    expect(wholeJson(stdout)[0].trainer).toBe('unknown');
  });

  test('a run of Keel goes by its name', async () => {
    const cwd = scratch();
    await keel(['train', 'cartpole', ...tiny('runs', '--set', 'steps=640')], { cwd });
    const { code, stdout } = await keel(['doctor', 'last', '--json'], { cwd });
    expect(stdout).not.toBe('');
    const [run] = wholeJson(stdout);
    expect(run).toMatchObject({ trainer: 'keel', steps: 640 });
    expect(code).toBeLessThan(3);
  });

  test('--explain prints the page of a rule or a cause, --list-rules all of them', async () => {
    const [rule, cause, list] = await Promise.all([
      keel(['doctor', '--explain', 'kl-spikes']),
      keel(['doctor', '--explain', 'learning-rate-too-high']),
      keel(['doctor', '--list-rules']),
    ]);
    expect(rule).toMatchObject({ code: 0, stderr: '' });
    expect(rule.stdout).toContain('When it stays silent');
    expect(cause.stdout).toContain('Rules that may point to it\n');
    expect(list.stdout).toContain('kl-spikes');
  });
});

describe('--follow', () => {
  test.concurrent('tells what changes while a log grows, is cut and comes back, and ends with its verdict', async () => {
    const dir = scratch();
    const file = join(dir, 'progress.csv');
    const { child, done, output } = startKeel(['doctor', 'progress.csv', '--follow', '--interval', '0.1'], {
      cwd: dir,
    });
    const lines = (): string[] => output.stdout.trimEnd().split('\n');
    await until(
      () => output.stdout.includes('not to be read now: progress.csv: there is no such file'),
      'the wait',
    );
    const all = sick.split('\n');
    writeFileSync(file, `${all.slice(0, 26).join('\n')}\n`);
    await until(() => / healthy at 51,200 steps: /.test(output.stdout), 'a verdict');
    // Half a row is no row.
    appendFileSync(file, `${all.slice(26, 61).join('\n')}`);
    await until(() => / sick, was healthy at /.test(output.stdout), 'the fall');
    await until(() => / \+ kl-high: /.test(output.stdout), 'the finding');
    await new Promise(resolve => setTimeout(resolve, 600));
    const told = lines().length;
    appendFileSync(file, '\n');
    await new Promise(resolve => setTimeout(resolve, 600));
    expect(lines()).toHaveLength(told);
    // The log is put aside and begun again.
    renameSync(file, join(dir, 'old.bak'));
    await until(() => lines().length > told && /not to be read now/.test(lines().at(-1)!), 'its absence');
    writeFileSync(file, log(4));
    writeFileSync(file, healthy);
    await until(() => / healthy at 102,400 steps: /.test(output.stdout), 'the new log');
    child.kill('SIGINT');
    const { code, stderr } = await done;
    expect({ code, stderr }, output.stdout).toEqual({ code: 0, stderr: '' });
    for (const line of lines()) expect(line).toMatch(/^\d\d:\d\d:\d\d {2}\S/);
  });

  test.concurrent.each([
    ['the verdict of a sick run', sick, 2],
    ['3 if nothing was ever read', 'nothing\n', 3],
  ] as const)('ends with %s', async (_, text, expected) => {
    const dir = logs({ 'progress.csv': text });
    const { child, done, output } = startKeel(['doctor', 'progress.csv', '--follow', '--interval', '0.1'], {
      cwd: dir,
    });
    await until(() => output.stdout !== '', 'the first look');
    child.kill('SIGTERM');
    expect((await done).code).toBe(expected);
  });
});

describe('many runs', () => {
  test('a thousand, with a bar in a terminal and none elsewhere', async () => {
    const dir = scratch();
    for (let i = 0; i < 1000; i++) {
      mkdirSync(join(dir, `run_${i}`));
      writeFileSync(join(dir, `run_${i}/progress.csv`), i % 100 === 0 ? sick : healthy);
    }
    const started = processorMs();
    const { code, stdout, stderr } = await keel(['doctor', dir, '--json']);
    expect(processorMs() - started).toBeLessThan(200_000);
    expect({ code, stderr }).toEqual({ code: 2, stderr: '' });
    const runs = wholeJson(stdout);
    expect(runs).toHaveLength(1000);
    expect(runs.filter(({ verdict }) => verdict === 'sick')).toHaveLength(10);

    const limited = await keel(['doctor', dir, '--limit', '7']);
    expect(limited.stderr).toContain('1000 runs were found, and the first 7 are looked at');
    expect(limited.stdout).toMatch(/^7 runs in /);

    if (process.platform !== 'linux' || spawnSync('script', ['--version']).status !== 0) return;
    const command = `stty cols 80 rows 24; '${process.execPath}' '${mainFile}' doctor '${dir}'`;
    const env = {
      ...process.env,
      TERM: 'xterm-256color',
      NO_COLOR: '',
      CI: '',
      SHELL: '/bin/sh',
      LC_ALL: 'C.UTF-8',
    };
    const screen = spawnSync('script', ['-qfec', command, '/dev/null'], { env, encoding: 'utf8' }).stdout;
    expect(screen).toMatch(/\[#+\.+\] \d+ of 1000 runs/);
    expect(screen).toContain('\u001b[1;37;41m SICK \u001b[22;39;49m');
  });
});
