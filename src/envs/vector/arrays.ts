/** Sizes of a vector environment's rows. */
export interface VectorShape {
  /** N, the number of environments. */
  readonly envCount: number;
  /** Numbers in one observation. */
  readonly obsSize: number;
  /** Numbers in one action. */
  readonly actionSize: number;
  /** T, the number of named reward terms; 0 for most environments. */
  readonly termCount: number;
  /** M, the number of named measures; 0 for most environments. */
  readonly measureCount: number;
}

/** What the last reset or step gave, for all N environments. The arrays stay the same; each call overwrites them. */
export interface VectorArrays {
  /** (N, obsSize) What to act on next; where an episode has ended, the first observation of the next one. */
  readonly observations: Float32Array;
  /** (N) */
  readonly rewards: Float64Array;
  /** (N) 1 where the task itself has ended: nothing follows. */
  readonly terminated: Uint8Array;
  /** (N) 1 where the episode was cut: the value of the final observation must be bootstrapped. Never with `terminated`. */
  readonly truncated: Uint8Array;
  /** (N, obsSize) The last observation of an episode that ended in this step; other rows are of older episodes. */
  readonly finalObservations: Float32Array;
  /** (N) Sum of the rewards of an episode that ended in this step; other entries are of older episodes. */
  readonly episodeReturns: Float64Array;
  /** (N) Its steps, likewise. */
  readonly episodeLengths: Int32Array;
  /** (N, T) Its reward terms, each summed over the episode, likewise. */
  readonly episodeRewardTerms: Float64Array;
  /** (N, M) Its measures, each summed over the episode, likewise. */
  readonly episodeMeasures: Float64Array;
  /** (N) 1 where the simulation broke down in this step; then `terminated` is set as well. */
  readonly blownUp: Uint8Array;
}

/** With the input, and what names an environment that fails, beside. */
export interface VectorMemory extends VectorArrays {
  /** (N, actionSize) */
  readonly actions: Float32Array;
  /** (1) How far training is, from 0 to 1; NaN unless it was told. */
  readonly progress: Float64Array;
  /** (N) Each environment's own seed. */
  readonly seeds: Float64Array;
  /** (N) Its steps since that seed. */
  readonly steps: Float64Array;
}

const elements = { Float64Array, Float32Array, Int32Array, Uint8Array } as const;
type ElementName = keyof typeof elements;

/** Name, type and length of each array; the widest types come first, so that all are aligned. */
function layoutOf(shape: VectorShape): [keyof VectorMemory, ElementName, number][] {
  const { envCount, obsSize, actionSize, termCount, measureCount } = shape;
  return [
    ['rewards', 'Float64Array', envCount],
    ['progress', 'Float64Array', 1],
    ['seeds', 'Float64Array', envCount],
    ['steps', 'Float64Array', envCount],
    ['episodeReturns', 'Float64Array', envCount],
    ['episodeRewardTerms', 'Float64Array', envCount * termCount],
    ['episodeMeasures', 'Float64Array', envCount * measureCount],
    ['observations', 'Float32Array', envCount * obsSize],
    ['finalObservations', 'Float32Array', envCount * obsSize],
    ['actions', 'Float32Array', envCount * actionSize],
    ['episodeLengths', 'Int32Array', envCount],
    ['terminated', 'Uint8Array', envCount],
    ['truncated', 'Uint8Array', envCount],
    ['blownUp', 'Uint8Array', envCount],
  ];
}

export function bytesFor(shape: VectorShape): number {
  return layoutOf(shape).reduce(
    (sum, [, type, length]) => sum + length * elements[type].BYTES_PER_ELEMENT,
    0,
  );
}

/** The arrays in that memory, which may be shared between threads; in memory of their own unless given. */
export function vectorMemory(
  shape: VectorShape,
  buffer: ArrayBufferLike = new ArrayBuffer(bytesFor(shape)),
): VectorMemory {
  let offset = 0;
  const arrays = layoutOf(shape).map(([name, type, length]) => {
    const array = new elements[type](buffer as ArrayBuffer, offset, length);
    offset += array.byteLength;
    return [name, array] as const;
  });
  return Object.fromEntries(arrays) as unknown as VectorMemory;
}
