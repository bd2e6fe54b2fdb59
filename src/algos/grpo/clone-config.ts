/** Every key of cloning's config, with its default and what it does. */
import { z } from 'zod';
import { settingProblems } from '../explain-settings.ts';
import { ConfigError } from '../train-schema.ts';
import { grpoOtherNames } from './settings.ts';
import {
  count,
  countFrom0,
  modelKeys,
  optimiserKeys,
  positive,
  runKeys,
  schedule,
  share,
} from './text-config.ts';

export const cloneSchema = z.strictObject({
  steps: count.default(20_000).describe('Demonstrations of the run.'),
  batchSize: count.default(64).describe('Demonstrations a gradient step.'),
  batchesPerIteration: count
    .default(10)
    .describe('Gradient steps of one iteration, which is a row of the log.'),
  learningRate: positive.default(1e-3).describe("Adam's step size."),
  learningRateSchedule: schedule
    .default('cosine')
    .describe('How the learning rate goes to learningRateEnd times its start.'),
  warmupShare: share
    .default(0.02)
    .describe('The share of the run over which the learning rate rises from 0.'),
  ...optimiserKeys,
  skipLimit: count
    .default(5)
    .describe('Non-finite gradient steps in a row that restore the weights of the iteration before.'),
  recoveryFactor: positive.max(1).default(0.1).describe('What a restore multiplies the learning rate by.'),
  recoveries: countFrom0.default(5).describe('Restores before the run stops with a diagnosis.'),
  ...modelKeys,
  ...runKeys,
});

export type CloneConfig = z.infer<typeof cloneSchema>;
/** What a user may set. */
export type CloneSettings = Readonly<Partial<z.input<typeof cloneSchema>>>;

/** Unknown keys and values of a wrong kind, a line for each. */
export function cloneProblems(
  settings: Readonly<Record<string, unknown>>,
  below: Readonly<Record<string, unknown>> = {},
): string[] {
  return settingProblems(settings, below, cloneSchema, { ...grpoOtherNames, batchsize: 'batchSize' });
}

/** Checks settings and fills in defaults. `layers` are presets, files and flags in the order in which they win. */
export function resolveCloneConfig(...layers: readonly Readonly<Record<string, unknown>>[]): CloneConfig {
  const settings: Record<string, unknown> = Object.assign({}, ...layers);
  const written = new Set(layers.slice(1).flatMap(layer => Object.keys(layer)));
  const problems = cloneProblems(Object.assign({}, ...layers.slice(1), settings), layers[0]);
  if (problems.length > 0) throw new ConfigError(problems.join('\n'));
  const config = cloneSchema.parse(settings);
  if (written.has('learningRateEnd') && config.learningRateSchedule === 'constant') {
    problems.push(
      'learningRateEnd has no effect without learningRateSchedule linear or cosine: add that, or remove learningRateEnd',
    );
  }
  if (config.width % config.heads !== 0) {
    problems.push(
      `width ${config.width} is no multiple of heads ${config.heads}: try ${config.heads * Math.ceil(config.width / config.heads)}`,
    );
  }
  if (problems.length > 0) throw new ConfigError(problems.join('\n'));
  return config;
}
