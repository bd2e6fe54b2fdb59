/** Episodes as replays: the policy plays in an environment of its own, and where its bodies were, or what it showed, is kept. */
import { join } from 'node:path';
import { isPythonId } from '../../base/code-reference.ts';
import { documentPath } from '../../base/documents.ts';
import { TrainError } from '../../base/errors.ts';
import { writeFileAtomic } from '../../base/files.ts';
import type { MadeEnv, RecordingHook } from '../../envs/definition.ts';
import type { EnvView } from '../../envs/env.ts';
import { makeEnv } from '../../envs/registry.ts';
import { packTurn, type Replay, replayLimits } from '../../runs/replay-format.ts';
import { saveReplay } from '../../runs/replays.ts';
import { type Drawing, parseDrawing } from '../../view/drawing.ts';
import { emptyScene } from '../../view/scene.ts';
import type { RecordOptions } from '../policy.ts';
import { type Actor, compileActor, type LivePolicy } from './actor.ts';
import { PictureKeeper } from './picture-keeper.ts';

/** Of an episode without an end, or a very long one, no more is kept. */
const MOST_STEPS = 2000;
/** With so many bytes of drawings it is cut, so that the frame that is one too many has room. */
const mostDrawn = replayLimits.drawingBytes / 2;

interface Recorder {
  /** Plays one episode with the most likely actions. The same seed and weights give the same replay. */
  record(at: Moment): Replay;
  close(): void;
}

/** Which moment of a run a recording is of, and the seed of its start. */
export interface Moment {
  readonly step: number;
  readonly iteration: number;
  readonly seed: number;
}

/**
 * A recorder for an environment's id, which must be registered and ready to be made. Undefined where there is nothing to
 * draw. It has its own environment, and draws no randomness but from `seed`: whoever trains meanwhile notices nothing.
 */
async function openRecorder({ env: id, options, model, policy }: LivePolicy): Promise<Recorder | undefined> {
  let env = makeEnv(id, options);
  try {
    let shown: Shown | undefined = env.view?.();
    if (env.outside?.picture) {
      // It shows itself only where it was made for that.
      env.close?.();
      env = makeEnv(id, { ...options, render: true });
      const picture = env.outside?.picture;
      shown = picture && new PictureKeeper(id, picture);
    }
    if (shown) return recorderOf(env, shown, await compileActor(model, env.actionSpace, 1), policy);
  } catch (error) {
    env.close?.();
    throw error;
  }
  env.close?.();
  return undefined;
}

/** What there is to keep of each frame. */
type Shown = EnvView | PictureKeeper;

function recorderOf(env: MadeEnv, shown: Shown, actor: Actor, policy: LivePolicy['policy']): Recorder {
  const keeper = shown instanceof PictureKeeper ? shown : undefined;
  const view = shown instanceof PictureKeeper ? undefined : shown;
  const scene = view?.scene ?? emptyScene;
  const { rewardTerms: terms, spec } = env;
  const most = Math.min(spec.maxEpisodeSteps ?? MOST_STEPS, MOST_STEPS) + 1;
  const bodies = scene.bodies.length;
  const actionSize = env.actionSpace.flatSize;
  // One episode after the other goes into the same arrays.
  const positions = new Float32Array(most * bodies * 3);
  const rotations = new Int16Array(most * bodies * 4);
  const joints = new Float32Array(most * scene.joints.length);
  const actions = new Float32Array(most * actionSize);
  const rewards = new Float32Array(most);
  const rewardTerms = new Float32Array(most * terms.length);
  const pose = new Float32Array(bodies * 7);
  const obs = new Float32Array(env.observationSpace.flatSize);
  const action = new Float32Array(actionSize);

  const drawings: Drawing[] = [];
  let drawingBytes = 0;

  const keep = (frame: number): void => {
    if (frame > 0) keeper?.look(frame);
    else keeper?.begin();
    if (view === undefined) return;
    if (view.draw) {
      const drawing = parseDrawing(view.draw(), `the drawing of ${spec.id}`);
      drawings[frame] = drawing;
      drawingBytes += Buffer.byteLength(JSON.stringify(drawing)) + 1;
    }
    view.writePose(pose);
    for (let body = 0; body < bodies; body++) {
      for (let k = 0; k < 3; k++) positions[(frame * bodies + body) * 3 + k] = pose[7 * body + k];
      for (let k = 0; k < 4; k++)
        rotations[(frame * bodies + body) * 4 + k] = packTurn(pose[7 * body + 3 + k]);
    }
    view.writeJoints(joints.subarray(frame * scene.joints.length, (frame + 1) * scene.joints.length));
  };

  return {
    record({ step, iteration, seed }) {
      const now = policy();
      env.reset({ seed }, obs);
      drawings.length = 0;
      drawingBytes = 2;
      keep(0);
      actions.fill(0, 0, actionSize);
      rewardTerms.fill(0, 0, terms.length);
      rewards[0] = 0;
      let episodeReturn = 0;
      let end: Replay['end'] = 'cut';
      let frames = 1;
      while (frames < most && end === 'cut' && drawingBytes < mostDrawn) {
        actor.act(now, obs, action);
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
        frameSeconds: shown.stepSeconds,
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
        drawings: view?.draw && drawings.slice(0, frames),
        pictures: keeper?.pictures,
      };
    },
    close() {
      actor.dispose();
      env.close?.();
    },
  };
}

