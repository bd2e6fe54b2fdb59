/**
 * Generalised advantage estimation (Schulman et al. 2015, arXiv 1506.02438), for each environment by itself.
 *
 * Arrays are (T, N), step by step: the value of environment n at step t stands at t·N + n.
 */
export interface GaeInput {
  readonly steps: number;
  readonly envs: number;
  readonly rewards: Float32Array; // (T, N)
  readonly values: Float32Array; // (T, N)
  /** 1 where the step ended the episode for good: nothing follows, so nothing is bootstrapped. */
  readonly terminated: Uint8Array; // (T, N)
  /** 1 where the episode was cut off: what would have followed is worth `finalValues`. */
  readonly truncated: Uint8Array; // (T, N)
  /** The value of the final observation, where an episode was cut off; not read elsewhere. */
  readonly finalValues: Float32Array; // (T, N)
  /** The value of the observation after the last step. */
  readonly lastValues: Float32Array; // (N)
}

/** Fills `advantages` and `returns` (= advantage + value), both (T, N). */
export function gae(
  { steps, envs, rewards, values, terminated, truncated, finalValues, lastValues }: GaeInput,
  { gamma, lambda }: { gamma: number; lambda: number },
  { advantages, returns }: { advantages: Float32Array; returns: Float32Array },
): void {
  for (let n = 0; n < envs; n++) {
    let advantage = 0;
    let next = lastValues[n];
    for (let t = steps - 1; t >= 0; t--) {
      const at = t * envs + n;
      let carried = gamma * lambda * advantage;
      if (terminated[at]) {
        next = 0;
        carried = 0;
      } else if (truncated[at]) {
        next = finalValues[at];
        carried = 0;
      }
      advantage = rewards[at] + gamma * next - values[at] + carried;
      advantages[at] = advantage;
      returns[at] = advantage + values[at];
      next = values[at];
    }
  }
}
