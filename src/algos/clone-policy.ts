/**
 * Behaviour cloning: a policy that acts as an environment's demonstrators do, and a value function of their returns, as a
 * run that training can begin from (`train({ from })`).
 *
 * The demonstrators play in turns, each in environments of its own, with the same seeds. The actor learns their actions by
 * cross-entropy, or the odds that they give to each action where they say (`logits`); the critic learns the discounted rewards that followed, in the scale that training uses, so that the
 * first advantages mean something.
 */
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import {
  add,
  cast,
  compile,
  equal,
  Graph,
  gather,
  grad,
  loop,
  mul,
  neg,
  reduceMean,
  reshape,
  sub,
  type Tensor,
} from '../engine/index.ts';
import { findEnv, makeVectorEnv, type OptionValues, resolveEnv } from '../envs/index.ts';
import { adam, adamCorrections, clipScale, correctionsAt } from '../nn/index.ts';
import { Rng } from '../random/index.ts';
import { RunWriter } from '../runs/index.ts';
import { didYouMean } from '../text/nearest.ts';
import type { ActorCritic } from './actor-critic.ts';
import { filesOf, stateOf } from './checkpoint-files.ts';
import { orClose, type TrainHooks, type TrainResult, VERSION } from './run-session.ts';
import { loadPreset } from './settings-file.ts';
import { openSession, savePolicy } from './train.ts';
import { resolveConfig, settingsOf } from './train-config.ts';
import { ConfigError, type TrainConfig, type TrainSettings } from './train-schema.ts';

export interface CloneOptions extends TrainHooks {
  /** An id or a file, as for `train`. */
  env: string;
  envOptions?: OptionValues;
  /** Network, gamma, reward scale, seed and environments, as they will be trained with; `steps` are demonstrations. */
  config?: TrainSettings;
  preset?: TrainSettings;
  root?: string;
  /** Which of the environment's demonstrators; unless given, all but those that must be named. */
  demonstrators?: readonly string[];
  /** Passes over the demonstrations. */
  epochs?: number;
}

/** What a demonstrator's play is worth. */
export interface DemonstratorScore {
  readonly name: string;
  readonly rewardMean: number;
}

export interface CloneResult extends TrainResult {
  readonly demonstrators: readonly DemonstratorScore[];
  /** Share of the demonstrated actions that are the policy's most likely ones. */
  readonly accuracy: number;
}

/** Samples of a minibatch. */
const BATCH = 512;
/** Falls to nothing, linearly: which of two near-ties is more likely is settled by the last, smallest steps. */
const LEARNING_RATE = 1e-3;
/** Log-odds of an action that was not demonstrated. */
const NEVER = -30;
const DEFAULT_EPOCHS = 8;

interface Demonstrations {
  readonly count: number;
  readonly observations: Float32Array; // (count, obsSize)
  readonly actions: Float32Array; // (count, actionSize)
  /** (count, actions) Log-odds, for one discrete action: the demonstrator's own, else all for the action. */
  readonly logits: Float32Array | undefined;
  readonly returns: Float32Array; // (count), discounted
  readonly scores: readonly DemonstratorScore[];
}

