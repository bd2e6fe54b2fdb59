/**
 * Work for the next frames, so that fifty plots never hold up one: each frame does what fits. What a script records is
 * painted after it, out of its sight, so besides its own time it counts plots, and lowers that count when frames come late.
 */
const budgetMs = 9;
const lateMs = 30;
let queue = new Set<() => void>();
let waiting = false;
let limit = 6;
let lastFrame = 0;

/** Runs a task soon, once, even if it is asked for several times; the answer takes it back. */
export function soon(task: () => void): () => void {
  queue.add(task);
  wake();
  return () => queue.delete(task);
}

function wake(): void {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(run);
}

function run(now: number): void {
  const start = performance.now();
  const since = now - lastFrame;
  lastFrame = now;
  // After a pause nothing is known of how frames go.
  if (since > lateMs && since < 400) limit = Math.max(2, limit >> 1);
  else limit = Math.min(12, limit + 0.5);
  waiting = false;
  const tasks = queue;
  queue = new Set();
  let done = 0;
  for (const task of tasks) {
    if (done >= limit || performance.now() - start > budgetMs) break;
    tasks.delete(task);
    done++;
    try {
      task();
    } catch (error) {
      // One plot that fails must not keep the others from being drawn.
      reportError(error);
    }
  }
  // Those that waited go before those that asked meanwhile.
  queue = new Set([...tasks, ...queue]);
  if (queue.size > 0) wake();
}
