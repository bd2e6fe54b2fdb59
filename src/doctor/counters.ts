/** Names of what only counts, in any trainer's log: how far a run is. Readers and dialects read them here. */

/** A series that counts: what x is where a log has it. */
export interface StepName {
  readonly theirs: string;
  readonly unit: string;
}

const of = (unit: string, names: string): StepName[] => names.split(' ').map(theirs => ({ theirs, unit }));

/** Best first: the first that a log has is how far it is. */
export const stepNames: readonly StepName[] = [
  ...of(
    'steps',
    'train/step time/total_timesteps total_timesteps misc/total_timesteps num_env_steps_sampled_lifetime env_runners/num_env_steps_sampled_lifetime timesteps_total num_env_steps_sampled info/num_steps_sampled info/num_env_steps_sampled TimestepsSoFar TotalEnvInteracts agent_steps total_env_steps num_env_steps environment_steps env_steps env_step total_steps total/steps num_timesteps time_steps timesteps timestep frames frame',
  ),
  ...of('steps', 'global_step train/global_step trainer/global_step'),
  ...of('updates', 'training/global_step'),
  ...of('steps', 'step Step steps _step'),
  ...of('iterations', 'training_iteration time/iterations iteration iterations iter itr'),
  ...of('updates', 'update updates num_updates n_updates'),
  ...of('epochs', 'epoch'),
  ...of('episodes', 'episode episodes'),
];

/** Counters that begin again in a process that goes on from a checkpoint, while the steps may go on. */
export const processNames = [
  'time/iterations',
  'iterations_since_restore',
  'time/time_elapsed',
  'time_since_restore',
];

/** What a learner counts through its life: these go on where one is trained further, whatever else begins anew. */
export const lifeNames = [
  'train/n_updates',
  'n_updates',
  'misc/n_updates',
  'misc/nupdates',
  'nupdates',
  'num_updates',
];

/** One spelling of a counter: `Total timesteps`, `total_timesteps`, `Total-Timesteps`. */
export const plainName = (name: string): string =>
  name
    .trim()
    .toLowerCase()
    .replace(/[\s_-]+/g, '_');

const plainNames = new Set(stepNames.map(({ theirs }) => plainName(theirs)));

/** Whether a name only counts: it is x or could be, and is nothing to diagnose. */
export function isStepName(name: string): boolean {
  return plainNames.has(plainName(name));
}
