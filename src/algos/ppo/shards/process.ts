/** A process of `shardProcesses`: collects the shards that it is sent, until whoever started it is gone. */
import { codeOf } from '../../../base/errors.ts';
import { messageOf } from '../../../envs/errors.ts';
import type { ShardReply } from './processes.ts';
import { shardWorker } from './worker.ts';

const worker = shardWorker();
const reply = (message: ShardReply): boolean => process.send!(message);

// Ctrl-C goes to all processes of a terminal: the run decides when its collectors end.
process.on('SIGINT', () => {});
process.on('disconnect', () => process.exit());
process.on('message', async (job: Uint8Array) => {
  try {
    reply({ result: await worker.work(job) });
  } catch (error) {
    reply({ error: { message: messageOf(error), code: codeOf(error) } });
  }
});
reply({ ready: true });
