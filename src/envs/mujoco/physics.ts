/** One MuJoCo model with its state: stepping, arrays that stay valid, saving to the bit, freeing. */
import type { MjData, MjModel } from '@mujoco/mujoco';
import { EnvError, fail, messageOf, show } from '../errors.ts';
import { engine } from './engine.ts';

/** Beyond this MuJoCo itself calls a number bad (mjMAXVAL). */
const HUGE = 1e10;

/** Kinds of things that have names. */
const OBJECT_TYPES = {
  body: 'mjOBJ_BODY',
  joint: 'mjOBJ_JOINT',
  geom: 'mjOBJ_GEOM',
  site: 'mjOBJ_SITE',
  actuator: 'mjOBJ_ACTUATOR',
} as const;

/**
 * The arrays of MuJoCo's state that environments use, named as MuJoCo names them. They are views of the engine's memory: when
 * it grows, because some other model was opened, they are made anew, so read them through `Physics.arrays` each time.
 */
export interface PhysicsArrays {
  /** (nq) */
  readonly qpos: Float64Array;
  /** (nv) */
  readonly qvel: Float64Array;
  /** (nu) */
  readonly ctrl: Float64Array;
  /**
   * (nbody, 3) Positions of the bodies' frames. As all that follows from the state these are of where the engine last computed
   * them, as Gymnasium reads them: of the last substep's start, or of its last stage with Runge-Kutta.
   */
  readonly xpos: Float64Array;
  /** (nbody, 4) */
  readonly xquat: Float64Array;
  /** (nbody, 3) Centres of mass. */
  readonly xipos: Float64Array;
  /** (nsite, 3) */
  readonly site_xpos: Float64Array;
  /** (nbody, 6) Contact forces, torque first; written by `contactForces`. */
  readonly cfrc_ext: Float64Array;
  /** (nv) Forces of limits and contacts on each velocity. */
  readonly qfrc_constraint: Float64Array;
  /** (nbody, 6) Forces from outside, force first; they stay until changed. */
  readonly xfrc_applied: Float64Array;
  /** (nv) Where the solver starts: without it a restored state does not go on to the bit. */
  readonly qacc_warmstart: Float64Array;
  /**
   * (nbody, 10) Inertia about the centre of mass of the body's whole tree: six of its matrix (xx, yy, zz, xy, xz, yz), mass
   * times offset, mass.
   */
  readonly cinert: Float64Array;
  /** (nbody, 6) Velocities of the bodies as felt at the centre of mass of their tree, turning first. */
  readonly cvel: Float64Array;
  /** (nv) Forces of the actuators on each velocity. */
  readonly qfrc_actuator: Float64Array;
}

/** Saved of every model. */
const ARRAYS = [
  'qpos',
  'qvel',
  'ctrl',
  'xpos',
  'xquat',
  'xipos',
  'site_xpos',
  'cfrc_ext',
  'qfrc_constraint',
  'xfrc_applied',
  'qacc_warmstart',
] as const satisfies readonly (keyof PhysicsArrays)[];

/** What few tasks look at, and so is saved only where `openModel` is told: it cannot be computed from the rest. */
export const MORE_ARRAYS = [
  'cinert',
  'cvel',
  'qfrc_actuator',
] as const satisfies readonly (keyof PhysicsArrays)[];
/** Arrays of MuJoCo beside positions, speeds and contacts that an environment may ask for. */
export type MoreArrays = readonly (typeof MORE_ARRAYS)[number][];

/** What `Physics.save` gives: plain data. */
export type SavedPhysics = { readonly time: number } & {
  readonly [name in (typeof ARRAYS)[number]]: Float64Array;
} & { readonly [name in (typeof MORE_ARRAYS)[number]]?: Float64Array };

/**
 * Compiles an MJCF model; `alsoSaved` is what its state holds besides the usual. `loadEngine` must have been awaited. Free it
 * with `close`: the garbage collector does not.
 */
export function openModel(xml: string, alsoSaved: MoreArrays = []): Physics {
  const { MjModel, MjData } = engine();
  let model: MjModel | null;
  try {
    model = MjModel.from_xml_string(xml);
  } catch (error) {
    const reason = messageOf(error)
      .trim()
      .replaceAll(/\s*\n\s*/g, '; ');
    throw new EnvError('definition-invalid', `MuJoCo refuses the model: ${reason}`, { cause: error });
  }
  if (!model) fail('definition-invalid', 'MuJoCo refuses the model, and does not say why');
  let data: MjData;
  try {
    data = new MjData(model);
  } catch (error) {
    model.delete();
    throw new EnvError(
      'env-threw',
      `MuJoCo has no memory for the model: ${messageOf(error)}: close environments`,
      {
        cause: error,
      },
    );
  }
  return new Physics(model, data, alsoSaved);
}

