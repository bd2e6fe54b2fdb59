/** Which replay is played, where in it, how fast. Knows nothing of how it is drawn. */

import { decodeReplay, type Replay } from '../../src/runs/replay-format.ts';
import type { ReplaySummary } from '../../src/server/api.ts';
import { secondsOf } from '../../src/view/motion.ts';
import { client, messageOf } from '../state/client.ts';

export const speeds = [0.25, 0.5, 1, 2, 4] as const;
/** An episode's last picture stays so long before it begins again. */
const restSeconds = 0.7;
/** Replays that are kept to go back to. */
const mostKept = 12;

export interface Player {
  readonly list: readonly ReplaySummary[] | null;
  readonly error: string | null;
  readonly replay: Replay | null;
  readonly name: string | null;
  /** Where it is, in seconds of the robot's time. */
  seconds: number;
  playing: boolean;
  speed: number;
  /** Goes on to the newest replay when one comes. */
  live: boolean;
  /** Asks for the list again. */
  refresh(): Promise<void>;
  /** Shows a replay by its name; the live one no longer. */
  choose(name: string): void;
  /** Some replays later (or, below 0, earlier). */
  go(by: number): void;
  /** So much time has passed. */
  advance(elapsedSeconds: number): void;
  /** By frames; it stops. */
  nudge(frames: number): void;
  faster(by: 1 | -1): void;
}

export function createPlayer(run: string, options: { playing: boolean; live: boolean }): Player {
  let list = $state.raw<readonly ReplaySummary[] | null>(null);
  let error = $state<string | null>(null);
  let replay = $state.raw<Replay | null>(null);
  let name = $state<string | null>(null);
  let seconds = $state(0);
  let playing = $state(options.playing);
  let speed = $state(1);
  let live = $state(options.live);
  const kept = new Map<string, Replay>();
  let asked = 0;
  /** Below 0 while the last picture stays. */
  let rested = 0;

  const newest = () => list?.at(-1);

  async function load(item: ReplaySummary): Promise<void> {
    const key = `${item.name}@${item.version}`;
    const ask = ++asked;
    name = item.name;
    try {
      let found = kept.get(key);
      if (found === undefined) {
        found = decodeReplay(await client.replay(run, item.name, item.version), 'the replay');
        kept.set(key, found);
        if (kept.size > mostKept) kept.delete(kept.keys().next().value!);
      }
      // Another may have been chosen meanwhile.
      if (ask !== asked) return;
      replay = found;
      seconds = 0;
      rested = 0;
      error = null;
    } catch (cause) {
      if (ask === asked) error = messageOf(cause);
    }
  }

  const player: Player = {
    get list() {
      return list;
    },
    get error() {
      return error;
    },
    get replay() {
      return replay;
    },
    get name() {
      return name;
    },
    get seconds() {
      return seconds;
    },
    set seconds(value) {
      if (replay !== null) seconds = Math.min(secondsOf(replay), Math.max(0, value));
      rested = 0;
    },
    get playing() {
      return playing;
    },
    set playing(value) {
      // At its end it begins again.
      if (value && replay !== null && seconds >= secondsOf(replay)) seconds = 0;
      playing = value;
    },
    get speed() {
      return speed;
    },
    set speed(value) {
      speed = value;
    },
    get live() {
      return live;
    },
    set live(value) {
      live = value;
      const last = newest();
      if (value && last !== undefined && last.name !== name) void load(last);
    },
    async refresh() {
      try {
        list = (await client.replays(run)).replays;
      } catch (cause) {
        error = messageOf(cause);
        return;
      }
      const last = newest();
      if (last === undefined) return;
      // What is being played is played to its end; what is gone is left.
      if (replay === null) void load(last);
      else if (live && !playing && last.name !== name) void load(last);
    },
    choose(wanted) {
      const item = list?.find(other => other.name === wanted);
      if (item === undefined) return;
      live = live && item === newest();
      void load(item);
    },
    go(by) {
      const at = list?.findIndex(item => item.name === name) ?? -1;
      const next = list?.[Math.max(0, at + by)];
      if (next !== undefined) player.choose(next.name);
    },
    advance(elapsed) {
      if (!playing || replay === null) return;
      const end = secondsOf(replay);
      if (seconds < end) {
        seconds = Math.min(end, seconds + elapsed * speed);
        return;
      }
      rested += elapsed;
      if (rested < restSeconds) return;
      const last = newest();
      if (live && last !== undefined && last.name !== name) void load(last);
      seconds = 0;
      rested = 0;
    },
    nudge(frames) {
      if (replay === null) return;
      playing = false;
      const { frameSeconds } = replay;
      player.seconds = (Math.round(seconds / frameSeconds) + frames) * frameSeconds;
    },
    faster(by) {
      const at = speeds.indexOf(speed as (typeof speeds)[number]);
      speed = speeds[Math.min(speeds.length - 1, Math.max(0, (at < 0 ? 2 : at) + by))];
    },
  };
  return player;
}
