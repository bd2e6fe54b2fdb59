/**
 * One tiny batch through every part of a training run, on the settings that the run would have: what would break after
 * an hour breaks here in seconds. Everything is made in a temporary directory.
 */
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fittingActions, refuseInertForActions } from '../algos/inert-for-actions.ts';
import { createPpoTrainer, type PpoTrainer } from '../algos/ppo-trainer.ts';
import { openTrained, resume, type TrainResult, train } from '../algos/train.ts';
import { resolveConfig } from '../algos/train-config.ts';
import { ConfigError, type TrainConfig, type TrainSettings } from '../algos/train-schema.ts';
import { compile, Graph } from '../engine/index.ts';
import { checkEnv, makeEnv, makeVectorEnv, type OptionValues, type VectorEnv } from '../envs/index.ts';
import { checkpointDir, listCheckpoints, loadCheckpoint, readTrajectory } from '../runs/index.ts';
import { grouped, number } from './terminal.ts';

export interface PartReport {
  readonly part: string;
  readonly status: 'passed' | 'failed' | 'not reached';
  /** What was seen, or what went wrong and what to do about it. */
  readonly detail: string;
  readonly seconds: number;
  readonly warnings: readonly string[];
}

export interface PreflightOptions {
  /** As `train` takes it. */
  readonly env: string;
  readonly id: string;
  readonly envOptions: OptionValues;
  readonly config: TrainConfig;
  /** What of it the user wrote, of which each must mean something. */
  readonly written?: TrainSettings;
  readonly onPart?: (report: PartReport) => void;
}

/** The parts in their order. */
export const preflightParts = [
  'make',
  'spaces',
  'reset',
  'compile',
  'collect',
  'score',
  'update',
  'guard',
  'save',
  'load',
  'resume',
  'export',
] as const;
export type Part = (typeof preflightParts)[number];

const ITERATIONS = 3;
/** A learning rate that no weight in single precision notices. */
const NO_RATE = 1e-30;

/** Few environments, steps and epochs; all that decides what is computed stays. */
export function tinyConfig(config: TrainConfig): TrainConfig {
  const envs = Math.min(2, config.envs);
  const stepsPerRollout = 32;
  return resolveConfig({
    ...config,
    envs,
    stepsPerRollout,
    minibatchSize: stepsPerRollout,
    epochs: Math.min(2, config.epochs),
    workers: config.workers === 'auto' ? 'auto' : Math.min(config.workers, envs),
    steps: ITERATIONS * envs * stepsPerRollout,
    checkpointEvery: 1,
  });
}

