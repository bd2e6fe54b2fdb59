import type { Rng } from '../../random/rng.ts';
import { createEnv, defineEnv, type MadeEnv, type MakeOptions } from '../definition.ts';
import { fail } from '../errors.ts';
import { simulation } from '../simulation.ts';
import { box, dict, discrete } from '../spaces.ts';

const MOVE = 0.15; // the longest way along each axis in a step
const REACH = 0.2; // how near parcel or door must be

// What the courier's hand does; 0 is nothing.
const PICK_UP = 1;
const DROP = 2;

const PICK_UP_REWARD = 1;
const DELIVERY_REWARD = 2;
const MISTAKE_REWARD = -0.05;
const STEP_REWARD = -0.01;

/** Options of Courier-v0. */
export type CourierOptions = {
  readonly progressReward: number;
};

type CourierState = {
  x: number;
  y: number;
  parcelX: number;
  parcelY: number;
  doorX: number;
  doorY: number;
  carrying: boolean;
};

/**
 * Courier-v0: walk to a parcel, pick it up, carry it to a door and drop it there. Each step is a hybrid action: where to
 * move, and what to do with the hand.
 *
 * **Actions** `Dict(move: Box(2) in ±1, hand: Discrete(3))`, three numbers: the move along x and y in units of 0.15, then
 * 0 to do nothing, 1 to pick up, 2 to drop. The courier moves first; the walls of the square ±1 stop it.
 *
 * **Observations** `Box(7)`:
 *
 * | # | what | limits |
 * |---|---|---|
 * | 0, 1 | position | ±1 |
 * | 2, 3 | parcel minus position; 0 while carried | ±2 |
 * | 4, 5 | door minus position | ±2 |
 * | 6 | 1 while the parcel is carried, else 0 | 0..1 |
 *
 * **Reward**, the sum of terms that are reported apart:
 *
 * | term | reward |
 * |---|---|
 * | `progress` | how much shorter the way left has become (to the parcel and from there to the door), times `progressReward` |
 * | `pickUp` | 1 for picking the parcel up |
 * | `delivery` | 2 for dropping it at the door |
 * | `mistake` | -0.05 for picking up or dropping where that does nothing |
 * | `time` | -0.01 a step |
 *
 * **Start** courier, parcel and door each uniform in the square.
 *
 * **End** terminated by the delivery; truncated at 60 steps. Solved at 4.3: a policy that walks straight reaches about
 * 4.9 (3 for parcel and delivery, 2 of progress, -0.1 of time); a random one about -2.7.
 *
 * **Versions** v0.
 */
export const courierDefinition = defineEnv<CourierOptions>({
  id: 'Courier-v0',
  description: 'Walk to a parcel and bring it to a door: a continuous move and a category in one action.',
  options: {
    progressReward: {
      default: 1,
      doc: 'reward for each unit by which the way left gets shorter',
      min: 0,
      max: 10,
    },
  },
  maxEpisodeSteps: 60,
  rewardThreshold: 4.3,
  make: ({ progressReward }) =>
    simulation<CourierState>({
      observationSpace: box({ shape: [7], low: [-1, -1, -2, -2, -2, -2, 0], high: [1, 1, 2, 2, 2, 2, 1] }),
      actionSpace: dict({ move: box({ shape: [2], low: -1, high: 1 }), hand: discrete(3) }),
      rewardTerms: ['progress', 'pickUp', 'delivery', 'mistake', 'time'],
      start: rng => ({
        x: coordinate(rng),
        y: coordinate(rng),
        parcelX: coordinate(rng),
        parcelY: coordinate(rng),
        doorX: coordinate(rng),
        doorY: coordinate(rng),
        carrying: false,
      }),
      observe(state, obs) {
        obs[0] = state.x;
        obs[1] = state.y;
        obs[2] = state.carrying ? 0 : state.parcelX - state.x;
        obs[3] = state.carrying ? 0 : state.parcelY - state.y;
        obs[4] = state.doorX - state.x;
        obs[5] = state.doorY - state.y;
        obs[6] = state.carrying ? 1 : 0;
      },
      step(state, action, result) {
        const terms = result.rewardTerms;
        const before = wayLeft(state);
        state.x = Math.min(Math.max(state.x + MOVE * action[0], -1), 1);
        state.y = Math.min(Math.max(state.y + MOVE * action[1], -1), 1);
        const hand = action[2];
        if (hand === PICK_UP) {
          if (!state.carrying && isNear(state, state.parcelX, state.parcelY)) {
            state.carrying = true;
            terms[1] = PICK_UP_REWARD;
          } else {
            terms[3] = MISTAKE_REWARD;
          }
        } else if (hand === DROP) {
          if (state.carrying && isNear(state, state.doorX, state.doorY)) {
            result.terminated = true;
            terms[2] = DELIVERY_REWARD;
          } else {
            terms[3] = MISTAKE_REWARD;
          }
        }
        terms[0] = progressReward * (before - wayLeft(state));
        terms[4] = STEP_REWARD;
      },
      check(state) {
        const { carrying: _, ...places } = state;
        for (const [name, value] of Object.entries(places)) {
          if (!(value >= -1 && value <= 1)) fail('state-invalid', `state.${name} is ${value}, outside -1..1`);
        }
      },
    }),
});

/** {@link courierDefinition} */
export function courier(options: MakeOptions<CourierOptions> = {}): MadeEnv {
  return createEnv(courierDefinition, options);
}

function coordinate(rng: Rng): number {
  return 2 * rng.uniform() - 1;
}

function isNear(state: CourierState, x: number, y: number): boolean {
  return distance(x - state.x, y - state.y) <= REACH;
}

/** Not Math.hypot, which guards against overflow and takes several times as long. */
function distance(dx: number, dy: number): number {
  return Math.sqrt(dx * dx + dy * dy);
}

/** The way that is left, straight: to the parcel and from it to the door, or to the door alone. */
function wayLeft(state: CourierState): number {
  if (state.carrying) return distance(state.doorX - state.x, state.doorY - state.y);
  return (
    distance(state.parcelX - state.x, state.parcelY - state.y) +
    distance(state.doorX - state.parcelX, state.doorY - state.parcelY)
  );
}
