/** A plain Node service that routes requests with a policy: `node --import tsx examples/route-requests.ts policy.onnx`. */
import { createServer } from 'node:http';
import { InferenceSession, Tensor } from 'onnxruntime-node';
import * as cluster from '../src/envs/cluster/index.ts';

const specs = cluster
  .hardwareList('h100,2*a100,a40')
  .map(hardware => ({ ...cluster.defaultReplica, hardware }));
const scale = cluster.clusterScale(specs, cluster.workloads.conversation);
const models = specs.map(cluster.replicaModel);
const counts = specs.map(cluster.emptyCounts); // what each replica last reported
const outlooks = specs.map(cluster.emptyOutlook);
const traffic = cluster.newTraffic(scale.capacityPerS / 2);
const obs = new Float32Array(cluster.clusterSpaces(specs.length).observationSpace.flatSize);
const policy = await InferenceSession.create(process.argv[2] ?? 'policy.onnx');

const server = createServer(async (request, response) => {
  const { pathname, searchParams } = new URL(request.url ?? '/', 'http://localhost');
  const value = (name: string): number => Math.max(0, Number(searchParams.get(name)) || 0);
  if (pathname === '/report' && counts[value('replica')]) {
    for (const name of [
      'running',
      'runningLeft',
      'contextTokens',
      'waiting',
      'queuedTokens',
      'usedBlocks',
    ] as const)
      counts[value('replica')]![name] = value(name);
    response.end();
    return;
  }
  if (pathname !== '/route') {
    response.writeHead(404).end();
    return;
  }
  const [promptTokens, estimatedTokens] = [Math.ceil(value('prompt')) || 1, Math.ceil(value('answer')) || 1];
  cluster.noteArrival(traffic, performance.now() / 1000);
  cluster.writeObservation({ models, counts, outlooks, promptTokens, estimatedTokens, traffic, scale }, obs);
  const { action } = await policy.run({ observation: new Tensor('float32', obs.slice(), [1, obs.length]) });
  return response.end(JSON.stringify({ replica: Number(action!.data[0]) }));
});
server.listen(Number(process.argv[3] ?? 8080), '127.0.0.1', () =>
  console.log(JSON.stringify(server.address())),
);
