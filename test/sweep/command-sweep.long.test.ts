/** `keel sweep` and `keel train --seeds` as users type them: real runs, tiny ones, in real processes. */
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { openRun } from '../../src/runs/store.ts';
import { readJournal } from '../../src/studies/journal.ts';
import type { Trial } from '../../src/studies/schema.ts';
import { keel, mainFile, scratch, startKeel } from '../cli/support/keel.ts';
import { until } from '../support/until.ts';

const cwd = scratch();
/** Two updates a run. */
const tiny = {
  ...{ envs: 2, stepsPerRollout: 32, minibatchSize: 32, epochs: 1, hidden: [8], steps: 128 },
  ...{ csv: false, tensorboard: false },
};
const grid = {
  env: 'cartpole',
  config: tiny,
  space: { learningRate: [0.001, 0.003] },
  method: 'grid',
  trials: 2,
  seeds: '0..1',
};
const file = (name: string, study: object): string => {
  writeFileSync(join(cwd, name), JSON.stringify(study));
  return name;
};
const trialsOf = (name: string): readonly Trial[] =>
  readJournal(join(cwd, 'studies', name, 'journal.log')).trials;
/** What each run of a study came to, whatever the run is called. */
const weightsOf = (trials: readonly Trial[]): (string | number | null)[][] =>
  trials
    .flatMap(({ number, purpose, outcomes }) =>
      outcomes.map(({ seed, step, weights }) => [purpose, number, seed, step, weights]),
    )
    .sort((a, b) => Number(a[1]) - Number(b[1]) || Number(a[2]) - Number(b[2]));
/** Lines of `--json` of one kind. */
const linesOf = (text: string, kind: string): { run: string; kind: string }[] =>
  text
    .split('\n')
    .filter(line => line.startsWith('{') && line.endsWith('}'))
    .map(line => JSON.parse(line))
    .filter(line => line.kind === kind);
const ok = async (...args: string[]): Promise<string> => {
  const { code, stdout, stderr } = await keel(args, { cwd });
  expect(stderr).toBe('');
  expect(code).toBe(0);
  return stdout;
};

file('grid.json', grid);
const calm = await keel(['sweep', 'grid.json', '--name', 'calm', '--jobs', '2', '--confirm', '2'], { cwd });
const search = trialsOf('calm').filter(({ purpose }) => purpose === 'search');

