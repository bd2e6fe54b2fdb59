/** What a policy that routes requests does while it is trained, for the page: one workload, again and again. */
import { Rng } from '../../random/rng.ts';
import type { RecordingHook } from '../definition.ts';
import { clusterFor } from './described.ts';
import type { ClusterOptions } from './options.ts';
import { policyRouter } from './policy-router.ts';
import { simulate } from './simulate.ts';
import { TimelineRecorder } from './timeline.ts';
import { drawWorkload } from './workloads.ts';

/** A minute of a small cluster, in a tenth of a second. */
const MOST_REQUESTS = 1000;

/** Lets the policy route the requests of an episode at the mean load. */
export const clusterRecording: RecordingHook<ClusterOptions> = {
  tab: 'cluster',
  open(options) {
    const { specs, workload: spec, scale } = clusterFor(options);
    const { load, lengthError } = options;
    const count = Math.min(options.requests, MOST_REQUESTS);
    const ratePerS = load * scale.capacityPerS;
    return (score, seed) => {
      const router = policyRouter({ name: 'policy', specs, scale, score });
      const workload = drawWorkload(spec, { count, ratePerS, lengthError }, new Rng(seed));
      const recorder = new TimelineRecorder(router.name, count);
      simulate({ replicas: specs, workload, router, timeline: recorder });
      return recorder.timeline();
    };
  },
};
