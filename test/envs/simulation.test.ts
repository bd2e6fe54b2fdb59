/** What `simulation` takes besides the task itself: what it looks like, what it measures, how far training is. */
import { expect, test } from 'vitest';
import {
  box,
  checkEnv,
  createEnv,
  defineEnv,
  discrete,
  type Simulation,
  simulation,
} from '../../src/envs/index.ts';

interface State {
  x: number;
}

const base: Simulation<State> = {
  observationSpace: box({ shape: [1], low: -2, high: 2 }),
  actionSpace: discrete(2),
  start: rng => ({ x: rng.uniform() }),
  observe: state => [state.x],
  step(state, [action], result) {
    state.x += action === 1 ? 0.1 : -0.1;
    result.terminated = Math.abs(state.x) > 1.8;
    result.reward = state.x;
  },
};

const made = (more: Partial<Simulation<State>>) =>
  createEnv(
    defineEnv({
      id: 'Try-v0',
      description: 'A try.',
      maxEpisodeSteps: 50,
      make: () => simulation({ ...base, ...more }),
    }),
  );

const circleAt = (x: number) => ({ kind: 'circle', x: x + 2, y: 1, radius: 0.2, fill: 'red' }) as const;

test('draw shows the state as it is now', () => {
  const env = made({ draw: ({ x }) => ({ width: 4, height: 2, shapes: [circleAt(x)] }), stepSeconds: 0.5 });
  const obs = new Float32Array(1);
  const view = env.view!();
  expect(() => view.draw!()).toThrow(/drawn before reset/);
  env.reset({ seed: 3 }, obs);
  env.step(Float32Array.of(1), obs);
  expect(view.stepSeconds).toBe(0.5);
  expect(view.scene.bodies).toEqual([]);
  const [circle] = view.draw!().shapes as unknown as [{ x: number }];
  expect(Math.fround(circle.x - 2)).toBe(obs[0]);
});

test('view moves a body with the state', () => {
  const scene = { bodies: [{ name: 'ball' }], shapes: [], joints: [], root: 0 };
  const env = made({
    view: { scene, stepSeconds: 0.02, writePose: ({ x }, out) => out.set([x, 0, 1, 1, 0, 0, 0]) },
  });
  const obs = new Float32Array(1);
  const pose = new Float32Array(7);
  env.reset({ seed: 3 }, obs);
  const view = env.view!();
  view.writePose(pose);
  view.writeJoints(new Float32Array(0));
  expect([...pose]).toEqual([obs[0], 0, 1, 1, 0, 0, 0]);
});

test('measures are 0 before each step, and what the step says after it', () => {
  const env = made({
    measures: ['speed'],
    step(state, action, result, rng) {
      base.step(state, action, result, rng);
      if (action[0] === 1) result.measures![0] = 0.1;
    },
  });
  const obs = new Float32Array(1);
  env.reset({ seed: 0 }, obs);
  expect(env.measures).toEqual(['speed']);
  expect([...env.step(Float32Array.of(1), obs).measures!]).toEqual([0.1]);
  expect([...env.step(Float32Array.of(0), obs).measures!]).toEqual([0]);
});

test('progress reaches the next start, and only where it is asked for', () => {
  let far = 1;
  const env = made({
    setProgress: fraction => {
      far = fraction;
    },
    start: () => ({ x: far }),
  });
  const obs = new Float32Array(1);
  env.setProgress!(0.25);
  env.reset({ seed: 0 }, obs);
  expect(obs[0]).toBe(0.25);
  expect(made({}).setProgress).toBeUndefined();
});

test('what is unknown is refused by name, with what was meant', () => {
  const wrong = (more: object) => () => simulation({ ...base, ...more } as Simulation<State>);
  expect(wrong({ veiw: 1 })).toThrow('simulation: veiw is unknown: did you mean view?');
  expect(wrong({ qqqqqq: 1, zzzzzz: 2 })).toThrow(/qqqqqq, zzzzzz are unknown: it has observationSpace/);
  expect(wrong({ step: undefined })).toThrow('simulation: step is undefined, not a function');
  expect(wrong({ draw: () => ({}), view: {} })).toThrow(
    'simulation has draw and view: leave one of them out',
  );
});

test('check-env finds a drawing that cannot be kept', () => {
  const report = (x: number) =>
    checkEnv(() => made({ draw: () => ({ width: 4, height: 2, shapes: [circleAt(x)] }) }), { steps: 200 });
  expect(report(0).passed).toBe(true);
  expect(report(Number.NaN).findings).toContainEqual(
    expect.objectContaining({ level: 'error', message: expect.stringContaining('shapes[0].x is NaN') }),
  );
});
