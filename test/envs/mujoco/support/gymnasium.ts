/**
 * Gymnasium's MuJoCo tasks a second time, on Gymnasium's own model files and apart from src/: what a step computes, after
 * gymnasium/envs/mujoco/*_v5.py. What src/ does is compared with this.
 */
import type { MainModule, MjData, MjModel } from '@mujoco/mujoco';

export interface Step {
  readonly obs: number[];
  readonly reward: number;
  readonly terminated: boolean;
}

interface Rules {
  readonly file: string;
  readonly frameSkip: number;
  reward(sim: Simulated, action: readonly number[], before: readonly number[]): number;
  observe(sim: Simulated): number[];
  ends(sim: Simulated): boolean;
}

interface Simulated {
  readonly data: MjData;
  /** (nq) and (nv) */
  readonly qpos: number[];
  readonly qvel: number[];
  /** What `before` and after of a step are compared by: x of the first position, of the trunk, and of all mass. */
  readonly places: number[];
  readonly seconds: number;
  body(name: string): number[];
}

const squares = (values: readonly number[]): number => values.reduce((sum, value) => sum + value * value, 0);
const clip = (values: readonly number[], limit: number): number[] =>
  values.map(value => Math.max(-limit, Math.min(limit, value)));
const forces = ({ data }: Simulated): number[] => clip([...(data.cfrc_ext as Float64Array)], 1);
const never = (): boolean => false;
const speed = ({ places, seconds }: Simulated, before: readonly number[], i: number): number =>
  (places[i] - before[i]) / seconds;

const hopperFell = ({ qpos, qvel }: Simulated): boolean => {
  const rest = [...qpos, ...qvel].slice(2);
  const healthy = rest.every(value => -100 < value && value < 100) && 0.7 < qpos[1];
  return !(healthy && -0.2 < qpos[2] && qpos[2] < 0.2);
};
const walkerFell = ({ qpos: [, z, angle] }: Simulated): boolean =>
  !(0.8 < z && z < 2 && -1 < angle && angle < 1);
const antFell = ({ qpos }: Simulated): boolean => !(0.2 <= qpos[2] && qpos[2] <= 1);
const humanoidFell = ({ qpos }: Simulated): boolean => !(1 < qpos[2] && qpos[2] < 2);
const tip = ({ data }: Simulated): number[] => [...(data.site_xpos as Float64Array).slice(0, 3)];
const reach = (sim: Simulated): number[] =>
  sim.body('fingertip').map((value, i) => value - sim.body('target')[i]);

const RULES: Readonly<Record<string, Rules>> = {
  'HalfCheetah-v5': {
    file: 'half_cheetah.xml',
    frameSkip: 5,
    reward: (sim, action, before) => speed(sim, before, 0) - 0.1 * squares(action),
    observe: ({ qpos, qvel }) => [...qpos.slice(1), ...qvel],
    ends: never,
  },
  'Hopper-v5': {
    file: 'hopper.xml',
    frameSkip: 4,
    reward: (sim, action, before) =>
      speed(sim, before, 0) + Number(!hopperFell(sim)) - 1e-3 * squares(action),
    observe: ({ qpos, qvel }) => [...qpos.slice(1), ...clip(qvel, 10)],
    ends: hopperFell,
  },
  'Walker2d-v5': {
    file: 'walker2d_v5.xml',
    frameSkip: 4,
    reward: (sim, action, before) =>
      speed(sim, before, 0) + Number(!walkerFell(sim)) - 1e-3 * squares(action),
    observe: ({ qpos, qvel }) => [...qpos.slice(1), ...clip(qvel, 10)],
    ends: walkerFell,
  },
  'Ant-v5': {
    file: 'ant.xml',
    frameSkip: 5,
    reward: (sim, action, before) =>
      speed(sim, before, 1) + Number(!antFell(sim)) - 0.5 * squares(action) - 5e-4 * squares(forces(sim)),
    observe: sim => [...sim.qpos.slice(2), ...sim.qvel, ...forces(sim).slice(6)],
    ends: antFell,
  },
  'Humanoid-v5': {
    file: 'humanoid.xml',
    frameSkip: 5,
    reward: (sim, action, before) => {
      const contact = 5e-7 * squares([...(sim.data.cfrc_ext as Float64Array)]);
      const earned = 1.25 * speed(sim, before, 2) + 5 * Number(!humanoidFell(sim));
      return earned - (0.1 * squares(action) + Math.min(contact, 10));
    },
    observe: ({ data, qpos, qvel }) => [
      ...qpos.slice(2),
      ...qvel,
      ...(data.cinert as Float64Array).slice(10),
      ...(data.cvel as Float64Array).slice(6),
      ...(data.qfrc_actuator as Float64Array).slice(6),
      ...(data.cfrc_ext as Float64Array).slice(6),
    ],
    ends: humanoidFell,
  },
  'Swimmer-v5': {
    file: 'swimmer.xml',
    frameSkip: 4,
    reward: (sim, action, before) => speed(sim, before, 0) - 1e-4 * squares(action),
    observe: ({ qpos, qvel }) => [...qpos.slice(2), ...qvel],
    ends: never,
  },
  'InvertedPendulum-v5': {
    file: 'inverted_pendulum.xml',
    frameSkip: 2,
    reward: ({ qpos }) => Number(Math.abs(qpos[1]) <= 0.2),
    observe: ({ qpos, qvel }) => [...qpos, ...qvel],
    ends: ({ qpos }) => Math.abs(qpos[1]) > 0.2,
  },
  'InvertedDoublePendulum-v5': {
    file: 'inverted_double_pendulum.xml',
    frameSkip: 5,
    reward: sim => {
      const [x, , y] = tip(sim) as [number, number, number];
      const [, v1, v2] = sim.qvel as [number, number, number];
      return 10 * Number(y > 1) - (0.01 * x ** 2 + (y - 2) ** 2) - (1e-3 * v1 ** 2 + 5e-3 * v2 ** 2);
    },
    observe: ({ data, qpos, qvel }) => [
      qpos[0],
      ...qpos.slice(1).map(Math.sin),
      ...qpos.slice(1).map(Math.cos),
      ...clip(qvel, 10),
      ...clip([(data.qfrc_constraint as Float64Array)[0]], 10),
    ],
    ends: sim => tip(sim)[2] <= 1,
  },
  'Reacher-v5': {
    file: 'reacher.xml',
    frameSkip: 2,
    reward: (sim, action) => -Math.sqrt(squares(reach(sim))) - squares(action),
    observe: sim => [
      ...sim.qpos.slice(0, 2).map(Math.cos),
      ...sim.qpos.slice(0, 2).map(Math.sin),
      ...sim.qpos.slice(2),
      ...sim.qvel.slice(0, 2),
      ...reach(sim).slice(0, 2),
    ],
    ends: never,
  },
};

