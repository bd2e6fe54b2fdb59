/** Episodes as replays: the policy plays in an environment of its own, and where its bodies were is kept. */
import { compile, Graph, type Program } from '../engine/index.ts';
import { type EnvView, type MadeEnv, makeEnv, type OptionValues } from '../envs/index.ts';
import type { ObservationNormaliser } from '../rollout/normalise.ts';
import { packTurn, type Replay, saveReplay } from '../runs/index.ts';
import type { ActorCritic } from './actor-critic.ts';
import { TrainError } from './train-error.ts';

/** Of an episode without an end, or a very long one, no more is kept. */
const MOST_STEPS = 2000;

export interface Recorder {
  /** Plays one episode with the most likely actions. The same seed and parameters give the same replay. */
  record(policy: RecordedPolicy): Replay;
  close(): void;
}

export interface RecordedPolicy {
  readonly params: Float32Array;
  readonly normaliser: ObservationNormaliser | undefined;
  readonly step: number;
  readonly iteration: number;
  /** Of the episode's start. */
  readonly seed: number;
}

/**
 * A recorder for an environment's id, which must be registered and ready to be made. Undefined where there is nothing to
 * draw. It has its own environment, and draws no randomness but from `seed`: whoever trains meanwhile notices nothing.
 */
export async function openRecorder(
  envId: string,
  envOptions: OptionValues,
  model: ActorCritic,
): Promise<Recorder | undefined> {
  const env = makeEnv(envId, envOptions);
  if (env.view === undefined) {
    env.close?.();
    return undefined;
  }
  try {
    const { layout, observationSize } = model;
    const g = new Graph();
    const observations = g.input('observations', [1, observationSize]);
    g.output('policy', model.policy(layout.tensors(g.input('params', [layout.size])), observations));
    return recorderOf(env, env.view(), model, await compile(g, { checkFeeds: false }));
  } catch (error) {
    env.close?.();
    throw error;
  }
}

function recorderOf(env: MadeEnv, view: EnvView, model: ActorCritic, program: Program): Recorder {
  const { scene, stepSeconds } = view;
  const { distribution } = model;
  const { actionSpace, rewardTerms: terms, spec } = env;
  const most = Math.min(spec.maxEpisodeSteps ?? MOST_STEPS, MOST_STEPS) + 1;
  const bodies = scene.bodies.length;
  const actionSize = actionSpace.flatSize;
  // One episode after the other goes into the same arrays.
  const positions = new Float32Array(most * bodies * 3);
  const rotations = new Int16Array(most * bodies * 4);
  const joints = new Float32Array(most * scene.joints.length);
  const actions = new Float32Array(most * actionSize);
  const rewards = new Float32Array(most);
  const rewardTerms = new Float32Array(most * terms.length);
  const pose = new Float32Array(bodies * 7);
  const obs = new Float32Array(env.observationSpace.flatSize);
  const seen = new Float32Array(obs.length);
  const policy = new Float32Array(distribution.paramSize);
  const action = new Float32Array(actionSize);

  const keep = (frame: number): void => {
    view.writePose(pose);
    for (let body = 0; body < bodies; body++) {
      for (let k = 0; k < 3; k++) positions[(frame * bodies + body) * 3 + k] = pose[7 * body + k]!;
      for (let k = 0; k < 4; k++)
        rotations[(frame * bodies + body) * 4 + k] = packTurn(pose[7 * body + 3 + k]!);
    }
    view.writeJoints(joints.subarray(frame * scene.joints.length, (frame + 1) * scene.joints.length));
  };

  return {
    record({ params, normaliser, step, iteration, seed }) {
      env.reset({ seed }, obs);
      keep(0);
      actions.fill(0, 0, actionSize);
      rewardTerms.fill(0, 0, terms.length);
      rewards[0] = 0;
      let episodeReturn = 0;
      let end: Replay['end'] = 'cut';
      let frames = 1;
      while (frames < most && end === 'cut') {
        if (normaliser) normaliser.apply(obs, seen);
        else seen.set(obs);
        program.run({ params, observations: seen }, { policy });
        distribution.mode(policy, action);
        actionSpace.clip(action);
        const result = env.step(action, obs);
        // Where the physics has blown up there is nothing to see: the replay ends before it.
        if (result.blownUp) {
          end = 'terminated';
          break;
        }
        keep(frames);
        actions.set(action, frames * actionSize);
        rewards[frames] = result.reward;
        rewardTerms.set(result.rewardTerms, frames * terms.length);
        episodeReturn += result.reward;
        frames++;
        if (result.terminated) end = 'terminated';
        else if (result.truncated) end = 'truncated';
      }
      return {
        step,
        iteration,
        environment: spec.id,
        seed,
        recordedAt: Date.now(),
        frameSeconds: stepSeconds,
        frames,
        actionSize,
        terms,
        episodeReturn,
        end,
        scene,
        positions: positions.subarray(0, frames * bodies * 3),
        joints: joints.subarray(0, frames * scene.joints.length),
        actions: actions.subarray(0, frames * actionSize),
        rewards: rewards.subarray(0, frames),
        rewardTerms: rewardTerms.subarray(0, frames * terms.length),
        rotations: rotations.subarray(0, frames * bodies * 4),
      };
    },
    close() {
      program.dispose();
      env.close?.();
    },
  };
}

