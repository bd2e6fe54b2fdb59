/**
 * `npm run bench -- sweep halving [--env pendulum] [--steps 60000] [--pool 54] [--picture]`: successive halving against random
 * search, in steps of training.
 *
 * A pool of settings is drawn at random and trained whole. Then both searches are conducted over it in 200 orders: random
 * search trains the first third of the order whole, halving sees all of it. A run that pauses and goes on has the bits of one
 * that does not, so what a run came to at a rung is read from the log of the whole run; one search with halving is trained
 * for real, and must come to the same as its replay.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Rng } from '../../src/random/rng.ts';
import type { Params, RunOutcome, Study, Trial } from '../../src/studies/schema.ts';
import { sameParams } from '../../src/studies/seeds.ts';
import { studyPaths } from '../../src/studies/store.ts';
import { conduct, type StudyLog } from '../../src/sweep/conduct.ts';
import { rungsOf } from '../../src/sweep/halving.ts';
import { judge } from '../../src/sweep/judge.ts';
import { root } from '../../test/support/build-package.ts';
import { type Line, lineColours, panelsSvg } from '../line-panels.ts';
import { median, report, round } from '../measure.ts';
import { refuse } from '../refuse.ts';
import { withPackage } from './package.ts';

const ORDERS = 200;
const ETA = 3;
/** The first rung is after this share of a run. */
const FIRST = 9;
const picture = 'docs/pictures/sweep-halving.svg';

/** Settings that were trained whole, and what each had come to at each rung: its steps (null: the end), then the outcome. */
interface Pooled {
  readonly params: Params;
  readonly at: ReadonlyMap<number | null, RunOutcome>;
}

/** A search as it went: after so many steps of all runs, the best value of a whole run. */
interface Course {
  readonly steps: number[];
  readonly best: number[];
  /** Of all runs, when it was over. */
  readonly total: number;
}

