/**
 * A run out of a model of another trainer: as if it had been trained here and had just saved its last checkpoint, so that
 * everything that takes a run takes it: resume, fork, train --from, eval, export, the page.
 */
import { resolve } from 'node:path';
import { TrainError } from '../../base/errors.ts';
import type { EnvDefinition } from '../../envs/definition.ts';
import type { OptionValues } from '../../envs/options.ts';
import { makeEnv } from '../../envs/registry.ts';
import type { Space } from '../../envs/spaces.ts';
import { spacesOnly, spacesOptions } from '../../envs/spaces-only.ts';
import { secondMomentScale } from '../../nn/adam.ts';
import { PickleError } from '../../pickle/values.ts';
import type { Checkpoint } from '../../runs/checkpoint.ts';
import { sha256Of } from '../../runs/named-code.ts';
import type { Manifest } from '../../runs/schema.ts';
import { loadPreset } from '../../settings/files.ts';
import type { NetworkConfig } from '../agents/networks/network.ts';
import { networkFor } from '../agents/networks/network.ts';
import type { Settings } from '../algorithm.ts';
import { createRun } from '../opening.ts';
import { tensorFiles } from '../ppo/checkpoint.ts';
import { prepareRun } from '../runs.ts';
import { resolveSubject } from '../subject.ts';
import { readCleanRl } from './cleanrl.ts';
import type { ImportedNormaliser, ImportedPolicy } from './imported.ts';
import { flattened, type TorchNetwork } from './network.ts';
import { readSb3 } from './sb3.ts';
import { readNormaliser } from './vecnormalize.ts';

/** Whose models can be read. */
export const importFormats = ['sb3', 'cleanrl'] as const;
export type ImportFormat = (typeof importFormats)[number];

/** What is made of which file. */
export interface ImportOptions {
  readonly format: ImportFormat;
  readonly file: string;
  /** The pickle of a VecNormalize, or of running moments. */
  readonly normaliser?: string | undefined;
  /** What it was trained in; without it the run has spaces alone, and can be exported and be begun from. */
  readonly env?: string | EnvDefinition | undefined;
  readonly envOptions?: OptionValues | undefined;
  /** Settings that differ from the model's. */
  readonly config?: Settings | undefined;
  readonly root?: string | undefined;
  readonly id?: string | undefined;
}

/** The run that was made, and what could not be taken over as it was. */
export interface ImportResult {
  readonly id: string;
  readonly dir: string;
  readonly environment: string;
  readonly imported: NonNullable<Manifest['imported']>;
  /** Whether Adam's moments were taken over. */
  readonly adam: boolean;
}

/** Reads a model and makes a run of it. Nothing in the files is run. */
export async function importRun(options: ImportOptions): Promise<ImportResult> {
  const policy = options.format === 'sb3' ? readSb3(options.file) : readCleanRl(options.file);
  const normaliser = options.normaliser === undefined ? undefined : readNormaliser(options.normaliser);
  const { env, envOptions } = environmentOf(policy, options);
  const preset = {
    ...(policy.isWhole ? {} : loadPreset((await resolveSubject(env, envOptions)).id)),
    ...plainEnvironment,
    ...policy.settings,
    normaliseObservations: (normaliser?.observations ?? null) !== null,
    normaliseRewards: (normaliser?.rewards ?? null) !== null,
  };
  const prepared = await prepareRun('train', { env, envOptions, config: options.config ?? {}, preset });
  const { subject, config } = prepared;
  const { observationSpace, actionSpace } = spacesOf(subject.id, subject.options);
  const notes = [
    ...policy.notes,
    ...(normaliser?.notes ?? []),
    ...differences(policy, { observationSpace, actionSpace }),
  ];
  const { layout } = networkFor(config as unknown as NetworkConfig, observationSpace, actionSpace);
  const flat = (network: TorchNetwork): Float32Array => flattened(layout, network, policy.source);
  const weights = flat(policy.network);
  const { adam } = policy;
  const scale = 1 / secondMomentScale();
  const moments = {
    m: adam ? flat(adam.m) : new Float32Array(layout.size),
    v: adam ? flat(adam.v).map(value => value * scale) : new Float32Array(layout.size),
  };
  refuseOtherSize(normaliser, observationSpace);

  const learner = await prepared.algorithm.open(prepared);
  try {
    await learner.begin();
    const { state: fresh } = await learner.save();
    const reference = (config as unknown as Settings).reference === 'none' ? undefined : weights;
    const checkpoint: Checkpoint = {
      index: {
        ...{ kind: 'keel-checkpoint', schema: 1, step: policy.steps, iteration: 0 },
        ...{ savedAt: new Date().toISOString(), score: null, keep: false, environment: null, files: {} },
      },
      files: new Map(Object.entries(tensorFiles(layout, { weights, ...moments, reference }))),
      state: {
        ...fresh,
        counters: { ...(fresh.counters as object), envSteps: policy.steps, gradientSteps: adam?.steps ?? 0 },
        observationNormaliser: normaliser?.observations ?? null,
        rewardNormaliser: rewardState(fresh.rewardNormaliser, normaliser),
      },
    };
    await learner.restore(checkpoint, {});
    const imported = {
      from: policy.from,
      file: resolve(options.file),
      sha256: sha256Of(options.file) ?? '',
      normaliser: options.normaliser === undefined ? null : resolve(options.normaliser),
      steps: policy.steps,
      notes,
    };
    const writer = createRun({ ...prepared, learner }, { imported }, { root: options.root, id: options.id });
    try {
      const tell = (text: string): void =>
        writer.event({ type: 'note', iteration: 0, step: policy.steps, message: text, text });
      tell(`imported from ${imported.file} (${policy.from}, ${policy.steps} steps)`);
      for (const note of notes) tell(note);
      await writer.checkpoint({ step: policy.steps, iteration: 0, ...(await learner.save()) });
      await learner.saved?.(writer);
      writer.end('finished', `imported from ${policy.from}`);
    } catch (error) {
      writer.end('failed', error instanceof Error ? error.message : String(error));
      throw error;
    }
    const { id, dir } = writer;
    return { id, dir, environment: subject.id, imported, adam: adam !== undefined };
  } finally {
    await learner.close();
  }
}

