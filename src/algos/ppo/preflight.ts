/** PPO's parts of a preflight. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { grouped, number } from '../../base/numbers.ts';
import { typed } from '../../base/typed.ts';
import { findBinding } from '../../engine/onnx/native.ts';
import { openSession } from '../../engine/onnx/session.ts';
import { checkEnv } from '../../envs/check.ts';
import { makeEnv } from '../../envs/registry.ts';
import type { VectorEnv } from '../../envs/vector/vector.ts';
import { listCheckpoints, loadCheckpoint } from '../../runs/checkpoint.ts';
import { fittingActions, refuseInertForActions, resolveSettings } from '../../settings/resolve.ts';
import { openEnvironments } from '../agents/environments.ts';
import type { PolicyStart } from '../agents/start.ts';
import type { PartReport, PreflightOptions } from '../algorithm.ts';
import type { Policy } from '../policy.ts';
import * as tried from '../preflight.ts';
import { createPpoTrainer } from './iteration.ts';
import { type PpoConfig, ppoSettings } from './settings.ts';

/** The parts in their order. */
export const preflightParts =
  'make spaces reset compile collect score update guard save load resume export'.split(' ');

const ITERATIONS = 3;

/** Few environments, steps and epochs; all that decides what is computed stays. */
function tinyConfig(config: PpoConfig): PpoConfig {
  const envs = Math.min(2, config.envs);
  const stepsPerRollout = 32;
  // Where there are shards, they divide the environments, so that there are two of each.
  const shards = Math.min(envs, config.shards);
  return resolveSettings(ppoSettings, {
    preset: {
      ...config,
      autopilot: false,
      envs,
      shards,
      collectors: config.collectors === 'auto' ? 'auto' : Math.min(config.collectors, shards),
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
export function preflight(options: PreflightOptions<PpoConfig, PolicyStart>): Promise<PartReport[]> {
  return tried.tryParts(preflightParts, allParts(options), options.onPart);
}

async function* allParts(options: PreflightOptions<PpoConfig, PolicyStart>): tried.Parts {
  const config = tinyConfig(options.config);
  const envs = await openEnvironments(options.subject, config);
  try {
    yield* environmentParts(options, config, envs);
    yield* trainerParts(config, envs);
  } finally {
    await envs.close();
  }
  yield* runParts(options, config, envs.obsSize);
}

async function* environmentParts(
  { subject, written }: PreflightOptions<PpoConfig, PolicyStart>,
  { seed, envs: envCount, workers }: PpoConfig,
  envs: VectorEnv,
): tried.Parts {
  refuseInertForActions(ppoSettings, written, envs.actionSpace);
  yield { detail: `${subject.id}, ${envCount} side by side${workers ? `, ${workers} workers` : ''}` };

  const make = () => makeEnv(subject.id, subject.options);
  const { findings } = checkEnv(make, { seed, steps: 500, maxMs: 1000 });
  const error = findings.find(({ level }) => level === 'error');
  if (error) throw new Error(`${error.message} (${typed('check-env', subject.id)} says more)`);
  yield {
    detail: `observations ${envs.observationSpace.describe()}, actions ${envs.actionSpace.describe()}`,
    warnings: findings.filter(({ level }) => level === 'warning').map(({ message }) => message),
  };

  await envs.reset({ seed });
  yield { detail: `seed ${seed}, ${envs.obsSize} finite numbers each` };
}

async function* trainerParts(config: PpoConfig, envs: VectorEnv): tried.Parts {
  const { learningRate, criticLearningRate } = config;
  const trainer = await createPpoTrainer({
    envs,
    config: fittingActions(ppoSettings, config, envs.actionSpace),
  });
  try {
    yield { detail: `${trainer.model.layout.size} parameters on ${config.device}` };

    // Collecting and scoring. By itself the trainer only refuses.
    trainer.adjust({
      learningRate: tried.NO_RATE,
      ...(criticLearningRate && { criticLearningRate: tried.NO_RATE }),
    });
    await trainer.start();
    const first = yield* tried.firstIteration(trainer);
    const { samplesPerIteration: samples } = trainer;
    yield {
      detail: `${samples} steps, mean reward ${number(first['reward/mean'])}, ${number(samples / first['time/collect_s'])} steps/s`,
      seconds: first['time/collect_s'],
    };
    const off = Math.abs(first['policy/ratio_mean'] - 1);
    yield {
      detail: `before the first step the ratio is off 1 by ${number(off)} and the KL is ${number(first['kl/step'])}`,
      seconds: first['time/guard_s'],
    };

    // Updating and guarding: the next one, with the run's own rates.
    trainer.adjust({ learningRate, criticLearningRate });
    const { row } = await trainer.iterate();
    tried.requireFinite(row, ['loss/policy', 'loss/value', 'grad/norm', 'kl/step'], SCALE_REMEDY);
    if (row['train/skipped'] > 0)
      throw new Error(`${row['train/skipped']} minibatches were not finite: ${SCALE_REMEDY}`);
    yield {
      detail: `${row['train/minibatches_run']} minibatches; loss of the policy ${number(row['loss/policy'])}, of the value ${number(row['loss/value'])}; gradient norm ${number(row['grad/norm'])}`,
      seconds: row['time/update_s'],
    };
    const acted = row['guard/backtracks'] > 0 ? `, taken back from ${number(row['kl/step_raw'])}` : '';
    yield tried.guardFound(row, config.guard, acted);
  } finally {
    trainer.dispose();
  }
}

const SCALE_REMEDY =
  'look at the scale of rewards and observations (normaliseRewards, normaliseObservations), then at learningRate';

async function* runParts(
  options: PreflightOptions<PpoConfig, PolicyStart>,
  config: PpoConfig,
  observationSize: number,
): tried.Parts {
  const whole = await options.train(config);
  const { dir, step } = whole;
  const saved = Object.values(listCheckpoints(dir).find(({ isLast }) => isLast)!.index!.files);
  const total = saved.reduce((sum, { bytes }) => sum + bytes, 0);
  yield {
    detail: `${ITERATIONS} updates logged; checkpoint ${step}: ${grouped(total)} bytes in ${saved.length} files`,
  };

  const loaded = Object.entries(loadCheckpoint(dir, 'last')!.index.files);
  const sizes = loaded.map(([name, { bytes }]) => `${name} ${grouped(bytes)} bytes`);
  yield { detail: `${sizes.join(', ')}; checksums agree` };

  yield await tried.tryResume(options, config, whole, {
    file: 'policy.safetensors',
    learnt: 'parameters',
    question: 'does the environment keep all of its state in state()?',
  });

  yield { detail: await runExported(dir, await options.openPolicy(dir), observationSize) };
}

/** Runs policy.onnx in plain ONNX Runtime, beside the policy as one holds it. */
async function runExported(dir: string, policy: Policy, size: number): Promise<string> {
  if (findBinding() === undefined) {
    await policy.close();
    return 'policy.onnx is written; ONNX Runtime is not installed, so it was not run';
  }
  const session = await openSession(readFileSync(join(dir, 'policy.onnx')), {
    device: 'cpu',
    threads: 1,
    planMemory: true,
  });
  try {
    const CASES = 10;
    let worst = 0;
    for (let i = 0; i < CASES; i++) {
      // Any observation will do: a wave that no two cases share.
      const observation = Float32Array.from({ length: size }, (_, j) => Math.sin(1.7 * i + 0.9 * j));
      const { action } = session.run(
        { observation: session.tensor('float32', observation, [1, size]) },
        { action: null },
      );
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
    session.dispose();
  }
}
