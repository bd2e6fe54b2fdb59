/** The rules of routers.ts on observations: what a policy sees is enough for them. */
import type { Rng } from '../../random/index.ts';
import type { Demonstrator } from '../definition.ts';
import { FEATURES, replicaFeatures, SHARED } from './observation.ts';
import type { ClusterOptions } from './options.ts';
import { defaultReplica } from './replica-model.ts';

type Feature = (typeof replicaFeatures)[number];

const replicasIn = (obs: Float32Array): number => (obs.length - SHARED) / FEATURES;

const read = (obs: Float32Array, replica: number, feature: Feature): number =>
  obs[replica * FEATURES + replicaFeatures.indexOf(feature)]!;

/** The up replica of the least score; the first of several. */
function least(obs: Float32Array, score: (feature: (name: Feature) => number) => number): number {
  let [best, bestScore] = [0, Number.POSITIVE_INFINITY];
  for (let r = 0; r < replicasIn(obs); r++) {
    const feature = (name: Feature): number => read(obs, r, name);
    if (feature('up') === 0) continue;
    const own = score(feature);
    if (own < bestScore) [best, bestScore] = [r, own];
  }
  return best;
}

type Choose = (obs: Float32Array) => number;

const demonstrator = (doc: string, make: (rng: Rng) => Choose): Demonstrator<ClusterOptions> => ({
  doc,
  make(_, rng) {
    const choose = make(rng);
    return (obs, action) => {
      action[0] = choose(obs);
    };
  },
});

const onlyIfNamed = (rule: Demonstrator<ClusterOptions>): Demonstrator<ClusterOptions> => ({
  ...rule,
  onlyIfNamed: true,
});

/** Logarithms of the observation, undone. */
const waiting = (feature: (name: Feature) => number): number => Math.round(Math.expm1(feature('waiting')));

export const clusterDemonstrators: Readonly<Record<string, Demonstrator<ClusterOptions>>> = {
  'least-finish': demonstrator(
    'where this request is expected to finish first',
    () => obs => least(obs, feature => feature('finishRegret')),
  ),
  'least-requests': demonstrator(
    'the fewest outstanding requests',
    () => obs =>
      least(obs, feature => Math.round(feature('running') * defaultReplica.maxBatch) + waiting(feature)),
  ),
  'least-tokens': demonstrator(
    'the fewest tokens still to be computed and generated',
    () => obs =>
      least(obs, feature => Math.expm1(feature('tokensLeft')) + Math.expm1(feature('queuedTokens'))),
  ),
  'least-added': onlyIfNamed(
    demonstrator(
      'where this request and all that it delays lose the least time',
      () => obs => least(obs, feature => feature('totalRegret')),
    ),
  ),
  'round-robin': onlyIfNamed(
    demonstrator('one after the other', () => {
      let last = -1;
      return obs => {
        const count = replicasIn(obs);
        do last = (last + 1) % count;
        while (read(obs, last, 'up') === 0);
        return last;
      };
    }),
  ),
  random: onlyIfNamed(
    demonstrator('any replica', rng => obs => {
      for (;;) {
        const replica = rng.integer(replicasIn(obs));
        if (read(obs, replica, 'up') === 1) return replica;
      }
    }),
  ),
};
