/**
 * A run of the language-model matrix as three trainers would have logged it: Keel itself, TRL's GRPO trainer (its TensorBoard
 * events, with its arguments as text) and verl (the lines of its file logger, with the config beside). The training is the
 * same; names, moments of measurement and what dies with the process are theirs.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { GrpoConfig } from '../../../src/algos/grpo/settings.ts';
import { type RunEvent, RunWriter } from '../../../src/runs/index.ts';
import { scalarEvent, textEvent, versionEvent } from '../event-file.ts';
import type { LmRun } from './cache.ts';
import { type LmSpelling, lmSpellings } from './plan.ts';
import { type LmTaskName, room } from './tasks.ts';

/** The trainers in which this can happen. */
export const lmSpellingsOf = ({ label }: LmRun): readonly LmSpelling[] => label.spellings ?? lmSpellings;

type Row = Readonly<Record<string, number>>;
type Cells = Record<string, number | undefined>;

/** Writes the run below `root` and says where. */
export function spellLm(run: LmRun, spelling: LmSpelling, root: string): string {
  const directory = join(root, spelling, run.label.name);
  mkdirSync(directory, { recursive: true });
  const shown = shownBy(run);
  switch (spelling) {
    case 'keel':
      return writeKeel(shown, directory);
    case 'trl':
      return writeTrl(shown, directory);
    case 'verl':
      return writeVerl(shown, directory);
    default:
      return spelling satisfies never;
  }
}

/** The run as its own trainer sees it: what a fault that is a setting elsewhere is set to, and what a wrong mask makes of lengths. */
function shownBy(run: LmRun): LmRun {
  const { config, label, rows } = run;
  const { tampering: how, task } = label;
  const cap = config.maxNewTokens ?? room[task];
  const settings: GrpoConfig = {
    ...config,
    maxNewTokens: cap,
    ...(how?.kind === 'kl-sign' && { klRefCoef: how.coef }),
    ...(how?.kind === 'entropy-sign' && { entropyCoef: -how.coef }),
    ...(how?.kind === 'alone' && {
      groupSize: 1,
      promptsPerIteration: config.promptsPerIteration * config.groupSize,
    }),
  };
  const shown = rows.map(row => ({
    ...row,
    ...(row['kl/ref_coef'] === undefined ? {} : { 'kl/ref_coef': settings.klRefCoef }),
    ...(how?.kind === 'mask' &&
      how.of === 'padding' && {
        'completion/length': cap,
        'completion/length_min': cap,
        'completion/length_max': cap,
        'also/at_cap': 1,
      }),
  }));
  return { ...run, config: settings, rows: shown };
}

// ---- Keel --------------------------------------------------------------------------------------------------------------

function writeKeel({ label, config, rows, events }: LmRun, root: string): string {
  const { maxNewTokens } = config;
  const writer = RunWriter.create(
    {
      algorithm: 'grpo',
      environment: { id: label.task, version: '0', options: {}, reward: { scale: 1, normalised: false } },
      config: { ...config, task: label.task, maxNewTokens },
      seed: label.seed,
      versions: { keel: '0.1.0' },
    },
    { root },
    { csv: false, tensorboard: false },
  );
  let next = 0;
  for (const row of rows) {
    while (next < events.length && Number(events[next].iteration) <= row['train/iteration']) {
      const event = events[next++];
      writer.event({ message: String(event.type), ...event } as unknown as RunEvent);
    }
    writer.row(Object.fromEntries(Object.entries(row).filter(([name]) => !name.startsWith('also/'))));
  }
  writer.end(label.error === null ? 'finished' : 'failed', label.error ?? undefined);
  return writer.dir;
}

// ---- what the others share ---------------------------------------------------------------------------------------------

/** Gradient steps of an iteration, which is a row. */
const stepsOf = (config: GrpoConfig): number => {
  const batch = config.promptsPerIteration * config.groupSize;
  return (config.epochs * batch) / (config.minibatchSize ?? batch);
};

const usesReference = ({ reference, klRefCoef }: GrpoConfig): boolean =>
  reference !== 'none' && klRefCoef > 0;

const prefix = 'reward/part/';

const partsOf = (row: Row): string[] =>
  Object.keys(row)
    .filter(name => name.startsWith(prefix))
    .map(name => name.slice(prefix.length));