/** Recording takes at most this share of a run's time: one that took long is followed by a longer pause. */
const LARGEST_SHARE = 0.02;
const LEAST_PAUSE_MS = 10_000;
/** Replays of one run all begin alike, so that what differs between them is the policy. */
const seedOf = (seed: number): number => 10_000 + seed;

/** Writes recordings of a policy, as it is then, into its run. */
export interface RecordingWriter {
  /** The page's tab that shows them. */
  readonly shownIn: string;
  write(at: Moment): void;
  close(): void;
}

/** Of episodes, as replays; undefined where there is nothing to draw. */
export async function replayWriter(
  runDir: string,
  recorded: LivePolicy,
): Promise<RecordingWriter | undefined> {
  const recorder = await openRecorder(recorded);
  if (recorder === undefined) return undefined;
  const { record, close } = recorder;
  return { shownIn: 'robot', write: at => saveReplay(runDir, record(at)), close };
}

/** Of an environment that has its own way to show what a policy does: the newest alone, as JSON. */
export async function hookWriter(
  runDir: string,
  hook: RecordingHook,
  { env, options, model, policy }: LivePolicy,
): Promise<RecordingWriter> {
  const made = makeEnv(env, options);
  const actor = await compileActor(model, made.actionSpace, 1);
  const record = hook.open(made.spec.options);
  made.close?.();
  const path = join(runDir, `${hook.tab}.json`);
  return {
    shownIn: hook.tab,
    write({ step, seed }) {
      const now = policy();
      const shown = record((observation, out) => actor.distribution(now, observation, out), seed);
      writeFileAtomic(path, JSON.stringify({ ...shown, step }));
    },
    close: () => actor.dispose(),
  };
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
  /** Where the run is. */
  readonly progress: { readonly iteration: number; readonly steps: number };
  readonly seed: number;
  /** Told, once, of what went wrong with it, which costs only further recordings. */
  readonly onProblem: (message: string) => void;
}

/** Records after the first update, then at a pace that costs next to nothing. Never throws. */
export async function recordLive({ open, progress, seed, onProblem }: LiveOptions): Promise<LiveRecorder> {
  let recorder: RecordingWriter | undefined;
  try {
    recorder = await open();
  } catch (error) {
    onProblem(`nothing is recorded: ${(error as Error).message}`);
  }
  let dueAt = Number.NEGATIVE_INFINITY;
  let recordedStep = -1;
  const record = (): void => {
    if (recorder === undefined) return;
    const startedAt = performance.now();
    const isFirst = recordedStep === -1;
    try {
      recorder.write({ step: progress.steps, iteration: progress.iteration, seed: seedOf(seed) });
    } catch (error) {
      recorder.close();
      recorder = undefined;
      onProblem(`recording stopped: ${(error as Error).message}`);
    }
    recordedStep = progress.steps;
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
      if (performance.now() >= dueAt) record();
    },
    last() {
      if (progress.steps !== recordedStep) record();
    },
    close: () => recorder?.close(),
  };
}

/** Records episodes of a checkpoint's policy into its run, from the starts of the run's own replays; returns their names. */
export async function recordEpisodes(
  runDir: string,
  recorded: LivePolicy,
  at: Moment,
  { episodes = 1, onReplay }: RecordOptions,
): Promise<string[]> {
  const recorder = await openRecorder(recorded);
  if (recorder === undefined)
    throw new TrainError(
      isPythonId(recorded.env)
        ? `${recorded.env} cannot be drawn: its render_modes have no rgb_array`
        : `${recorded.env} cannot be drawn: it has no view; environments of your own can have one, with draw or view (${documentPath('docs/robot-view.md')})`,
    );
  try {
    return Array.from({ length: episodes }, (_, episode) => {
      const replay = recorder.record({ ...at, seed: seedOf(at.seed) + episode });
      const name = saveReplay(runDir, replay, episode);
      onReplay?.(name, replay);
      return name;
    });
  } finally {
    recorder.close();
  }
}
