/**
 * A cached run as three trainers would have logged it: Keel itself, Stable-Baselines3 (`progress.csv`) and CleanRL (an
 * event file). The training is the same; names, lags, signs, factors and what dies with the process are theirs.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type RunEvent, RunWriter } from '../../src/runs/index.ts';
import type { CachedRun } from './cache.ts';
import { scalarEvent, textEvent, versionEvent } from './event-file.ts';
import type { Episodes } from './tamper.ts';

export const spellings = ['keel', 'sb3', 'cleanrl'] as const;
export type Spelling = (typeof spellings)[number];

/** The trainers that would have trained so: where a target KL is looked at is each trainer's own. */
export function spellingsOf({ log: { config } }: CachedRun): Spelling[] {
  return spellings.filter(
    spelling =>
      config.targetKl === null ||
      spelling === 'keel' ||
      (spelling === 'cleanrl') === (config.targetKlPer === 'epoch'),
  );
}

export interface Spelled {
  readonly spelling: Spelling;
  readonly path: string;
  /** The process died and nothing that is not finite came into the log: no reader can be sure of it. */
  readonly traceless: boolean;
}

/** Writes the run below `root` and says where. */
export function spell(run: CachedRun, spelling: Spelling, root: string): Spelled {
  const directory = join(root, spelling, run.label.name);
  mkdirSync(directory, { recursive: true });
  switch (spelling) {
    case 'keel':
      return { spelling, path: writeKeel(run, directory), traceless: false };
    case 'sb3':
      return { spelling, ...writeSb3(run, directory) };
    case 'cleanrl':
      return { spelling, ...writeCleanrl(run, directory) };
    default:
      return spelling satisfies never;
  }
}

function writeKeel({ label, log }: CachedRun, root: string): string {
  const writer = RunWriter.create(
    {
      algorithm: 'ppo',
      environment: {
        id: label.env,
        version: '1',
        options: {},
        reward: { scale: log.config.rewardScale, normalised: log.config.normaliseRewards },
      },
      config: { ...log.config, env: label.env },
      seed: label.seed,
      versions: { keel: '0.1.0' },
    },
    { root },
    { csv: false, tensorboard: false },
  );
  let next = 0;
  for (const row of log.rows) {
    while (next < log.events.length && Number(log.events[next].iteration) <= row['train/iteration']) {
      const event = log.events[next++];
      writer.event({ message: String(event.type), ...event } as unknown as RunEvent);
    }
    writer.row(row);
  }
  writer.end(label.error === null ? 'finished' : 'failed', label.error ?? undefined);
  return writer.dir;
}

/**
 * The rows that a trainer on PyTorch gets to before it dies. Rewards that are not finite kill it in the update after
 * their rollout, observations in the rollout itself.
 */
function deathOf({ label, log }: CachedRun): { rollouts: number; updates: number } {
  const all = log.rows.length;
  const { tampering } = label;
  switch (tampering?.kind) {
    case 'infinite-reward':
      return { rollouts: tampering.from + 1, updates: tampering.from };
    case 'growing-observations':
      // 1e10, 1e20, 1e30, and then the network's sums are not numbers.
      return { rollouts: Math.min(all, tampering.from + 3), updates: Math.min(all, tampering.from + 3) };
    default:
      return { rollouts: all, updates: all };
  }
}

/** A monitor inside the wrappers sees the true rewards; an environment that is itself broken shows it. */
const returnsOf = ({ label }: CachedRun, episodes: Episodes): readonly number[] =>
  label.fault === 'non-finite' ? episodes.outer : episodes.inner;

// ---- Stable-Baselines3 -------------------------------------------------------------------------------------------------

const sb3Columns = [
  'time/iterations',
  'rollout/ep_len_mean',
  'time/total_timesteps',
  'time/time_elapsed',
  'rollout/ep_rew_mean',
  'time/fps',
  'train/learning_rate',
  'train/n_updates',
  'train/explained_variance',
  'train/value_loss',
  'train/loss',
  'train/approx_kl',
  'train/entropy_loss',
  'train/policy_gradient_loss',
  'train/clip_fraction',
  'train/clip_range',
] as const;
const fps = 3000;

function writeSb3(run: CachedRun, directory: string): { path: string; traceless: boolean } {
  const { rows, episodes } = run.log;
  const { rollouts } = deathOf(run);
  const restart = run.label.rescale?.restart === true ? run.label.rescale.at : rows.length;
  const continuous = rows.some(row => row['policy/std'] !== undefined);
  const recent: { value: number; length: number }[] = [];
  let epochs = 0;
  const table: Record<string, number | undefined>[] = [];
  for (let i = 0; i < rollouts; i++) {
    const steps = rows[i]['train/step'];
    const { lengths } = episodes[i];
    recent.push(...returnsOf(run, episodes[i]).map((value, k) => ({ value, length: lengths[k] })));
    recent.splice(0, recent.length - 100);
    const mean = (of: (episode: (typeof recent)[number]) => number): number | undefined =>
      recent.length === 0 ? undefined : recent.reduce((sum, episode) => sum + of(episode), 0) / recent.length;
    // A row is written before its update: what it says of training is of the update before.
    const update = rows[i - 1];
    if (update) epochs += Math.ceil(update['train/epochs_run']);
    table.push({
      'time/iterations': i < restart ? i + 1 : i - restart + 1,
      'rollout/ep_len_mean': mean(episode => episode.length),
      'time/total_timesteps': steps,
      'time/time_elapsed': Math.floor(steps / fps),
      'rollout/ep_rew_mean': mean(episode => episode.value),
      'time/fps': fps,
      ...(update && {
        'train/learning_rate': update['train/lr'],
        'train/n_updates': epochs,
        'train/explained_variance': update['value/explained_variance'],
        'train/value_loss': update['loss/value'],
        'train/loss': update['loss/total'],
        'train/approx_kl': update['kl/step_k3'],
        'train/entropy_loss': -update['policy/entropy'],
        'train/policy_gradient_loss': update['loss/policy'],
        'train/clip_fraction': update['policy/clip_fraction'],
        'train/clip_range': update['train/clip_range'],
        ...(continuous && { 'train/std': update['policy/std'] }),
      }),
    });
  }
  const names = continuous ? [...sb3Columns, 'train/std'] : sb3Columns;
  const lines = table.map(row => names.map(name => python(row[name])).join(','));
  const path = join(directory, 'progress.csv');
  writeFileSync(path, `${names.join(',')}\n${lines.join('\n')}\n`);
  const broken = table.some(row =>
    Object.values(row).some(value => value !== undefined && !Number.isFinite(value)),
  );
  return { path, traceless: run.label.fault === 'non-finite' && !broken };
}

