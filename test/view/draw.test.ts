/** The painter against closed forms: areas, volumes, what hides what, where the shadow falls. */
import { describe, expect, test } from 'vitest';
import { createPainter } from '../../src/view/draw/painter.ts';
import { stripe } from '../../src/view/draw/shade.ts';
import { meshOf } from '../../src/view/draw/tessellate.ts';
import type { Motion } from '../../src/view/motion.ts';
import { fieldOfViewDegrees } from '../../src/view/orbit.ts';
import type { SceneShape, ShapeKind, Vector3 } from '../../src/view/scene.ts';

const shapeOf = (kind: ShapeKind, size: Vector3, more: Partial<SceneShape> = {}): SceneShape => ({
  kind,
  size,
  body: 0,
  position: [0, 0, 0],
  rotation: [1, 0, 0, 0],
  colour: [1, 0, 0, 1],
  ...more,
});

/** One body at rest. */
function still(shapes: SceneShape[], at: Vector3 = [0, 0, 1]): Motion {
  return {
    scene: { bodies: [{ name: 'body' }], shapes, joints: [], root: 0 },
    frames: 1,
    frameSeconds: 0.1,
    positions: Float32Array.from(at),
    rotations: Int16Array.from([32_767, 0, 0, 0]),
  };
}

const floor = shapeOf('plane', [0, 0, 0], { body: -1 });

describe('triangles', () => {
  /** By the divergence theorem: each triangle with the origin, with its sign. */
  function volumeOf({ vertices, triangles }: ReturnType<typeof meshOf>): number {
    let volume = 0;
    const at = (i: number): [number, number, number] => [
      vertices[3 * i],
      vertices[3 * i + 1],
      vertices[3 * i + 2],
    ];
    for (let t = 0; t < triangles.length; t += 3) {
      const [a, b, c] = [at(triangles[t]), at(triangles[t + 1]), at(triangles[t + 2])];
      const [x, y, z] = [b[1] * c[2] - b[2] * c[1], b[2] * c[0] - b[0] * c[2], b[0] * c[1] - b[1] * c[0]];
      volume += (a[0] * x + a[1] * y + a[2] * z) / 6;
    }
    return volume;
  }
  const exact: [ShapeKind, Vector3, number][] = [
    ['sphere', [0.7, 0, 0], (4 / 3) * Math.PI * 0.7 ** 3],
    ['ellipsoid', [0.3, 0.5, 0.9], (4 / 3) * Math.PI * 0.3 * 0.5 * 0.9],
    ['capsule', [0.2, 0.6, 0], (4 / 3) * Math.PI * 0.2 ** 3 + Math.PI * 0.2 ** 2 * 1.2],
    ['cylinder', [0.4, 0.3, 0], Math.PI * 0.4 ** 2 * 0.6],
  ];
  for (const [kind, size, volume] of exact) {
    test(`a ${kind} has its volume, and faces outwards`, () => {
      const mesh = meshOf(shapeOf(kind, size));
      const share = volumeOf(mesh) / volume;
      expect(share).toBeGreaterThan(0.94);
      expect(share).toBeLessThan(1);
      for (let i = 0; i < mesh.vertices.length; i += 3) {
        const out = [0, 1, 2].reduce((sum, k) => sum + mesh.vertices[i + k] * mesh.normals[i + k], 0);
        expect(out).toBeGreaterThan(0);
      }
    });
  }
  test('a box has its volume to the last bit that matters', () => {
    expect(volumeOf(meshOf(shapeOf('box', [0.1, 0.2, 0.3])))).toBeCloseTo(8 * 0.006, 6);
  });
});

