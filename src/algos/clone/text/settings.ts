/** Every setting of cloning a text task's demonstrations. */
import * as shared from '../../../settings/shared.ts';
import { type ConfigOf, type SettingsOf, setting, table } from '../../../settings/spec.ts';
import { count } from '../../../settings/values.ts';

export const cloneTextSettings = table(
  {
    steps: shared.steps(20_000, 'Demonstrations of the run.'),
    batchSize: setting(count, 64, 'Demonstrations a gradient step.', {
      aliases: 'trainbatchsize minibatchsize',
    }),
    batchesPerIteration: setting(count, 10, 'Gradient steps of one iteration, which is a row of the log.'),
    learningRate: shared.learningRate(1e-3, "Adam's step size."),
    learningRateSchedule: shared.learningRateSchedule('cosine'),
    warmupShare: shared.warmupShare(0.02),
    ...shared.textOptimiserKeys,
    ...shared.recoveryKeys('gradient steps', 'the weights of the iteration before', {
      recoveries: 5,
      rates: 'learning rate',
    }),
    ...shared.modelKeys,
    ...shared.textRunKeys({ ownReturns: false }),
  },
  {
    name: 'clone-text',
    title: 'Keel config of cloning',
    schemaFile: 'schema-clone.json',
    listedBy: 'config <task> --clone',
    of: 'task',
    contradictions: shared.modelContradictions,
  },
);

/** A whole config of cloning text. */
export type CloneTextConfig = ConfigOf<typeof cloneTextSettings>;
/** What a user may set. */
export type CloneTextSettings = SettingsOf<typeof cloneTextSettings>;
