/** Shapes as triangles with normals, seen from outside in counter-clockwise order. */
import type { SceneShape } from '../scene.ts';

export interface Mesh {
  readonly vertices: Float32Array; // (count, 3)
  readonly normals: Float32Array; // (count, 3)
  readonly triangles: Uint16Array; // (triangles, 3)
}

const AROUND = 20;
/** Rings from pole to equator. */
const RINGS = 6;

/** The triangles of a shape in its own frame. A plane is a floor, which is not made of triangles: it has none. */
export function meshOf({ kind, size: [a, b, c] }: SceneShape): Mesh {
  switch (kind) {
    case 'sphere':
      return ball(a, a, a, 0);
    case 'ellipsoid':
      return ball(a, b, c, 0);
    case 'capsule':
      return ball(a, a, a, b);
    case 'cylinder':
      return cylinder(a, b);
    case 'box':
      return box(a, b, c);
    case 'plane':
      return { vertices: new Float32Array(0), normals: new Float32Array(0), triangles: new Uint16Array(0) };
    default:
      return kind satisfies never;
  }
}

function build() {
  const vertices: number[] = [];
  const normals: number[] = [];
  const triangles: number[] = [];
  return {
    vertex(x: number, y: number, z: number, nx: number, ny: number, nz: number): number {
      const length = Math.hypot(nx, ny, nz);
      vertices.push(x, y, z);
      normals.push(nx / length, ny / length, nz / length);
      return vertices.length / 3 - 1;
    },
    /** Four corners, counter-clockwise from outside. */
    quad(p: number, q: number, r: number, s: number): void {
      triangles.push(p, q, r, p, r, s);
    },
    triangle(p: number, q: number, r: number): void {
      triangles.push(p, q, r);
    },
    done: (): Mesh => ({
      vertices: Float32Array.from(vertices),
      normals: Float32Array.from(normals),
      triangles: Uint16Array.from(triangles),
    }),
  };
}

/** An ellipsoid whose halves are pulled apart along z by `half`, with a straight part between. */
function ball(a: number, b: number, c: number, half: number): Mesh {
  const mesh = build();
  const latitudes = [
    ...Array.from({ length: RINGS + 1 }, (_, i) => ({
      angle: (Math.PI / 2) * (i / RINGS - 1),
      shift: -half,
    })),
    ...Array.from({ length: RINGS + 1 }, (_, i) => ({ angle: (Math.PI / 2) * (i / RINGS), shift: half })),
  ];
  for (const { angle, shift } of latitudes) {
    const [flat, height] = [Math.cos(angle), Math.sin(angle)];
    for (let i = 0; i <= AROUND; i++) {
      const turn = (2 * Math.PI * i) / AROUND;
      const [x, y] = [flat * Math.cos(turn), flat * Math.sin(turn)];
      mesh.vertex(a * x, b * y, c * height + shift, x / a, y / b, height / c);
    }
  }
  for (let ring = 0; ring < latitudes.length - 1; ring++) {
    if (half === 0 && ring === RINGS) continue; // both rings are the equator
    for (let i = 0; i < AROUND; i++) {
      const at = ring * (AROUND + 1) + i;
      mesh.quad(at, at + 1, at + AROUND + 2, at + AROUND + 1);
    }
  }
  return mesh.done();
}

function cylinder(radius: number, half: number): Mesh {
  const mesh = build();
  for (const end of [-1, 1]) {
    const middle = mesh.vertex(0, 0, end * half, 0, 0, end);
    for (let i = 0; i <= AROUND; i++) {
      const turn = (2 * Math.PI * i) / AROUND;
      const at = mesh.vertex(radius * Math.cos(turn), radius * Math.sin(turn), end * half, 0, 0, end);
      if (i === 0) continue;
      if (end > 0) mesh.triangle(middle, at - 1, at);
      else mesh.triangle(middle, at, at - 1);
    }
  }
  for (let i = 0; i <= AROUND; i++) {
    const turn = (2 * Math.PI * i) / AROUND;
    const [x, y] = [Math.cos(turn), Math.sin(turn)];
    const low = mesh.vertex(radius * x, radius * y, -half, x, y, 0);
    mesh.vertex(radius * x, radius * y, half, x, y, 0);
    if (i > 0) mesh.quad(low - 2, low, low + 1, low - 1);
  }
  return mesh.done();
}

function box(a: number, b: number, c: number): Mesh {
  const mesh = build();
  const half = [a, b, c];
  for (let axis = 0; axis < 3; axis++) {
    for (const side of [-1, 1]) {
      const [u, v] = side > 0 ? [(axis + 1) % 3, (axis + 2) % 3] : [(axis + 2) % 3, (axis + 1) % 3];
      const corner = (su: number, sv: number): number => {
        const at = [0, 0, 0];
        const normal = [0, 0, 0];
        at[axis] = side * half[axis];
        at[u] = su * half[u];
        at[v] = sv * half[v];
        normal[axis] = side;
        return mesh.vertex(at[0], at[1], at[2], normal[0], normal[1], normal[2]);
      };
      mesh.quad(corner(-1, -1), corner(1, -1), corner(1, 1), corner(-1, 1));
    }
  }
  return mesh.done();
}