export const suiteIds = Object.keys(RULES);
export const modelFile = (id: string): string => RULES[id].file;

/** One of the tasks on the text of its model file; it ends, but goes on when stepped all the same. */
export class GymnasiumTask {
  readonly model: MjModel;
  readonly data: MjData;
  readonly #mujoco: MainModule;
  readonly #rules: Rules;

  constructor(mujoco: MainModule, id: string, xml: string) {
    this.#mujoco = mujoco;
    this.#rules = RULES[id];
    this.model = mujoco.MjModel.from_xml_string(xml);
    this.data = new mujoco.MjData(this.model);
  }

  /** The model's initial positions. */
  get startQpos(): number[] {
    return [...(this.model.qpos0 as Float64Array)];
  }

  reset(qpos: readonly number[], qvel: readonly number[]): number[] {
    this.#mujoco.mj_resetData(this.model, this.data);
    (this.data.qpos as Float64Array).set(qpos);
    (this.data.qvel as Float64Array).set(qvel);
    this.#mujoco.mj_forward(this.model, this.data);
    return this.#rules.observe(this.#look());
  }

  step(action: readonly number[]): Step {
    const before = this.#look().places;
    (this.data.ctrl as Float64Array).set(action);
    for (let i = 0; i < this.#rules.frameSkip; i++) this.#mujoco.mj_step(this.model, this.data);
    this.#mujoco.mj_rnePostConstraint(this.model, this.data);
    const after = this.#look();
    return {
      obs: this.#rules.observe(after),
      reward: this.#rules.reward(after, action, before),
      terminated: this.#rules.ends(after),
    };
  }

  #look(): Simulated {
    const { data, model } = this;
    const xpos = data.xpos as Float64Array;
    const xipos = data.xipos as Float64Array;
    const masses = [...(model.body_mass as Float64Array)];
    const moment = masses.reduce((sum, mass, i) => sum + mass * xipos[3 * i], 0);
    const qpos = [...(data.qpos as Float64Array)];
    const bodyType = this.#mujoco.mjtObj.mjOBJ_BODY.value;
    return {
      data,
      qpos,
      qvel: [...(data.qvel as Float64Array)],
      places: [qpos[0], xpos[3], moment / masses.reduce((sum, mass) => sum + mass)],
      seconds: model.opt.timestep * this.#rules.frameSkip,
      body: name => {
        const at = 3 * this.#mujoco.mj_name2id(model, bodyType, name);
        return [...xpos.slice(at, at + 3)];
      },
    };
  }
}
