/**
 * PPO on the probe environments, in their order: the first that fails says where to look. Values and policies are read
 * out of the parameters by support/reference-ppo.ts, not by the programs that trained them.
 */
import { afterAll, describe, expect, it } from 'vitest';
import type { PpoTrainer } from '../../../src/algos/ppo/iteration.ts';
import type { PpoConfig } from '../../../src/algos/ppo/settings.ts';
import {
  type MadeEnv,
  probeAction,
  probeBoth,
  probeConstant,
  probeDiscount,
  probeEndless,
  probeObservation,
} from '../../../src/envs/index.ts';
import { distributionAt, type Shape, valueAt } from './support/reference-ppo.ts';
import { disposeTrainers, trainerOf } from './support/trainer.ts';

afterAll(disposeTrainers);

const settings: Partial<PpoConfig> = {
  stepsPerRollout: 32,
  minibatchSize: 64,
  epochs: 8,
  hidden: [16],
  gamma: 0.9,
  learningRate: 1e-2,
  entropyCoef: 0,
};

type Kind = 'discrete' | 'continuous';
const shapeOf = (actions: Kind): Shape => ({
  observationSize: 1,
  parts: [actions === 'discrete' ? { kind: 'categorical', k: 2 } : { kind: 'gaussian', n: 1 }],
});

/** Trains until it has been solved for five iterations (not just in passing), or for as many as are plenty. */
async function solve(
  make: (options: { actions: Kind }) => MadeEnv,
  actions: Kind,
  solved: (trainer: PpoTrainer) => boolean,
  own: Partial<PpoConfig> = {},
): Promise<PpoTrainer> {
  const trainer = await trainerOf(
    { ...settings, ...own },
    { env: () => make({ actions }), envs: 8, totalSteps: 1e6 },
  );
  let inARow = 0;
  for (let i = 0; i < 150 && inARow < 5; i++) {
    const { row } = await trainer.iterate();
    expect(row['kl/step']).toBeLessThanOrEqual(0.05);
    inARow = solved(trainer) ? inARow + 1 : 0;
  }
  return trainer;
}

describe.each(['discrete', 'continuous'] as const)('%s actions', actions => {
  const value = (trainer: PpoTrainer, obs: number): number =>
    valueAt(shapeOf(actions), trainer.config, trainer.weights, [obs]);
  /** Which way the policy goes: the probability of action 1, or the mean. */
  const policy = (trainer: PpoTrainer, obs: number): number => {
    const [a, b] = distributionAt(shapeOf(actions), trainer.config, trainer.weights, [obs]);
    return actions === 'discrete' ? 1 / (1 + Math.exp(a - b)) : a;
  };
  const near =
    (wanted: Record<number, number>, tolerance: number) =>
    (trainer: PpoTrainer): boolean =>
      Object.entries(wanted).every(([obs, v]) => Math.abs(value(trainer, Number(obs)) - v) < tolerance);

  it('1. constant reward: the value is 1', async () => {
    const wanted = near({ 0: 1 }, 0.02);
    expect(wanted(await solve(probeConstant, actions, wanted))).toBe(true);
  });

  it('2. the value depends on the observation', async () => {
    const wanted = near({ [-1]: -1, 1: 1 }, 0.05);
    expect(wanted(await solve(probeObservation, actions, wanted))).toBe(true);
  });

  it('3. the first of two values is discounted', async () => {
    const wanted = near({ 0: 0.9, 1: 1 }, 0.02);
    expect(wanted(await solve(probeDiscount, actions, wanted))).toBe(true);
    const half = near({ 0: 0.5, 1: 1 }, 0.02);
    expect(half(await solve(probeDiscount, actions, half, { gamma: 0.5 }))).toBe(true);
  });

  it('4. the better action', async () => {
    const chosen = (trainer: PpoTrainer): boolean =>
      actions === 'discrete' ? policy(trainer, 0) > 0.95 : Math.abs(policy(trainer, 0) - 0.5) < 0.1;
    expect(chosen(await solve(probeAction, actions, chosen))).toBe(true);
  });

  it('5. the better action depends on the observation', async () => {
    const chosen = (trainer: PpoTrainer): boolean =>
      actions === 'discrete'
        ? policy(trainer, 1) > 0.95 && policy(trainer, -1) < 0.05
        : Math.abs(policy(trainer, 1) - 0.5) < 0.1 && Math.abs(policy(trainer, -1) + 0.5) < 0.1;
    expect(chosen(await solve(probeBoth, actions, chosen))).toBe(true);
  });

  it('6. reward 1 for ever: the value is 1 / (1 - gamma), through truncation', async () => {
    const wanted = near({ 0: 10 }, 0.3);
    expect(wanted(await solve(probeEndless, actions, wanted, { learningRate: 3e-2 }))).toBe(true);
  });
});
