/** A worker thread that compiles a small network and its gradient, runs it as often as it is asked to, and answers. */
import { parentPort, workerData } from 'node:worker_threads';
import { compile } from '../../../src/engine/index.ts';
import { smallNetwork } from './small-network.ts';

const { runs } = workerData as { runs: Float32Array[] };
const program = await compile(smallNetwork());
const out = runs.map(x => program.run({ x }));
program.dispose();
parentPort!.postMessage(out);