/** A model of MuJoCo and its state, whose arrays are views that stay valid. */
export class Physics {
  readonly qposSize: number;
  readonly qvelSize: number;
  readonly ctrlSize: number;
  readonly bodyCount: number;
  /** Seconds of one substep. */
  readonly substepSeconds: number;
  /** (nu, 2) Lowest and highest control of each actuator; a copy. */
  readonly ctrlRange: Float64Array;
  /** (nbody) kg; a copy. */
  readonly bodyMass: Float64Array;
  readonly #engine = engine();
  readonly #model: MjModel;
  readonly #data: MjData;
  readonly #saved: readonly (keyof PhysicsArrays)[];
  #arrays: PhysicsArrays;
  #closed = false;

  /** @internal */
  constructor(model: MjModel, data: MjData, alsoSaved: MoreArrays) {
    this.#model = model;
    this.#data = data;
    this.#saved = [...ARRAYS, ...alsoSaved];
    this.qposSize = model.nq;
    this.qvelSize = model.nv;
    this.ctrlSize = model.nu;
    this.bodyCount = model.nbody;
    this.ctrlRange = Float64Array.from(model.actuator_ctrlrange as Float64Array);
    this.bodyMass = Float64Array.from(model.body_mass as Float64Array);
    const options = model.opt;
    this.substepSeconds = options.timestep;
    // MuJoCo would start anew from a bad state, in silence; an environment must see it and end the episode.
    options.disableflags |= this.#engine.mjtDisableBit.mjDSBL_AUTORESET.value;
    options.delete();
    this.#arrays = this.#view();
  }

  /** MuJoCo's own objects, for what has no method here, such as reading shapes. Not to be kept or freed. @internal */
  get model(): MjModel {
    return this.#model;
  }

  /** Valid until the next model is opened: do not keep it over a step. */
  get arrays(): PhysicsArrays {
    // A view of memory that has moved since has length 0.
    if (this.#closed || this.#arrays.qpos.length === 0) this.#arrays = this.#view();
    return this.#arrays;
  }

  /** Seconds simulated since the reset. */
  get timeSeconds(): number {
    return this.#data.time;
  }

  /** The model's initial state; positions that follow from it are computed by `forward`. */
  reset(): void {
    this.#engine.mj_resetData(this.#model, this.#data);
  }

  /** Computes everything that follows from positions and velocities, moving nothing. */
  forward(): void {
    this.#engine.mj_forward(this.#model, this.#data);
  }

  /** Takes so many substeps. */
  step(substeps: number): void {
    const { mj_step } = this.#engine;
    for (let i = 0; i < substeps; i++) mj_step(this.#model, this.#data);
  }

  /** Computes `cfrc_ext`, which a step leaves out. */
  contactForces(): void {
    this.#engine.mj_rnePostConstraint(this.#model, this.#data);
  }

  /** Whether the state is one to go on from: no number non-finite or beyond 1e10. */
  isSound(): boolean {
    const { qpos, qvel } = this.arrays;
    for (let i = 0; i < qpos.length; i++) if (!(Math.abs(qpos[i]) < HUGE)) return false;
    for (let i = 0; i < qvel.length; i++) if (!(Math.abs(qvel[i]) < HUGE)) return false;
    return true;
  }

  /** The index of what has that name. */
  indexOf(kind: keyof typeof OBJECT_TYPES, name: string): number {
    const type = this.#engine.mjtObj[OBJECT_TYPES[kind]].value;
    const index = this.#engine.mj_name2id(this.#model, type, name);
    return index >= 0 ? index : fail('definition-invalid', `the model has no ${kind} ${show(name)}`);
  }

  /** All that the future and the next observation depend on. */
  save(): SavedPhysics {
    const { arrays } = this;
    const copies = this.#saved.map(name => [name, Float64Array.from(arrays[name])] as const);
    return { time: this.#data.time, ...Object.fromEntries(copies) } as SavedPhysics;
  }

  /** Goes on from what `save` gave, to the bit; checks it, because it comes from a file. */
  load(saved: unknown): void {
    const fields = (typeof saved === 'object' && saved !== null ? saved : {}) as Partial<
      Record<string, unknown>
    >;
    const { time } = fields;
    if (typeof time !== 'number' || !Number.isFinite(time) || time < 0)
      fail(
        'state-invalid',
        `the physics' time is ${show(time)}, not a number of seconds: pass what state() gave`,
      );
    const { arrays } = this;
    for (const name of this.#saved) {
      const values = fields[name];
      const { length } = arrays[name];
      if (!(values instanceof Float64Array) || values.length !== length)
        fail(
          'state-invalid',
          `the physics' ${name} is ${show(values)}, not ${length} numbers: pass what state() gave`,
        );
      for (const value of values) {
        if (!Number.isFinite(value))
          fail('state-invalid', `the physics' ${name} holds ${value}: pass what state() gave`);
      }
    }
    this.reset();
    for (const name of this.#saved) arrays[name].set(fields[name] as Float64Array);
    this.#data.time = time;
  }

  /** Frees the model and its state. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#data.delete();
    this.#model.delete();
  }

  #view(): PhysicsArrays {
    if (this.#closed) fail('env-closed', 'the physics was closed: open the model anew');
    return Object.fromEntries(
      [...ARRAYS, ...MORE_ARRAYS].map(name => [name, this.#data[name] as Float64Array]),
    ) as unknown as PhysicsArrays;
  }
}
