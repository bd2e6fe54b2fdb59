/**
 * Spaces without an environment: what a policy is held on that came from elsewhere without the environment that it was
 * trained in. Its network is whole, so it acts and is exported; there is nothing to play or to train in.
 */
import { jsonOf } from '../base/json.ts';
import { defineEnv, type EnvDefinition } from './definition.ts';
import { fail } from './errors.ts';
import { simulation } from './simulation.ts';
import { type Space, spaceFromJson } from './spaces.ts';

/** What manifests call it. */
export const SPACES_ID = 'Spaces-v0';

/** The spaces as options, which a manifest keeps. */
export const spacesOptions = (observationSpace: Space, actionSpace: Space) => ({
  observation: JSON.stringify(observationSpace),
  action: JSON.stringify(actionSpace),
});

/** Known only where a run names it: nobody chooses it from a list. */
export const spacesOnly: EnvDefinition = defineEnv({
  id: SPACES_ID,
  description: 'The spaces of a policy that was imported without its environment; cannot be played.',
  maxEpisodeSteps: null,
  options: {
    observation: { default: '', doc: 'Its observations, as JSON.' },
    action: { default: '', doc: 'Its actions, as JSON.' },
  },
  make({ observation, action }) {
    const observationSpace = spaceFrom('observation', observation);
    return simulation({
      observationSpace,
      actionSpace: spaceFrom('action', action),
      start: () => ({}),
      observe: () => nearestToZero(observationSpace),
      step: () =>
        fail(
          'env-unknown',
          `${SPACES_ID} has spaces and nothing to play: import the model again with --env, or train from this run in its environment`,
        ),
    });
  },
});

function spaceFrom(option: string, json: string): Space {
  let value: unknown;
  try {
    value = jsonOf(json);
  } catch {
    return fail(
      'option-invalid',
      `${SPACES_ID}: option ${option} is no JSON of a space: import the model again`,
    );
  }
  return spaceFromJson(value);
}

function nearestToZero(space: Space): Float32Array {
  const row = new Float32Array(space.flatSize);
  space.clip(row);
  return row;
}
