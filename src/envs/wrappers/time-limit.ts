import { type Env, type StepResult, stepResult } from '../env.ts';
import { fail, show } from '../errors.ts';
import { countOf, fieldsOf } from '../plain-data.ts';

/**
 * Truncates an episode at its `maxEpisodeSteps`-th step, unless it terminates there. Part of the environment's state: a
 * resumed run cuts its episode where the killed one would have.
 */
export function timeLimit(env: Env, maxEpisodeSteps: number): Env {
  if (!Number.isSafeInteger(maxEpisodeSteps) || maxEpisodeSteps < 1) {
    fail(
      'definition-invalid',
      `maxEpisodeSteps ${show(maxEpisodeSteps)} is not a whole number of at least 1: try 1000, or null for no limit`,
    );
  }
  const result: StepResult = stepResult(env.rewardTerms.length);
  let elapsedSteps = 0;
  return {
    observationSpace: env.observationSpace,
    actionSpace: env.actionSpace,
    rewardTerms: env.rewardTerms,
    measures: env.measures ?? [],
    mayBlowUp: env.mayBlowUp ?? false,
    ...(env.outside && { outside: env.outside }),
    reset(options, obs) {
      elapsedSteps = 0;
      env.reset(options, obs);
    },
    step(action, obs) {
      const inner = env.step(action, obs);
      elapsedSteps++;
      if (elapsedSteps < maxEpisodeSteps || inner.terminated === true) return inner;
      result.reward = inner.reward;
      result.terminated = inner.terminated;
      result.truncated = true;
      if (inner.measures) result.measures = inner.measures;
      result.blownUp = false; // that would have terminated it
      if (inner.rewardTerms.length > 0) result.rewardTerms.set(inner.rewardTerms);
      return result;
    },
    state: () => ({ elapsedSteps, env: env.state() }),
    restore(state) {
      const fields = fieldsOf(state, ['elapsedSteps', 'env'], 'the state of the time limit');
      const elapsed = countOf(fields.elapsedSteps, 'elapsedSteps');
      env.restore(fields.env);
      elapsedSteps = elapsed;
      if (env.outside?.beganAnew) elapsedSteps = 0;
    },
    ...(env.view && { view: () => env.view!() }),
    ...(env.setProgress ? { setProgress: (fraction: number) => env.setProgress?.(fraction) } : {}),
    close: () => env.close?.(),
  };
}
