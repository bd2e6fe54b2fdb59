/** PPO's trainer on the environments of a run. */
import { join } from 'node:path';
import { fittingActions, refuseInertForActions } from '../../settings/resolve.ts';
import { environmentSpec, openEnvironments } from '../agents/environments.ts';
import { evaluationsOf } from '../agents/evaluate.ts';
import { savePolicy } from '../agents/export.ts';
import { hookWriter, replayWriter } from '../agents/record.ts';
import { normaliserOf, type PolicyStart } from '../agents/start.ts';
import type { Learner, Opening } from '../algorithm.ts';
import { snapshotFrom, stateOf, tensorFiles } from './checkpoint.ts';
import { countersGoingOn } from './control.ts';
import { createPpoTrainer, type PpoTrainer } from './iteration.ts';
import { rescaled } from './rescale.ts';
import { type PpoConfig, ppoSettings } from './settings.ts';
import { openShardPlace } from './shards/open-place.ts';
import type { ShardPlace } from './shards/place.ts';

/** Opens the environments and compiles the trainer. */
export async function openLearner(
  opening: Opening<PpoConfig, PolicyStart>,
): Promise<Learner & { readonly trainer: PpoTrainer }> {
  const { subject, config, written, start, shardPlace } = opening;
  const envs = await openEnvironments(subject, config);
  let place: ShardPlace | undefined;
  try {
    refuseInertForActions(ppoSettings, written, envs.actionSpace);
    place = shardPlace === undefined ? openShardPlace(config, envs) : await shardPlace();
    const trainer = await createPpoTrainer({
      envs,
      config: fittingActions(ppoSettings, config, envs.actionSpace),
      place,
    });
    const { model } = trainer;
    const weights = start?.fit(model.layout);
    const normaliser = start && normaliserOf(start, config.normaliseObservations, model.observationSize);
    const policy = () => ({ weights: trainer.weights, normaliser: trainer.observationNormaliser });
    const live = { env: subject.id, options: subject.options, model, policy };
    const evaluations = evaluationsOf(live, config);
    const hook = subject.kind === 'env' ? subject.definition.recording : undefined;
    return {
      trainer,
      get config() {
        return trainer.config;
      },
      counters: trainer.counters,
      totalSteps: config.steps,
      environment: environmentSpec(subject, envs, config),
      async begin() {
        if (weights) trainer.warmStart(weights, normaliser?.moments.state());
        await trainer.start();
      },
      async restore(checkpoint, { rescale, forkedWith }) {
        const saved = snapshotFrom(model.layout, checkpoint);
        const snapshot = rescale ? rescaled(saved, model, rescale.factor) : saved;
        const counters = countersGoingOn(
          snapshot.counters,
          { written, forked: forkedWith !== undefined },
          config,
        );
        await trainer.restore({ ...snapshot, counters });
      },
      iterate: () => trainer.iterate(),
      evaluate: evaluations.evaluate,
      adjust: changes => trainer.adjust(changes as Partial<PpoConfig>),
      async save() {
        const snapshot = await trainer.snapshot();
        return { files: tensorFiles(model.layout, snapshot), state: stateOf(snapshot) };
      },
      saved: ({ dir }) =>
        savePolicy({ model, actionSpace: envs.actionSpace, ...policy() }, join(dir, 'policy.onnx')),
      ...(config.record && {
        recorder: runDir => (hook ? hookWriter(runDir, hook, live) : replayWriter(runDir, live)),
      }),
      async close() {
        trainer.dispose();
        await place?.close();
        await evaluations.close();
        await envs.close();
      },
    };
  } catch (error) {
    await place?.close();
    await envs.close();
    throw error;
  }
}
