/** Does an environment keep the contract, and is it made so that a policy can learn it? After Stable-Baselines3's checker. */
import { Rng } from '../random/rng.ts';
import { parseDrawing } from '../view/drawing.ts';
import { parseScene } from '../view/scene.ts';
import type { Env, EnvSpec } from './env.ts';
import { type EnvErrorCode, errorCode, messageOf, show } from './errors.ts';
import { allowedAt, isSpace, leavesOf, placeOf, type Space } from './spaces.ts';
import { checked } from './wrappers/checked.ts';

/** An error breaks the contract; a warning makes learning harder; info is worth knowing. */
export type CheckLevel = 'error' | 'warning' | 'info';

/** Stable names of what the checker finds; errors that the environment itself runs into have their own. */
export type CheckCode =
  | EnvErrorCode
  | 'action-changed'
  | 'action-ignored'
  | 'action-range'
  | 'action-unbounded'
  | 'episodes'
  | 'never-ends'
  | 'not-deterministic'
  | 'observation-categorical'
  | 'observation-constant'
  | 'observation-flattened'
  | 'observation-large'
  | 'observation-outside'
  | 'reward-constant'
  | 'reward-large'
  | 'reward-small'
  | 'reward-terms'
  | 'reward-zero'
  | 'seed-ignored'
  | 'seeds-alike'
  | 'spaces'
  | 'speed'
  | 'state-not-exact'
  | 'time-limit';

/** One thing that {@link checkEnv} noticed. */
export interface CheckFinding {
  readonly level: CheckLevel;
  readonly code: CheckCode;
  readonly message: string;
}

/** All that {@link checkEnv} noticed. */
export interface CheckReport {
  /** The environment's id, where it has one. */
  readonly id: string | null;
  /** No errors; warnings are allowed. */
  readonly passed: boolean;
  readonly findings: readonly CheckFinding[];
}

/** How long and from which seed {@link checkEnv} looks. */
export interface CheckOptions {
  readonly seed?: number;
  /** Random steps to look at; at least 200. */
  readonly steps?: number;
  /** The random steps stop early after this time; for slow environments. */
  readonly maxMs?: number;
}

/** Beyond these, networks and value functions learn badly (facts: targets within ±10, better ±3). */
const LARGE = 10;
const SMALL = 1e-3;

/** Numbers of an observation that are listed by their places. */
const SHOWN = 12;
/** Steps of each walk that is compared with another: the most, and the fewest for a slow environment. */
const MOST_COMPARED = 120;
const LEAST_COMPARED = 12;
/** How many such walks there are, about. */
const WALKS = 25;

/** Checks an environment; `make` must give a new one at each call. */
export function checkEnv(make: () => Env, options: CheckOptions = {}): CheckReport {
  const { seed = 0, steps = 2_000, maxMs = 3_000 } = options;
  const findings: CheckFinding[] = [];
  const add = (level: CheckLevel, code: CheckCode, message: string): void => {
    // The first of a kind says it; a hundred steps that break the same rule would hide the others.
    if (!findings.some(found => found.code === code)) findings.push({ level, code, message });
  };
  let id: string | null = null;
  /** Runs a check; an error of the environment's is a finding, and ends that check only. */
  const attempt = (check: () => void): boolean => {
    try {
      check();
      return true;
    } catch (error) {
      add('error', errorCode(error) ?? 'env-threw', messageOf(error));
      return false;
    }
  };
  const fresh = (): Env => withChecks(make());

  const usable = attempt(() => {
    const env = fresh();
    id = env.spec?.id ?? null;
    checkSpaces(env, add);
    env.close?.();
  });
  if (usable) {
    let compared = MOST_COMPARED;
    attempt(() => {
      const stepsPerSecond = checkWalk(fresh(), seed, Math.max(200, steps), maxMs, add);
      const affordable = Math.floor((stepsPerSecond * maxMs) / 1000 / WALKS);
      compared = Math.min(MOST_COMPARED, Math.max(LEAST_COMPARED, affordable));
    });
    attempt(() => checkView(fresh(), seed));
    attempt(() => checkSeeding(fresh, seed, compared, add));
    attempt(() => checkState(fresh, seed, compared, add));
  }
  return { id, passed: !findings.some(({ level }) => level === 'error'), findings };
}

/** What an environment draws can be kept and drawn: wrong shapes would otherwise be found while it trains. */
function checkView(env: Env, seed: number): void {
  const view = env.view?.();
  if (view !== undefined) {
    env.reset({ seed }, new Float32Array(env.observationSpace.flatSize));
    if (view.draw) parseDrawing(view.draw(), 'its drawing');
    else parseScene(view.scene, 'the scene of its view');
  }
  env.close?.();
}

