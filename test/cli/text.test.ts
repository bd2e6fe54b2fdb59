/** Text tasks on the command line. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { keel, scratch } from './support/keel.ts';

const cwd = scratch();
const small = [
  ...['layers=1', 'width=16', 'heads=2', 'threads=1', 'taskOptions.digits=1', 'tensorboard=false'].flatMap(
    pair => ['--set', pair],
  ),
];
const group = ['promptsPerIteration=2', 'groupSize=4', 'minibatchSize=null'].flatMap(pair => ['--set', pair]);
const sizes = ['threads=1', 'taskOptions.digits=1', 'tensorboard=false'].flatMap(pair => ['--set', pair]);

test('clone, train --from, resume, eval: from nothing to a graded model', async () => {
  const cloned = await keel(
    [
      'clone',
      'arithmetic',
      '--steps',
      '64',
      '--set',
      'batchSize=16',
      '--set',
      'batchesPerIteration=2',
      ...small,
    ],
    { cwd },
  );
  expect(cloned.stderr).toBe('');
  expect(cloned.stdout).toMatch(/Finished: 64 demonstrations/);
  expect(cloned.stdout).toMatch(/loss \d/);
  // By its whole id, or its end where npx makes the line too long.
  expect(cloned.stdout).toMatch(/keel train arithmetic --from (arithmetic-\S+|\w{4})$/m);
  const trained = await keel(
    ['train', 'arithmetic', '--from', 'last', '--steps', '16', '--json', ...group, ...sizes],
    { cwd },
  );
  const lines = trained.stdout
    .trim()
    .split('\n')
    .map(line => JSON.parse(line) as Record<string, unknown>);
  expect(lines.map(({ kind }) => kind)).toEqual(['start', 'row', 'row', 'event', 'end']);
  expect(lines[2]).toMatchObject({ 'train/step': 16, 'train/iteration': 2 });
  const { id, dir } = lines[0] as { id: string; dir: string };
  expect(readdirSync(dir)).toContain('completions.jsonl');
  const manifest = JSON.parse(readFileSync(join(dir, 'manifest.json'), 'utf8'));
  expect(manifest).toMatchObject({
    algorithm: 'grpo',
    environment: { id: 'arithmetic', options: { digits: 1 } },
    config: { task: 'arithmetic' },
  });
  expect(manifest.parent.step).toBe(64);
  // Before its first iteration it was saved, too.
  const fromStart = await keel(['resume', id, '--from', '0', '--discard-later'], { cwd });
  expect(fromStart.stdout).toMatch(/^arithmetic from step 0 of 16: /);
  const resumed = await keel(['resume', id, '--steps', '24'], { cwd });
  expect(resumed.stdout).toMatch(/arithmetic from step 16 of 24/);
  expect(resumed.code).toBe(0);
  const evaluated = await keel(['eval', 'last', '-n', '8', '--json'], { cwd });
  expect(JSON.parse(evaluated.stdout)).toMatchObject({ task: 'arithmetic', completions: 8, ungraded: 0 });
  // The task names its newest run, with that run's options.
  const byTask = await keel(['eval', 'arithmetic', '-n', '8', '--json'], { cwd });
  expect(JSON.parse(byTask.stdout)).toEqual(JSON.parse(evaluated.stdout));
  const exported = await keel(['export', 'arithmetic', '-o', 'exported'], { cwd });
  expect(exported.stderr).toBe('');
  expect(exported.stdout).toMatch(
    new RegExp(`^${id}: checkpoint (16 \\(the best\\)|24 \\(the best, the last\\))`),
  );
  expect(readdirSync(join(cwd, 'exported'))).toContain('model.safetensors');
  const longer = await keel(['eval', 'arithmetic', '-n', '8', '--set', 'taskOptions.digits=2', '--json'], {
    cwd,
  });
  const { examples } = JSON.parse(longer.stdout) as { examples: { prompt: string }[] };
  expect(examples.some(({ prompt }) => /\d\d/.test(prompt))).toBe(true);
  const directory = join(dir, 'checkpoints', '16');
  const ofDirectory = await keel(['eval', 'arithmetic', '--from', directory, '-n', '8'], { cwd });
  expect(ofDirectory.stdout).toMatch(/reward .* over 8 completions/);
});

test('training from a run says which of its options are not those of that run', async () => {
  const own = scratch();
  const two = ['--set', 'taskOptions.digits=2'];
  await keel(['clone', 'arithmetic', '--steps', '64', ...small, ...two], { cwd: own });
  const trained = (options: string[]) =>
    keel(['train', 'arithmetic', '--from', 'last', '--steps', '8', ...group, ...options], { cwd: own });
  expect((await trained([...sizes, ...two])).stdout).not.toMatch(/note:/);
  const { stdout } = await trained(['--set', 'threads=1']);
  expect(stdout.replaceAll(/\s+/g, ' ')).toMatch(
    /note: the run that it starts from had digits 2, here it is 1: --set taskOptions\.digits=2 for the same/,
  );
});

test('preflight tries every part, and says that random weights look random', async () => {
  const { code, stdout, stderr } = await keel(['preflight', 'arithmetic', '--json', ...group, ...small], {
    cwd,
  });
  const report = JSON.parse(stdout) as {
    passed: boolean;
    parts: { part: string; status: string; detail: string; warnings: string[] }[];
  };
  expect(stderr).toBe('');
  expect(code).toBe(0);
  expect(report.parts.map(({ part, status }) => `${part} ${status}`)).toEqual(
    ['task', 'model', 'collect', 'score', 'rewards', 'batch', 'update', 'guard', 'nonfinite', 'resume'].map(
      part => `${part} passed`,
    ),
  );
  const of = (part: string) => report.parts.find(each => each.part === part)!;
  expect(of('model').warnings[0]).toMatch(/weights are random/);
  expect(of('batch').detail).toMatch(/; KL to the reference: exact$/);
  expect(of('nonfinite').detail).toMatch(/undone, weights to the bit/);
  expect(of('resume').detail).toMatch(/to the bit/);
});

test("preflight says how the KL to the reference comes about at the run's own size, where less may fit", async () => {
  const many = ['--set', 'promptsPerIteration=1000000', '--set', 'groupSize=8'];
  const batchPart = async (...sets: string[]) => {
    const { stdout } = await keel(['preflight', 'arithmetic', '--json', ...small, ...many, ...sets], { cwd });
    const { parts } = JSON.parse(stdout) as { parts: { part: string; status: string; detail: string }[] };
    return parts.find(({ part }) => part === 'batch');
  };
  expect((await batchPart())?.detail).toMatch(/; KL to the reference: ratio-k3$/);
  expect(await batchPart('--set', 'klRefEstimator=exact')).toMatchObject({
    status: 'failed',
    detail: expect.stringMatching(/^klRefEstimator exact keeps \d+ numbers a batch.*: use ratio-k3/),
  });
});

test.each<[string[], number, RegExp]>([
  [
    ['train', 'arithmetic', '--from', 'nowhere'],
    2,
    /--from nowhere is neither a model directory .* nor a run/,
  ],
  [
    ['train', 'arithmetic', '--set', 'grupSize=4'],
    2,
    /--set grupSize is not a config key: did you mean groupSize\?/,
  ],
  [
    ['train', 'arithmetic', '--set', 'referenceEvery=3'],
    2,
    /--set referenceEvery has no effect without reference refreshed/,
  ],
  [['train', 'arithmetic', '--set', 'taskOptions.digit=3'], 2, /digit.*digits/],
  [['train', 'arithmetik'], 2, /arithmetik/],
  [
    ['train', 'arithmetic', '--set', 'zzzzzz=4'],
    2,
    /--set zzzzzz is not a config key: keel config <task> lists them$/m,
  ],
  [['clone', 'arithmetic', '--set', 'groupSize=4'], 2, /--set groupSize is not a config key/],
  [['clone'], 2, /clone needs a task/],
  [['eval', 'arithmetic'], 2, /needs a model, and runs has no run of arithmetic: keel clone arithmetic/],
  [['export', 'arithmetic'], 2, /there is no run "?arithmetic"? in runs/],
  [['eval', 'arithmetic', '--set', 'groupSize=4'], 2, /--set groupSize has no effect on eval/],
])('keel %j: exit code and one line', async (args, code, message) => {
  const outcome = await keel(args, { cwd: scratch() });
  expect(outcome.stderr).toMatch(message);
  expect(outcome.stderr.trim().split('\n')).toHaveLength(1);
  expect(outcome.code).toBe(code);
});

test('config prints a file that train takes, for both ways of learning', async () => {
  const { stdout } = await keel(['config', 'arithmetic'], { cwd });
  expect(stdout).toMatch(/^task: arithmetic$/m);
  expect(stdout).toMatch(/^groupSize: 8$/m);
  expect(stdout).toMatch(/^# referenceEvery: 20 {2}\(no effect as things are\)$/m);
  const clone = await keel(['config', 'arithmetic', '--clone', '--json'], { cwd });
  expect(JSON.parse(clone.stdout)).toMatchObject({ task: 'arithmetic', batchSize: 64, layers: 2 });
});
