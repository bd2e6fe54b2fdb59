import { describe, expect, it } from 'vitest';
import { courier, courierDefinition, type Env } from '../../src/envs/index.ts';
import { bits } from './support/contract.ts';
import { putInState } from './support/replay.ts';

const [NOTHING, PICK_UP, DROP] = [0, 1, 2];
const terms = courier().rewardTerms;

/** The reward terms of one step from a state. */
function stepFrom(
  state: { at?: [number, number]; parcel?: [number, number]; door?: [number, number]; carrying?: boolean },
  action: [number, number, number],
  env = courier(),
): { reward: number; terminated: boolean; terms: Record<string, number>; obs: Float32Array } {
  const { at = [0, 0], parcel = [0.5, 0], door = [-0.5, 0], carrying = false } = state;
  putInState(env, [...at, ...parcel, ...door, carrying] as number[]);
  const obs = new Float32Array(7);
  const result = env.step(Float32Array.from(action), obs);
  const named = Object.fromEntries(terms.map((name, i) => [name, result.rewardTerms[i]]));
  return { reward: result.reward, terminated: result.terminated, terms: named, obs };
}

/** Walks straight to where it must, and uses its hand there. */
function straight(obs: Float32Array, action: Float32Array): void {
  const carrying = obs[6] === 1;
  const [dx, dy] = carrying ? [obs[4], obs[5]] : [obs[2], obs[3]];
  const scale = Math.max(Math.abs(dx), Math.abs(dy), 0.15);
  action[0] = dx / scale;
  action[1] = dy / scale;
  const left = Math.hypot(dx, dy) * (1 - 0.15 / scale);
  action[2] = left <= 0.19 ? (carrying ? DROP : PICK_UP) : NOTHING;
}

function meanReturn(
  env: Env,
  episodes: number,
  act: (obs: Float32Array, action: Float32Array) => void,
): number {
  const obs = new Float32Array(7);
  const action = new Float32Array(3);
  let sum = 0;
  env.reset({ seed: 1 }, obs);
  for (let done = 0; done < episodes; ) {
    act(obs, action);
    const { reward, terminated, truncated } = env.step(action, obs);
    sum += reward;
    if (terminated || truncated) {
      done++;
      env.reset({}, obs);
    }
  }
  return sum / episodes;
}

describe('Courier', () => {
  it('every reward term has its sign, alone', () => {
    const idle = stepFrom({}, [0, 0, NOTHING]);
    expect(idle.terms).toEqual({ progress: 0, pickUp: 0, delivery: 0, mistake: 0, time: -0.01 });
    expect(idle.reward).toBe(-0.01);

    expect(stepFrom({}, [1, 0, NOTHING]).terms.progress).toBeCloseTo(0.15, 12); // to the parcel
    expect(stepFrom({}, [-1, 0, NOTHING]).terms.progress).toBeCloseTo(-0.15, 12); // away from it, to the door
    expect(stepFrom({ carrying: true }, [-1, 0, NOTHING]).terms.progress).toBeCloseTo(0.15, 12); // with it, to the door
    expect(stepFrom({ carrying: true }, [1, 0, NOTHING]).terms.progress).toBeCloseTo(-0.15, 12);

    const near = stepFrom({ at: [0.4, 0] }, [0, 0, PICK_UP]);
    expect(near.terms).toMatchObject({ pickUp: 1, mistake: 0, delivery: 0 });
    expect(near.obs[6]).toBe(1);
    expect(near.terminated).toBe(false);
    const far = stepFrom({}, [0, 0, PICK_UP]);
    expect(far.terms).toMatchObject({ pickUp: 0, mistake: -0.05 });
    expect(far.obs[6]).toBe(0);
    expect(stepFrom({ at: [0.4, 0], carrying: true }, [0, 0, PICK_UP]).terms).toMatchObject({
      pickUp: 0,
      mistake: -0.05,
    });

    const delivered = stepFrom({ at: [-0.4, 0], carrying: true }, [0, 0, DROP]);
    expect(delivered.terms).toMatchObject({ delivery: 2, mistake: 0 });
    expect(delivered.terminated).toBe(true);
    const empty = stepFrom({ at: [-0.4, 0] }, [0, 0, DROP]);
    expect(empty.terms).toMatchObject({ delivery: 0, mistake: -0.05 });
    expect(empty.terminated).toBe(false);
    const early = stepFrom({ carrying: true }, [0, 0, DROP]);
    expect(early.terms).toMatchObject({ delivery: 0, mistake: -0.05 });
    expect(early.obs[6]).toBe(1); // still in the hand
  });

  it('progress cannot be farmed: a closed way earns nothing', () => {
    const env = courier();
    putInState(env, [0, 0, 0.5, 0.5, -0.5, 0, false] as unknown as number[]);
    let sum = 0;
    for (let i = 0; i < 5; i++) {
      for (const move of [
        [1, 0],
        [0, 1],
        [-1, 0],
        [0, -1],
      ]) {
        sum += env.step(Float32Array.from([...move, NOTHING]), new Float32Array(7)).rewardTerms[0];
      }
    }
    expect(Math.abs(sum)).toBeLessThan(1e-6);
  });

  it('moves first, then uses the hand; walls stop it', () => {
    expect(stepFrom({ at: [0.2, 0] }, [1, 0, PICK_UP]).terms.pickUp).toBe(1);
    expect(stepFrom({ at: [0.95, 0.95] }, [1, 1, NOTHING]).obs.slice(0, 2)).toEqual(
      Float32Array.from([1, 1]),
    );
  });

  it('is solved by walking straight and not by chance', () => {
    expect(meanReturn(courier(), 300, straight)).toBeGreaterThan(courierDefinition.rewardThreshold!);
    const env = courier();
    const rngless = meanReturn(env, 30, (_, action) => action.set([0, 0, 1]));
    expect(rngless).toBeLessThan(0);
  });

  it('progressReward scales that term alone', () => {
    const action: [number, number, number] = [1, 0.5, PICK_UP];
    const once = stepFrom({}, action).terms;
    const thrice = stepFrom({}, action, courier({ progressReward: 3 })).terms;
    expect(thrice.progress).toBeCloseTo(3 * once.progress, 12);
    expect(bits([thrice.time, thrice.mistake])).toBe(bits([once.time, once.mistake]));
  });

  it('refuses a restored state off the square', () => {
    expect(() => putInState(courier(), [2, 0, 0, 0, 0, 0, false] as unknown as number[])).toThrow(
      /state.x is 2, outside -1..1/,
    );
  });
});
