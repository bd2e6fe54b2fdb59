import type { Row } from '../../../src/metrics/row.ts';
import type { CheckpointInput } from '../../../src/runs/checkpoint.ts';
import type { RunSpec } from '../../../src/runs/manifest.ts';

/** Made up, and the same in every process. */
export const spec: RunSpec = {
  algorithm: 'ppo',
  environment: { id: 'CartPole-v1', version: '1', options: { length: 0.5 }, reward: { scale: 1, clip: 10 } },
  config: { lr: 3e-4, kl: { target: 0.01 }, hidden: [64, 64] },
  seed: 1,
  versions: { keel: '0.1.0', onnxruntime: '1.30.0' },
};

const stepsPerIteration = 256;

/** A row that depends on nothing but its iteration, with metrics that come and go. */
export function rowOf(iteration: number): Row {
  return {
    'train/iteration': iteration,
    'train/step': iteration * stepsPerIteration,
    'kl/step': iteration === 7 ? Number.NaN : 0.01 / iteration,
    'loss/value': Math.sin(iteration),
    ...(iteration % 3 === 0 ? { 'eval/return': iteration } : {}),
    ...(iteration > 5 ? { 'reward/part/fall': -iteration } : {}),
  };
}

/** A checkpoint likewise; every fifth is to be kept. */
export function checkpointOf(iteration: number, bytes = 1000): CheckpointInput {
  return {
    step: iteration * stepsPerIteration,
    iteration,
    files: {
      'policy.safetensors': Uint8Array.from({ length: bytes }, (_, i) => (i * iteration) % 251),
      'optimizer.safetensors': new Uint8Array(10).fill(iteration),
    },
    state: { iteration, rng: [1, 2, 3], minusZero: -0, mean: [0.1, 1e-300] },
    score: Math.sin(iteration / 3),
    keep: iteration % 5 === 0,
  };
}
