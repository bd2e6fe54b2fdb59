/** A small replay, made by hand: a ball that rolls along x at a known speed, with a box that turns on it. */
import { packTurn, type Replay } from '../../../src/runs/index.ts';
import type { Scene } from '../../../src/view/scene.ts';

export const ballScene: Scene = {
  bodies: [{ name: 'ball' }, { name: 'box' }],
  shapes: [
    {
      kind: 'plane',
      body: -1,
      size: [5, 5, 1],
      position: [0, 0, 0],
      rotation: [1, 0, 0, 0],
      colour: [0.5, 0.5, 0.5, 1],
    },
    {
      kind: 'sphere',
      body: 0,
      size: [0.5, 0, 0],
      position: [0, 0, 0],
      rotation: [1, 0, 0, 0],
      colour: [1, 0, 0, 1],
    },
    {
      kind: 'box',
      body: 1,
      size: [0.1, 0.2, 0.3],
      position: [0, 0, 0],
      rotation: [1, 0, 0, 0],
      colour: [0, 0, 1, 1],
    },
  ],
  joints: [
    { name: 'hinge', kind: 'hinge', range: [-1, 1] },
    { name: 'slide', kind: 'slide', range: null },
  ],
  root: 0,
};

/** `speed` is in metres a second; the box turns around z by a tenth of a radian a frame. */
export function ballReplay({ step = 1000, frames = 21, speed = 2, episodeReturn = 20 } = {}): Replay {
  const frameSeconds = 0.05;
  const positions = new Float32Array(frames * 2 * 3);
  const rotations = new Int16Array(frames * 2 * 4);
  for (let frame = 0; frame < frames; frame++) {
    positions.set([speed * frameSeconds * frame, 0, 0.5], frame * 6);
    positions.set([speed * frameSeconds * frame, 0, 1.3], frame * 6 + 3);
    const half = 0.05 * frame;
    rotations.set([packTurn(1), 0, 0, 0], frame * 8);
    rotations.set([packTurn(Math.cos(half)), 0, 0, packTurn(Math.sin(half))], frame * 8 + 4);
  }
  return {
    step,
    iteration: 3,
    environment: 'Ball-v0',
    seed: 7,
    recordedAt: 1_794_000_000_000,
    frameSeconds,
    frames,
    actionSize: 2,
    terms: ['forward', 'effort'],
    episodeReturn,
    end: 'truncated',
    scene: ballScene,
    positions,
    rotations,
    joints: Float32Array.from({ length: 2 * frames }, (_, i) => 0.01 * i),
    actions: Float32Array.from({ length: 2 * frames }, (_, i) => Math.sin(i)),
    rewards: Float32Array.from({ length: frames }, (_, i) => (i === 0 ? 0 : 1)),
    rewardTerms: Float32Array.from({ length: 2 * frames }, (_, i) => (i < 2 ? 0 : i % 2 === 0 ? 1.5 : -0.5)),
  };
}
