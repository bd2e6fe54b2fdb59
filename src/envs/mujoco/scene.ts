/** What a MuJoCo model looks like, taken from the compiled model, and where its bodies are now. */
import type { MainModule, MjModel } from '@mujoco/mujoco';
import {
  type Quaternion,
  type Scene,
  type SceneJoint,
  type SceneShape,
  type ShapeKind,
  sceneLimits,
  type Vector3,
} from '../../view/scene.ts';
import type { EnvView } from '../env.ts';

/** By mjtGeom. Height fields and meshes are left out: no robot here has one. */
const kinds: Readonly<Record<number, ShapeKind>> = {
  0: 'plane',
  2: 'sphere',
  3: 'capsule',
  4: 'ellipsoid',
  5: 'cylinder',
  6: 'box',
};
/** MuJoCo's viewer hides geoms of groups from 3 on: they are for contact, not for the eye. */
const HIDDEN_GROUP = 3;
const SLIDE = 2;
const HINGE = 3;
const FREE = 0;
/** MuJoCo's colour for what was given none: a material's counts then. */
const PLAIN = 0.5;

/** The parts of MuJoCo that a scene is made with. */
type Names = Pick<MainModule, 'mj_id2name' | 'mjtObj'>;

/** Reads a compiled model's shapes. The world, MuJoCo's body 0, is body -1 here. @internal */
export function sceneOf(names: Names, model: MjModel): Scene {
  const body = names.mjtObj.mjOBJ_BODY.value;
  const joint = names.mjtObj.mjOBJ_JOINT.value;
  const nameOf = (type: number, index: number, kind: string): string =>
    (names.mj_id2name(model, type, index) || `${kind} ${index}`).slice(0, sceneLimits.nameLength);
  return {
    bodies: Array.from({ length: model.nbody - 1 }, (_, i) => ({ name: nameOf(body, i + 1, 'body') })),
    shapes: shapesOf(model),
    joints: singleJoints(model).map(index => jointOf(model, index, nameOf(joint, index, 'joint'))),
    root: rootOf(model),
  };
}

/**
 * How to draw a model in motion. `state` gives the engine's arrays as they are now: `qpos`, and the bodies' `xpos` and
 * `xquat` in the world.
 * @internal
 */
export function viewOf(
  names: Names,
  model: MjModel,
  stepSeconds: number,
  state: () => { readonly qpos: Float64Array; readonly xpos: Float64Array; readonly xquat: Float64Array },
): EnvView {
  const scene = sceneOf(names, model);
  const addresses = singleJoints(model).map(index => model.jnt_qposadr[index] as number);
  return {
    scene,
    stepSeconds,
    writePose(out) {
      const { xpos, xquat } = state();
      for (let i = 0; i < scene.bodies.length; i++) {
        for (let k = 0; k < 3; k++) out[7 * i + k] = xpos[3 * (i + 1) + k];
        for (let k = 0; k < 4; k++) out[7 * i + 3 + k] = xquat[4 * (i + 1) + k];
      }
    },
    writeJoints(out) {
      const { qpos } = state();
      for (let i = 0; i < addresses.length; i++) out[i] = qpos[addresses[i]];
    },
  };
}

function shapesOf(model: MjModel): SceneShape[] {
  const shapes: SceneShape[] = [];
  for (let i = 0; i < model.ngeom; i++) {
    const kind = kinds[model.geom_type[i] as number];
    const colour = colourOf(model, i);
    if (kind === undefined || (model.geom_group[i] as number) >= HIDDEN_GROUP || colour[3] === 0) continue;
    shapes.push({
      kind,
      body: (model.geom_bodyid[i] as number) - 1,
      size: slice(model.geom_size, i, 3) as unknown as Vector3,
      position: slice(model.geom_pos, i, 3) as unknown as Vector3,
      rotation: slice(model.geom_quat, i, 4) as unknown as Quaternion,
      colour,
    });
  }
  return shapes;
}

function colourOf(model: MjModel, geom: number): Quaternion {
  const own = slice(model.geom_rgba, geom, 4);
  const material = model.geom_matid[geom] as number;
  const plain = own[0] === PLAIN && own[1] === PLAIN && own[2] === PLAIN && own[3] === 1;
  const chosen = material >= 0 && plain ? slice(model.mat_rgba, material, 4) : own;
  return chosen.map(part => Math.min(1, Math.max(0, part))) as unknown as Quaternion;
}

/** Joints whose position is one number. */
function singleJoints(model: MjModel): number[] {
  return Array.from({ length: model.njnt }, (_, i) => i).filter(i =>
    [SLIDE, HINGE].includes(model.jnt_type[i] as number),
  );
}

function jointOf(model: MjModel, index: number, name: string): SceneJoint {
  // Not jnt_limited, which this build cannot give; a joint without limits has the range 0, 0.
  const [low, high] = slice(model.jnt_range, index, 2) as [number, number];
  return {
    name,
    kind: model.jnt_type[index] === SLIDE ? 'slide' : 'hinge',
    range: low < high ? [low, high] : null,
  };
}

/** The body that gets about: one with a free joint, else the first that moves at all. */
function rootOf(model: MjModel): number {
  const joints = Array.from({ length: model.njnt }, (_, i) => i);
  const found = joints.find(i => model.jnt_type[i] === FREE) ?? joints[0];
  return found === undefined ? 0 : (model.jnt_bodyid[found] as number) - 1;
}

const slice = (array: ArrayLike<number>, row: number, width: number): number[] =>
  Array.from({ length: width }, (_, k) => array[row * width + k]);
