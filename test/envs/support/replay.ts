import { readFileSync } from 'node:fs';
import type { Env } from '../../../src/envs/index.ts';

/** Random walks of one of Gymnasium's environments, as fixtures/generate.py wrote them. */
export interface RecordedCase {
  readonly id: string;
  readonly options: Readonly<Record<string, number | boolean | string>>;
  readonly obsSize: number;
  /** (walks) steps of each. */
  readonly lengths: readonly number[];
  /** (walks) '1' where the last step terminated. */
  readonly terminated: string;
  /** (walks, stateSize) */
  readonly starts: Float64Array;
  /** (steps) */
  readonly actions: Float32Array;
  /** (steps, obsSize) */
  readonly observations: Float32Array;
  /** (steps) */
  readonly rewards: Float64Array;
}

/** Limits of one of Gymnasium's environments. */
export interface RecordedSpec {
  readonly id: string;
  readonly maxEpisodeSteps: number;
  readonly rewardThreshold: number | null;
  /** (obsSize) */
  readonly low: Float32Array;
  readonly high: Float32Array;
  readonly action: { readonly n: number } | { readonly low: number; readonly high: number };
}

export function readRecorded(file: string | URL): { specs: RecordedSpec[]; cases: RecordedCase[] } {
  const { specs, cases } = JSON.parse(readFileSync(file, 'utf8')) as Record<string, Record<string, string>[]>;
  const bytes = (text: string): ArrayBuffer => Uint8Array.from(Buffer.from(text, 'base64')).buffer;
  return {
    specs: specs.map(
      s =>
        ({
          ...s,
          low: new Float32Array(bytes(s.low)),
          high: new Float32Array(bytes(s.high)),
        }) as unknown as RecordedSpec,
    ),
    cases: cases.map(
      c =>
        ({
          ...c,
          starts: new Float64Array(bytes(c.starts)),
          actions: new Float32Array(bytes(c.actions)),
          observations: new Float32Array(bytes(c.observations)),
          rewards: new Float64Array(bytes(c.rewards)),
        }) as unknown as RecordedCase,
    ),
  };
}

/** Puts a made environment's simulation into a state, given as the numbers of its fields in order. */
export function putInState(env: Env, numbers: ArrayLike<number>): void {
  env.reset({ seed: 0 }, new Float32Array(env.observationSpace.flatSize));
  const state = JSON.parse(JSON.stringify(env.state())) as {
    env: { env: { state: Record<string, unknown> } };
  };
  const fields = state.env.env.state;
  Object.keys(fields).forEach((name, i) => {
    fields[name] = numbers[i];
  });
  env.restore(state);
}

/** Takes all recorded walks and returns the largest differences; throws where one ends and the other does not. */
export function replay(
  env: Env,
  recorded: RecordedCase,
): { observation: number; reward: number; steps: number } {
  const { obsSize, lengths, starts } = recorded;
  const stateSize = starts.length / lengths.length;
  const obs = new Float32Array(obsSize);
  let observation = 0;
  let reward = 0;
  let step = 0;
  lengths.forEach((length, walk) => {
    putInState(env, starts.subarray(walk * stateSize, (walk + 1) * stateSize));
    for (let k = 1; k <= length; k++, step++) {
      const result = env.step(recorded.actions.subarray(step, step + 1), obs);
      for (let i = 0; i < obsSize; i++) {
        observation = Math.max(observation, Math.abs(obs[i] - recorded.observations[step * obsSize + i]));
      }
      reward = Math.max(reward, Math.abs(result.reward - recorded.rewards[step]));
      const ends = k === length && recorded.terminated[walk] === '1';
      if (result.terminated !== ends) {
        throw new Error(`walk ${walk}, step ${k}: terminated is ${result.terminated}, in Gymnasium ${ends}`);
      }
    }
  });
  return { observation, reward, steps: step };
}
