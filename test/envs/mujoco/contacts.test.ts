/** The contacts that a model names are those that MuJoCo would find, to the bit. */
import { beforeAll, expect, it } from 'vitest';
import { arachnePlan } from '../../../src/envs/mujoco/arachne/plans.ts';
import { generateRobot } from '../../../src/envs/mujoco/arachne/robot.ts';
import { loadEngine } from '../../../src/envs/mujoco/engine.ts';
import { openModel } from '../../../src/envs/mujoco/physics.ts';
import { antModel } from '../../../src/envs/mujoco/suite/ant.ts';
import { halfCheetahModel } from '../../../src/envs/mujoco/suite/half-cheetah.ts';
import { humanoidModel } from '../../../src/envs/mujoco/suite/humanoid.ts';
import { walker2dModel } from '../../../src/envs/mujoco/suite/walker2d.ts';
import { Rng } from '../../../src/random/rng.ts';

beforeAll(loadEngine);

const arachneModel = generateRobot(arachnePlan).model;

it.each([
  { name: 'HalfCheetah', model: halfCheetahModel, meetsItself: false },
  { name: 'Walker2d', model: walker2dModel, meetsItself: false },
  { name: 'Ant', model: antModel, meetsItself: false },
  { name: 'Humanoid', model: humanoidModel, meetsItself: true },
  { name: 'Arachne', model: arachneModel, meetsItself: true },
])('$name', ({ model, meetsItself }) => {
  const searching = searched(model, meetsItself);
  const [named, found] = [openModel(model), openModel(searching)];
  const rng = new Rng(3);
  const controls = new Float64Array(named.ctrlSize);
  let touched = 0;
  for (let i = 0; i < 300; i++) {
    if (i % 20 === 0)
      for (let k = 0; k < controls.length; k++) {
        const [low, high] = named.ctrlRange.subarray(2 * k, 2 * k + 2);
        controls[k] = low + (high - low) * rng.uniform();
      }
    for (const physics of [named, found]) {
      physics.arrays.ctrl.set(controls);
      physics.step(2);
    }
    if (named.arrays.qfrc_constraint[2] !== 0) touched++;
    for (const name of ['qpos', 'qvel', 'qfrc_constraint'] as const)
      expect(Array.from(named.arrays[name])).toEqual(Array.from(found.arrays[name]));
  }
  expect(touched).toBeGreaterThan(30);
  named.close();
  found.close();
});

it('Humanoid in any pose', () => {
  const [named, found] = [openModel(humanoidModel), openModel(searched(humanoidModel, true))];
  const ranges = named.model.jnt_range as Float64Array;
  const rng = new Rng(5);
  const qpos = new Float64Array(named.qposSize);
  let touched = 0;
  for (let i = 0; i < 500; i++) {
    qpos[2] = 0.1 + 0.7 * rng.uniform();
    for (let k = 3; k < 7; k++) qpos[k] = rng.normal();
    for (let k = 7; k < qpos.length; k++) {
      const [low, high] = ranges.subarray(2 * (k - 6), 2 * (k - 6) + 2);
      qpos[k] = low + (high - low) * rng.uniform();
    }
    for (const physics of [named, found]) {
      physics.reset();
      physics.arrays.qpos.set(qpos);
      physics.step(1);
    }
    const { qvel, qfrc_constraint } = named.arrays;
    if (qfrc_constraint.some(force => force !== 0)) touched++;
    expect(Array.from(qvel)).toEqual(Array.from(found.arrays.qvel));
    expect(Array.from(qfrc_constraint)).toEqual(Array.from(found.arrays.qfrc_constraint));
  }
  expect(touched).toBeGreaterThan(250);
  named.close();
  found.close();
});

/** The model without its list of contacts, and with bits by which MuJoCo finds them instead. */
function searched(model: string, meetsItself: boolean): string {
  const unlisted = model.replace(/<contact>.*<\/contact>/s, '');
  const named = new Set(Array.from(model.matchAll(/ geom[12]="(\w+)"/g), match => match[1]));
  expect(named.size).toBeGreaterThan(5);
  return unlisted.replaceAll(/<geom name="(\w+)"[^/]*/g, (geom, name: string) => {
    if (!named.has(name)) return geom;
    const conaffinity = meetsItself || name === 'floor' ? 1 : 0;
    return `${geom.replace(/ conaffinity="\d"/, '')} contype="1" conaffinity="${conaffinity}"`;
  });
}
