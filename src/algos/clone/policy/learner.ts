/** The cloning of an environment's demonstrators, in the environment of a run. */
import { join } from 'node:path';
import { TrainError } from '../../../base/errors.ts';
import {
  demonstrationCount,
  demonstratorsOf,
  recordDemonstrations,
} from '../../../rollout/demonstrations.ts';
import { refuseInertForActions, refuseLiveChange } from '../../../settings/resolve.ts';
import { environmentSpec, openEnvironments } from '../../agents/environments.ts';
import { evaluationsOf } from '../../agents/evaluate.ts';
import { savePolicy } from '../../agents/export.ts';
import { networkFor } from '../../agents/networks/network.ts';
import type { Learner, Opening } from '../../algorithm.ts';
import { stateOf, tensorFiles } from '../../ppo/checkpoint.ts';
import { continuedCounters } from '../../update/guarded.ts';
import { snapshotFrom } from './checkpoint.ts';
import { createClonePolicyTrainer } from './iteration.ts';
import { type ClonePolicyConfig, clonePolicySettings } from './settings.ts';

/** Finds the demonstrators and makes the network. */
export async function openLearner(opening: Opening<ClonePolicyConfig>): Promise<Learner> {
  const { subject, config, written } = opening;
  if (subject.kind !== 'env')
    throw new TrainError(`${subject.id} is no environment: use one, such as cluster`);
  const { demonstrators = {} } = subject.definition;
  const names = demonstratorsOf(subject.definition, config.demonstrators);
  const envs = await openEnvironments(subject, { ...config, envs: 1, workers: 0 });
  const { actionSpace, observationSpace } = envs;
  const environment = environmentSpec(subject, envs, { ...config, normaliseRewards: false });
  await envs.close();
  refuseInertForActions(clonePolicySettings, written, actionSpace);
  const model = networkFor(config, observationSpace, actionSpace);
  const count = demonstrationCount(config, names);
  const trainer = createClonePolicyTrainer({
    model,
    config,
    count,
    record: () => recordDemonstrations(demonstrators, names, config, () => openEnvironments(subject, config)),
  });
  const policy = () => ({ weights: trainer.weights, normaliser: trainer.normaliser });
  const evaluations = evaluationsOf({ env: subject.id, options: subject.options, model, policy }, config);
  return {
    config,
    counters: trainer.counters,
    totalSteps: count * config.epochs,
    environment,
    async begin() {},
    async restore(checkpoint, { forkedWith }) {
      const saved = snapshotFrom(model.layout, checkpoint);
      const how = { written, forked: forkedWith !== undefined };
      trainer.restore({ ...saved, counters: continuedCounters(saved.counters, how) });
    },
    iterate: () => trainer.iterate(),
    evaluate: evaluations.evaluate,
    adjust: changes => refuseLiveChange(clonePolicySettings, config, changes),
    async save() {
      const snapshot = trainer.snapshot();
      return { files: tensorFiles(model.layout, snapshot), state: stateOf(snapshot) };
    },
    saved: ({ dir }) => savePolicy({ model, actionSpace, ...policy() }, join(dir, 'policy.onnx')),
    results: () => ({ demonstrators: trainer.demonstrations?.scores ?? [] }),
    async close() {
      trainer.dispose();
      await evaluations.close();
    },
  };
}
