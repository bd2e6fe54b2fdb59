/** Four frames of a board: a red disc twice, then a blue square of the same width twice. */
import type { Replay } from '../../../src/runs/replay-format.ts';
import type { Drawing, DrawnShape } from '../../../src/view/drawing.ts';
import { emptyScene } from '../../../src/view/scene.ts';

const board = (shape: DrawnShape): Drawing => ({
  width: 10,
  height: 10,
  background: '#eeeeee',
  shapes: [shape, { kind: 'text', x: 5, y: 9, size: 1, text: 'a board', align: 'middle' }],
});
const disc = board({ kind: 'circle', x: 5, y: 4, radius: 3, fill: 'red' });
const square = board({ kind: 'rectangle', x: 2, y: 1, width: 6, height: 6, fill: 'blue' });

export const boardReplay = (step: number): Replay => ({
  step,
  iteration: 2,
  environment: 'Board-v0',
  seed: 1,
  recordedAt: 1,
  frameSeconds: 0.1,
  frames: 4,
  actionSize: 1,
  terms: [],
  episodeReturn: 3,
  end: 'terminated',
  scene: emptyScene,
  positions: new Float32Array(0),
  joints: new Float32Array(0),
  actions: Float32Array.of(0, 1, 1, 1),
  rewards: Float32Array.of(0, 1, 1, 1),
  rewardTerms: new Float32Array(0),
  rotations: new Int16Array(0),
  drawings: [disc, disc, square, square],
});
