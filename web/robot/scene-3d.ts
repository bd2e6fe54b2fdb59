/** The robot in 3D: shapes of a scene on a checkered floor, with one shadow. The only file that needs three. */
import {
  BackSide,
  BoxGeometry,
  BufferAttribute,
  type BufferGeometry,
  CanvasTexture,
  CapsuleGeometry,
  Color,
  CylinderGeometry,
  DirectionalLight,
  DoubleSide,
  Fog,
  FrontSide,
  Group,
  HemisphereLight,
  Mesh,
  MeshBasicMaterial,
  MeshStandardMaterial,
  PCFShadowMap,
  PerspectiveCamera,
  PlaneGeometry,
  RepeatWrapping,
  SphereGeometry,
  SRGBColorSpace,
  Scene as ThreeScene,
  Vector3,
  WebGLRenderer,
} from 'three';
import { groundOf, isFloor, type Motion, reachOf, writePoseAt } from '../../src/view/motion.ts';
import {
  cellOf,
  fieldOfViewDegrees,
  firstOrbit,
  lightFrom,
  lookAtHeight,
  type Orbit,
  offsetOf,
  turned,
  zoomed,
} from '../../src/view/orbit.ts';
import type { SceneShape } from '../../src/view/scene.ts';

export interface Scene3d {
  /** Another robot or another episode; the camera stays where it is if the robot is as large as before. */
  show(motion: Motion): void;
  /** Puts the robot where it is at a moment. */
  pose(frame: number, part: number): void;
  /** Whether the camera goes with the robot. */
  follow: boolean;
  dark(isDark: boolean): void;
  resize(widthPx: number, heightPx: number, pixelRatio: number): void;
  turn(right: number, up: number): void;
  zoom(factor: number): void;
  /** Moves what is looked at along the screen, in shares of the picture's height; the camera no longer follows. */
  pan(right: number, up: number): void;
  home(): void;
  render(): void;
  dispose(): void;
}

interface Look {
  readonly horizon: string;
  readonly zenith: string;
  readonly cells: readonly [string, string];
  readonly line: string;
  readonly light: number;
  readonly fill: number;
}

const looks: Readonly<Record<'light' | 'dark', Look>> = {
  light: {
    horizon: '#e9edf1',
    zenith: '#c3d5e8',
    cells: ['#e6eaee', '#cbd3dc'],
    line: '#b9c4cf',
    light: 2.9,
    fill: 2,
  },
  dark: {
    horizon: '#1a2027',
    zenith: '#0c1015',
    cells: ['#2a323b', '#212830'],
    line: '#3a444f',
    light: 2.7,
    fill: 1.35,
  },
};

