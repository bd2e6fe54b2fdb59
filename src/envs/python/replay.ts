/** Takes an environment to where an episode was: by the same actions, from the same seed or state. */
import type { Child } from './child.ts';
import type { Episode } from './episode.ts';
import { ToldError } from './faults.ts';
import { answerLayout, rowOf } from './frames.ts';

/** Says why the environment of this number could not be taken there; undefined where it is there, to the bit. */
export function replay(
  child: Child,
  index: number,
  episode: Episode,
  measureCount: number,
): string | undefined {
  if (!episode.isWhole) return 'its episode was too long to be kept';
  const { seed, base, steps, actions, last } = episode;
  const text = Buffer.from(base ?? '', 'utf8');
  const padded = Math.ceil(text.length / 4) * 4;
  const bytes = 24 + padded + actions.byteLength;
  const room = child.room(bytes).fill(0, 0, 24 + padded);
  room.writeUInt32LE(index, 0);
  room.writeUInt32LE(steps, 4);
  room.writeBigInt64LE(BigInt(seed), 8);
  room.writeUInt32LE(text.length, 16);
  text.copy(room, 24);
  room.set(new Uint8Array(actions.buffer, actions.byteOffset, actions.byteLength), 24 + padded);
  try {
    const payload = child.ask('replay', bytes);
    const layout = answerLayout('replay', payload, { count: 1, measureCount, obsSize: last.length });
    // Of a state without steps there is no observation to compare.
    if (base !== null && steps === 0) return undefined;
    const seen = rowOf(payload, layout.observations, last.length);
    return episode.agrees(seen, payload.readDoubleLE(0))
      ? undefined
      : 'the same actions from the same seed led elsewhere';
  } catch (error) {
    if (error instanceof ToldError) return error.told.message.split('\n')[0];
    throw error;
  }
}
