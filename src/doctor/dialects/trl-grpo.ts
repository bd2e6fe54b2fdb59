/** TRL's GRPO trainer, 0.14 to 1.x, also as Unsloth patches it. Names drifted: every spelling is here. */
import { rangeOf } from './derive.ts';
import type { Dialect, KlOf, Log, Refine, Renamed } from './dialect.ts';
import { call, namesIn } from './wording.ts';

const tokenKl: KlOf = { pair: 'ref', estimator: 'k3', per: 'token', aggregation: 'minibatches' };

/** Rows from which a coefficient is told, and how far from their middle they may be. */
const fewestRows = 5;
const spread = 0.05;
/** Hugging Face rounds a loss to four decimals. */
const leastLoss = 0.004;

/** The weight of the KL, where the log does not say it: with one update a batch the loss is that weight times the KL. */
function betaOf({ series }: Log): number | undefined {
  const [loss, kl] = [series.get('loss')?.series, series.get('kl')?.series];
  if (loss === undefined || kl === undefined || loss.length !== kl.length) return undefined;
  const ratios: number[] = [];
  for (let i = 0; i < loss.length; i++)
    if (loss.x[i] === kl.x[i] && loss.values[i] >= leastLoss && kl.values[i] > 0)
      ratios.push(loss.values[i] / kl.values[i]);
  ratios.sort((a, b) => a - b);
  if (ratios.length < fewestRows) return undefined;
  const at = (share: number): number => ratios[Math.floor(share * (ratios.length - 1))];
  const middle = at(0.5);
  return at(0.9) - at(0.1) <= 2 * spread * middle ? Number(middle.toPrecision(2)) : undefined;
}

/** The cap on lengths: the longest completion, where some were cut at it. */
function capOf({ series }: Log): number | undefined {
  const clipped = series.get('completions/clipped_ratio')?.series;
  const longest = series.get('completions/max_length')?.series;
  if (clipped === undefined || longest === undefined || !((rangeOf(clipped)?.[1] ?? 0) > 0)) return undefined;
  const most = rangeOf(longest)?.[1];
  // It is met again and again, and never passed.
  let times = 0;
  for (let i = 0; i < longest.length; i++) if (longest.max[i] === most) times++;
  return times > 1 && Number.isInteger(most) ? most : undefined;
}

/**
 * `reward_std` was the mean over groups and became that of the whole batch, under the same name. Where the log counts
 * groups without spread itself, the weaker of the two meanings is enough.
 */
const refine: Refine = (drafts, log) => {
  const [refCoef, maxCompletionLength] = [betaOf(log), capOf(log)];
  return {
    drafts: drafts.map(draft =>
      draft.id === 'reward/group_std' && log.series.has('frac_reward_zero_std')
        ? { ...draft, id: 'reward/std' }
        : draft,
    ),
    config: {
      ...(refCoef === undefined ? {} : { refCoef }),
      ...(maxCompletionLength === undefined ? {} : { maxCompletionLength }),
    },
  };
};

/** Names as a notebook's table has them: `completions / mean_length`, `Training Loss`. */
const asShown = (names: readonly string[]): Renamed => ({
  names: new Map(
    names
      .map((name): [string, string] => [name, shown.get(name) ?? name.replaceAll(' / ', '/')])
      .filter(([name, plain]) => name !== plain),
  ),
  notes: [],
});

/** No object: a column may be called `constructor`. */
const shown: ReadonlyMap<string, string> = new Map([
  ['Training Loss', 'loss'],
  ['Step', 'step'],
]);

/** Where settings are, by the names that are read; the first is how a change is typed. */
const config: Dialect['config'] = {
  learningRate: ['learning_rate'],
  learningRateSchedule: ['lr_scheduler_type'],
  epochs: ['num_iterations'],
  totalSteps: ['max_steps'],
  clipRange: ['epsilon'],
  clipRangeHigh: ['epsilon_high'],
  entropyCoef: ['entropy_coef'],
  maxGradNorm: ['max_grad_norm'],
  refCoef: ['beta'],
  groupSize: ['num_generations'],
  temperature: ['temperature'],
  maxCompletionLength: ['max_completion_length'],
  task: ['dataset_name', 'dataset'],
};

