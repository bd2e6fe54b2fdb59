/**
 * Chess with GRPO: `npm run bench -- chess [--runs directory] [--seeds 1000..1002]` clones a model, trains it with the preset and
 * each seed, and evaluates start and end on the same fresh positions. Beside it the settings that the preset exists to avoid (every
 * reward -1 but a perfect one, no warm-up, a learning rate of 1e-3, no guard), from the same start, with the doctor's verdict.
 *
 * Finished runs in the directory are read, stopped ones gone on with. `--curves file` draws legal moves and KL.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { readCheckpoint } from '../src/algos/choose-checkpoint.ts';
import type { GrpoConfig, GrpoSettings } from '../src/algos/grpo/settings.ts';
import { clone, resume, train } from '../src/algos/runs.ts';
import { checkpointModel } from '../src/algos/text/checkpoint.ts';
import { completer } from '../src/algos/text/evaluate.ts';
import { checkpointDir, listCheckpoints, openRun, readEvents, readRows } from '../src/runs/index.ts';
import { bootstrapInterval, interquartileMean } from '../src/studies/statistics.ts';
import { evaluateChess, makeTask } from '../src/tasks/index.ts';
import { diagnoseFile } from './doctor/diagnose-file.ts';
import { presetHash } from './figures/preset.ts';
import { freshSeedsOf } from './figures/seeds.ts';
import { type Panel, panelsSvg } from './line-panels.ts';
import { machine, report, round, sum } from './measure.ts';
import { wholeRun } from './whole-run.ts';

/** Positions and mates that models are judged by; the seed is not one of training. */
const JUDGED = { prompts: 500, mates: 100, seed: 700_001 } as const;
/** Completions of the run with bad settings: it need not be long to go wrong. */
const BAD_STEPS = 6400;

/** GRPO learns to play: an illegal best move costs what RookWorld's scheme by ranks takes. */
const policyTask = { environmentShare: 0, bestIllegal: -1 } as const;
/** Both tasks are judged, so that it shows what becomes of the one that is not trained. */
const judgedTask = { environmentShare: 0.2, bestIllegal: -1 } as const;

const badSettings = {
  taskOptions: { ...policyTask, scheme: 'cliff' },
  config: {
    learningRate: 1e-3,
    guard: null,
    klRefCoefRule: 'fixed',
    klRefCoefWarmup: 0,
    klRefCoef: 0.001,
    rewardWarmup: 0,
    truncated: 'keep',
    steps: BAD_STEPS,
  },
} as const satisfies { readonly taskOptions: object; readonly config: GrpoSettings };

export async function run(): Promise<void> {
  const { values } = parseArgs({
    args: process.argv.slice(3),
    options: {
      runs: { type: 'string', default: 'runs/bench-chess' },
      seeds: { type: 'string', default: '1000..1002' },
      curves: { type: 'string' },
    },
  });
  const seeds = freshSeedsOf(values.seeds);
  report({ bench: 'chess', ...machine(), seeds, judged: JUDGED });
  // A run of other presets is another run.
  const presets = [presetHash('chess-clone'), presetHash('chess')].join('-');
  const place = (kind: string, seed: number): string => join(values.runs, `${kind}-${presets}-${seed}`);
  const trained: string[] = [];
  // One start for all: what differs between the seeds is GRPO's.
  const cloned = await whole(place('clone', seeds[0]), root =>
    clone({ task: 'chess', root, config: { seed: seeds[0] } }),
  );
  reportRun('clone', seeds[0], cloned);
  const start = startOf(cloned);
  const before = new Map<boolean, Record<string, number>>();
  const ends = new Map<boolean, Record<string, number>[]>();
  for (const seed of seeds) {
    const dir = await whole(place('grpo', seed), root =>
      train({ task: 'chess', root, taskOptions: policyTask, config: { seed }, from: start }),
    );
    reportRun('grpo', seed, dir);
    trained.push(dir);
    for (const sampled of [true, false]) {
      const first = before.get(sampled) ?? (await judge(cloned, dir, sampled));
      before.set(sampled, first);
      const after = await judge(dir, dir, sampled);
      ends.set(sampled, [...(ends.get(sampled) ?? []), after]);
      report({
        what: 'judged',
        seed,
        sampled,
        before: first,
        after,
        legalPoints: round(100 * (after.legal - first.legal), 1),
      });
    }
  }
  for (const [sampled, all] of ends)
    for (const name of ['legal', 'legal_unique', 'best', 'reward_policy', 'mate_legal']) {
      const values = all.flatMap(end => (end[name] === undefined ? [] : [end[name]]));
      if (values.length === 0) continue;
      const { low, high } = bootstrapInterval(values);
      report({
        what: 'all seeds',
        sampled,
        measure: name,
        before: before.get(sampled)![name],
        iqm: round(interquartileMean(values), 3),
        interval: [round(low, 3), round(high, 3)],
      });
    }
  const bad = await whole(place('bad', seeds[0]), root =>
    train({
      task: 'chess',
      root,
      from: start,
      taskOptions: badSettings.taskOptions,
      config: { ...badSettings.config, seed: seeds[0] },
    }),
  );
  reportRun('bad settings', seeds[0], bad);
  report({ what: 'judged, bad settings', sampled: true, after: await judge(bad, trained[0], true) });
  for (const [i, dir] of [...trained, bad].entries())
    await verdict(i < trained.length ? `grpo, seed ${seeds[i]}` : 'bad settings', dir);
  if (values.curves !== undefined) writeFileSync(values.curves, curves(trained, bad));
}