/** A preset of Keel's may shape rewards and noise in ways that the model was not trained with. */
const plainEnvironment = { rewardScale: 1, logStdEnd: null, reference: 'none' } as const;

/** The environment that was named, or the spaces alone. */
function environmentOf({ spaces, source }: ImportedPolicy, { env, envOptions = {} }: ImportOptions) {
  if (env !== undefined) return { env, envOptions };
  if (spaces === undefined)
    throw new TrainError(`${source} does not say what it was trained in: name the environment (--env)`);
  return { env: spacesOnly, envOptions: spacesOptions(spaces.observationSpace, spaces.actionSpace) };
}

function spacesOf(id: string, options: OptionValues) {
  const env = makeEnv(id, options);
  const { observationSpace, actionSpace } = env;
  env.close?.();
  return { observationSpace, actionSpace };
}

type Spaces = { readonly observationSpace: Space; readonly actionSpace: Space };

/** Refuses spaces that the network does not fit; gives those differences that leave it whole. */
function differences({ spaces, network, source }: ImportedPolicy, here: Spaces): string[] {
  const { observationSpace, actionSpace } = here;
  const inputs = network.actor[0].inputs;
  const outputs = network.actor.at(-1)!.outputs;
  const refuse = (what: string, saved: string, wanted: string): never => {
    throw new TrainError(
      `${source} has ${what} ${saved}, the environment ${wanted}: use the one that it was trained in (--env)`,
    );
  };
  if (observationSpace.flatSize !== inputs)
    refuse(
      'observations of',
      `${inputs} numbers`,
      `${observationSpace.flatSize} (${observationSpace.describe()})`,
    );
  const wanted = outputsOf(actionSpace);
  if (wanted !== outputs || (actionSpace.kind === 'box') !== (network.logStd !== undefined))
    refuse('actions', spaces?.actionSpace.describe() ?? `of ${outputs} outputs`, actionSpace.describe());
  if (spaces === undefined) return [];
  if (spaces.actionSpace.kind !== actionSpace.kind || shapeOf(spaces.actionSpace) !== shapeOf(actionSpace))
    refuse('actions', spaces.actionSpace.describe(), actionSpace.describe());
  // Actions are held within their limits; what observations may be changes nothing of what the policy does.
  if (spaces.actionSpace.describe() === actionSpace.describe()) return [];
  return [`its actions were ${spaces.actionSpace.describe()}, here they are ${actionSpace.describe()}`];
}

/** What the last layer gives. */
function outputsOf(space: Space): number | undefined {
  switch (space.kind) {
    case 'box':
    case 'multiBinary':
      return space.flatSize;
    case 'discrete':
      return space.n;
    case 'multiDiscrete':
      return space.counts.reduce((sum, n) => sum + n, 0);
    case 'tuple':
    case 'dict':
      return undefined;
    default:
      return space satisfies never;
  }
}

const shapeOf = (space: Space): string =>
  space.kind === 'multiDiscrete'
    ? space.counts.join()
    : String(space.kind === 'discrete' ? space.n : space.flatSize);

function refuseOtherSize(normaliser: ImportedNormaliser | undefined, { flatSize }: Space): void {
  const size = normaliser?.observations?.mean.length;
  if (size !== undefined && size !== flatSize)
    throw new PickleError(
      `${normaliser!.file} normalises observations of ${size} numbers, here they have ${flatSize}: use the one that was saved with the model`,
    );
}

/** Rewards are divided by what was seen before; discounted returns begin anew with the episodes. */
function rewardState(fresh: unknown, normaliser: ImportedNormaliser | undefined): unknown {
  const rewards = normaliser?.rewards;
  return fresh && rewards ? { ...(fresh as object), moments: rewards } : (fresh ?? null);
}
