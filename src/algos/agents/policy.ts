/** A policy that acts in environments, to hold. */

import { show, TrainError } from '../../base/errors.ts';
import type { OptionValues } from '../../envs/options.ts';
import { makeEnv } from '../../envs/registry.ts';
import { writeSafetensors } from '../../nn/safetensors.ts';
import { Rng } from '../../random/rng.ts';
import type { RunConfig } from '../../settings/spec.ts';
import type { PolicyOpening } from '../algorithm.ts';
import {
  type ActOptions,
  asking,
  evaluationSeed,
  type Observation,
  type Policy,
  usualEpisodes,
} from '../policy.ts';
import { compileActor } from './actor.ts';
import { evaluatePolicy } from './evaluate.ts';
import { savePolicy } from './export.ts';
import { type NetworkConfig, networkFor } from './networks/network.ts';
import { recordEpisodes } from './record.ts';
import { sb3StateDict } from './sb3-state-dict.ts';
import { normaliserOf, startOf } from './start.ts';

/** Compiles the network of a checkpoint. */
export async function agentPolicy(
  opening: PolicyOpening<RunConfig & NetworkConfig & { readonly normaliseObservations: boolean }>,
): Promise<Policy> {
  const { run, subject, config, checkpoint } = opening;
  const { id: env, options: envOptions } = subject;
  const { step, iteration } = checkpoint.index;
  const { observationSpace, actionSpace } = opening.spaces ?? spacesOf(env, envOptions);
  const model = networkFor(config, observationSpace, actionSpace);
  const start = startOf(checkpoint, run);
  const weights = start.fit(model.layout);
  const normaliser = normaliserOf(start, config.normaliseObservations, model.observationSize);
  const policy = { weights, normaliser };
  const actor = await compileActor(model, actionSpace, 1);
  const rng = new Rng(config.seed);
  const { observationSize } = model;
  const seen = new Float32Array(observationSize);

  const { checkOpen, checkAct, checkEvaluate, close } = asking(run, 'observation');

  // From JavaScript, anything may come.
  const actOn = (observation: Observation | null | undefined, sampled?: boolean): Float32Array => {
    const length = observation?.length;
    if (length !== observationSize) {
      const found = length === undefined ? `is ${show(observation)}` : `has ${length} numbers`;
      throw new TrainError(
        `the observation ${found}, ${subject.id} has ${observationSize}: pass all of them, one after the other`,
      );
    }
    seen.set(observation!);
    const at = seen.findIndex(value => !Number.isFinite(value));
    if (at >= 0)
      throw new TrainError(
        `the observation has ${show(observation![at])} at place ${at}: pass finite numbers, as ${subject.id} gives them`,
      );
    const action = new Float32Array(actionSpace.flatSize);
    actor.act(policy, seen, action, sampled ? rng : undefined);
    return action;
  };
  function act(input: Observation | readonly Observation[] | string, { sampled }: ActOptions = {}) {
    checkAct(input);
    if (typeof input === 'string' || typeof input[0] === 'string')
      throw new TrainError(
        `${run.id} is a policy of ${subject.id}: it acts on observations of ${observationSize} numbers, not on text`,
      );
    if (Array.isArray(input) && typeof input[0] === 'object')
      return input.map(one => actOn(one as Observation, sampled));
    return actOn(input as Observation, sampled);
  }

  return {
    run,
    subject,
    step,
    iteration,
    exportName: 'policy.onnx',
    act: act as Policy['act'],
    score(observation, out) {
      checkOpen('score');
      actor.distribution(policy, observation, out);
    },
    async evaluate({ episodes = usualEpisodes, seed = evaluationSeed, sampled } = {}) {
      checkEvaluate(episodes);
      return evaluatePolicy({ ...policy, env, envOptions, model, episodes, seed, sampled });
    },
    async export(path, { format = 'onnx' } = {}) {
      checkOpen('export');
      if (format === 'sb3-state-dict') {
        const { tensors, metadata } = sb3StateDict({ model, config, actionSpace, weights, normaliser });
        await writeSafetensors(path, tensors, metadata);
        const shapes = Object.entries(tensors).map(([name, { shape }]) => [name, shape] as const);
        return { kind: 'state-dict', tensors: Object.fromEntries(shapes) };
      }
      await savePolicy({ model, actionSpace, ...policy }, path);
      const { paramSize: distribution } = model.distribution;
      return { kind: 'onnx', observation: observationSize, action: actionSpace.flatSize, distribution };
    },
    async record(options = {}) {
      checkOpen('record');
      const recorded = { env, options: envOptions, model, policy: () => policy };
      return recordEpisodes(run.dir, recorded, { step, iteration, seed: run.manifest.seed }, options);
    },
    async close() {
      if (close()) actor.dispose();
    },
  };
}

function spacesOf(id: string, options: OptionValues) {
  const env = makeEnv(id, options);
  const { observationSpace, actionSpace } = env;
  env.close?.();
  return { observationSpace, actionSpace };
}