/** A finished run of a text task; see {@link wholeRun}. */
const whole = (root: string, begin: (root: string) => Promise<{ readonly dir: string }>): Promise<string> =>
  wholeRun(root, begin, dir => resume(dir));

/** The model that a cloning run ended with. */
function startOf(dir: string): string {
  const last = Math.max(...listCheckpoints(dir).map(({ step }) => step));
  return checkpointDir(dir, last);
}

/** Rates over fresh positions, with the last checkpoint; sampled as `settings` sampled in training, else its likeliest tokens. */
async function judge(dir: string, settings: string, sampled: boolean): Promise<Record<string, number>> {
  const model = checkpointModel(readCheckpoint(openRun(dir), 'last'));
  const { temperature, topK, topP } = openRun(settings).manifest.config as unknown as GrpoConfig;
  const task = await makeTask('chess', judgedTask);
  const { complete, close } = completer(model, task, {
    threads: 2,
    seed: 1,
    ...(sampled ? { temperature, topK, topP } : {}),
  });
  try {
    const texts = async (prompts: string[]): Promise<string[]> =>
      (await complete(prompts.map(text => ({ text, data: null })))).map(({ text }) => text);
    const { rows } = await evaluateChess(judgedTask, texts, JUDGED);
    return Object.fromEntries(rows.map(({ name, value }) => [name, round(value, 3)]));
  } finally {
    await close();
    await task.close?.();
  }
}

/** What a run's log says of its time and its bounds. */
function reportRun(kind: string, seed: number, dir: string): void {
  const rows = readRows(dir).items;
  const all = (name: string): number[] => rows.map(row => row[name]).filter(value => value !== undefined);
  const tenth = (values: readonly number[], from: number): number => {
    const some = values.slice(Math.floor(from * values.length), Math.ceil((from + 0.1) * values.length));
    return round(sum(some) / some.length, 4);
  };
  const ofTraining = (name: string) => {
    const values = all(name);
    return values.length === 0 ? undefined : [tenth(values, 0), tenth(values, 0.9)];
  };
  const most = (name: string) => {
    const values = all(name);
    return values.length === 0 ? undefined : Number(Math.max(...values).toPrecision(3));
  };
  report({
    what: kind,
    seed,
    iterations: rows.length,
    steps: rows.at(-1)!['train/step'],
    minutes: round(sum(['time/collect_s', 'time/update_s', 'time/guard_s'].flatMap(all)) / 60, 1),
    loss: ofTraining('loss/clone'),
    // First and last tenth of training.
    reward: ofTraining('reward/mean'),
    legal: ofTraining('env/legal'),
    klRef: ofTraining('kl/ref'),
    entropy: ofTraining('policy/entropy'),
    groupsWithoutSpread: ofTraining('reward/zero_std_groups'),
    largestKlRef: most('kl/ref'),
    largestKlStep: most('kl/step'),
    largestKlSampler: most('kl/sampler'),
    skipped: sum(all('train/skipped')),
    restored: readEvents(dir).items.filter(event => event.type === 'restored').length,
  });
}

async function verdict(name: string, dir: string): Promise<void> {
  const { verdict: given, rootCause, summary, findings } = await diagnoseFile(dir);
  report({
    what: `doctor: ${name}`,
    verdict: given,
    rootCause,
    summary,
    findings: findings.map(({ code }) => code),
  });
}

/** Legal moves, reward and KL to the reference over completions. */
function curves(trained: readonly string[], bad: string): string {
  const lineOf = (dir: string, name: string) => {
    const rows = readRows(dir).items.filter(row => row[name] !== undefined);
    return { xs: rows.map(row => row['train/step']), ys: smooth(rows.map(row => row[name])) };
  };
  const panel = (title: string, name: string, levels: Panel['levels'] = []): Panel => ({
    title,
    lines: [
      ...trained.map(dir => ({ ...lineOf(dir, name), colour: '#2563eb' })),
      { ...lineOf(bad, name), colour: '#dc2626' },
    ],
    levels,
    xEnd: steps => `${Math.round(steps / 1000)}k completions`,
    digits: 2,
  });
  return panelsSvg('GRPO on chess', [
    panel('Legal best moves', 'env/legal'),
    panel('Mean reward', 'reward/mean'),
    panel('KL to the start, per token', 'kl/ref'),
  ]);
}

/** Means over ten iterations. */
function smooth(values: readonly number[]): number[] {
  return values.map((_, i) => {
    const some = values.slice(Math.max(0, i - 9), i + 1);
    return some.reduce((a, b) => a + b, 0) / some.length;
  });
}
