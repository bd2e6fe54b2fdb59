import type { Kind } from './detect.ts';
import type { FirstPoint } from './tensorboard.ts';

/** A log that was found in a directory. */
export interface LogFile {
  readonly path: string;
  readonly name: string;
  readonly kind: Kind;
  /** How many metrics its beginning names. */
  readonly width: number;
  /** Of an event file. */
  readonly firstWallTime: number;
  readonly firstTag: string | undefined;
  /** The first points of its tags. */
  readonly firstPoints: ReadonlyMap<string, FirstPoint>;
  /** The runs of a chart that was exported. */
  readonly runs: readonly string[];
  /** Of a trainer's state, -1 if it is not near the beginning. */
  readonly globalStep: number;
}
