/** What one rollout holds: T steps of N environments, (T, N, …) each, allocated once and overwritten by the next. */
export interface Rollout {
  readonly steps: number;
  readonly envs: number;
  /** As the policy saw them: normalised. */
  readonly observations: Float32Array; // (T, N, observationSize)
  /** As they were sampled, before any clipping to the environment's bounds: that is what must be scored. */
  readonly actions: Float32Array; // (T, N, actionSize)
  /** The parameters of the distribution that was sampled from, for the exact KL. */
  readonly params: Float32Array; // (T, N, paramSize)
  readonly logProbs: Float32Array; // (T, N)
  readonly values: Float32Array; // (T, N)
  /** As learnt from: normalised, if that is on. */
  readonly rewards: Float32Array; // (T, N)
  readonly terminated: Uint8Array; // (T, N)
  readonly truncated: Uint8Array; // (T, N)
  /** Values of final observations where an episode was cut off. */
  readonly finalValues: Float32Array; // (T, N)
  /** Values of the observations after the last step. */
  readonly lastValues: Float32Array; // (N)
  readonly advantages: Float32Array; // (T, N)
  readonly returns: Float32Array; // (T, N)
}

/** Sizes of one sample. */
export interface SampleSizes {
  readonly observationSize: number;
  readonly actionSize: number;
  readonly paramSize: number;
}

export function createRollout(steps: number, envs: number, sizes: SampleSizes): Rollout {
  const samples = steps * envs;
  const column = (): Float32Array => new Float32Array(samples);
  return {
    steps,
    envs,
    observations: new Float32Array(samples * sizes.observationSize),
    actions: new Float32Array(samples * sizes.actionSize),
    params: new Float32Array(samples * sizes.paramSize),
    logProbs: column(),
    values: column(),
    rewards: column(),
    terminated: new Uint8Array(samples),
    truncated: new Uint8Array(samples),
    finalValues: column(),
    lastValues: new Float32Array(envs),
    advantages: column(),
    returns: column(),
  };
}
