/**
 * `npm run bench -- sweep preset [--env acrobot] [--steps n] [--trials 20] [--confirm 10]`: whether a search of usual size finds
 * better settings than the preset has. It tunes on seeds 0 to 2; then winner and preset are trained on fresh seeds. The
 * objective is the mean return of the last 100 episodes of training, over seeds the interquartile mean.
 */
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { Confirmed } from '../../src/studies/summary.ts';
import { report, round } from '../measure.ts';
import { refuse } from '../refuse.ts';
import { withPackage } from './package.ts';

export async function run(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      env: { type: 'string', default: 'acrobot' },
      /** The preset's unless told. */
      steps: { type: 'string' },
      trials: { type: 'string', default: '20' },
      confirm: { type: 'string', default: '10' },
    },
  });
  const [trials, confirm, steps] = [values.trials, values.confirm, values.steps ?? '1'].map(Number);
  if (![trials, confirm, steps].every(n => Number.isInteger(n) && n > 0))
    refuse('--trials, --confirm and --steps are whole numbers from 1 on');
  const startedAt = performance.now();
  await withPackage(async ({ work, load }) => {
    const { sweep } = await load<typeof import('../../src/sweep/sweep.ts')>('sweep/sweep');
    const { summary, status } = await sweep({
      env: values.env,
      config: { csv: false, tensorboard: false, ...(values.steps !== undefined && { steps }) },
      method: 'tpe',
      trials,
      seeds: '0..2',
      confirm,
      root: join(work, 'studies'),
      onTrial({ number, purpose, state, value, params, violations }) {
        if (state !== 'running') report({ trial: number, purpose, state, value, ...params, violations });
      },
    });
    const shown = (one: Confirmed | null | undefined) =>
      one && {
        iqm: one.value === null ? null : round(one.value, 1),
        interval: one.interval && [round(one.interval.low, 1), round(one.interval.high, 1)],
        seeds: `${one.seeds[0]}..${one.seeds.at(-1)}`,
        values: one.values.map(value => round(value, 1)),
      };
    const { winner, confirmation } = summary;
    const improvement = confirmation?.improvement ?? null;
    report({
      ...{ env: values.env, status, counts: summary.counts, infeasible: summary.infeasible },
      ...{ search_steps: summary.steps, confirm_steps: summary.confirmSteps },
      winner: winner && { trial: winner.number, params: winner.params, tuned: winner.value },
      winner_fresh: shown(confirmation?.winner),
      preset_fresh: shown(confirmation?.default),
      probability_of_improvement: improvement && round(improvement.probability),
      interval: improvement && [round(improvement.interval.low), round(improvement.interval.high)],
      // Better only where chance is no explanation.
      finds_better: improvement && improvement.interval.low > 0.5,
      minutes: round((performance.now() - startedAt) / 60_000, 1),
    });
  });
}