/** Recording takes at most this share of a run's time: one that took long is followed by a longer pause. */
const LARGEST_SHARE = 0.02;
const LEAST_PAUSE_MS = 10_000;
/** Replays of one run all begin alike, so that what differs between them is the policy. */
const seedOf = (seed: number): number => 10_000 + seed;

/** Writes a recording of a policy into its run. */
export interface RecordingWriter {
  /** The page's tab. */
  readonly shownIn: 'robot' | 'cluster';
  write(policy: RecordedPolicy): void;
  close(): void;
}

/** Of episodes, as replays. */
export async function replayWriter(
  runDir: string,
  ...of: Parameters<typeof openRecorder>
): Promise<RecordingWriter | undefined> {
  const recorder = await openRecorder(...of);
  return (
    recorder && {
      shownIn: 'robot',
      write: policy => saveReplay(runDir, recorder.record(policy)),
      close: () => recorder.close(),
    }
  );
}

/** Records into a run while it is trained. */
export interface LiveRecorder {
  /** Which of the page's tabs has something to see. */
  readonly active: RecordingWriter['shownIn'] | undefined;
  /** After an update: records if it is time for it. */
  tick(): void;
  /** At the end: records once more, if the newest replay is not of this policy already. */
  last(): void;
  close(): void;
}

export interface LiveOptions {
  /** What writes one recording after the other; undefined where there is nothing to draw. */
  readonly open: () => Promise<RecordingWriter | undefined>;
  /** The policy as it is now. */
  readonly policy: () => Omit<RecordedPolicy, 'seed'>;
  readonly seed: number;
  /** Told, once, of what went wrong with it, which costs only further recordings. */
  readonly onProblem: (message: string) => void;
}

/** Records after the first update, then at a pace that costs next to nothing. Never throws. */
export async function recordLive({ open, policy, seed, onProblem }: LiveOptions): Promise<LiveRecorder> {
  let recorder: RecordingWriter | undefined;
  try {
    recorder = await open();
  } catch (error) {
    onProblem(`nothing is recorded: ${(error as Error).message}`);
  }
  let dueAt = Number.NEGATIVE_INFINITY;
  let recordedStep = -1;
  const record = (now: Omit<RecordedPolicy, 'seed'>): void => {
    if (recorder === undefined) return;
    const startedAt = performance.now();
    const isFirst = recordedStep === -1;
    try {
      recorder.write({ ...now, seed: seedOf(seed) });
    } catch (error) {
      recorder.close();
      recorder = undefined;
      onProblem(`recording stopped: ${(error as Error).message}`);
    }
    recordedStep = now.step;
    const endedAt = performance.now();
    // The first one compiles and says little of the others.
    const took = isFirst ? 0 : endedAt - startedAt;
    dueAt = endedAt + Math.max(LEAST_PAUSE_MS, took / LARGEST_SHARE);
  };
  return {
    get active() {
      return recorder?.shownIn;
    },
    tick() {
      if (performance.now() >= dueAt) record(policy());
    },
    last() {
      const now = policy();
      if (now.step !== recordedStep) record(now);
    },
    close: () => recorder?.close(),
  };
}

export interface RecordOptions {
  readonly envId: string;
  readonly envOptions: OptionValues;
  readonly model: ActorCritic;
  readonly params: Float32Array;
  readonly normaliser: ObservationNormaliser | undefined;
  readonly step: number;
  readonly iteration: number;
  readonly episodes: number;
  /** Of the first episode's start; the others follow. Unless given, that of the run's own replays. */
  readonly seed: number;
  readonly onReplay?: (name: string, replay: Replay) => void;
}

/** Records episodes of a checkpoint's policy into its run; returns their names. */
export async function recordEpisodes(runDir: string, options: RecordOptions): Promise<string[]> {
  const { envId, envOptions, model, params, normaliser, step, iteration, episodes, seed } = options;
  const recorder = await openRecorder(envId, envOptions, model);
  if (recorder === undefined)
    throw new TrainError(
      `${envId} cannot be drawn: it has no body; environments of your own can, with view() (docs/robot-view.md)`,
    );
  try {
    const names: string[] = [];
    for (let episode = 0; episode < episodes; episode++) {
      const replay = recorder.record({
        params,
        normaliser,
        step,
        iteration,

        seed: seedOf(seed) + episode,
      });
      const name = saveReplay(runDir, replay, episode);
      names.push(name);
      options.onReplay?.(name, replay);
    }
    return names;
  } finally {
    recorder.close();
  }
}