export async function run(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      env: { type: 'string', default: 'pendulum' },
      steps: { type: 'string', default: '60000' },
      pool: { type: 'string', default: '54' },
      /** Writes the picture of the docs. */
      picture: { type: 'boolean', default: false },
    },
  });
  const [maxSteps, size] = [values.steps, values.pool].map(Number);
  if (!(size >= FIRST)) refuse(`--pool ${values.pool}: use ${FIRST} or more`);
  const halving = { eta: ETA, minSteps: Math.round(maxSteps / FIRST) };
  await withPackage(async ({ work, load }) => {
    const { sweep } = await load<typeof import('../../src/sweep/sweep.ts')>('sweep/sweep');
    const common = {
      env: values.env,
      config: { steps: maxSteps, csv: false, tensorboard: false },
      space: {
        learningRate: { log: [1e-5, 1e-1] },
        gamma: [0.9, 0.95, 0.98, 0.99, 0.999],
        gaeLambda: [0.8, 0.9, 0.95, 0.98],
        epochs: [2, 4, 10, 20],
        clipRange: [0.1, 0.2, 0.3],
      },
      method: 'random',
      trials: size,
      seeds: [0],
      constraints: { healthy: false },
    } as const;
    const whole = await sweep({ ...common, root: work, name: 'pool' });
    const rungs = [...rungsOf(halving, maxSteps).slice(0, -1), null];
    const pool: Pooled[] = [];
    for (const { params, outcomes } of whole.trials) {
      const [outcome] = outcomes;
      // One that cannot be trained fails at its first rung.
      if (outcome.status === 'failed')
        pool.push({ params, at: new Map(rungs.map(until => [until, outcome])) });
      else {
        const dir = join(studyPaths(whole.dir).runs, outcome.run);
        const at = new Map<number | null, RunOutcome>();
        for (const until of rungs)
          at.set(until, { ...outcome, ...(await judge(dir, until, whole.study.objective)) });
        pool.push({ params, at });
      }
    }
    const finals = pool.map(({ at }) => at.get(null)!.value ?? Number.NEGATIVE_INFINITY);
    report({
      ...{ env: values.env, steps: maxSteps, pool: size, rungs: rungsOf(halving, maxSteps) },
      ...{ best: round(Math.max(...finals), 1), median: round(median(finals), 1) },
      failed: whole.trials.filter(({ state }) => state === 'failed').length,
      /** 1: who leads at a rung leads at the end. */
      rank_correlation: rungs.slice(0, -1).map(until =>
        round(
          rankCorrelation(
            pool.map(({ at }) => at.get(until)!.value ?? -1e9),
            finals,
          ),
        ),
      ),
    });

    const study = { ...whole.study, halving };
    const real = await sweep({ ...common, halving, root: work, name: 'real', jobs: 1 });
    const replayed = await replay(study, maxSteps, pool);
    const isSame = same(real.trials, replayed.trials);
    report({ replay_is_as_trained: isSame, steps: replayed.course.total });
    if (!isSame) process.exitCode = 1;

    const tries = Math.round(size / ETA);
    const races = [];
    for (let seed = 0; seed < ORDERS; seed++) {
      const order = shuffled(pool, new Rng(seed));
      const random = randomCourse(order.slice(0, tries), maxSteps);
      const wanted = random.best.at(-1)!;
      const { course } = await replay(study, maxSteps, order);
      // The same trials and no more: what pruning alone costs.
      const few = await replay({ ...study, trials: tries }, maxSteps, order.slice(0, tries));
      const hit = course.best.findIndex(value => value >= wanted);
      races.push({
        ...{ random, course, wanted },
        reached: hit < 0 ? Number.POSITIVE_INFINITY : course.steps[hit],
        found: random.steps[random.best.indexOf(wanted)],
        lost: wanted - (few.course.best.at(-1) ?? Number.NEGATIVE_INFINITY),
        fewShare: few.course.total / random.total,
      });
    }
    const shares = races.map(({ reached, random }) => reached / random.total);
    const middle = median(shares);
    report({
      ...{ orders: ORDERS, random_trials: tries, random_steps: races[0].random.total, halving_trials: size },
      halving_steps: round(median(races.map(({ course }) => course.total)), 0),
      reaches_randoms_best: round(races.filter(({ reached }) => reached < Infinity).length / ORDERS),
      within_half: round(shares.filter(share => share <= 0.5).length / ORDERS),
      median_share_of_randoms_steps: Number.isFinite(middle) ? round(middle) : null,
      // Random search has its best before it is over, which it cannot know.
      median_share_until_random_found_it: round(median(races.map(({ reached, found }) => reached / found))),
    });
    report({
      same_trials: tries,
      steps_share: round(median(races.map(({ fewShare }) => fewShare))),
      prunes_the_best: round(races.filter(({ lost }) => lost > 0).length / ORDERS),
      median_loss_then: round(median(races.filter(({ lost }) => lost > 0).map(({ lost }) => lost)), 1),
      worst_loss: round(Math.max(...races.map(({ lost }) => lost)), 1),
    });
    if (values.picture) {
      const end = races[0].random.total;
      const lines = [
        medianLine(
          'random search',
          lineColours[1],
          races.map(({ random }) => random),
          end,
        ),
        medianLine(
          'halving',
          lineColours[0],
          races.map(({ course }) => course),
          end,
        ),
      ];
      const svg = panelsSvg('Best so far over steps of training, medians of 200 orders', [
        {
          title: `${whole.study.subject.reference}: best so far`,
          lines,
          levels: [],
          xEnd: last => `${(last / 1e6).toFixed(2)} M steps of all runs`,
        },
      ]);
      writeFileSync(join(root, picture), svg);
    }
  });
}

/** Conducts a search with halving over settings in an order, one job at a time. */
async function replay(
  study: Study,
  maxSteps: number,
  order: readonly Pooled[],
): Promise<{ course: Course; trials: readonly Trial[] }> {
  const log = memoryLog();
  const course = { steps: [] as number[], best: [] as number[], total: 0 };
  const reached = new Map<string, number>();
  await conduct({
    study,
    maxSteps,
    log,
    sampler: { ask: number => order[number]?.params },
    place: {
      slots: 1,
      async run(job) {
        const trial = log.trials.find(({ state, params }) => {
          const mine = { ...study.config, ...params };
          return state === 'running' && sameParams(mine as Params, job.config as Params);
        })!;
        const outcome = order[trial.number].at.get(job.until)!;
        return { ...outcome, run: job.run };
      },
      async close() {},
    },
    onOutcome(_, { run, step, value, finished }) {
      course.total += step - (reached.get(run) ?? 0);
      reached.set(run, step);
      const best = course.best.at(-1) ?? Number.NEGATIVE_INFINITY;
      if (!finished || value === null || value <= best) return;
      course.steps.push(course.total);
      course.best.push(value);
    },
  });
  return { course, trials: log.trials };
}