type Add = (level: CheckLevel, code: CheckCode, message: string) => void;

/** With the checks of every call, which those from `createEnv` have already. */
function withChecks(env: Env): Env {
  if (env?.spec !== undefined) return env;
  for (const name of ['observationSpace', 'actionSpace'] as const) {
    if (!isSpace(env?.[name]))
      throw new Error(`${name} is ${show(env?.[name])}, not a space: use box, discrete, …`);
  }
  const spec: EnvSpec = {
    id: 'environment',
    version: 0,
    options: {},
    maxEpisodeSteps: null,
    rewardThreshold: null,
    file: null,
  };
  return checked(env, spec);
}

function checkSpaces(env: Env, add: Add): void {
  const { observationSpace, actionSpace } = env;
  add('info', 'spaces', `observations ${observationSpace.describe()}, actions ${actionSpace.describe()}`);
  for (const { path, space } of leavesOf(actionSpace)) {
    if (space.kind !== 'box') continue;
    const name = path ? `action ${path}` : 'the action';
    if (space.low.some(v => !Number.isFinite(v)) || space.high.some(v => !Number.isFinite(v))) {
      add(
        'warning',
        'action-unbounded',
        `${name} has no limits: a Gaussian policy needs a scale, so use -1..1 and multiply`,
      );
    } else if (space.low.some(v => v !== -1) || space.high.some(v => v !== 1)) {
      add(
        'warning',
        'action-range',
        `${name} is ${space.describe()}: policies start with a standard deviation near 1, so -1..1, scaled inside the environment, explores best`,
      );
    }
  }
  for (const { path, space } of leavesOf(observationSpace)) {
    if (space.kind === 'box' && space.shape.length > 1)
      add(
        'info',
        'observation-flattened',
        `${path ? `observation ${path}` : 'the observation'} is ${space.shape.join('x')}: networks here have no convolution and read its ${space.flatSize} numbers as a row`,
      );
    if (space.kind === 'discrete' || space.kind === 'multiDiscrete') {
      const name = path ? `observation ${path}` : 'the observation';
      add(
        'warning',
        'observation-categorical',
        `${name} is ${space.describe()}: a network would take the index for a quantity, so give one number for each category`,
      );
    }
  }
  const rng = new Rng(1);
  for (const [name, space] of Object.entries({ observationSpace, actionSpace })) {
    const values = new Float32Array(space.flatSize);
    for (let i = 0; i < 20; i++) {
      space.sample(rng, values);
      const outside = space.firstOutside(values);
      if (outside !== -1)
        add('error', 'space-invalid', `${name}.sample gave ${values[outside]} at ${outside}, outside itself`);
    }
  }
}

/** Least, largest and mean of a series. */
class Range {
  min = Number.POSITIVE_INFINITY;
  max = Number.NEGATIVE_INFINITY;
  count = 0;
  #sum = 0;

  add(value: number): void {
    this.min = Math.min(this.min, value);
    this.max = Math.max(this.max, value);
    this.#sum += value;
    this.count++;
  }
  get mean(): number {
    return this.#sum / this.count;
  }
  get largest(): number {
    return Math.max(Math.abs(this.min), Math.abs(this.max));
  }
  show(): string {
    return `mean ${short(this.mean)}, ${short(this.min)} to ${short(this.max)}`;
  }
}

