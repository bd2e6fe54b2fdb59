/** Minibatches divide a rollout without a rest: a last, smaller one would weigh its samples more. */

/** What is wrong with a minibatch size, with sizes near it that would do; undefined if nothing is. */
export function unevenMinibatches(envs: number, stepsPerRollout: number, size: number): string | undefined {
  const samples = envs * stepsPerRollout;
  if (samples % size === 0) return undefined;
  const near = [below(samples, size), above(samples, size)].filter(n => n !== undefined).join(' or ');
  return `minibatchSize ${size} does not divide ${samples} (envs ${envs} x stepsPerRollout ${stepsPerRollout}): try ${near}`;
}

function below(samples: number, size: number): number | undefined {
  for (let n = Math.min(size - 1, samples); n >= 1; n--) if (samples % n === 0) return n;
  return undefined;
}

function above(samples: number, size: number): number | undefined {
  for (let n = size + 1; n <= samples; n++) if (samples % n === 0) return n;
  return undefined;
}