/** What the conductor writes, kept here: two hundred journals on a disk would take longer than all else. */
function memoryLog(): StudyLog {
  const trials: Trial[] = [];
  const change = (number: number, changed: Partial<Trial>): void => {
    trials[number] = { ...trials[number], ...changed };
  };
  return {
    trials,
    createTrial({ params, seeds, purpose = 'search' }) {
      const [number, at] = [trials.length, null];
      const empty = { value: null, rungs: [], outcomes: [], violations: [], startedAt: at, endedAt: at };
      trials.push({ ...empty, number, state: 'running', params, purpose, seeds });
      return trials[number];
    },
    setOutcome(number, outcome) {
      const others = trials[number].outcomes.filter(({ seed }) => seed !== outcome.seed);
      change(number, { outcomes: [...others, outcome] });
    },
    setRung(number, steps, value) {
      change(number, { rungs: [...trials[number].rungs, { steps, value }] });
    },
    endTrial: (number, end) => change(number, end),
  };
}

function randomCourse(order: readonly Pooled[], maxSteps: number): Course {
  const course = { steps: [] as number[], best: [] as number[], total: 0 };
  for (const { at } of order) {
    const { value, step, status } = at.get(null)!;
    course.total += status === 'failed' ? step : Math.max(step, maxSteps);
    if (value === null || value <= (course.best.at(-1) ?? Number.NEGATIVE_INFINITY)) continue;
    course.steps.push(course.total);
    course.best.push(value);
  }
  return course;
}

/** Whether two searches had the same trials, with the same values at the same rungs. */
function same(a: readonly Trial[], b: readonly Trial[]): boolean {
  const shown = (all: readonly Trial[]): string =>
    JSON.stringify(
      all.map(({ params, state, value, rungs, outcomes }) => [
        Object.entries(params).sort(([x], [y]) => (x < y ? -1 : 1)),
        state,
        value,
        rungs.map(rung => [rung.steps, rung.value]),
        // The whole runs of the pool have no checkpoint where a search paused.
        outcomes.map(({ step, value, finished, weights }) => [step, value, finished && weights]),
      ]),
    );
  return shown(a) === shown(b);
}

/** The median best over searches, where all of them have one. */
function medianLine(name: string, colour: string, courses: readonly Course[], end: number): Line {
  const xs: number[] = [];
  const ys: number[] = [];
  for (let i = 1; i <= 120; i++) {
    const at = (i / 120) * end;
    const best = courses.map(({ steps, best }) => best[steps.findLastIndex(step => step <= at)]);
    if (best.some(value => value === undefined)) continue;
    xs.push(at);
    ys.push(median(best));
  }
  return { name, colour, xs, ys };
}

/** Spearman's, of values without many ties. */
function rankCorrelation(a: readonly number[], b: readonly number[]): number {
  const ranks = (values: readonly number[]): number[] => {
    const sorted = [...values].sort((x, y) => x - y);
    return values.map(value => (sorted.indexOf(value) + sorted.lastIndexOf(value)) / 2);
  };
  const [x, y] = [ranks(a), ranks(b)];
  const middle = (a.length - 1) / 2;
  const dot = (p: readonly number[], q: readonly number[]): number =>
    p.reduce((sum, value, i) => sum + (value - middle) * (q[i] - middle), 0);
  return dot(x, y) / Math.sqrt(dot(x, x) * dot(y, y));
}

function shuffled<T>(values: readonly T[], rng: Rng): T[] {
  const mixed = [...values];
  for (let i = mixed.length - 1; i > 0; i--) {
    const k = rng.integer(i + 1);
    [mixed[i], mixed[k]] = [mixed[k], mixed[i]];
  }
  return mixed;
}
