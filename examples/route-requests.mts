/**
 * A plain Node service that routes requests with the policy of a run, which there has to be first (`npx keel clone cluster`):
 * `npx tsx route-requests.mts last`.
 */
import { createServer } from 'node:http';
import { openPolicy } from 'keel';
import * as cluster from 'keel/cluster';

const specs = cluster
  .hardwareList('h100,2*a100,a40')
  .map(hardware => ({ ...cluster.defaultReplica, hardware }));
const scale = cluster.clusterScale(specs, cluster.workloads.conversation);
const models = specs.map(cluster.replicaModel);
const counts = specs.map(cluster.emptyCounts); // what each replica last reported
const outlooks = specs.map(cluster.emptyOutlook);
const traffic = cluster.newTraffic(scale.capacityPerS / 2);
const spaces = cluster.clusterSpaces(specs.length); // of this cluster, whatever it was trained on
const observation = new Float32Array(spaces.observationSpace.flatSize);
const policy = await openPolicy(process.argv[2] ?? 'last', { spaces });
const reported = [
  'running',
  'runningLeft',
  'contextTokens',
  'waiting',
  'queuedTokens',
  'usedBlocks',
] as const;

const server = createServer((request, response) => {
  const { pathname, searchParams } = new URL(request.url ?? '/', 'http://localhost');
  const value = (name: string): number => Math.max(0, Number(searchParams.get(name)) || 0);
  const replica = counts[value('replica')];
  if (pathname === '/report' && replica) {
    for (const name of reported) replica[name] = value(name);
    return response.end();
  }
  if (pathname !== '/route') return response.writeHead(404).end();
  const [promptTokens, estimatedTokens] = [Math.ceil(value('prompt')) || 1, Math.ceil(value('answer')) || 1];
  cluster.noteArrival(traffic, performance.now() / 1000);
  const seen = { models, counts, outlooks, promptTokens, estimatedTokens, traffic, scale };
  cluster.writeObservation(seen, observation);
  const [chosen] = policy.act(observation);
  return response.end(JSON.stringify({ replica: chosen }));
});
server.listen(Number(process.argv[3] ?? 8080), '127.0.0.1', () =>
  console.log(JSON.stringify(server.address())),
);
