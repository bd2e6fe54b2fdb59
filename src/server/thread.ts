/** The server in a thread of its own, beside training: it reads the run from the disk, as any other would. */
import { parentPort, workerData } from 'node:worker_threads';
import type { PageMessage, PageThreadData } from './page-thread.ts';
import { serve } from './serve.ts';

const port = parentPort!;
const say = (message: PageMessage): void => port.postMessage(message);
const { options } = workerData as PageThreadData;

try {
  const server = await serve({ ...options, onProblem: sentence => say({ type: 'problem', sentence }) });
  say({ type: 'ready', url: server.url, note: server.note });
  port.once('message', async () => {
    await server.close();
    say({ type: 'closed' });
    port.close();
  });
} catch (error) {
  say({ type: 'failed', message: error instanceof Error ? error.message : String(error) });
  port.close();
}