/** Tries each part; after a failure the rest is not reached. Settings that cannot be are thrown, as `train` does. */
export async function preflight(options: PreflightOptions): Promise<PartReport[]> {
  const { env, id, envOptions } = options;
  const config = tinyConfig(options.config);
  const reports: PartReport[] = [];
  const root = await mkdtemp(join(tmpdir(), 'keel-preflight-'));
  let envs: VectorEnv | undefined;
  let trainer: PpoTrainer | undefined;
  let whole: TrainResult | undefined;
  const settings = { env, envOptions, preset: config, root };

  const parts: Record<Part, () => Promise<{ detail: string; seconds?: number; warnings?: string[] }>> = {
    async make() {
      envs = await makeVectorEnv(env, {
        envCount: config.envs,
        workers: config.workers,
        options: envOptions,
      });
      refuseInertForActions(options.written ?? {}, envs.actionSpace);
      return {
        detail: `${id}, ${config.envs} side by side${config.workers ? `, ${config.workers} workers` : ''}`,
      };
    },
    async spaces() {
      const { findings } = checkEnv(() => makeEnv(id, envOptions), {
        seed: config.seed,
        steps: 500,
        maxMs: 1000,
      });
      const error = findings.find(({ level }) => level === 'error');
      if (error) throw new Error(`${error.message} (keel check-env says more)`);
      const warnings = findings.filter(({ level }) => level === 'warning').map(({ message }) => message);
      return {
        detail: `observations ${envs!.observationSpace.describe()}, actions ${envs!.actionSpace.describe()}`,
        warnings,
      };
    },
    async reset() {
      await envs!.reset({ seed: config.seed });
      return { detail: `seed ${config.seed}, ${envs!.obsSize} finite numbers each` };
    },
    async compile() {
      trainer = await createPpoTrainer({
        envs: envs!,
        config: fittingActions(config, envs!.actionSpace),
        seed: config.seed,
        totalSteps: config.steps,
        rewardScale: config.rewardScale,
        device: config.device,
        threads: config.threads,
      });
      return { detail: `${trainer.model.layout.size} parameters on ${config.device}` };
    },
    // These two are an iteration of the trainer whose steps are too small to change a weight, so that what it measures
    // after them is whether the program that scores agrees with the one that sampled. By itself it only refuses.
    async collect() {
      trainer!.adjust({
        learningRate: NO_RATE,
        ...(config.criticLearningRate ? { criticLearningRate: NO_RATE } : {}),
      });
      await trainer!.start();
      scored = (await trainer!.iterate()).row;
      return {
        detail: `${trainer!.samplesPerIteration} steps, mean reward ${number(scored['reward/mean'])}, ${number(trainer!.samplesPerIteration / scored['time/collect_s']!)} steps/s`,
        seconds: scored['time/collect_s']!,
      };
    },
    async score() {
      const [ratio, kl] = [scored!['policy/ratio_mean']!, scored!['kl/step']!];
      return {
        detail: `before the first step the ratio is off 1 by ${number(Math.abs(ratio - 1))} and the KL is ${number(kl)}`,
        seconds: scored!['time/guard_s']!,
      };
    },
    // And these two are the next one, with the run's own rates.
    async update() {
      const { learningRate, criticLearningRate } = config;
      trainer!.adjust({ learningRate, criticLearningRate });
      const { row } = await trainer!.iterate();
      updated = row;
      for (const name of ['loss/policy', 'loss/value', 'grad/norm', 'kl/step'])
        if (!Number.isFinite(row[name]))
          throw new Error(`${name} is ${row[name]} after one update: ${SCALE_REMEDY}`);
      if (row['train/skipped']! > 0)
        throw new Error(`${row['train/skipped']} minibatches were not finite: ${SCALE_REMEDY}`);
      return {
        detail: `${row['train/minibatches_run']} minibatches; loss of the policy ${number(row['loss/policy'])}, of the value ${number(row['loss/value'])}; gradient norm ${number(row['grad/norm'])}`,
        seconds: row['time/update_s']!,
      };
    },
    async guard() {
      const row = updated!;
      const { guard } = config;
      if (guard !== null && row['kl/step']! > guard)
        throw new Error(
          `kl/step ${number(row['kl/step'])} is above the bound ${guard}: this is a fault in Keel`,
        );
      const bound = guard === null ? 'no bound (guard null)' : `bound ${guard}`;
      const acted = row['guard/backtracks']! > 0 ? `, taken back from ${number(row['kl/step_raw'])}` : '';
      return { detail: `kl/step ${number(row['kl/step'])}${acted}, ${bound}`, seconds: row['time/guard_s']! };
    },
    async save() {
      await envs!.close();
      trainer!.dispose();
      [envs, trainer] = [undefined, undefined];
      whole = await train(settings);
      const { files } = listCheckpoints(whole.dir).find(({ isLast }) => isLast)!.index!;
      const bytes = Object.values(files).reduce((sum, file) => sum + file.bytes, 0);
      return {
        detail: `${ITERATIONS} updates logged; checkpoint ${whole.step}: ${grouped(bytes)} bytes in ${Object.keys(files).length} files`,
      };
    },
    async load() {
      const checkpoint = loadCheckpoint(whole!.dir, 'last');
      const sizes = Object.entries(checkpoint!.index.files).map(
        ([name, { bytes }]) => `${name} ${grouped(bytes)} bytes`,
      );
      return { detail: `${sizes.join(', ')}; checksums agree` };
    },
    async resume() {
      const controller = new AbortController();
      const stopped = await train({
        ...settings,
        signal: controller.signal,
        onRow: () => controller.abort(),
      });
      const resumed = await resume(stopped.dir);
      const problem = differenceOf(whole!, resumed);
      if (problem)
        throw new Error(
          `a run that was stopped and resumed has ${problem}: does the environment keep all of its state in state()?`,
        );
      return { detail: 'stopped after 1 update and resumed: the same rows and parameters, to the bit' };
    },
    async export() {
      return { detail: await runExported(whole!.dir) };
    },
  };
  let scored: Record<string, number> | undefined;
  let updated: Record<string, number> | undefined;

  try {
    let failed = false;
    const add = (report: PartReport): void => {
      reports.push(report);
      options.onPart?.(report);
    };
    for (const part of preflightParts) {
      if (reports.some(report => report.part === part)) continue;
      if (failed) {
        add({ part, status: 'not reached', detail: '', seconds: 0, warnings: [] });
        continue;
      }
      const report = await attemptPart(part, parts[part]);
      // The trainer collects and scores in one go: a refusal to score means that collecting went well.
      if (report.part !== part) add({ ...report, part, status: 'passed', detail: 'done' });
      failed = report.status === 'failed';
      add(report);
    }
    return reports;
  } finally {
    await envs?.close();
    trainer?.dispose();
    await rm(root, { recursive: true, force: true });
  }
}

