/** The algorithms that there are. */
import { ConfigError, RunError } from '../base/errors.ts';
import type { Manifest } from '../runs/schema.ts';
import type { Algorithm } from './algorithm.ts';
import { clonePolicy } from './clone/policy/algorithm.ts';
import { cloneText } from './clone/text/algorithm.ts';
import { grpo } from './grpo/algorithm.ts';
import { ppo } from './ppo/algorithm.ts';
import type { Subject } from './subject.ts';

const known = new Map<string, Algorithm>();

/** Makes an algorithm known by its name, so that runs of it can be resumed, forked and held. */
export function registerAlgorithm(algorithm: Algorithm): void {
  const other = known.get(algorithm.name);
  if (other !== undefined && other !== algorithm)
    throw new ConfigError(`there is an algorithm ${algorithm.name} already: choose another name`);
  known.set(algorithm.name, algorithm);
}

for (const algorithm of [ppo, grpo, clonePolicy, cloneText]) registerAlgorithm(algorithm);

/** The one that a verb means for what is learnt in. */
export function algorithmFor(verb: Algorithm['verb'], { kind }: Pick<Subject, 'kind'>): Algorithm {
  // The first: those that are registered later are asked for by themselves.
  return [...known.values()].find(algorithm => algorithm.verb === verb && algorithm.learnsIn === kind)!;
}

/** The one that made a run. */
export function algorithmOf({ id, algorithm }: Pick<Manifest, 'id' | 'algorithm'>): Algorithm {
  const found = known.get(algorithm);
  if (found !== undefined) return found;
  throw new RunError(
    `${id} is a run of ${algorithm}, which is not known here: there are ${[...known.keys()].join(', ')}; registerAlgorithm adds one`,
  );
}
