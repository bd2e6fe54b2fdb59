/** Filling triangles: into a buffer of depths and normals for the picture, into one of heights for the shadow. */

/** What is seen at each sample. */
export interface Surface {
  readonly width: number;
  readonly height: number;
  /** One over the distance along the line of sight; 0 where there is nothing. */
  readonly nearness: Float32Array; // (height, width)
  readonly normals: Float32Array; // (height, width, 3)
  /** Index of the shape. */
  readonly shapes: Int16Array; // (height, width)
}

/** Corners of a triangle on the screen: x and y in samples, nearness, and the normal there. */
export type Corner = Float64Array; // (6)

/** Fills a triangle that faces the eye, nearest first. */
export function fillTriangle(surface: Surface, a: Corner, b: Corner, c: Corner, shape: number): void {
  const { width, height, nearness, normals, shapes } = surface;
  const ax = a[0];
  const ay = a[1];
  const bx = b[0];
  const by = b[1];
  const cx = c[0];
  const cy = c[1];
  const area = (bx - ax) * (cy - ay) - (by - ay) * (cx - ax);
  // y goes down on the screen, so what turns counter-clockwise in the world has an area below 0 here.
  if (area >= 0) return;
  const left = Math.max(0, Math.ceil(Math.min(ax, bx, cx) - 0.5));
  const right = Math.min(width - 1, Math.floor(Math.max(ax, bx, cx) - 0.5));
  const top = Math.max(0, Math.ceil(Math.min(ay, by, cy) - 0.5));
  const bottom = Math.min(height - 1, Math.floor(Math.max(ay, by, cy) - 0.5));
  if (left > right || top > bottom) return;
  const scale = 1 / area;
  const stepA = (by - cy) * scale;
  const stepB = (cy - ay) * scale;
  for (let y = top; y <= bottom; y++) {
    const py = y + 0.5;
    const px = left + 0.5;
    let shareA = ((bx - px) * (cy - py) - (by - py) * (cx - px)) * scale;
    let shareB = ((cx - px) * (ay - py) - (cy - py) * (ax - px)) * scale;
    let at = y * width + left;
    for (let x = left; x <= right; x++, at++, shareA += stepA, shareB += stepB) {
      const shareC = 1 - shareA - shareB;
      if (shareA < 0 || shareB < 0 || shareC < 0) continue;
      const near = shareA * a[2] + shareB * b[2] + shareC * c[2];
      if (near <= nearness[at]) continue;
      nearness[at] = near;
      shapes[at] = shape;
      normals[3 * at] = shareA * a[3] + shareB * b[3] + shareC * c[3];
      normals[3 * at + 1] = shareA * a[4] + shareB * b[4] + shareC * c[4];
      normals[3 * at + 2] = shareA * a[5] + shareB * b[5] + shareC * c[5];
    }
  }
}

/** What the light reaches first, as a square seen from it. */
export interface ShadowMap {
  readonly edge: number;
  /** How far towards the light; -Infinity where there is nothing. */
  readonly heights: Float32Array; // (edge, edge)
}

/** Fills a triangle of the shadow, whichever way it faces; corners are x, y in cells and the height. */
export function fillShadow({ edge, heights }: ShadowMap, a: Corner, b: Corner, c: Corner): void {
  const ax = a[0];
  const ay = a[1];
  const bx = b[0];
  const by = b[1];
  const cx = c[0];
  const cy = c[1];
  const area = (bx - ax) * (cy - ay) - (by - ay) * (cx - ax);
  if (area === 0) return;
  const left = Math.max(0, Math.ceil(Math.min(ax, bx, cx) - 0.5));
  const right = Math.min(edge - 1, Math.floor(Math.max(ax, bx, cx) - 0.5));
  const top = Math.max(0, Math.ceil(Math.min(ay, by, cy) - 0.5));
  const bottom = Math.min(edge - 1, Math.floor(Math.max(ay, by, cy) - 0.5));
  const scale = 1 / area;
  for (let y = top; y <= bottom; y++) {
    const py = y + 0.5;
    for (let x = left; x <= right; x++) {
      const px = x + 0.5;
      const shareA = ((bx - px) * (cy - py) - (by - py) * (cx - px)) * scale;
      const shareB = ((cx - px) * (ay - py) - (cy - py) * (ax - px)) * scale;
      const shareC = 1 - shareA - shareB;
      if (shareA < 0 || shareB < 0 || shareC < 0) continue;
      const height = shareA * a[2] + shareB * b[2] + shareC * c[2];
      const at = y * edge + x;
      if (height > heights[at]) heights[at] = height;
    }
  }
}
