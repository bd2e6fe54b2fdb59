/** What batch schedulers are given, where a name could mean something else to them. */
import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { emit } from '../../src/sweep/emit.ts';

const options = {
  study: { name: 'My_Study.2' },
  runs: 7,
  atOnce: 3,
  program: ['node', '/my keel/main.js'],
  image: 'keel:7',
  claim: 'disk',
};

test('Slurm: spaces, quotes and % of a path stay what they are', () => {
  const dir = `/runs of 'mine'/100%j "x"/s`;
  const { text } = emit('slurm', { ...options, dir });
  expect(text).toContain(`#SBATCH --output="/runs of 'mine'/100%%j \\"x\\"/s/slurm-%a.log"\n`);
  expect(text).toContain('#SBATCH --array=0-6%3\n');
  // The command reaches the shell as it was: here it only says its words.
  const command = text.split('\n').find(line => line.endsWith('"$SLURM_ARRAY_TASK_ID" &'))!;
  const words = execFileSync('bash', ['-c', `printf '%s\\n' ${command.slice(0, -2)}`], {
    encoding: 'utf8',
    env: { ...process.env, SLURM_ARRAY_TASK_ID: '4' },
  });
  expect(words.trimEnd().split('\n')).toEqual([...options.program, 'sweep', 'task', dir, '--index', '4']);
});

test('Kubernetes: the name is one that it takes, the directory is where the claim is mounted', () => {
  const { text } = emit('k8s', { ...options, dir: '/data/studies/s' });
  const { metadata, spec } = JSON.parse(text);
  expect(metadata.name).toMatch(/^keel-my-study-2$/);
  expect(spec).toMatchObject({ completions: 7, parallelism: 3, completionMode: 'Indexed' });
  const [container] = spec.template.spec.containers;
  expect(container.volumeMounts).toEqual([{ name: 'study', mountPath: '/data/studies/s' }]);
  expect(container.args[0]).toMatch(/sweep task \/data\/studies\/s --index "\$JOB_COMPLETION_INDEX"$/);
});