const SCALE_REMEDY =
  'look at the scale of rewards and observations (normaliseRewards, normaliseObservations), then at learningRate';

/** Runs one part and reports on it. */
export async function attemptPart(
  part: string,
  work: () => Promise<{ detail: string; seconds?: number; warnings?: string[] }>,
): Promise<PartReport> {
  const started = performance.now();
  try {
    const { detail, seconds, warnings = [] } = await work();
    return {
      part,
      status: 'passed',
      detail,
      seconds: seconds ?? (performance.now() - started) / 1000,
      warnings,
    };
  } catch (error) {
    // Wrong settings are no part that failed: nothing was tried with them.
    if (error instanceof ConfigError) throw error;
    if (process.env.KEEL_DEBUG === '1') process.stderr.write(`${(error as Error).stack}\n`);
    const detail = (error instanceof Error ? error.message : String(error)).split('\n').join('; ');
    // The trainer refuses by itself when sampling and scoring disagree.
    const at = part === 'collect' && detail.startsWith('before the first step') ? 'score' : part;
    return {
      part: at,
      status: 'failed',
      detail,
      seconds: (performance.now() - started) / 1000,
      warnings: [],
    };
  }
}

/** What differs between two runs that should be one. */
function differenceOf(a: TrainResult, b: TrainResult): string | undefined {
  const [rowsA, rowsB] = [a, b].map(({ dir }) => readTrajectory(dir).rows) as [string[], string[]];
  const at = rowsA.findIndex((row, i) => row !== rowsB[i]);
  if (at >= 0 || rowsA.length !== rowsB.length) return `another row ${at + 1}`;
  const [bytesA, bytesB] = [a, b].map(({ dir, step }) =>
    readFileSync(join(checkpointDir(dir, step), 'policy.safetensors')),
  ) as [Buffer, Buffer];
  return bytesA.equals(bytesB) ? undefined : 'other parameters';
}

/** Runs policy.onnx in plain ONNX Runtime, beside the network that was trained. */
async function runExported(dir: string): Promise<string> {
  const ort = await import('onnxruntime-node');
  const session = await ort.InferenceSession.create(join(dir, 'policy.onnx'));
  const trained = await openTrained(dir);
  try {
    const { trainer, actionSpace } = trained;
    const { model, params, observationNormaliser } = trainer;
    const { distribution, layout, observationSize: size } = model;
    const g = new Graph();
    const observations = g.input('observations', [1, size]);
    g.output('policy', model.policy(layout.tensors(g.input('params', [layout.size])), observations));
    const program = await compile(g);
    const [seen, expected] = [new Float32Array(size), new Float32Array(actionSpace.flatSize)];
    const CASES = 10;
    let worst = 0;
    for (let i = 0; i < CASES; i++) {
      // Any observation will do: a wave that no two cases share.
      const observation = Float32Array.from({ length: size }, (_, j) => Math.sin(1.7 * i + 0.9 * j));
      if (observationNormaliser) observationNormaliser.apply(observation, seen);
      else seen.set(observation);
      const { policy } = program.run<{ policy: Float32Array }>({ params, observations: seen });
      distribution.mode(policy, expected);
      actionSpace.clip(expected);
      const { action } = await session.run({
        observation: new ort.Tensor('float32', observation, [1, size]),
      });
      const given = action!.data as Float32Array;
      expected.forEach((value, j) => {
        worst = Math.max(worst, Math.abs(value - given[j]!) / Math.max(1, Math.abs(value)));
      });
    }
    program.dispose();
    if (!(worst <= 1e-5))
      throw new Error(`policy.onnx acts otherwise than the network, by ${worst}: this is a fault in Keel`);
    return `policy.onnx in onnxruntime: the same actions for ${CASES} observations, to ${worst === 0 ? 'the bit' : worst.toExponential(0)}`;
  } finally {
    await session.release();
    await trained.close();
  }
}