/** Records demonstrations and clones them into a new run. */
export async function clone(options: CloneOptions): Promise<CloneResult> {
  const { id: envId } = await resolveEnv(options.env);
  const names = demonstratorsOf(envId, options.demonstrators);
  const given = settingsOf(options.config);
  const config = resolveConfig(options.preset ?? loadPreset(envId), given);
  const epochs = options.epochs ?? DEFAULT_EPOCHS;
  if (!Number.isInteger(epochs) || epochs < 1)
    throw new ConfigError(`epochs ${epochs} is not a whole number of at least 1: try ${DEFAULT_EPOCHS}`);
  const session = await openSession(envId, options.envOptions ?? {}, config, given);
  const { trainer } = session;
  const writer = await orClose(session, () =>
    RunWriter.create(
      {
        algorithm: 'clone',
        environment: session.environment,
        config: { ...config, env: options.env },
        seed: config.seed,
        versions: { keel: VERSION },
      },
      options.root === undefined ? {} : { root: options.root },
      { csv: config.csv, tensorboard: config.tensorboard },
    ),
  );
  try {
    const progress = (step: number) => ({
      id: writer.id,
      dir: writer.dir,
      config,
      step,
      totalSteps: config.steps,
      recorded: undefined,
    });
    await options.onStart?.(progress(0));
    const startedAt = performance.now();
    const data = await demonstrations(envId, options.envOptions ?? {}, config, names);
    const { observationNormaliser: normaliser } = trainer;
    normaliser?.moments.update(data.observations);
    normaliser?.apply(data.observations, data.observations);
    const [initRng, orderRng] = new Rng(config.seed).split(2);
    const learner = await cloner(trainer.model, data, config, epochs);
    let state = learner.begin(trainer.model.layout.initialise(initRng!));
    let lastRow: Record<string, number> | undefined;
    for (let epoch = 0; epoch < epochs && !options.signal?.aborted; epoch++) {
      const { next, losses, learningRate } = learner.epoch(state, orderRng!, epoch);
      state = next;
      lastRow = {
        'train/iteration': epoch + 1,
        'train/step': data.count * (epoch + 1),
        'loss/clone': losses.policy,
        'loss/value': losses.value,
        'policy/clone_accuracy': losses.accuracy,
        'train/lr': learningRate,
        'time/elapsed_s': (performance.now() - startedAt) / 1000,
      };
      writer.row(lastRow);
      options.onRow?.(lastRow, progress(data.count * (epoch + 1)));
      await nextTurn();
    }
    learner.dispose();
    trainer.warmStart(state.params);
    await trainer.start();
    const snapshot = await trainer.snapshot();
    const step = lastRow?.['train/step'] ?? 0;
    await writer.checkpoint({
      step,
      iteration: lastRow?.['train/iteration'] ?? 0,
      files: filesOf(trainer.model.layout, snapshot),
      state: stateOf(snapshot),
      keep: false,
    });
    await savePolicy(session, join(writer.dir, 'policy.onnx'));
    const status = options.signal?.aborted ? 'stopped' : 'finished';
    writer.end(status, status === 'stopped' ? 'stopped by its user' : undefined);
    return {
      id: writer.id,
      dir: writer.dir,
      status,
      step,
      lastRow,
      demonstrators: data.scores,
      accuracy: lastRow?.['policy/clone_accuracy'] ?? Number.NaN,
    };
  } catch (error) {
    writer.end('failed', error instanceof Error ? error.message : String(error));
    throw error;
  } finally {
    await session.close();
  }
}

/** The demonstrators asked for, which the environment must have. */
function demonstratorsOf(envId: string, wanted: readonly string[] | undefined): string[] {
  const rules = findEnv(envId).definition.demonstrators ?? {};
  const known = Object.keys(rules);
  if (known.length === 0)
    throw new ConfigError(`${envId} has no demonstrators to clone: give its definition some (demonstrators)`);
  const names = wanted ?? known.filter(name => !rules[name]!.onlyIfNamed);
  if (names.length === 0) throw new ConfigError(`no demonstrator is named: use ${known.join(', ')}`);
  for (const name of names) {
    if (!known.includes(name))
      throw new ConfigError(
        `${envId} has no demonstrator ${JSON.stringify(name)}: ${didYouMean(name, known) || `there are ${known.join(', ')}`}`,
      );
  }
  return [...names];
}

