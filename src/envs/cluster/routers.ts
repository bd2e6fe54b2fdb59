/** Which replica a request goes to: the rules that people use, to compare with and to learn from. */

import { didYouMean } from '../../base/nearest.ts';
import type { Rng } from '../../random/rng.ts';
import { fail, show } from '../errors.ts';
import { countsOf, emptyCounts, emptyOutlook, type Outlook, outlookFor } from './outlook.ts';
import type { Cluster } from './simulator.ts';

/** What decides where a request goes. */
export interface Router {
  readonly name: string;
  /** The replica for a request, one that is up. */
  choose(cluster: Cluster, id: number): number;
}

type MakeRouter = (rng: Rng) => Router['choose'];

/** The up replica of the least score; the first of several. */
function least(cluster: Cluster, score: (replica: number) => number): number {
  let [best, bestScore] = [-1, Number.POSITIVE_INFINITY];
  for (let r = 0; r < cluster.replicas.length; r++) {
    if (!cluster.replicas[r].isUp) continue;
    const own = score(r);
    if (best === -1 || own < bestScore) [best, bestScore] = [r, own];
  }
  return best;
}

/** One of those that are up, each as likely. */
function anyUp(cluster: Cluster, rng: Rng, but = -1): number {
  const { replicas } = cluster;
  let count = 0;
  for (let r = 0; r < replicas.length; r++) if (replicas[r].isUp && r !== but) count++;
  let left = rng.integer(count);
  for (let r = 0; ; r++) if (replicas[r].isUp && r !== but && left-- === 0) return r;
}

const kinds: Readonly<Record<string, { readonly doc: string; readonly make: MakeRouter }>> = {
  random: {
    doc: 'any replica',
    make: rng => cluster => anyUp(cluster, rng),
  },
  'round-robin': {
    doc: 'one after the other',
    make: () => {
      let last = -1;
      return cluster => {
        do last = (last + 1) % cluster.replicas.length;
        while (!cluster.replicas[last].isUp);
        return last;
      };
    },
  },
  'least-requests': {
    doc: 'the fewest outstanding requests',
    make: () => cluster => least(cluster, r => cluster.replicas[r].outstanding),
  },
  'least-tokens': {
    doc: 'the fewest tokens still to be computed and generated, as estimated',
    make: () => {
      const counts = emptyCounts();
      return cluster =>
        least(cluster, r => {
          countsOf(cluster, cluster.replicas[r], counts);
          return counts.queuedTokens + counts.runningLeft + counts.waitingLeft;
        });
    },
  },
  'power-of-two': {
    doc: 'of two replicas drawn at random, the one with fewer outstanding requests',
    make: rng => cluster => {
      const first = anyUp(cluster, rng);
      if (cluster.replicas.every((replica, r) => r === first || !replica.isUp)) return first;
      const second = anyUp(cluster, rng, first);
      return cluster.replicas[second].outstanding < cluster.replicas[first].outstanding ? second : first;
    },
  },
  'least-finish': {
    doc: 'where this request is expected to finish first, by the iteration-time model',
    make: () => byOutlook(outlook => outlook.finishS),
  },
  'least-added': {
    doc: 'where this request and all that it delays lose the least time, by the same model',
    make: () => byOutlook(outlook => outlook.finishS + outlook.addedS),
  },
};

/** The least of what an outlook says. */
function byOutlook(score: (outlook: Outlook) => number): Router['choose'] {
  const [counts, outlook] = [emptyCounts(), emptyOutlook()];
  return (cluster, id) => {
    const generated = cluster.progress.generated[id];
    const prompt = cluster.workload.promptTokens[id] + generated;
    const decode = Math.max(1, cluster.workload.estimatedTokens[id] - generated);
    return least(cluster, r => {
      const replica = cluster.replicas[r];
      countsOf(cluster, replica, counts);
      return score(outlookFor(replica.model, counts, prompt, decode, outlook));
    });
  };
}

/** Routers by name, each with what it does. */
export const routerKinds: readonly { readonly name: string; readonly doc: string }[] = Object.entries(
  kinds,
).map(([name, { doc }]) => ({ name, doc }));

/** A fresh router of that name. */
export function makeRouter(name: string, rng: Rng): Router {
  const kind = Object.hasOwn(kinds, name) ? kinds[name] : undefined;
  if (kind === undefined) {
    const names = Object.keys(kinds);
    fail(
      'option-invalid',
      `the router ${show(name)} is unknown: ${didYouMean(name, names) || `there are ${names.join(', ')}`}`,
    );
  }
  return { name, choose: kind.make(rng) };
}
