/** The rules of routers.ts on observations: what a policy sees is enough for them. */
import type { Rng } from '../../random/rng.ts';
import type { Demonstrator } from '../definition.ts';
import { FEATURES, replicaFeatures, SHARED } from './observation.ts';
import type { ClusterOptions } from './options.ts';
import { defaultReplica } from './replica-model.ts';

type Feature = (typeof replicaFeatures)[number];

const replicasIn = (obs: Float32Array): number => (obs.length - SHARED) / FEATURES;

const read = (obs: Float32Array, replica: number, feature: Feature): number =>
  obs[replica * FEATURES + replicaFeatures.indexOf(feature)];

type Features = (name: Feature) => number;

/** The up replica of the least score; the first of several. */
function least(obs: Float32Array, score: (feature: Features) => number): number {
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

/** Log-odds of a replica that is down. */
const NEVER = -30;

/**
 * The up replica of the least score, and odds that fall with what is compared: `logOf` gives minus their logarithm. Regrets of
 * the observation are such logarithms, of a fourth power: of two replicas, one on which a request takes 19 % longer has half
 * the odds.
 */
const leastOf = (
  doc: string,
  score: (feature: Features) => number,
  logOf: (feature: Features) => number,
): Demonstrator<ClusterOptions> => ({
  ...demonstrator(doc, () => obs => least(obs, score)),
  logits: () => (obs, logits) => {
    for (let r = 0; r < logits.length; r++) {
      const feature = (name: Feature): number => read(obs, r, name);
      logits[r] = feature('up') === 0 ? NEVER : Math.max(NEVER, -logOf(feature));
    }
  },
});

const onlyIfNamed = (rule: Demonstrator<ClusterOptions>): Demonstrator<ClusterOptions> => ({
  ...rule,
  onlyIfNamed: true,
});

/** Logarithms of the observation, undone. */
const requests = (feature: Features): number =>
  Math.round(feature('running') * defaultReplica.maxBatch) + Math.round(Math.expm1(feature('waiting')));
const thousandTokens = (feature: Features): number =>
  Math.expm1(feature('tokensLeft')) + Math.expm1(feature('queuedTokens'));

export const clusterDemonstrators: Readonly<Record<string, Demonstrator<ClusterOptions>>> = {
  'least-finish': leastOf(
    'where this request is expected to finish first',
    feature => feature('finishRegret'),
    feature => feature('finishRegret'),
  ),
  'least-requests': leastOf(
    'the fewest outstanding requests',
    requests,
    // Counts are nearly level where this rule routes: one request more must tell. It has half the odds.
    feature => Math.LN2 * requests(feature),
  ),
  'least-tokens': leastOf(
    'the fewest tokens still to be computed and generated',
    thousandTokens,
    // Nearly level as well: 5 % more tokens have half the odds.
    feature => 16 * Math.log1p(thousandTokens(feature)),
  ),
  'least-added': onlyIfNamed(
    leastOf(
      'where this request and all that it delays lose the least time',
      feature => feature('totalRegret'),
      feature => feature('totalRegret'),
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