describe('a study of a file', () => {
  test('tries every setting on every seed, and confirms the winner on fresh ones', () => {
    expect(calm).toMatchObject({ code: 0, stderr: '' });
    expect(search.map(({ params, seeds, state }) => ({ params, seeds, state }))).toEqual(
      [0.001, 0.003].map(learningRate => ({ params: { learningRate }, seeds: [0, 1], state: 'complete' })),
    );
    const fresh = trialsOf('calm').filter(({ purpose }) => purpose !== 'search');
    expect(fresh.map(({ purpose }) => purpose)).toEqual(['confirm-winner', 'confirm-default']);
    for (const { seeds, outcomes } of fresh) {
      expect(seeds).toHaveLength(2);
      expect(Math.min(...seeds)).toBeGreaterThanOrEqual(1000);
      expect(outcomes.map(({ finished }) => finished)).toEqual([true, true]);
    }
    expect(fresh[0].seeds).toEqual(fresh[1].seeds);
    expect(calm.stdout).toContain('on seeds that nothing was tuned on');
    expect(calm.stdout).toContain('probability that the winner is better');
    expect(calm.stdout).toContain('keel sweep export studies/calm --out calm-best.yaml');
  });

  test('asked for again does nothing, and says the same', async () => {
    const runs = join(cwd, 'studies/calm/runs');
    const before = readdirSync(runs);
    const said = await ok('sweep', 'studies/calm', '--confirm', '2', '--json');
    expect(linesOf(said, 'outcome')).toEqual([]);
    expect(linesOf(said, 'end')).toMatchObject([{ status: 'finished' }]);
    expect(readdirSync(runs)).toEqual(before);
  });

  test('is shown, compared and exported; its file trains', async () => {
    const { summary, trials } = JSON.parse(await ok('sweep', 'show', 'calm', '--json'));
    expect(trials).toHaveLength(4);
    const best = Math.max(...search.map(({ value }) => value!));
    expect(summary.winner.value).toBe(best);
    const shown = await ok('sweep', 'show', 'calm');
    expect(shown).toContain('calm: 2 trials of at most 2, 512 steps');
    expect(shown).toMatch(/learningRate\s/);
    expect(await ok('sweep', 'show')).toMatch(/^calm\s+cartpole\s+grid\s+2 of 2/m);
    const compared = await ok('sweep', 'compare', 'calm', 'calm');
    expect(compared).toMatch(new RegExp(`learningRate\\s+(${summary.winner.params.learningRate}\\s*){2}`));
    expect(compared).toMatch(/on fresh seeds\s+\d/);

    await ok('sweep', 'export', 'calm', '--out', 'best.yaml');
    const text = readFileSync(join(cwd, 'best.yaml'), 'utf8');
    // As often as one likes, but not over a study.
    await ok('sweep', 'export', 'calm', '--out', 'best.yaml');
    const over = await keel(['sweep', 'export', 'calm', '--out', 'grid.json'], { cwd });
    expect(over).toMatchObject({
      code: 2,
      stderr: 'keel: grid.json is the file of a study: write the winner to another one\n',
    });
    expect(JSON.parse(readFileSync(join(cwd, 'grid.json'), 'utf8'))).toEqual(grid);
    expect(parse(text)).toEqual({ env: 'cartpole', ...tiny, ...summary.winner.params });
    expect(text).toMatch(/^# On fresh seeds: \d/m);
    await ok('train', '-c', 'best.yaml', '--exit', '--run-dir', 'exported');
    const [run] = readdirSync(join(cwd, 'exported'));
    expect(openRun(join(cwd, 'exported', run)).manifest.config).toMatchObject(summary.winner.params);
  });
});

describe('stopped', () => {
  test('killed in the middle it goes on: no run is done twice, weights as if nothing had been', async () => {
    const { child, done, output } = startKeel(
      ['sweep', 'grid.json', '--name', 'killed', '--jobs', '1', '--json'],
      { cwd },
    );
    await until(() => linesOf(output.stdout, 'outcome').length > 0, 'the first run');
    child.kill('SIGKILL');
    expect((await done).signal).toBe('SIGKILL');
    const before = trialsOf('killed').flatMap(({ outcomes }) => outcomes.map(({ run }) => run));
    expect(before.length).toBeGreaterThan(0);
    const again = linesOf(await ok('sweep', 'studies/killed', '--jobs', '1', '--json'), 'outcome');
    expect([...before, ...again.map(({ run }) => run)].toSorted()).toEqual(
      readdirSync(join(cwd, 'studies/killed/runs')).toSorted(),
    );
    expect(weightsOf(trialsOf('killed'))).toEqual(weightsOf(search));
  });

  test('Ctrl-C ends it with 130, with every run saved, and says how to go on', async () => {
    file('endless.json', { ...grid, config: { ...tiny, steps: 1_000_000_000, checkpointEvery: 1000 } });
    const { child, done, output } = startKeel(['sweep', 'endless.json', '--name', 'endless', '--jobs', '1'], {
      cwd,
    });
    const runs = join(cwd, 'studies/endless/runs');
    await until(
      () => readdirSync(join(cwd, 'studies')).includes('endless') && readdirSync(runs).length > 0,
      'a run',
    );
    expect(output.stdout).toContain('endless: grid, at most 2 trials of 2 seeds, 1 at once');
    child.kill('SIGINT');
    const ended = await done;
    expect(ended.code).toBe(130);
    expect(ended.stderr).toContain('stopping: runs are saved; again to quit at once');
    expect(ended.stdout).toContain('go on:   keel sweep studies/endless');
    const [run] = readdirSync(runs);
    expect(['stopped', 'created']).toContain(openRun(join(runs, run)).status);
  });
});

describe('for batch schedulers', () => {
  test('Slurm: the file is a script whose tasks do the runs, which the study then takes', async () => {
    const emitted = await ok('sweep', 'grid.json', '--name', 'slurm', '--emit', 'slurm');
    expect(emitted).toContain('studies/slurm/slurm.sh: 4 tasks, a run each');
    expect(existsSync(join(cwd, 'studies/slurm/journal.log'))).toBe(false);
    const path = join(cwd, 'studies/slurm/slurm.sh');
    execFileSync('bash', ['-n', path]);
    const text = readFileSync(path, 'utf8');
    expect(text).toContain('#SBATCH --array=0-3%4');
    expect(text).toContain(`#SBATCH --output="${join(cwd, 'studies/slurm')}/slurm-%a.log"`);
    expect(text).toContain(`${mainFile} sweep task ${join(cwd, 'studies/slurm')} --index`);
    // As the scheduler starts it; the others by the same command, in this process.
    execFileSync('bash', [path], { cwd, env: { ...process.env, SLURM_ARRAY_TASK_ID: '3' } });
    for (const index of ['0', '1', '2', '3'])
      await ok('sweep', 'task', 'studies/slurm', '--index', index, '--json');
    const { resumes } = openRun(runOf('slurm', 3)).manifest;
    await ok('sweep', 'studies/slurm', '--jobs', '1');
    expect(weightsOf(trialsOf('slurm'))).toEqual(weightsOf(search));
    expect(openRun(runOf('slurm', 3)).manifest.resumes).toEqual(resumes);
  });

  test('Kubernetes: an indexed job with a completion for every run', async () => {
    await ok('sweep', 'grid.json', '--name', 'k8s', '--emit', 'k8s', '--image', 'keel:7', '--claim', 'disk');
    const job = JSON.parse(readFileSync(join(cwd, 'studies/k8s/k8s.json'), 'utf8'));
    expect(job).toMatchObject({ apiVersion: 'batch/v1', kind: 'Job', metadata: { name: 'keel-k8s' } });
    expect(job.spec).toMatchObject({ completionMode: 'Indexed', completions: 4, parallelism: 4 });
    const { containers, volumes } = job.spec.template.spec;
    expect(containers[0]).toMatchObject({ image: 'keel:7' });
    expect(containers[0].args[0]).toContain(`keel sweep task ${join(cwd, 'studies/k8s')} --index`);
    expect(volumes[0].persistentVolumeClaim.claimName).toBe('disk');
  });

  function runOf(study: string, index: number): string {
    const runs = join(cwd, 'studies', study, 'runs');
    return join(runs, readdirSync(runs).toSorted()[index]);
  }
});

test('keel train --seeds is a study of one trial', async () => {
  const sets = Object.entries({ ...tiny, learningRate: 0.001 }).flatMap(([key, value]) => [
    '--set',
    `${key}=${JSON.stringify(value)}`,
  ]);
  const said = await ok('train', 'cartpole', '--seeds', '0..1', ...sets);
  expect(said).toContain('cartpole: one trial of 2 seeds');
  expect(weightsOf(trialsOf('cartpole'))).toEqual(weightsOf(search.slice(0, 1)));
});

describe('wrong use is exit code 2 with a line for each problem, and leaves no study behind', () => {
  file('tpe.json', { ...grid, method: 'tpe', space: { learningRate: { log: [0.0001, 0.01] } } });
  file('option.json', { env: 'pendulum', space: { 'envOptions.grav': [1, 2], gamma: [0.9] } });
  file('actions.json', { ...grid, space: { logStdMin: { range: [-2, -1] } }, method: 'random' });
  file('wrong.json', { ...grid, lerningRate: 1, config: { ...tiny, nosuch: 1 }, seeds: 'x' });
  test.each<[string[], RegExp[]]>([
    [['wrong.json'], [/lerningRate is not a key of a study/, /nosuch/, /seeds is "x"/]],
    [['cartpole', '--set', 'lerningRate=1'], [/lerningRate/]],
    [['cartpole', '--seeds', '1000..1002'], [/seeds .*1000/]],
    [['cartpoel'], [/environment "cartpoel" is unknown: did you mean CartPole/]],
    [['none.yaml'], [/none\.yaml/]],
    [['studies'], [/there is no study in studies: keel sweep show lists them/]],
    [['calm'], [/calm is no environment but a study, which goes on with keel sweep studies\/calm/]],
    [['option.json'], [/space\.envOptions\.grav: Pendulum-v1 has no option "grav": did you mean gravity\?/]],
    [['actions.json'], [/space\.logStdMin has no effect on the actions Discrete\(2\): only continuous/]],
    [['cartpole', '--set', 'logStdMin=-1'], [/config\.logStdMin has no effect on the actions Discrete\(2\)/]],
    [['grid.json', '--set', 'envOptions.mass=2'], [/envOptions: CartPole-v1 has no option "mass"/]],
    [['studies/calm', '--trials', '3'], [/--trials is for a new study, studies\/calm has its own/]],
    [['grid.json', '--name', 'calm'], [/studies\/calm is a study already/]],
    [['cartpole', '--method', 'best'], [/method .*best/]],
    [['cartpole', '--confirm', '0'], [/--confirm 0 confirms nothing/]],
    [['cartpole', '--jobs', '0'], [/--jobs 0 does nothing/]],
    [['grid.json', '--queue', 'localhost:6379'], [/the address of the queue cannot be used/]],
    [['grid.json', '--queue', 'redis://h', '--jobs', '2'], [/--jobs has no effect with --queue/]],
    [['tpe.json', '--emit', 'slurm'], [/method tpe decides by results what is tried next/]],
    [['grid.json', '--emit', 'pbs'], [/pbs is none: use slurm or k8s/]],
    [['show', 'clam'], [/there is no study "clam" in studies: did you mean calm\?/]],
    [['compare', 'calm'], [/compare needs two studies, calm is one/]],
    [['compare', 'calm', 'nothing'], [/there is no study "nothing"/]],
    [['export', 'nothing'], [/there is no study "nothing"/]],
    [['task', 'calm', '--index', '4'], [/--index 4 is beyond the last of 4 runs: use 0 to 3/]],
    [['task', 'calm'], [/required option '--index <n>' not specified/]],
  ])('keel sweep %j', async (args, says) => {
    const before = readdirSync(join(cwd, 'studies'));
    const { code, stdout, stderr } = await keel(['sweep', ...args], { cwd });
    const lines = stderr.trimEnd().split('\n');
    expect(lines, stderr).toHaveLength(says.length);
    for (const say of says) expect(stderr).toMatch(say);
    for (const line of lines) expect(line).toMatch(/^keel: /);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(readdirSync(join(cwd, 'studies'))).toEqual(before);
  });

  test.each<[string[], RegExp]>([
    [['cartpole', '--seeds', '1000..1002'], /seeds .*1000/],
    [['cartpole', '--seeds', '0..1', '--seed', '3'], /--seed and --seeds do not go together/],
    [['--seeds', '0..1'], /--seeds needs an environment/],
  ])('keel train %j', async (args, says) => {
    const { code, stderr } = await keel(['train', ...args], { cwd });
    expect(stderr).toMatch(says);
    expect(stderr.trimEnd().split('\n')).toHaveLength(1);
    expect(code).toBe(2);
  });
});

describe('what cannot come to anything', () => {
  test('more fresh seeds than one winner may have are refused before anything is trained', async () => {
    const { code, stderr } = await keel(['sweep', 'grid.json', '--name', 'many', '--confirm', '101'], {
      cwd,
    });
    expect(stderr).toBe('keel: --confirm 101 is too many seeds: use 100 or fewer\n');
    expect(code).toBeGreaterThan(0);
    expect(existsSync(join(cwd, 'studies', 'many'))).toBe(false);
  });

  test('a Redis that is not there leaves no study behind', async () => {
    const args = ['sweep', 'grid.json', '--name', 'away', '--queue', 'redis://127.0.0.1:1'];
    const { code, stderr } = await keel(args, { cwd });
    expect(stderr).toContain('cannot use Redis at redis://127.0.0.1:1');
    expect(code).toBeGreaterThan(0);
    expect(existsSync(join(cwd, 'studies', 'away'))).toBe(false);
  });

  test('a study whose trials all failed ends with 1 and offers nothing to export', async () => {
    file('wrong.json', {
      ...grid,
      config: { ...tiny, stepsPerRollout: undefined },
      space: { stepsPerRollout: [40] },
      seeds: 1,
    });
    const { code, stdout } = await keel(['sweep', 'wrong.json', '--name', 'wrong', '--jobs', '1'], { cwd });
    expect(code).toBe(1);
    expect(stdout).toMatch(/^trial 0: failed, stepsPerRollout 40; minibatchSize 32 does not divide 80/m);
    expect(stdout).not.toContain('export:');
  });

  test('a directory of studies that has no such study', async () => {
    const { code, stderr } = await keel(['sweep', 'studies/none'], { cwd });
    expect(stderr).toContain('there is no study in studies/none');
    expect(code).toBeGreaterThan(0);
  });
});