/** From when on nothing is a number, if ever. */
const deathOf = ({ label: { tampering } }: LmRun): number =>
  tampering?.kind === 'non-finite' ? tampering.from : Number.POSITIVE_INFINITY;

// ---- TRL ---------------------------------------------------------------------------------------------------------------

function writeTrl(run: LmRun, directory: string): string {
  const { config, rows } = run;
  const start = 1_790_000_000;
  const steps = stepsOf(config);
  const args = {
    output_dir: 'outputs',
    learning_rate: config.learningRate,
    lr_scheduler_type: config.learningRateSchedule === 'linear' ? 'linear' : 'constant_with_warmup',
    warmup_ratio: config.warmupShare,
    max_grad_norm: config.gradientClip,
    per_device_train_batch_size: config.minibatchSize ?? config.promptsPerIteration * config.groupSize,
    num_generations: config.groupSize,
    num_iterations: config.epochs,
    steps_per_generation: steps / config.epochs,
    max_completion_length: config.maxNewTokens,
    max_steps: (config.steps / (config.promptsPerIteration * config.groupSize)) * steps,
    logging_steps: steps,
    temperature: config.temperature,
    beta: config.reference === 'none' ? 0 : config.klRefCoef,
    epsilon: config.clipLow,
    epsilon_high: config.clipHigh,
    entropy_coef: config.entropyCoef,
    loss_type: 'dapo',
    scale_rewards: 'group',
    use_vllm: true,
    seed: run.label.seed,
  };
  const records = [versionEvent(start), textEvent(start, 'args', JSON.stringify(args, null, 2))];
  // What is not a number kills the sampler in the generation after.
  rows.slice(0, deathOf(run) + 1).forEach((row, i) => {
    const step = (i + 1) * steps;
    for (const [name, value] of Object.entries(trlRow(row, run, i)))
      if (value !== undefined) records.push(scalarEvent(start + 12 * i, step, `train/${name}`, value));
  });
  const path = join(directory, `events.out.tfevents.${start}.host.1.0`);
  writeFileSync(path, Buffer.concat(records));
  return path;
}

function trlRow(row: Row, run: LmRun, i: number): Cells {
  const { config } = run;
  const dead = i >= deathOf(run);
  const reference = usesReference(config);
  return {
    // Trainer filters a loss that is not a number, the norm of the gradient it does not.
    loss: dead ? 0 : Number(row['loss/total']?.toFixed(4)),
    grad_norm: dead ? Number.NaN : row['grad/norm'],
    learning_rate: row['train/lr'],
    num_tokens: (i + 1) * row['also/tokens'],
    'completions/mean_length': row['completion/length'],
    'completions/min_length': row['completion/length_min'],
    'completions/max_length': row['completion/length_max'],
    'completions/clipped_ratio': row['completion/truncated'],
    ...Object.fromEntries(
      partsOf(row).flatMap(name => [
        [`rewards/${name}/mean`, row[prefix + name]],
        [`rewards/${name}/std`, row[`also/part_std/${name}`]],
      ]),
    ),
    reward: row['reward/mean'],
    reward_std: row['reward/std'],
    frac_reward_zero_std: row['reward/zero_std_groups'],
    ...(reference && { kl: row['also/kl_ref_k3'] }),
    entropy: row['also/entropy_before'],
    'clip_ratio/low_mean': row['also/clip_low'],
    'clip_ratio/high_mean': row['also/clip_high'],
    'clip_ratio/region_mean': row['also/clip'],
    'sampling/sampling_logp_difference/mean': row['sampler/logp_diff'],
    'sampling/sampling_logp_difference/max': row['sampler/logp_diff_max'],
    'sampling/importance_sampling_ratio/min': row['also/sampling_ratio_min'],
    'sampling/importance_sampling_ratio/mean': row['sampler/ratio_mean'],
    'sampling/importance_sampling_ratio/max': row['also/sampling_ratio_max'],
    step_time: 3.2,
    epoch: (i + 1) / 100,
  };
}

// ---- verl --------------------------------------------------------------------------------------------------------------

/** Updates between two validations. */
const testFrequency = 5;

