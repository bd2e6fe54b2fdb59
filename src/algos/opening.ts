/** What every way to begin or to go on needs: a learner that is open, and a run on disk for it. */
import { ConfigError } from '../base/errors.ts';
import { VERSION } from '../base/version.ts';
import type { Checkpoint } from '../runs/checkpoint.ts';
import type { Manifest } from '../runs/schema.ts';
import { openRun, type Place, type Run } from '../runs/store.ts';
import { trustOwnRun } from '../runs/trust.ts';
import { RunWriter } from '../runs/writer.ts';
import { refuseOtherShape, resolveSettings, savedSettings, settingsOf } from '../settings/resolve.ts';
import { type RunConfig, wrong } from '../settings/spec.ts';
import type { Algorithm, Settings, Start, WhichCheckpoint } from './algorithm.ts';
import { algorithmOf } from './algorithms.ts';
import type { TrainHooks } from './hooks.ts';
import type { OpenShardPlace } from './ppo/shards/place.ts';
import type { Opened } from './session.ts';
import { type Subject, subjectOf } from './subject.ts';
import type { Trust } from './trust.ts';

/** How a run goes on, by itself or as another one. */
export interface ContinueOptions extends TrainHooks {
  /** Changes to the run's config, such as more steps. */
  config?: Settings;
  /** The checkpoint to go on from. Default `last`. */
  from?: WhichCheckpoint | undefined;
  /**
   * What to do when rewards have another scale than the value function learnt: refuse (default), or rescale the critic,
   * which is an error where they have not.
   */
  onRewardScale?: 'refuse' | 'rescale';
  /** Directory of runs: `runs` unless told; a fork goes beside its parent unless told. */
  root?: string | undefined;
  /** Where an environment that was registered in code is defined. */
  envFile?: string | undefined;
  /** Whether code that the run names may run, if the run was not made here. */
  trust?: Trust | undefined;
  /** Opens the place where the run's shards are collected, such as a queue; processes of this machine unless given. */
  shardPlace?: OpenShardPlace | undefined;
}

/** A place for shards is of no use to a run that has none; and processes of this machine are none to a run that has one. */
export function refuseNoShards(algorithm: Algorithm, config: Settings | RunConfig, now: Settings): void {
  const { shards } = config as Settings;
  if (shards === undefined)
    throw new ConfigError(
      `${algorithm.name} has no shards that others could collect: leave the queue out (--queue)`,
    );
  if (shards === 1)
    throw new ConfigError([
      wrong(
        'shards',
        '1 leaves nothing for others to collect: use shards 4, or leave the queue out (--queue)',
      ),
    ]);
  if (Object.hasOwn(now, 'collectors'))
    throw new ConfigError([
      wrong('collectors', 'has no effect where a queue collects (--queue): remove one of them'),
    ]);
}

/** Whether a run is saved before its first iteration, so that it does not need what it began from for long, or to go back there. */
export const savesFirst = (
  { savesBeginning = false }: Algorithm,
  { autopilot = false }: RunConfig,
  started: boolean,
): boolean => started || savesBeginning || autopilot;

/** Where a new run comes from, if not from its seed. */
interface Origin extends Pick<Manifest, 'beginning' | 'autopilot' | 'imported'> {
  readonly parent?: Start['parent'];
}

/** Makes the run of a learner that begins. */
export function createRun(
  opened: Opened,
  { parent, beginning, autopilot, imported }: Origin,
  place: Place,
): RunWriter {
  const { algorithm, learner, config } = opened;
  const { csv, tensorboard, seed } = config;
  const writer = RunWriter.create(
    {
      algorithm: algorithm.name,
      environment: learner.environment,
      config: manifestConfig(opened),
      seed,
      versions: { keel: VERSION },
      ...(parent && { parent }),
      ...(beginning && { beginning }),
      ...(autopilot && { autopilot }),
      ...(imported && { imported }),
    },
    place,
    { csv, tensorboard },
  );
  trustOwnRun(openRun(writer.dir));
  return writer;
}

/** All that a manifest says of how a run is trained. */
export function manifestConfig({ config, subject, learner }: Opened): Record<string, unknown> {
  return { ...config, [subject.kind]: subject.reference, ...learner.notes?.() };
}

/** What a learner is opened from. */
export interface From {
  readonly checkpoint: Checkpoint | undefined;
  readonly start?: Start | undefined;
  /** Changes by hand up to the checkpoint. */
  readonly adjusted?: Settings;
  /** Settings that were written earlier, for going on from the same place. */
  readonly before?: Settings | undefined;
}

/** Opens the learner of a run that goes on, with its settings, what was adjusted by hand, and what is written now. */
export async function openAgain(
  on: 'resuming' | 'forking' | 'beginning again',
  run: Run,
  { checkpoint, start, adjusted, before }: From,
  options: ContinueOptions & { readonly subject?: Subject; readonly algorithm?: Algorithm },
) {
  const { manifest } = run;
  const { algorithm = algorithmOf(manifest) } = options;
  const now = settingsOf(options.config);
  const saved = { ...savedSettings(algorithm.settings, manifest), ...adjusted };
  const config = resolveSettings(algorithm.settings, { preset: saved, given: now });
  const written = { ...before, ...now };
  if (on !== 'beginning again') refuseOtherShape(algorithm.settings, saved, config, on);
  const { shardPlace } = options;
  if (shardPlace !== undefined) refuseNoShards(algorithm, config, now);
  const subject =
    options.subject ?? (await subjectOf(run, { envFile: options.envFile, trust: options.trust }));
  const from = { manifest, checkpoint };
  const learner = await algorithm.open({ subject, config, written, start, from, shardPlace });
  return { algorithm, subject, config, written, now, learner };
}
