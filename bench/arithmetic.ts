/**
 * Arithmetic with GRPO, from nothing: `npm run bench -- arithmetic [--seeds 1100..1102] [--runs directory]` clones a small model
 * from demonstrations and improves it, both with their presets, for each seed, and judges both on the same 1,000 prompts, which
 * are of another seed than any run's: of the 200 sums and differences of one digit training sees all, too. Finished runs in the directory are read, stopped ones gone on with.
 */
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { clone, openPolicy, resume, train } from '../src/algos/runs.ts';
import { readRows } from '../src/runs/index.ts';
import { bootstrapInterval, interquartileMean } from '../src/studies/statistics.ts';
import { verdictOn } from './figures/judge-run.ts';
import { presetHash } from './figures/preset.ts';
import { freshSeedsOf } from './figures/seeds.ts';
import { machine, report, round } from './measure.ts';
import { wholeRun } from './whole-run.ts';

const PROMPTS = 1000;
const JUDGING_SEED = 10_000;

export async function run(): Promise<void> {
  const { values } = parseArgs({
    args: process.argv.slice(3),
    options: {
      runs: { type: 'string', default: 'runs/bench-arithmetic' },
      seeds: { type: 'string', default: '1100..1102' },
    },
  });
  const seeds = freshSeedsOf(values.seeds);
  report({ bench: 'arithmetic', ...machine(), seeds, prompts: PROMPTS });
  // A run of other presets is another run.
  const presets = [presetHash('arithmetic-clone'), presetHash('arithmetic')].join('-');
  const gains: { before: Shares; after: Shares }[] = [];
  for (const seed of seeds) {
    const whole = (kind: string, begin: (root: string) => Promise<{ readonly dir: string }>) =>
      wholeRun(join(values.runs, `${kind}-${presets}-${seed}`), begin, dir => resume(dir));
    const cloned = await whole('clone', root => clone({ task: 'arithmetic', root, config: { seed } }));
    const trained = await whole('grpo', root =>
      train({ task: 'arithmetic', root, from: cloned, config: { seed } }),
    );
    const rows = readRows(trained).items;
    const [before, after] = [await exactShares(cloned), await exactShares(trained)];
    gains.push({ before, after });
    report({
      seed,
      exact_before: before,
      exact_after: after,
      largest_kl_step: Number(Math.max(...rows.map(row => row['kl/step'])).toPrecision(3)),
      minutes: round((rows.at(-1)!['time/elapsed_s'] ?? 0) / 60, 1),
      ...(await verdictOn(trained)),
    });
  }
  for (const way of ways)
    for (const key of ['before', 'after'] as const) {
      const shares = gains.map(gain => gain[key][way]);
      const { low, high } = bootstrapInterval(shares);
      report({
        exact: key,
        way,
        iqm: round(interquartileMean(shares), 3),
        interval: [round(low, 3), round(high, 3)],
      });
    }
}

/** With the most likely tokens, and sampled as in training, which is what GRPO improves. */
const ways = ['greedy', 'sampled'] as const;
type Shares = Readonly<Record<(typeof ways)[number], number>>;

/** The share of exact answers, each way. */
async function exactShares(dir: string): Promise<Shares> {
  const policy = await openPolicy(dir, { checkpoint: 'last' });
  try {
    const share = async (sampled: boolean): Promise<number> => {
      const evaluation = await policy.evaluate({ episodes: PROMPTS, seed: JUDGING_SEED, sampled });
      if (evaluation.kind !== 'completions') throw new Error('arithmetic is judged by its completions');
      return round(evaluation.metrics.exact, 3);
    };
    return { greedy: await share(false), sampled: await share(true) };
  } finally {
    await policy.close();
  }
}
