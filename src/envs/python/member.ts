/** An environment in a Python process, as this side knows it. */
import type { Space } from '../spaces.ts';
import type { Episode } from './episode.ts';
import type { Told } from './faults.ts';
import { spaceFromPython } from './spaces-from-python.ts';

/** What the Python side says of an environment that it has made. */
export interface Described {
  readonly observationSpace: Space;
  readonly actionSpace: Space;
  /** Steps after which Gymnasium's wrapper would have cut an episode. */
  readonly limit: number | null;
  /** Whether it has get_state and set_state. */
  readonly hasState: boolean;
  readonly renders: boolean;
  readonly fps: number | null;
}

/** An environment of the process, as the host knows it. */
export interface Member {
  /** Its number in the process; another one after each start. */
  index: number;
  /** Where its episode is; undefined before the first. */
  episode: Episode | undefined;
  /** Why its episode cannot go on, after the process was started again. */
  lost: string | undefined;
  readonly notices: string[];
  /** The action that waits to be taken. */
  readonly action: Float32Array;
  /** The seed of the episode that waits to be begun. */
  seed: number;
  /** Of the step that was taken last or the episode that was begun, until it is fetched. */
  readonly step: {
    isThere: boolean;
    reward: number;
    flags: number;
    readonly observation: Float32Array;
    readonly measures: Float64Array;
    told: Told | undefined;
  };
}

/** Reads what the Python side says of one that it has made. */
export function describedFrom(json: Readonly<Record<string, unknown>>): {
  index: number;
  described: Described;
} {
  const { index, observation, action, ...rest } = json;
  const described = {
    ...(rest as unknown as Described),
    observationSpace: spaceFromPython(observation),
    actionSpace: spaceFromPython(action),
  };
  return { index: index as number, described };
}

/** One that has just been made. */
export function newMember(
  index: number,
  { actionSpace, observationSpace }: Described,
  measures: number,
): Member {
  return {
    index,
    episode: undefined,
    lost: undefined,
    notices: [],
    action: new Float32Array(actionSpace.flatSize),
    seed: 0,
    step: {
      isThere: false,
      reward: 0,
      flags: 0,
      observation: new Float32Array(observationSpace.flatSize),
      measures: new Float64Array(measures),
      told: undefined,
    },
  };
}
