import { describe, expect, test } from 'vitest';
import {
  distanceAt,
  groundOf,
  momentOf,
  reachOf,
  secondsOf,
  speedAt,
  writePoseAt,
} from '../../src/view/motion.ts';
import { cellOf, firstOrbit, offsetOf, turned, zoomed } from '../../src/view/orbit.ts';
import { parseScene, type Scene } from '../../src/view/scene.ts';
import { ballReplay, ballScene } from './support/replay.ts';

const replay = ballReplay();

test('speed, distance and length of a ball that rolls at 2 m/s', () => {
  expect(secondsOf(replay)).toBeCloseTo(1, 9);
  for (const frame of [0, 1, 10, 20]) expect(speedAt(replay, frame)).toBeCloseTo(2, 5);
  expect(distanceAt(replay, 0)).toBe(0);
  expect(distanceAt(replay, 20)).toBeCloseTo(2, 5);
  expect(speedAt(ballReplay({ frames: 1 }), 0)).toBe(0);
});

test('between two frames a body is on the way, and turned half way', () => {
  const pose = new Float64Array(7);
  writePoseAt(replay, 1, 4, 0.5, pose);
  expect(pose[0]).toBeCloseTo(2 * 0.05 * 4.5, 6);
  // Turned around z by a tenth of a radian a frame.
  expect(2 * Math.atan2(pose[6], pose[3])).toBeCloseTo(0.45, 4);
  expect(Math.hypot(...pose.subarray(3))).toBeCloseTo(1, 12);
});

test('a quaternion and its opposite are one turn: the way between them is the short one', () => {
  const other = {
    ...replay,
    rotations: replay.rotations.map((part, i) => (i >= 8 * 5 && i < 8 * 6 ? -part : part)),
  };
  const pose = new Float64Array(7);
  writePoseAt(other, 1, 4, 0.5, pose);
  expect(Math.abs(2 * Math.atan2(pose[6], pose[3]))).toBeCloseTo(0.45, 4);
});

test('moments outside of the episode are its ends', () => {
  expect(momentOf(replay, -3)).toEqual({ frame: 0, part: 0 });
  expect(momentOf(replay, 99)).toEqual({ frame: 20, part: 0 });
  expect(momentOf(replay, 0.125).frame).toBe(2);
  expect(momentOf(replay, 0.125).part).toBeCloseTo(0.5, 9);
});

test('how far it reaches: a ball of .5 m under a box from 1 to 1.6 m', () => {
  const { centre, radius } = reachOf(replay);
  expect(centre[2]).toBeCloseTo(0.8, 3);
  expect(radius).toBeCloseTo(Math.hypot(1, 1, 1.6) / 2, 3);
});

test('how far shapes reach that stand, lie and lean', () => {
  const reach = (kind: 'capsule' | 'cylinder' | 'ellipsoid', angle: number): number => {
    // Turned around y by the angle: its own axis z then points along x.
    const rotation = [Math.cos(angle / 2), 0, Math.sin(angle / 2), 0] as const;
    const size = kind === 'ellipsoid' ? ([0.2, 0.2, 1] as const) : ([0.2, 1, 0] as const);
    const shape = { ...ballScene.shapes[1], kind, size, rotation };
    return reachOf({ ...replay, scene: { ...ballScene, shapes: [shape] } }).radius;
  };
  const [half, lean] = [Math.PI / 2, Math.PI / 4];
  for (const angle of [0, half]) {
    expect(reach('capsule', angle)).toBeCloseTo(Math.hypot(0.2, 0.2, 1.2), 4);
    expect(reach('cylinder', angle)).toBeCloseTo(Math.hypot(0.2, 0.2, 1), 4);
    expect(reach('ellipsoid', angle)).toBeCloseTo(Math.hypot(0.2, 0.2, 1), 4);
  }
  const along = Math.SQRT1_2;
  expect(reach('capsule', lean)).toBeCloseTo(Math.hypot(0.2 + along, 0.2, 0.2 + along), 4);
  expect(reach('cylinder', lean)).toBeCloseTo(Math.hypot(1.2 * along, 0.2, 1.2 * along), 4);
});

test('the ground is the floor, or below everything where there is none', () => {
  expect(groundOf(replay)).toBe(0);
  const scene: Scene = { ...ballScene, shapes: ballScene.shapes.slice(1) };
  expect(groundOf({ ...replay, scene })).toBeLessThan(0);
});

describe('the camera', () => {
  test('stays at its distance, above the floor and within its limits', () => {
    const orbit = firstOrbit(1);
    expect(Math.hypot(...offsetOf(orbit))).toBeCloseTo(orbit.distance, 9);
    expect(turned(orbit, 0, 9).elevation).toBeLessThan(Math.PI / 2);
    expect(turned(orbit, 0, -9).elevation).toBeGreaterThan(-0.1);
    expect(zoomed(orbit, 1e-9, 1).distance).toBeGreaterThan(0.5);
    expect(zoomed(orbit, 1e9, 1).distance).toBeLessThan(100);
  });

  test('cells have lengths that people use', () => {
    expect([0.1, 0.3, 1, 3, 8].map(cellOf).map(cell => Number(cell.toPrecision(6)))).toEqual([
      0.05, 0.2, 0.5, 2, 5,
    ]);
  });
});

describe('a scene that was read', () => {
  /** The scene with one value replaced, by its path. */
  function changed(path: string, value: unknown): unknown {
    const scene = structuredClone(ballScene) as unknown as Record<string, unknown>;
    const keys = path.split('.');
    const last = keys.pop()!;
    const holder = keys.reduce((at, key) => at[key] as Record<string, unknown>, scene);
    holder[last] = value;
    return scene;
  }
  test('comes back as it was', () => {
    expect(parseScene(JSON.parse(JSON.stringify(ballScene)))).toEqual(ballScene);
  });
  test('is refused if it is none', () => {
    expect(() => parseScene(5)).toThrow(/scene is 5, not an object/);
  });
  const wrong: [string, unknown, RegExp][] = [
    ['bodies', [], /nothing to draw/],
    ['bodies', Array(257).fill({ name: 'a' }), /257 parts: at most 256/],
    ['bodies.0.name', 'x'.repeat(81), /at most 80/],
    ['root', 2, /root is 2, not a whole number in 0\.\.1/],
    ['shapes.1.kind', 'mesh', /"mesh": it can be plane, sphere/],
    ['shapes.1.kind', 'constructor', /it can be plane/],
    ['shapes.1.body', 9, /body is 9/],
    ['shapes.2.size', [0.1, 0, 1], /a box needs 3 above 0/],
    ['shapes.1.position.0', null, /position\[0\] is null/],
    ['shapes.1.position.0', 1e300, /not a number of at most/],
    ['shapes.1.rotation', [0, 0, 0, 0], /not of length 1/],
    ['shapes.1.colour.0', 2, /outside of 0\.\.1/],
    ['joints.0.kind', 'ball', /it can be hinge or slide/],
    ['joints.0.range', [1, -1], /must be below/],
  ];
  for (const [path, value, message] of wrong)
    test(`is refused with ${path} ${JSON.stringify(value).slice(0, 30)}`, () => {
      expect(() => parseScene(changed(path, value))).toThrow(message);
    });
});
