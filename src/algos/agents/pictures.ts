/** Episodes of environments that show themselves in pictures, and have no bodies to draw. */
import { TrainError } from '../../base/errors.ts';
import type { Picture } from '../../envs/env.ts';
import { makeEnv } from '../../envs/registry.ts';
import { compileActor, type LivePolicy } from './actor.ts';

/** Of an episode without an end, or a very long one, no more is shown. */
const MOST_STEPS = 2000;
/** Of pictures that are kept together. */
const MOST_BYTES = 400e6;

/** What was seen of an episode. */
export interface Pictures {
  /** The first is that of the reset; all of one size. */
  readonly pictures: readonly Picture[];
  readonly episodeReturn: number;
  /** Whether there was more than is kept. */
  readonly isCut: boolean;
}

/** Plays one episode with the most likely actions and keeps what it looks like. */
export async function playPictures(
  { env: id, options, model, policy }: LivePolicy,
  seed: number,
): Promise<Pictures> {
  const env = makeEnv(id, { ...options, render: true });
  try {
    const show = env.outside?.picture;
    if (show === undefined) throw new TrainError(`${id} cannot be drawn: its render_modes have no rgb_array`);
    const actor = await compileActor(model, env.actionSpace, 1);
    try {
      const obs = new Float32Array(env.observationSpace.flatSize);
      const action = new Float32Array(env.actionSpace.flatSize);
      const now = policy();
      env.reset({ seed }, obs);
      const pictures = [show()];
      const { rgb, width, height } = pictures[0];
      const most = Math.min(MOST_STEPS, Math.floor(MOST_BYTES / rgb.length));
      let episodeReturn = 0;
      for (let step = 0; step < most; step++) {
        actor.act(now, obs, action);
        const { reward, terminated, truncated } = env.step(action, obs);
        episodeReturn += reward;
        const picture = show();
        if (picture.width !== width || picture.height !== height)
          throw new TrainError(
            `${id} gave a picture of ${picture.width}x${picture.height} after one of ${width}x${height}: all must be alike`,
          );
        pictures.push(picture);
        if (terminated || truncated) return { pictures, episodeReturn, isCut: false };
      }
      return { pictures, episodeReturn, isCut: true };
    } finally {
      actor.dispose();
    }
  } finally {
    env.close?.();
  }
}
