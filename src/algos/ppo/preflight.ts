/** PPO's parts of a preflight. */
import { join } from 'node:path';
import { MismatchError } from '../../base/errors.ts';
import { grouped, number } from '../../base/numbers.ts';
import { checkEnv } from '../../envs/check.ts';
import { makeEnv } from '../../envs/registry.ts';
import type { VectorEnv } from '../../envs/vector/vector.ts';
import { listCheckpoints, loadCheckpoint } from '../../runs/checkpoint.ts';
import { fittingActions, refuseInertForActions, resolveSettings } from '../../settings/resolve.ts';
import { openEnvironments } from '../agents/environments.ts';
import type { PolicyStart } from '../agents/start.ts';
import type { PartReport, PreflightOptions } from '../algorithm.ts';
import type { TrainResult } from '../hooks.ts';
import type { Policy } from '../policy.ts';
import { FailedLater, NO_RATE, type PartFound, tryParts, tryResume } from '../preflight.ts';
import { createPpoTrainer, type PpoTrainer } from './iteration.ts';
import { type PpoConfig, ppoSettings } from './settings.ts';

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
type Part = (typeof preflightParts)[number];

const ITERATIONS = 3;

/** Few environments, steps and epochs; all that decides what is computed stays. */
function tinyConfig(config: PpoConfig): PpoConfig {
  const envs = Math.min(2, config.envs);
  const stepsPerRollout = 32;
  return resolveSettings(ppoSettings, {
    preset: {
      ...config,
      envs,
      stepsPerRollout,
      minibatchSize: stepsPerRollout,
      epochs: Math.min(2, config.epochs),
      workers: config.workers === 'auto' ? 'auto' : Math.min(config.workers, envs),
      steps: ITERATIONS * envs * stepsPerRollout,
      checkpointEvery: 1,
    },
  });
}

/** Tries each part; after a failure the rest is not reached. */
export async function preflight(options: PreflightOptions<PpoConfig, PolicyStart>): Promise<PartReport[]> {
  const { subject } = options;
  const config = tinyConfig(options.config);
  let envs: VectorEnv | undefined;
  let trainer: PpoTrainer | undefined;
  let whole: TrainResult | undefined;
  let observationSize = 0;
  let scored: Record<string, number> = {};
  let updated: Record<string, number> = {};

  const parts: Record<Part, () => Promise<PartFound>> = {
    async make() {
      envs = await openEnvironments(subject, config);
      observationSize = envs.obsSize;
      refuseInertForActions(ppoSettings, options.written, envs.actionSpace);
      return {
        detail: `${subject.id}, ${config.envs} side by side${config.workers ? `, ${config.workers} workers` : ''}`,
      };
    },
    async spaces() {
      const { findings } = checkEnv(() => makeEnv(subject.id, subject.options), {
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
        config: fittingActions(ppoSettings, config, envs!.actionSpace),
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
      try {
        scored = (await trainer!.iterate()).row;
      } catch (error) {
        // It collects and scores in one go: a refusal to score means that collecting went well.
        throw error instanceof MismatchError ? new FailedLater('score', error) : error;
      }
      return {
        detail: `${trainer!.samplesPerIteration} steps, mean reward ${number(scored['reward/mean'])}, ${number(trainer!.samplesPerIteration / scored['time/collect_s'])} steps/s`,
        seconds: scored['time/collect_s'],
      };
    },
    async score() {
      const [ratio, kl] = [scored['policy/ratio_mean'], scored['kl/step']];
      return {
        detail: `before the first step the ratio is off 1 by ${number(Math.abs(ratio - 1))} and the KL is ${number(kl)}`,
        seconds: scored['time/guard_s'],
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
      if (row['train/skipped'] > 0)
        throw new Error(`${row['train/skipped']} minibatches were not finite: ${SCALE_REMEDY}`);
      return {
        detail: `${row['train/minibatches_run']} minibatches; loss of the policy ${number(row['loss/policy'])}, of the value ${number(row['loss/value'])}; gradient norm ${number(row['grad/norm'])}`,
        seconds: row['time/update_s'],
      };
    },
    async guard() {
      const row = updated;
      const { guard } = config;
      if (guard !== null && row['kl/step'] > guard)
        throw new Error(
          `kl/step ${number(row['kl/step'])} is above the bound ${guard}: this is a fault in Keel`,
        );
      const bound = guard === null ? 'no bound (guard null)' : `bound ${guard}`;
      const acted = row['guard/backtracks'] > 0 ? `, taken back from ${number(row['kl/step_raw'])}` : '';
      return { detail: `kl/step ${number(row['kl/step'])}${acted}, ${bound}`, seconds: row['time/guard_s'] };
    },
    async save() {
      await envs!.close();
      trainer!.dispose();
      [envs, trainer] = [undefined, undefined];
      whole = await options.train(config);
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
    resume: () =>
      tryResume(options, config, whole!, {
        file: 'policy.safetensors',
        learnt: 'parameters',
        question: 'does the environment keep all of its state in state()?',
      }),
    async export() {
      const { dir } = whole!;
      return { detail: await runExported(dir, await options.openPolicy(dir), observationSize) };
    },
  };
  try {
    return await tryParts(parts, options.onPart);
  } finally {
    await envs?.close();
    trainer?.dispose();
  }
}

const SCALE_REMEDY =
  'look at the scale of rewards and observations (normaliseRewards, normaliseObservations), then at learningRate';

/** Runs policy.onnx in plain ONNX Runtime, beside the policy as one holds it. */
async function runExported(dir: string, policy: Policy, size: number): Promise<string> {
  const ort = await import('onnxruntime-node');
  const session = await ort.InferenceSession.create(join(dir, 'policy.onnx'));
  try {
    const CASES = 10;
    let worst = 0;
    for (let i = 0; i < CASES; i++) {
      // Any observation will do: a wave that no two cases share.
      const observation = Float32Array.from({ length: size }, (_, j) => Math.sin(1.7 * i + 0.9 * j));
      const { action } = await session.run({
        observation: new ort.Tensor('float32', observation, [1, size]),
      });
      const given = action.data as Float32Array;
      policy.act(observation).forEach((value, j) => {
        worst = Math.max(worst, Math.abs(value - given[j]) / Math.max(1, Math.abs(value)));
      });
    }
    if (!(worst <= 1e-5))
      throw new Error(`policy.onnx acts otherwise than the network, by ${worst}: this is a fault in Keel`);
    return `policy.onnx in onnxruntime: the same actions for ${CASES} observations, to ${worst === 0 ? 'the bit' : worst.toExponential(0)}`;
  } finally {
    await policy.close();
    await session.release();
  }
}