export const trlGrpo: Dialect = {
  name: 'trl-grpo',
  title: 'TRL GRPO (also Unsloth)',
  kind: 'language-model',
  prefixes: ['train/'],
  rename: asShown,
  signs: [
    { name: 'reward_std', points: 1 },
    { name: 'frac_reward_zero_std', points: 3 },
    { name: /rewards\/[^/]+(?:\/(?:mean|std))?/, points: 1 },
    { name: 'reward', points: 0.5 },
    { name: 'completions/mean_length', points: 3 },
    { name: 'completions/clipped_ratio', points: 2 },
    { name: 'completion_length', points: 2 },
    { name: /clip_ratio\/(?:region_mean|low_mean|high_mean)/, points: 3 },
    { name: /sampling\/.*/, points: 2 },
  ],
  configSigns: [
    { name: 'num_generations', points: 2 },
    { name: 'max_completion_length', points: 2 },
  ],
  mappings: [
    { theirs: 'kl', id: 'kl/ref', kl: tokenKl, note: 'only with beta above 0' },
    { theirs: 'reward', id: 'reward/mean' },
    {
      theirs: 'reward_std',
      id: 'reward/group_std',
      note: 'within groups in older versions; reward/std where frac_reward_zero_std is logged too',
    },
    { theirs: 'frac_reward_zero_std', id: 'reward/zero_std_groups' },
    { theirs: /rewards\/([^/]+)(?:\/mean)?/, id: 'reward/part/$1' },
    { theirs: /completions\/mean_length|completion_length|completions\/mean_len/, id: 'completion/length' },
    { theirs: 'completions/min_length', id: 'completion/length_min' },
    { theirs: 'completions/max_length', id: 'completion/length_max' },
    { theirs: /completions\/clipped_ratio|clipped_ratio/, id: 'completion/truncated' },
    { theirs: 'clip_ratio/region_mean', id: 'policy/clip_fraction' },
    { theirs: 'clip_ratio', id: 'policy/clip_fraction' },
    { theirs: 'clip_ratio/low_mean', id: 'policy/clip_fraction_low' },
    { theirs: 'clip_ratio/high_mean', id: 'policy/clip_fraction_high' },
    { theirs: 'entropy', id: 'policy/entropy', note: 'per token' },
    { theirs: 'policy_loss', id: 'loss/policy' },
    { theirs: 'loss', id: 'loss/total', note: '0.0 with a gradient above 0 is normal' },
    { theirs: 'grad_norm', id: 'grad/norm' },
    { theirs: 'learning_rate', id: 'train/lr' },
    { theirs: 'entropy_coef', id: 'train/entropy_coef' },
    { theirs: 'sampling/sampling_logp_difference/mean', id: 'sampler/logp_diff' },
    { theirs: 'sampling/sampling_logp_difference/max', id: 'sampler/logp_diff_max' },
    { theirs: 'sampling/importance_sampling_ratio/mean', id: 'sampler/ratio_mean' },
    { theirs: 'sampling/importance_sampling_ratio/min', id: 'sampler/ratio_min' },
    { theirs: 'sampling/importance_sampling_ratio/max', id: 'sampler/ratio_max' },
    { theirs: /eval[_/]reward/, id: 'eval/return' },
  ],
  ignored: [
    /rewards\/.*\/std/,
    /completions\/.*/,
    /clip_ratio\/.*/,
    /(?:eval|profiling|tools|vespo|sampling)[_/].*/,
    /epoch|num_tokens|step_time|aux_loss|cispo_clip_ratio|num_input_tokens_seen|total_flos/,
    /train_(?:loss|runtime|samples_per_second|steps_per_second)/,
  ],
  steps: [
    { theirs: 'step', unit: 'updates' },
    { theirs: 'global_step', unit: 'updates' },
  ],
  eventStep: { unit: 'updates', better: [{ theirs: 'global_step', unit: 'updates' }] },
  config,
  wording: {
    names: namesIn(config, { without: ['task'] }),
    write: call('GRPOConfig', ''),
  },
  refine,
  remarks:
    'kl is to the reference, and 0 in every row means that there is no KL term (beta is 0 by default from 0.19, .04 before). clip_ratio is 0 with one iteration a batch. No KL of the update is logged.',
};