function writeVerl(run: LmRun, directory: string): string {
  const { config, rows, label } = run;
  const dead = deathOf(run);
  const lines = rows.map((row, i) => {
    const data = Object.fromEntries(
      Object.entries(verlRow(row, run, i)).filter(([, value]) => value !== undefined),
    );
    // Its writer of JSON has null for what is not a number.
    return `${JSON.stringify({ step: i + 1, data })}\n`;
  });
  const path = join(directory, `${label.task}.jsonl`);
  // A gradient that is not finite is left out, and the run goes on.
  writeFileSync(path, lines.slice(0, Math.min(lines.length, dead + 12)).join(''));
  writeFileSync(join(directory, 'config.yaml'), yamlOf(verlConfig(config, label.task)));
  return directory;
}

function verlRow(row: Row, run: LmRun, i: number): Cells {
  const { config, label } = run;
  const alone = label.tampering?.kind === 'alone';
  const dead = i >= deathOf(run);
  const advantages = (of: 'mean' | 'max' | 'min'): number | undefined =>
    alone ? row[of === 'mean' ? 'reward/mean' : `also/reward_${of}`] : row[`adv/${of}`];
  const scores = {
    mean: row['reward/mean'],
    max: row['also/reward_max'],
    min: row['also/reward_min'],
  };
  return {
    'training/global_step': i + 1,
    'training/epoch': 0,
    'actor/entropy': row['also/entropy_before'],
    'training/rollout_probs_diff_valid': 1,
    'training/rollout_probs_diff_max': row['also/prob_diff_max'],
    'training/rollout_probs_diff_mean': row['also/prob_diff'],
    ...(usesReference(config) && {
      'actor/kl_loss': row['also/kl_ref_k3'],
      'actor/kl_coef': config.klRefCoef,
    }),
    'actor/pg_loss': dead ? Number.NaN : row['loss/policy'],
    'actor/pg_clipfrac': row['also/clip'] ?? 0,
    'actor/ppo_kl': row['also/kl_step_k1'] ?? 0,
    'actor/pg_clipfrac_lower': 0,
    'actor/grad_norm': dead ? Number.NaN : row['grad/norm'],
    'actor/lr': row['train/lr'],
    'critic/score/mean': scores.mean,
    'critic/score/max': scores.max,
    'critic/score/min': scores.min,
    'critic/rewards/mean': scores.mean,
    'critic/rewards/max': scores.max,
    'critic/rewards/min': scores.min,
    'critic/advantages/mean': advantages('mean'),
    'critic/advantages/max': advantages('max'),
    'critic/advantages/min': advantages('min'),
    'critic/returns/mean': advantages('mean'),
    'critic/returns/max': advantages('max'),
    'critic/returns/min': advantages('min'),
    'response_length/mean': row['completion/length'],
    'response_length/max': row['completion/length_max'],
    'response_length/min': row['completion/length_min'],
    'response_length/clip_ratio': row['also/at_cap'] ?? row['completion/truncated'],
    'prompt_length/mean': row['completion/prompt_length'],
    ...((i + 1) % testFrequency === 0 && { [`val-core/${label.task}/acc/mean@1`]: row['env/exact'] }),
    'perf/throughput': 900,
    'timing_s/step': 3.2,
  };
}

function verlConfig(config: GrpoConfig, task: LmTaskName): object {
  return {
    data: {
      train_files: `${task}/train.parquet`,
      train_batch_size: config.promptsPerIteration,
      max_response_length: config.maxNewTokens,
    },
    actor_rollout_ref: {
      actor: {
        optim: { lr: config.learningRate },
        ppo_epochs: config.epochs,
        ppo_mini_batch_size:
          (config.minibatchSize ?? config.promptsPerIteration * config.groupSize) / config.groupSize,
        clip_ratio: config.clipLow,
        clip_ratio_low: config.clipLow,
        clip_ratio_high: config.clipHigh,
        entropy_coeff: config.entropyCoef,
        use_kl_loss: usesReference(config),
        kl_loss_coef: config.klRefCoef,
        kl_loss_type: 'low_var_kl',
        grad_clip: config.gradientClip,
      },
      rollout: { n: config.groupSize, temperature: config.temperature },
    },
    algorithm: { adv_estimator: 'grpo', use_kl_in_reward: false },
  };
}

/** Nested settings as YAML. */
function yamlOf(value: object, indent = ''): string {
  return Object.entries(value)
    .map(([name, entry]) =>
      typeof entry === 'object' && entry !== null
        ? `${indent}${name}:\n${yamlOf(entry, `${indent}  `)}`
        : `${indent}${name}: ${entry}\n`,
    )
    .join('');
}