/** Lets each demonstrator play its share of the steps. */
async function demonstrations(
  envId: string,
  envOptions: OptionValues,
  config: TrainConfig,
  names: readonly string[],
): Promise<Demonstrations> {
  const { envs: envCount, gamma, rewardScale } = config;
  const stepsEach = Math.max(1, Math.round(config.steps / names.length / envCount));
  const { definition } = findEnv(envId);
  const scores: DemonstratorScore[] = [];
  const count = names.length * stepsEach * envCount;
  let out: Omit<Demonstrations, 'scores'> | undefined;
  for (const [k, name] of names.entries()) {
    const envs = await makeVectorEnv(envId, { envCount, workers: config.workers, options: envOptions });
    try {
      const { obsSize, actionSize, actionSpace } = envs;
      const rule = definition.demonstrators![name]!;
      const choices = actionSpace.kind === 'discrete' ? actionSpace.n : 0;
      if (rule.logits && choices === 0)
        throw new ConfigError(
          `the demonstrator ${name} has logits, which are of one discrete action, not of ${actionSpace.describe()}: remove them`,
        );
      out ??= {
        count,
        observations: new Float32Array(count * obsSize),
        actions: new Float32Array(count * actionSize),
        logits: choices === 0 ? undefined : new Float32Array(count * choices).fill(NEVER),
        returns: new Float32Array(count),
      };
      const rngs = new Rng(config.seed).split(envCount);
      const options = envs.spec?.options ?? envOptions;
      const players = rngs.map(rng => rule.make(options, rng));
      const odds = rule.logits?.(options);
      const rewards = new Float64Array(stepsEach * envCount);
      const ended = new Uint8Array(stepsEach * envCount);
      const actions = new Float32Array(envCount * actionSize);
      const first = k * stepsEach * envCount;
      await envs.reset({ seed: config.seed });
      for (let t = 0; t < stepsEach; t++) {
        const at = first + t * envCount;
        out.observations.set(envs.observations, at * obsSize);
        for (const [n, play] of players.entries()) {
          const obs = envs.observations.subarray(n * obsSize, (n + 1) * obsSize);
          const action = actions.subarray(n * actionSize, (n + 1) * actionSize);
          play(obs, action);
          const logits = out.logits?.subarray((at + n) * choices, (at + n + 1) * choices);
          if (logits && odds) odds(obs, logits);
          else if (logits) logits[action[0]!] = 0;
        }
        out.actions.set(actions, at * actionSize);
        await envs.step(actions);
        for (let n = 0; n < envCount; n++) {
          rewards[t * envCount + n] = envs.rewards[n]!;
          ended[t * envCount + n] = envs.terminated[n]! | envs.truncated[n]!;
        }
      }
      returnsTo(rewards, ended, { envCount, gamma, rewardScale }, out.returns.subarray(first));
      scores.push({ name, rewardMean: rewards.reduce((a, b) => a + b, 0) / rewards.length });
    } finally {
      await envs.close();
    }
  }
  return { ...out!, scores };
}

/**
 * Discounted rewards that followed each step. What lies beyond the end of an episode or of the recording is unknown; there
 * the mean return of a reward that goes on stands for it.
 */
function returnsTo(
  rewards: Float64Array,
  ended: Uint8Array,
  { envCount, gamma, rewardScale }: { envCount: number; gamma: number; rewardScale: number },
  out: Float32Array,
): void {
  const mean = rewards.reduce((a, b) => a + b, 0) / rewards.length;
  const beyond = gamma < 1 ? (mean * rewardScale) / (1 - gamma) : 0;
  for (let n = 0; n < envCount; n++) {
    let following = beyond;
    for (let i = rewards.length - envCount + n; i >= 0; i -= envCount) {
      if (ended[i] === 1) following = beyond;
      following = rewards[i]! * rewardScale + gamma * following;
      out[i] = following;
    }
  }
}

interface CloneState {
  readonly params: Float32Array;
  readonly m: Float32Array;
  readonly v: Float32Array;
}