describe('pictures', () => {
  const [width, height] = [120, 100];
  const pixel = (pixels: Uint8Array, x: number, y: number): number[] => [
    ...pixels.subarray(3 * (y * width + x), 3 * (y * width + x) + 3),
  ];
  const isRed = ([r, g, b]: readonly number[]): boolean => r > g + 40 && r > b + 40;
  const orbit = { azimuth: 0, elevation: 0, distance: 10 };
  const paint = (motion: Motion, more = {}): Uint8Array =>
    createPainter(motion, { width, height, orbit, ...more })
      .paint(0, 0)
      .slice();

  test('a ball covers the disc that its angle says, in the middle', () => {
    // High above the floor that is made up below it, so that nothing else is red.
    const pixels = paint(still([shapeOf('sphere', [1, 0, 0])], [3, 2, 50]));
    let [count, sumX] = [0, 0];
    for (let y = 0; y < height; y++)
      for (let x = 0; x < width; x++)
        if (isRed(pixel(pixels, x, y))) {
          count++;
          sumX += x + 0.5;
        }
    const focal = height / 2 / Math.tan((fieldOfViewDegrees * Math.PI) / 360);
    // A ball of radius r at a distance d is seen as a disc of radius f·r/√(d²-r²).
    const area = Math.PI * (focal / Math.sqrt(99)) ** 2;
    expect(Math.abs(count / area - 1)).toBeLessThan(0.06);
    expect(sumX / count).toBeCloseTo(width / 2, 0);
  });

  test('what is nearer hides what is behind it, whatever comes first', () => {
    const near = shapeOf('sphere', [0.4, 0, 0], { position: [2, 0, 0], colour: [0, 0, 1, 1] });
    const far = shapeOf('box', [0.4, 1, 1]);
    for (const shapes of [
      [near, far],
      [far, near],
    ]) {
      const pixels = paint(still([...shapes, floor], [0, 0, 1.2]));
      const [x, y] = [width / 2, height / 2];
      // The camera looks from +x.
      const blue = Array.from({ length: 30 }, (_, i) => pixel(pixels, x, y - 15 + i)).filter(
        ([r, , b]) => b > r + 40,
      );
      expect(blue.length).toBeGreaterThan(3);
    }
  });

  test('the ball throws a shadow on the floor away from the light, and nothing else is dark', () => {
    const above = { azimuth: 0, elevation: 1.45, distance: 14 };
    const withBall = paint(still([floor, shapeOf('sphere', [0.6, 0, 0])]), { orbit: above });
    const without = paint(still([floor, shapeOf('sphere', [0.6, 0, 0], { colour: [1, 0, 0, 0.1] })]), {
      orbit: above,
    });
    let [darker, sumX, sumY] = [0, 0, 0];
    for (let y = 0; y < height; y++)
      for (let x = 0; x < width; x++) {
        const [before, after] = [pixel(without, x, y), pixel(withBall, x, y)];
        if (isRed(after) || before[1] - after[1] < 12) continue;
        darker++;
        sumX += x;
        sumY += y;
      }
    expect(darker).toBeGreaterThan(40);
    // From above with +y to the right and +x down: the light comes from -x and -y.
    expect(sumX / darker).toBeGreaterThan(width / 2);
    expect(sumY / darker).toBeGreaterThan(height / 2 - 5);
  });

  test('what is under the floor is not seen', () => {
    const pixels = paint(still([floor, shapeOf('sphere', [0.5, 0, 0])], [0, 0, -2]), {
      orbit: { azimuth: 0, elevation: 0.6, distance: 8 },
    });
    for (let i = 0; i < pixels.length; i += 3) expect(isRed([...pixels.subarray(i, i + 3)])).toBe(false);
  });

  test('the same moment gives the same picture, and themes differ', () => {
    const motion = still([floor, shapeOf('capsule', [0.2, 0.5, 0])]);
    expect(paint(motion)).toEqual(paint(motion));
    const mean = (pixels: Uint8Array): number =>
      pixels.reduce((sum, value) => sum + value, 0) / pixels.length;
    expect(mean(paint(motion))).toBeGreaterThan(mean(paint(motion, { dark: true })) + 80);
  });
});

test('stripes are the mean of a square wave over their window', () => {
  const square = (x: number): number => (Math.floor(x) % 2 === 0 ? 1 : -1);
  for (const [x, window] of [
    [0.5, 0.1],
    [0.98, 0.5],
    [1.3, 1.7],
    [7.2, 3.9],
    [-2.4, 0.8],
  ] as const) {
    let sum = 0;
    const parts = 20_000;
    for (let i = 0; i < parts; i++) sum += square(x + window * ((i + 0.5) / parts - 0.5));
    expect(Math.abs(stripe(x, window))).toBeCloseTo(Math.abs(sum / parts), 2);
  }
});
