/**
 * `npm run bench -- sweep optuna [--seeds 1000..1029] [--trials 100] [--only branin] [--keep folder]`: median regret over 30 studies of
 * our samplers and of Optuna's TPE, by its defaults and with multivariate=True, on functions with known minima; then the time of an ask.
 *
 * TPE was tuned on seeds 0 to 29; the default seeds are others. `KEEL_OPTUNA_PYTHON` is a Python that has optuna (Debian's
 * python3-optuna: /usr/bin/python3). Optuna's 360 studies take about a quarter of an hour: `--keep` writes what they found to a folder, and reads it from
 * there when it is asked again.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import type { Method, Objective, Params } from '../../src/studies/schema.ts';
import { makeSampler } from '../../src/sweep/samplers/make.ts';
import type { Seen } from '../../src/sweep/samplers/sampler.ts';
import { median, report, timeInTurns } from '../measure.ts';
import { refuse } from '../refuse.ts';
import { type TestFunction, testFunctions } from './functions.ts';

const PYTHON = process.env.KEEL_OPTUNA_PYTHON ?? '/usr/bin/python3';
const objective: Objective = { metric: 'score', direction: 'minimize', of: 'last', over: 'mean' };

export function run(args: string[]): void {
  const { values } = parseArgs({
    args,
    options: {
      seeds: { type: 'string', default: '1000..1029' },
      trials: { type: 'string', default: '100' },
      only: { type: 'string' },
      keep: { type: 'string' },
    },
  });
  const [first, last] = values.seeds.split('..').map(Number);
  const trials = Number(values.trials);
  if (
    !(
      Number.isInteger(first) &&
      Number.isInteger(last) &&
      last >= first &&
      Number.isInteger(trials) &&
      trials > 0
    )
  )
    refuse(`--seeds ${values.seeds} --trials ${values.trials} are not numbers: use 1000..1029 and 100`);
  const seeds = Array.from({ length: last - first + 1 }, (_, i) => first + i);
  const functions = testFunctions.filter(({ name }) => name === (values.only ?? name));
  if (functions.length === 0)
    refuse(`--only ${values.only} is no function: use ${testFunctions.map(({ name }) => name).join(', ')}`);

  for (const one of functions) {
    const ours = (method: Method): number[] => seeds.map(seed => regretOf(one, method, seed, trials));
    const theirs = (multivariate: boolean): number[] =>
      optunaRegrets(one, { seeds, trials, multivariate }, values.keep);
    const [tpe, optuna] = [ours('tpe'), theirs(false)];
    report({
      function: one.name,
      studies: seeds.length,
      trials,
      tpe: figures(tpe),
      optuna_tpe: figures(optuna),
      optuna_tpe_multivariate: figures(theirs(true)),
      quasi_random: figures(ours('quasi-random')),
      random: figures(ours('random')),
      no_worse_than_optuna: median(tpe) <= median(optuna),
    });
  }
  timeOfAsk();
}

/** Median and quartiles. */
function figures(regrets: readonly number[]): number[] {
  const sorted = [...regrets].sort((a, b) => a - b);
  const half = Math.ceil(sorted.length / 2);
  return [sorted, sorted.slice(0, half), sorted.slice(-half)].map(part =>
    Number(median(part).toPrecision(3)),
  );
}

function regretOf(
  { space, value, best }: TestFunction,
  method: Method,
  searchSeed: number,
  trials: number,
): number {
  const sampler = makeSampler({ space, method, searchSeed, objective });
  const seen = studyOf(value, trials, (number, before) => sampler.ask(number, before));
  return Math.min(...seen.map(trial => trial.value ?? Infinity)) - best;
}

function studyOf(
  value: (params: Params) => number,
  trials: number,
  ask: (number: number, seen: readonly Seen[]) => Params | undefined,
): Seen[] {
  const seen: Seen[] = [];
  for (let number = 0; number < trials; number++) {
    const params = ask(number, seen);
    if (params === undefined) break;
    seen.push({ number, state: 'complete', params, value: value(params), rungs: [], violations: [] });
  }
  return seen;
}

interface OptunaJob {
  readonly seeds: readonly number[];
  readonly trials: number;
  readonly multivariate: boolean;
}

function optunaRegrets({ name, space, value, best }: TestFunction, job: OptunaJob, keep?: string): number[] {
  const { seeds, trials, multivariate } = job;
  const kind = multivariate ? 'multivariate' : 'default';
  const file = keep && join(keep, `${name}-${kind}-${seeds[0]}-${seeds.at(-1)}x${trials}.jsonl`);
  let text = file && existsSync(file) ? readFileSync(file, 'utf8') : '';
  if (text === '') {
    // Isolated (-I): the script's own folder has an optuna.py, itself, which it would import.
    const ended = spawnSync(PYTHON, ['-I', fileURLToPath(new URL('optuna.py', import.meta.url))], {
      input: JSON.stringify({ function: name, space, ...job }),
      encoding: 'utf8',
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    if (ended.status !== 0)
      refuse(
        `${PYTHON} could not run Optuna: ${ended.error?.message ?? ended.stderr.trim().split('\n').at(-1)}: install python3-optuna, or set KEEL_OPTUNA_PYTHON`,
      );
    text = ended.stdout;
    if (keep && file) {
      mkdirSync(keep, { recursive: true });
      writeFileSync(file, text);
    }
  }
  const studies = text
    .trim()
    .split('\n')
    .map(line => JSON.parse(line) as { seed: number; value: number; params: Params });
  if (studies.length !== seeds.length)
    refuse(`${file ?? name}: ${studies.length} studies, not ${seeds.length}: remove the file and run again`);
  for (const study of studies) {
    const here = value(study.params);
    if (Math.abs(here - study.value) > 1e-9 * (1 + Math.abs(here)))
      throw new Error(
        `${name} is ${study.value} in optuna.py and ${here} in functions.ts at ${JSON.stringify(study.params)}`,
      );
  }
  return studies.map(study => study.value - best);
}

/** The ask of trial 1,000, with 999 seen: must be well below 50 ms. */
function timeOfAsk(): void {
  for (const name of ['hartmann6', 'conditions']) {
    const { space, value } = testFunctions.find(one => one.name === name)!;
    const sampler = makeSampler({ space, method: 'tpe', searchSeed: 0, objective });
    const random = makeSampler({ space, method: 'random', searchSeed: 0, objective });
    const seen = studyOf(value, 999, number => random.ask(number, []));
    const [ms] = timeInTurns(21, [() => sampler.ask(999, seen)]);
    report({
      ask_of_trial: 1000,
      function: name,
      axes: space.length,
      median_ms: Number(ms.toFixed(2)),
      target_ms: 50,
    });
  }
}