/** One program for an epoch: every minibatch of it, actor and critic. */
async function cloner(model: ActorCritic, data: Demonstrations, config: TrainConfig, epochs: number) {
  const { layout, distribution, observationSize } = model;
  const batch = Math.min(BATCH, data.count);
  const trips = Math.floor(data.count / batch);
  const g = new Graph();
  const columns = [
    g.input('observations', [data.count, observationSize]),
    g.input('actions', [data.count, distribution.actionSize]),
    g.input('returns', [data.count, 1]),
    ...(data.logits ? [g.input('logits', [data.count, distribution.paramSize])] : []),
  ];
  const widths = columns.map(column => column.shape[1]!);
  const order = g.input('order', [trips, batch], 'int64');
  const [params, m, v] = ['params', 'm', 'v'].map(name => g.input(name, [layout.size]));
  const counts = add(
    g.constant(Float64Array.from({ length: trips }, (_, i) => i + 1)),
    g.input('stepsDone', []),
  );
  const corrections = adamCorrections(counts, { epsilon: config.adamEpsilon });
  const rates = mul(sub(1, mul(sub(counts, 0.5), 1 / (epochs * trips))), LEARNING_RATE);
  const result = loop({
    trips,
    carry: { params: params!, m: m!, v: v! },
    body({ iteration, carry }) {
      const rows = gather(order, iteration);
      const [obs, action, returns, logits] = columns.map((column, i) =>
        reshape(gather(column, rows), [batch, widths[i]!]),
      );
      const tensors = layout.tensors(carry.params);
      const policy = model.policy(tensors, obs!);
      const { logProb, kl, entropy, mode } = distribution.graph;
      const policyLoss = logits
        ? reduceMean(add(kl(logits, policy), entropy(logits))) // cross-entropy
        : neg(reduceMean(logProb(policy, action!)));
      const error = sub(model.value(tensors, obs!), returns!);
      const valueLoss = reduceMean(mul(error, error));
      const [gradient] = grad(add(policyLoss, mul(valueLoss, config.valueCoef)), [carry.params]);
      const { scale } = clipScale(gradient!, config.gradientClip ?? 1e30);
      const next = adam(carry, {
        gradient: gradient!,
        gradientScale: scale,
        learningRate: gather(rates, iteration),
        corrections: correctionsAt(corrections, iteration),
      });
      const same = equal(cast(mode(policy), 'float32'), action!);
      return { carry: next, scan: { policyLoss, valueLoss, accuracy: reduceMean(cast(same, 'float32')) } };
    },
  });
  g.output('newParams', result.carry.params);
  g.output('newM', result.carry.m);
  g.output('newV', result.carry.v);
  for (const [name, tensor] of Object.entries(result.scan as Record<string, Tensor>)) g.output(name, tensor);
  const program = await compile(g, { device: config.device, threads: config.threads, checkFeeds: false });
  const mean = (values: Float32Array): number => values.reduce((a, b) => a + b, 0) / values.length;
  return {
    begin: (initial: Float32Array): CloneState => ({
      params: initial,
      m: new Float32Array(layout.size),
      v: new Float32Array(layout.size),
    }),
    epoch(state: CloneState, rng: Rng, epoch: number) {
      const rows = rng.permutation(data.count);
      const out = program.run<Record<string, Float32Array>>({
        observations: data.observations,
        actions: data.actions,
        returns: data.returns,
        ...(data.logits ? { logits: data.logits } : {}),
        order: BigInt64Array.from({ length: trips * batch }, (_, i) => BigInt(rows[i]!)),
        stepsDone: Float32Array.of(epoch * trips),
        params: state.params,
        m: state.m,
        v: state.v,
      });
      return {
        next: { params: out.newParams!, m: out.newM!, v: out.newV! } satisfies CloneState,
        losses: { policy: mean(out.policyLoss!), value: mean(out.valueLoss!), accuracy: mean(out.accuracy!) },
        learningRate: LEARNING_RATE * (1 - (epoch + 0.5) / epochs),
      };
    },
    dispose: () => program.dispose(),
  };
}
