/** What a policy that routes requests does while it is trained, for the page: one workload, again and again. */

import { clusterFor } from '../envs/cluster/cluster-env.ts';
import { drawWorkload, simulate, TimelineRecorder } from '../envs/cluster/index.ts';
import type { ClusterOptions } from '../envs/index.ts';
import { Rng } from '../random/index.ts';
import { writeFileAtomic } from '../runs/atomic.ts';
import { runPaths } from '../runs/layout.ts';
import { policyRouter } from './policy-router.ts';
import type { PpoTrainer } from './ppo-trainer.ts';
import type { RecordingWriter } from './record.ts';

/** A minute of a small cluster, in a tenth of a second. */
const MOST_REQUESTS = 1000;

/** Lets the policy route the requests of an episode at the mean load and keeps what came of it, the newest alone. */
export async function routingWriter(
  runDir: string,
  options: ClusterOptions,
  { model, params, observationNormaliser: normaliser }: PpoTrainer,
): Promise<RecordingWriter> {
  const { specs, workload: spec, scale } = clusterFor(options);
  const { load, lengthError } = options;
  const count = Math.min(options.requests, MOST_REQUESTS);
  const router = await policyRouter({ name: 'policy', model, params, normaliser, specs, scale });
  return {
    shownIn: 'cluster',
    write({ params: now, step, seed }) {
      router.use(now);
      const ratePerS = load * scale.capacityPerS;
      const workload = drawWorkload(spec, { count, ratePerS, lengthError }, new Rng(seed));
      const recorder = new TimelineRecorder(router.name, count);
      simulate({ replicas: specs, workload, router, timeline: recorder });
      writeFileAtomic(runPaths(runDir).cluster, JSON.stringify({ ...recorder.timeline(), step }));
    },
    close: () => router.dispose(),
  };
}
