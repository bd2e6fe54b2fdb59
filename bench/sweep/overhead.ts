/**
 * `npm run bench -- sweep overhead [--env pendulum] [--steps 400000] [--runs 3] [--rounds 3]`: what a study takes beside its runs.
 * A bare loop of `train()` in one process against a study of the same settings and seeds on this machine, one run at a time,
 * in turns, each in a fresh process. The study's time has the start of its process in it, the journal, and the doctor's look at
 * each run. The aim is below 5 % for runs of 10 s. It counts only where nothing else runs on the machine.
 */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { median, report, round } from '../measure.ts';
import { refuse } from '../refuse.ts';
import { withPackage } from './package.ts';

export async function run(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      env: { type: 'string', default: 'pendulum' },
      steps: { type: 'string', default: '400000' },
      runs: { type: 'string', default: '3' },
      rounds: { type: 'string', default: '3' },
    },
  });
  const [steps, runs, rounds] = [values.steps, values.runs, values.rounds].map(Number);
  if (![steps, runs, rounds].every(n => Number.isInteger(n) && n > 0))
    refuse('--steps, --runs and --rounds are whole numbers from 1 on');
  const seeds = Array.from({ length: runs }, (_, seed) => seed);
  await withPackage(async ({ work, url }) => {
    const names = { bare: 'algos/runs', study: 'sweep/sweep' } as const;
    /** Seconds of all runs, and the weights that they ended with. */
    const time = async (kind: keyof typeof names, turn: number): Promise<number> => {
      const root = join(work, `${kind}-${turn}`);
      const from = JSON.stringify({ env: values.env, root });
      // As a job of a study has them: one core, no films.
      const config = JSON.stringify({ steps, workers: 0, threads: 1, record: false });
      const act = {
        bare: `for (const seed of ${JSON.stringify(seeds)}) await train({ ...${from}, config: { ...${config}, seed } });`,
        study: `await sweep({ ...${from}, config: ${config}, space: {}, seeds: ${JSON.stringify(seeds)}, jobs: 1 });`,
      }[kind];
      const what = kind === 'bare' ? 'train' : 'sweep';
      return timedIn(`const { ${what} } = await import(${JSON.stringify(url(names[kind]))});
const startedAt = performance.now();
${act}
process.stdout.write(String((performance.now() - startedAt) / 1000));`);
    };
    const ratios: number[] = [];
    const bares: number[] = [];
    for (let turn = 0; turn < rounds; turn++) {
      // Who is first changes, so that what a machine does over time hits both.
      const first = turn % 2 === 0 ? (['bare', 'study'] as const) : (['study', 'bare'] as const);
      const seconds = { bare: 0, study: 0 };
      for (const kind of first) seconds[kind] = await time(kind, turn);
      ratios.push(seconds.study / seconds.bare);
      bares.push(seconds.bare / runs);
      report({ turn, bare_seconds: round(seconds.bare), study_seconds: round(seconds.study) });
    }
    const ratio = median(ratios);
    report({
      ...{ env: values.env, steps, runs, rounds, seconds_a_run: round(median(bares)) },
      ...{ ratio: round(ratio, 3), overhead_percent: round((ratio - 1) * 100, 1), aim_percent: 5 },
      overhead_ms_a_run: round((ratio - 1) * median(bares) * 1000, 0),
    });
  });
}

/** The number that a program prints. */
async function timedIn(program: string): Promise<number> {
  const child = spawn(process.execPath, ['--input-type=module', '--eval', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let said = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
  const exit = await new Promise<number | null>(done => child.once('close', done));
  if (exit !== 0 || !(Number(said) > 0)) throw new Error(`it ended with ${exit} and said ${said}`);
  return Number(said);
}