/** Throws where there is no WebGL. */
export function createScene3d(canvas: HTMLCanvasElement): Scene3d {
  const renderer = new WebGLRenderer({ canvas, antialias: true, powerPreference: 'low-power' });
  renderer.shadowMap.enabled = true;
  renderer.shadowMap.type = PCFShadowMap;
  const world = new ThreeScene();
  const fog = new Fog('#fff', 1, 2);
  world.fog = fog;
  const camera = new PerspectiveCamera(fieldOfViewDegrees, 1, 0.01, 1000);
  camera.up.set(0, 0, 1);
  const sun = new DirectionalLight('#fffaf2', 2);
  sun.castShadow = true;
  sun.shadow.mapSize.set(2048, 2048);
  sun.shadow.radius = 3;
  sun.shadow.bias = -0.0004;
  sun.shadow.normalBias = 0.01;
  const fill = new HemisphereLight('#ffffff', '#8a8f98', 1);
  const sky = skyDome();
  const floor = floorMesh();
  world.add(sun, sun.target, fill, sky, floor);

  let motion: Motion | undefined;
  let robot = new Group();
  let bodies: Group[] = [];
  let radius = 1;
  let orbit: Orbit = firstOrbit(1);
  let look: Look = looks.light;
  const target = new Vector3();
  const at = new Float64Array(7);
  const scene3d: Scene3d = {
    follow: true,
    show(next) {
      const first = motion === undefined;
      const other = JSON.stringify(next.scene) !== JSON.stringify(motion?.scene);
      motion = next;
      if (!other) return;
      world.remove(robot);
      free(robot);
      ({ robot, bodies } = robotOf(next));
      world.add(robot);
      const { radius: size, centre } = reachOf(next);
      if (first || Math.abs(size / radius - 1) > 0.2) orbit = firstOrbit(size);
      radius = size;
      target.set(...centre);
      floor.position.z = groundOf(next) - 1e-4 * size;
      floor.scale.setScalar(cellOf(size));
      fog.near = 8 * size;
      fog.far = 30 * size;
      camera.near = size / 50;
      camera.far = 200 * size;
      const shadow = sun.shadow.camera;
      shadow.left = shadow.bottom = -1.45 * size;
      shadow.right = shadow.top = 1.45 * size;
      shadow.near = 0.1 * size;
      shadow.far = 12 * size;
      shadow.updateProjectionMatrix();
      sun.shadow.normalBias = 0.004 * size;
      sky.scale.setScalar(100 * size);
    },
    pose(frame, part) {
      if (motion === undefined) return;
      for (let body = 0; body < bodies.length; body++) {
        writePoseAt(motion, body, frame, part, at);
        const group = bodies[body];
        group.position.set(at[0], at[1], at[2]);
        group.quaternion.set(at[4], at[5], at[6], at[3]);
      }
      if (!scene3d.follow) return;
      const root = bodies[motion.scene.root].position;
      target.x = root.x;
      target.y = root.y;
      target.z = lookAtHeight(root.z, floor.position.z, radius);
    },
    dark(isDark) {
      look = looks[isDark ? 'dark' : 'light'];
      fog.color.set(look.horizon);
      paintSky(sky, look);
      paintFloor(floor, look);
      sun.intensity = look.light;
      fill.intensity = look.fill;
    },
    resize(width, height, pixelRatio) {
      renderer.setPixelRatio(pixelRatio);
      renderer.setSize(width, height, false);
      camera.aspect = width / Math.max(1, height);
      camera.updateProjectionMatrix();
    },
    turn(right, up) {
      orbit = turned(orbit, right, up);
    },
    zoom(factor) {
      orbit = zoomed(orbit, factor, radius);
    },
    pan(right, up) {
      scene3d.follow = false;
      const perHeight = 2 * orbit.distance * Math.tan((camera.fov * Math.PI) / 360);
      const { azimuth } = orbit;
      target.x += right * perHeight * -Math.sin(azimuth);
      target.y += right * perHeight * Math.cos(azimuth);
      target.z += up * perHeight;
    },
    home() {
      orbit = firstOrbit(radius);
      scene3d.follow = true;
    },
    render() {
      const [x, y, z] = offsetOf(orbit);
      camera.position.set(
        target.x + x,
        target.y + y,
        Math.max(floor.position.z + 0.02 * radius, target.z + z),
      );
      camera.lookAt(target);
      sun.position
        .set(...lightFrom)
        .multiplyScalar(radius)
        .add(target);
      sun.target.position.copy(target);
      sky.position.copy(camera.position);
      moveFloor(floor, target.x, target.y);
      renderer.render(world, camera);
    },
    dispose() {
      free(world);
      renderer.dispose();
      renderer.forceContextLoss();
    },
  };
  scene3d.dark(false);
  return scene3d;
}

function robotOf({ scene }: Motion): { robot: Group; bodies: Group[] } {
  const robot = new Group();
  const bodies = scene.bodies.map(() => new Group());
  robot.add(...bodies);
  for (const shape of scene.shapes) {
    if (isFloor(shape)) continue; // the checkered floor stands for it
    const mesh = meshOf(shape);
    (bodies[shape.body] ?? robot).add(mesh);
  }
  return { robot, bodies };
}

function meshOf(shape: SceneShape): Mesh {
  const [r, g, b, opacity] = shape.colour;
  const [x, y, z] = shape.position;
  const [w, i, j, k] = shape.rotation;
  const material = new MeshStandardMaterial({
    color: new Color().setRGB(r, g, b, SRGBColorSpace),
    roughness: 0.5,
    metalness: 0.08,
    transparent: opacity < 1,
    opacity,
    side: shape.kind === 'plane' ? DoubleSide : FrontSide,
  });
  const mesh = new Mesh(geometryOf(shape), material);
  mesh.position.set(x, y, z);
  mesh.quaternion.set(i, j, k, w);
  mesh.castShadow = shape.kind !== 'plane';
  mesh.receiveShadow = true;
  return mesh;
}