/** Takes random actions and looks at what comes back. Returns the steps per second. */
function checkWalk(env: Env, seed: number, steps: number, maxMs: number, add: Add): number {
  const { observationSpace, actionSpace, rewardTerms } = env;
  const obs = new Float32Array(observationSpace.flatSize);
  const action = new Float32Array(actionSpace.flatSize);
  const before = new Float32Array(actionSpace.flatSize);
  const rng = actionRng(seed);
  const rewards = new Range();
  const lengths = new Range();
  const returns = new Range();
  const perNumber = Array.from(obs, () => new Range());
  let [terminated, length, sum, envMs] = [0, 0, 0, 0];
  const limit = env.spec?.maxEpisodeSteps ?? null;
  const start = performance.now();

  const look = (after: string): void => {
    const outside = observationSpace.firstOutside(obs);
    if (outside !== -1) {
      const [place, allowed] = [placeOf(observationSpace, outside), allowedAt(observationSpace, outside)];
      const message = `observation${place} is ${obs[outside]} ${after}, not ${allowed}: widen observationSpace, or clip`;
      add('error', 'observation-outside', message);
    }
    for (let i = 0; i < obs.length; i++) perNumber[i].add(obs[i]);
  };

  env.reset({ seed }, obs);
  look('after reset');
  while (rewards.count < steps && performance.now() - start < maxMs) {
    actionSpace.sample(rng, action);
    before.set(action);
    const began = performance.now();
    const result = env.step(action, obs);
    envMs += performance.now() - began;
    length++;
    look(`after step ${length} of an episode`);
    if (action.some((value, i) => value !== before[i]))
      add(
        'error',
        'action-changed',
        'step writes to the action it is given: copy it first, the trainer stores it',
      );
    const { reward } = result;
    if (rewardTerms.length > 0) {
      const parts = result.rewardTerms.reduce((total, term) => total + term, 0);
      if (!(Math.abs(parts - reward) <= 1e-6 * (1 + Math.abs(reward)))) {
        add(
          'error',
          'reward-terms',
          `the reward is ${reward}, its terms ${[...result.rewardTerms].join(' + ')} sum to ${parts}`,
        );
      }
    }
    rewards.add(reward);
    sum += reward;
    if (limit !== null && length > limit)
      add('error', 'time-limit', `an episode has run for ${length} steps, maxEpisodeSteps is ${limit}`);
    if (result.terminated || result.truncated) {
      if (result.terminated) terminated++;
      lengths.add(length);
      returns.add(sum);
      [length, sum] = [0, 0];
      env.reset({}, obs);
      look('after reset');
    }
  }
  env.close?.();
  const stepsPerSecond = (1000 * rewards.count) / envMs;
  judge();
  return stepsPerSecond;

  function judge(): void {
    judgeRewards(rewards, add);
    const wide = perNumber.map(range => range.largest);
    const worst = wide.indexOf(Math.max(...wide));
    if (wide[worst] > LARGE) {
      add(
        'warning',
        'observation-large',
        `observation${placeOf(observationSpace, worst)} reaches ${short(wide[worst])}: scale it to about ±1, or train with observation normalisation`,
      );
    }
    const still = perNumber.flatMap((range, i) => (range.min === range.max ? [i] : []));
    if (still.length > 0)
      add(
        'info',
        'observation-constant',
        `${still.length} of ${perNumber.length} observation numbers never changed in ${rewards.count} random steps: ${still.slice(0, SHOWN).join(', ')}${still.length > SHOWN ? ' …' : ''}`,
      );
    if (lengths.count > 0) {
      const ends = `${terminated} terminated, ${lengths.count - terminated} truncated`;
      add(
        'info',
        'episodes',
        `${lengths.count} episodes of random actions (${ends}): length ${lengths.show()}; return ${returns.show()}`,
      );
    } else if (limit === null) {
      add(
        'warning',
        'never-ends',
        `no episode ended in ${rewards.count} random steps and there is no time limit: set maxEpisodeSteps, or no return is ever logged`,
      );
    } else {
      add(
        'info',
        'episodes',
        `no episode ended in ${rewards.count} random steps; the time limit is ${limit}`,
      );
    }
    const [where, help] = env.outside
      ? ['process', 'training has as many as there are cores (workers)']
      : ['thread', 'worker threads will help'];
    const advice = stepsPerSecond < 20_000 ? `: ${help}` : '';
    add(
      'info',
      'speed',
      `${Math.round(stepsPerSecond).toLocaleString('en')} steps/s in one ${where}${advice}`,
    );
  }
}

function judgeRewards(rewards: Range, add: Add): void {
  const { min, max, largest } = rewards;
  if (largest === 0) {
    add(
      'warning',
      'reward-zero',
      `the reward was 0 in all ${rewards.count} random steps: chance never finds it, so reward progress as well`,
    );
  } else if (largest > LARGE) {
    add(
      'warning',
      'reward-large',
      `rewards go from ${short(min)} to ${short(max)}: beyond ±${LARGE} the value loss drowns the rest, so divide them, or train with reward normalisation`,
    );
  } else if (largest < SMALL) {
    add(
      'warning',
      'reward-small',
      `no reward is above ${short(largest)}: advantages vanish in rounding, so multiply them`,
    );
  } else if (min === max) {
    add('info', 'reward-constant', `the reward was ${short(min)} in all ${rewards.count} random steps`);
  }
}

/** What happened in a walk, to the bit. */
interface Trace {
  readonly observations: Float32Array[];
  readonly rewards: number[];
  readonly ends: string[];
}

/** Random actions from a seed of their own; new episodes where one ends. */
function walk(env: Env, steps: number, actions: Rng, obs: Float32Array): Trace {
  const action = new Float32Array(env.actionSpace.flatSize);
  const trace: Trace = { observations: [obs.slice()], rewards: [], ends: [] };
  for (let i = 0; i < steps; i++) {
    env.actionSpace.sample(actions, action);
    const { reward, terminated, truncated } = env.step(action, obs);
    trace.observations.push(obs.slice());
    trace.rewards.push(reward);
    trace.ends.push(terminated ? 'terminated' : truncated ? 'truncated' : 'going on');
    if (terminated || truncated) {
      env.reset({}, obs);
      trace.observations.push(obs.slice());
    }
  }
  return trace;
}