function python(value: number | undefined): string {
  if (value === undefined) return '';
  if (Number.isNaN(value)) return 'nan';
  return Number.isFinite(value) ? String(value) : value > 0 ? 'inf' : '-inf';
}

// ---- CleanRL -----------------------------------------------------------------------------------------------------------

/** Updates that a PyTorch which checks nothing goes on for with networks that are not numbers. */
const undead = 6;

function writeCleanrl(run: CachedRun, directory: string): { path: string; traceless: boolean } {
  const { label, log } = run;
  const { rows, episodes, config } = log;
  const { rollouts, updates } = deathOf(run);
  const start = 1_790_000_000;
  const records = [versionEvent(start), textEvent(start, 'hyperparameters', hyperparameters(run))];
  let broken = false;
  const add = (step: number, tag: string, value: number | undefined): void => {
    if (value === undefined) return;
    broken ||= !Number.isFinite(value);
    records.push(scalarEvent(start + step / fps, step, tag, value));
  };
  const samples = config.envs * config.stepsPerRollout;
  for (let i = 0; i < rollouts; i++) {
    const from = i * samples;
    const { lengths } = episodes[i];
    returnsOf(run, episodes[i]).forEach((value, k) => {
      const step = from + Math.round(((k + 1) / lengths.length) * samples);
      add(step, 'charts/episodic_return', value);
      add(step, 'charts/episodic_length', lengths[k]);
    });
    if (i < updates) losses(rows[i]);
  }
  // Old versions of PyTorch let a network of NaN act.
  const goesOn = label.tampering?.kind === 'infinite-reward' && label.seed % 2 === 0;
  for (let i = updates; goesOn && i < updates + undead; i++) {
    const step = (i + 1) * samples;
    add(step, 'charts/learning_rate', config.learningRate);
    for (const name of ['value_loss', 'policy_loss', 'entropy', 'old_approx_kl', 'approx_kl', 'clipfrac']) {
      add(step, `losses/${name}`, name === 'clipfrac' ? 0 : Number.NaN);
    }
    add(step, 'losses/explained_variance', Number.NaN);
  }

  function losses(row: Readonly<Record<string, number>>): void {
    const step = row['train/step'];
    add(step, 'charts/learning_rate', row['train/lr']);
    // CleanRL's value loss is half of the squared error.
    add(step, 'losses/value_loss', row['loss/value'] / 2);
    add(step, 'losses/policy_loss', row['loss/policy']);
    add(step, 'losses/entropy', row['policy/entropy']);
    add(step, 'losses/old_approx_kl', row['kl/step_k1']);
    add(step, 'losses/approx_kl', row['kl/step_k3']);
    add(step, 'losses/clipfrac', row['policy/clip_fraction']);
    add(step, 'losses/explained_variance', row['value/explained_variance']);
    add(step, 'charts/SPS', fps);
  }
  const path = join(directory, `events.out.tfevents.${start}.host.1.0`);
  writeFileSync(path, Buffer.concat(records));
  return { path, traceless: label.fault === 'non-finite' && !broken };
}

function hyperparameters({ label, log: { config } }: CachedRun): string {
  const samples = config.envs * config.stepsPerRollout;
  const settings: Record<string, string | number> = {
    exp_name: 'ppo',
    seed: label.seed,
    torch_deterministic: 'True',
    env_id: label.env,
    total_timesteps: config.steps,
    learning_rate: config.learningRate,
    num_envs: config.envs,
    num_steps: config.stepsPerRollout,
    anneal_lr: config.learningRateSchedule === 'linear' ? 'True' : 'False',
    gamma: config.gamma,
    gae_lambda: config.gaeLambda,
    num_minibatches: samples / config.minibatchSize,
    update_epochs: config.epochs,
    norm_adv: 'True',
    clip_coef: config.clipRange,
    clip_vloss: 'False',
    ent_coef: config.entropyCoef,
    vf_coef: config.valueCoef,
    max_grad_norm: config.gradientClip ?? 'None',
    target_kl: config.targetKl ?? 'None',
    batch_size: samples,
    minibatch_size: config.minibatchSize,
  };
  return `|param|value|\n|-|-|\n${Object.entries(settings)
    .map(([name, value]) => `|${name}|${value}|`)
    .join('\n')}`;
}