function geometryOf({ kind, size: [a, b, c] }: SceneShape): BufferGeometry {
  switch (kind) {
    case 'sphere':
      return new SphereGeometry(a, 32, 20);
    case 'ellipsoid':
      return new SphereGeometry(1, 36, 24).scale(a, b, c);
    case 'capsule':
      // Theirs lie along y, ours along z.
      return new CapsuleGeometry(a, 2 * b, 10, 24).rotateX(Math.PI / 2);
    case 'cylinder':
      return new CylinderGeometry(a, a, 2 * b, 32).rotateX(Math.PI / 2);
    case 'box':
      return new BoxGeometry(2 * a, 2 * b, 2 * c);
    case 'plane':
      return new PlaneGeometry(4, 4);
    default:
      return kind satisfies never;
  }
}

/** A floor of so many cells each way, which goes along with what is looked at: it has no end. */
const floorCells = 240;

function floorMesh(): Mesh<PlaneGeometry, MeshStandardMaterial> {
  const mesh = new Mesh(
    new PlaneGeometry(floorCells, floorCells),
    new MeshStandardMaterial({ roughness: 0.92, metalness: 0 }),
  );
  mesh.receiveShadow = true;
  return mesh;
}

/** By two cells at a time, so that the pattern stands still. */
function moveFloor(floor: Mesh, x: number, y: number): void {
  const double = 2 * floor.scale.x;
  floor.position.x = Math.round(x / double) * double;
  floor.position.y = Math.round(y / double) * double;
}

function paintFloor(floor: Mesh<PlaneGeometry, MeshStandardMaterial>, { cells, line }: Look): void {
  const canvas = document.createElement('canvas');
  const edge = 256;
  canvas.width = canvas.height = edge;
  const context = canvas.getContext('2d')!;
  const half = edge / 2;
  for (let i = 0; i < 4; i++) {
    context.fillStyle = cells[(i + (i >> 1)) % 2];
    context.fillRect((i % 2) * half, (i >> 1) * half, half, half);
  }
  context.strokeStyle = line;
  context.lineWidth = 2;
  context.strokeRect(0, 0, half, half);
  context.strokeRect(half, half, half, half);
  const texture = new CanvasTexture(canvas);
  texture.colorSpace = SRGBColorSpace;
  texture.wrapS = texture.wrapT = RepeatWrapping;
  texture.repeat.set(floorCells / 2, floorCells / 2);
  texture.anisotropy = 8;
  floor.material.map?.dispose();
  floor.material.map = texture;
  floor.material.needsUpdate = true;
}

function skyDome(): Mesh<SphereGeometry, MeshBasicMaterial> {
  return new Mesh(
    new SphereGeometry(1, 24, 24).rotateX(Math.PI / 2),
    new MeshBasicMaterial({ vertexColors: true, side: BackSide, fog: false, depthWrite: false }),
  );
}

function paintSky(sky: Mesh<SphereGeometry, MeshBasicMaterial>, { horizon, zenith }: Look): void {
  const { position } = sky.geometry.attributes;
  const colours = new Float32Array(position.count * 3);
  const [low, high, mixed] = [new Color(horizon), new Color(zenith), new Color()];
  for (let i = 0; i < position.count; i++) {
    const height = Math.max(0, position.getZ(i));
    mixed.lerpColors(low, high, height ** 0.7).toArray(colours, 3 * i);
  }
  sky.geometry.setAttribute('color', new BufferAttribute(colours, 3));
}

/** Gives back what the graphics card holds. */
function free(object: { traverse(visit: (part: unknown) => void): void }): void {
  object.traverse(part => {
    if (!(part instanceof Mesh)) return;
    part.geometry.dispose();
    const { map } = part.material as MeshStandardMaterial;
    map?.dispose();
    (part.material as MeshStandardMaterial).dispose();
  });
}