/** Random actions from a seed: a child's stream, or an environment with the same seed would draw the same numbers. */
function actionRng(seed: number): Rng {
  return new Rng(seed).split(1)[0];
}

function walkFrom(env: Env, steps: number, seed: number, actionSeed: number): Trace {
  const obs = new Float32Array(env.observationSpace.flatSize);
  env.reset({ seed }, obs);
  return walk(env, steps, actionRng(actionSeed), obs);
}

/** Where two walks part, in words; undefined where they are equal to the bit. */
function difference(a: Trace, b: Trace, space: Space): string | undefined {
  for (let i = 0; i < a.rewards.length; i++) {
    if (!Object.is(a.rewards[i], b.rewards[i]))
      return `reward ${a.rewards[i]} and ${b.rewards[i]} at step ${i + 1}`;
    if (a.ends[i] !== b.ends[i]) return `${a.ends[i]} and ${b.ends[i]} at step ${i + 1}`;
  }
  for (let i = 0; i < Math.max(a.observations.length, b.observations.length); i++) {
    const [x, y] = [a.observations[i], b.observations[i]];
    const at = x.findIndex((value, k) => !Object.is(value, y[k]));
    if (at !== -1)
      return `observation${placeOf(space, at)} ${x[at]} and ${y[at]}, ${i} observations after the first`;
  }
  return undefined;
}

function checkSeeding(fresh: () => Env, seed: number, steps: number, add: Add): void {
  const env = fresh();
  const space = env.observationSpace;
  const first = walkFrom(env, steps, seed, 1);
  const again = difference(first, walkFrom(env, steps, seed, 1), space);
  if (again) {
    add(
      'error',
      'seed-ignored',
      `the same seed and actions gave ${again}: reset({ seed }) must start all randomness anew, and nothing else may carry over`,
    );
  }
  const other = difference(first, walkFrom(fresh(), steps, seed, 1), space);
  if (other) {
    add(
      'error',
      'not-deterministic',
      `two environments with the same seed and actions gave ${other}: take randomness from the Rng only, not from Math.random, the clock or shared variables`,
    );
  }
  const seeds = Array.from({ length: 4 }, (_, i) => seed + 1 + i);
  if (seeds.every(s => difference(first, walkFrom(env, steps, s, 1), space) === undefined)) {
    add(
      'warning',
      'seeds-alike',
      'five seeds gave the same walk: there is no randomness, so a policy may learn it by heart',
    );
  }
  if ([2, 3, 4].every(s => difference(first, walkFrom(env, steps, seed, s), space) === undefined)) {
    add(
      'warning',
      'action-ignored',
      'four different series of actions gave the same walk: actions have no effect',
    );
  }
  env.close?.();
}

/** A state saved as JSON in the middle of a walk must go on, in another environment, as the first one does. */
function checkState(fresh: () => Env, seed: number, steps: number, add: Add): void {
  const env = fresh();
  const space = env.observationSpace;
  const obs = new Float32Array(space.flatSize);
  env.reset({ seed }, obs);
  for (let round = 0; round < 3; round++) {
    walk(env, 7 + Math.floor((round * steps) / 6), actionRng(round), obs);
    const saved = JSON.stringify(env.state());
    const expected = walk(env, steps, actionRng(50 + round), obs.slice());
    for (const [who, restored] of [
      ['a new environment', fresh()],
      ['the same one', env],
    ] as const) {
      restored.restore(JSON.parse(saved));
      const resaved = JSON.stringify(restored.state());
      const found =
        resaved === saved
          ? difference(expected, walk(restored, steps, actionRng(50 + round), obs.slice()), space)
          : `another state (${firstDifference(saved, resaved)})`;
      if (found) {
        add(
          'error',
          'state-not-exact',
          `after restore, ${who} gave ${found}: state() must hold all that the future depends on, the random generator included`,
        );
      }
      if (restored !== env) restored.close?.();
    }
    // Both paths have left the environment elsewhere; the next round starts from a known place.
    env.reset({ seed: seed + round }, obs);
  }
  env.close?.();
}

function firstDifference(a: string, b: string): string {
  let at = 0;
  while (at < a.length && a[at] === b[at]) at++;
  const part = (text: string): string => text.slice(Math.max(0, at - 10), at + 20);
  return `…${part(a)}… became …${part(b)}…`;
}

function short(value: number): string {
  if (Math.abs(value) >= 100 && Math.abs(value) < 1e6) return String(Math.round(value));
  return Number.isInteger(value) ? String(value) : value.toPrecision(3).replace(/\.?0+$/, '');
}
